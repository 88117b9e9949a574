// Softmax of rows of 1024: x is loaded before exponentials are stored, and these may be subnormal numbers.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{block = 0 : i64, early = 4 : i64, first = 1 : i64, grid = 1 : i64, lanes = 16 : i64, last = 1 : i64, scalef = 3 : i64, template = "loops"}]} {
  func.func @k0(%arg0: tensor<?x1024xf32>, %arg1: index, %arg2: index, %arg3: tensor<?x1024xf32>) -> tensor<?x1024xf32> {
    %cst = arith.constant 0xFF800000 : f32
    %0 = tensor.empty(%arg1) : tensor<?xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<?xf32>) -> tensor<?xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<?x1024xf32>) outs(%1 : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = arith.maximumf %out, %in : f32
      linalg.yield %10 : f32
    } -> tensor<?xf32>
    %3 = tensor.empty(%arg2) : tensor<?x1024xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0, %2 : tensor<?x1024xf32>, tensor<?xf32>) outs(%3 : tensor<?x1024xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %10 = arith.subf %in, %in_1 : f32
      linalg.yield %10 : f32
    } -> tensor<?x1024xf32>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<?x1024xf32>) outs(%3 : tensor<?x1024xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = math.exp %in : f32
      linalg.yield %10 : f32
    } -> tensor<?x1024xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %6 = tensor.empty(%arg2) : tensor<?xf32>
    %7 = linalg.fill ins(%cst_0 : f32) outs(%6 : tensor<?xf32>) -> tensor<?xf32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%5 : tensor<?x1024xf32>) outs(%7 : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = arith.addf %out, %in : f32
      linalg.yield %10 : f32
    } -> tensor<?xf32>
    %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%5, %8 : tensor<?x1024xf32>, tensor<?xf32>) outs(%arg3 : tensor<?x1024xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %10 = arith.divf %in, %in_1 : f32
      linalg.yield %10 : f32
    } -> tensor<?x1024xf32>
    return %9 : tensor<?x1024xf32>
  }
}
}
