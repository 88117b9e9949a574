// Softmax of odd rows of 33001, each in the shared memory of two blocks.
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{blocks = 3 : i64, cluster = 2 : i64, early = 1 : i64, first = 1 : i64, group = 192 : i64, kept = 0 : i64, lanes = 4 : i64, odd = 1 : i64, staged = 1 : i64, template = "rows", threads = 192 : i64}]} {
  func.func @k0(%arg0: tensor<134x33001xf32>, %arg1: tensor<134x33001xf32>) -> tensor<134x33001xf32> {
    %cst = arith.constant 0xFF800000 : f32
    %0 = tensor.empty() : tensor<134xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<134xf32>) -> tensor<134xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<134x33001xf32>) outs(%1 : tensor<134xf32>) {
    ^bb0(%in: f32, %out: f32):
      %9 = arith.maximumf %out, %in : f32
      linalg.yield %9 : f32
    } -> tensor<134xf32>
    %3 = tensor.empty() : tensor<134x33001xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0, %2 : tensor<134x33001xf32>, tensor<134xf32>) outs(%3 : tensor<134x33001xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %9 = arith.subf %in, %in_1 : f32
      linalg.yield %9 : f32
    } -> tensor<134x33001xf32>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<134x33001xf32>) outs(%3 : tensor<134x33001xf32>) {
    ^bb0(%in: f32, %out: f32):
      %9 = math.exp %in : f32
      linalg.yield %9 : f32
    } -> tensor<134x33001xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %6 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<134xf32>) -> tensor<134xf32>
    %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%5 : tensor<134x33001xf32>) outs(%6 : tensor<134xf32>) {
    ^bb0(%in: f32, %out: f32):
      %9 = arith.addf %out, %in : f32
      linalg.yield %9 : f32
    } -> tensor<134xf32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%5, %7 : tensor<134x33001xf32>, tensor<134xf32>) outs(%arg1 : tensor<134x33001xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %9 = arith.divf %in, %in_1 : f32
      linalg.yield %9 : f32
    } -> tensor<134x33001xf32>
    return %8 : tensor<134x33001xf32>
  }
}
}
