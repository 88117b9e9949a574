// Sums of long columns: lines are fetched ahead.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{block = 256 : i64, first = 0 : i64, grid = 0 : i64, lanes = 256 : i64, last = 0 : i64, template = "loops"}]} {
  func.func @k0(%arg0: tensor<4096x1024xf32>, %arg1: tensor<1024xf32>) -> tensor<1024xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1024xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1024xf32>) -> tensor<1024xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%arg1 : tensor<1024xf32>) -> tensor<1024xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]} ins(%arg0 : tensor<4096x1024xf32>) outs(%2 : tensor<1024xf32>) {
    ^bb0(%in: f32, %out: f32):
      %4 = arith.addf %out, %in : f32
      linalg.yield %4 : f32
    } -> tensor<1024xf32>
    return %3 : tensor<1024xf32>
  }
}
}
