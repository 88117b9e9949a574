// GELU of rows of 40: two vectors and a tail.
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{first = 0 : i64, lanes = 4 : i64, last = 1 : i64, template = "elementwise", threads = 256 : i64}]} {
  func.func @k0(%arg0: tensor<?x40xf32>, %arg1: index, %arg2: index, %arg3: tensor<?x40xf32>) -> tensor<?x40xf32> {
    %0 = tensor.empty(%arg1) : tensor<?x40xf32>
    %cst = arith.constant 0.707106769 : f32
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<?x40xf32>) outs(%0 : tensor<?x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = arith.mulf %in, %cst : f32
      linalg.yield %7 : f32
    } -> tensor<?x40xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<?x40xf32>) outs(%0 : tensor<?x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = math.erf %in : f32
      linalg.yield %7 : f32
    } -> tensor<?x40xf32>
    %cst_0 = arith.constant 5.000000e-01 : f32
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<?x40xf32>) outs(%0 : tensor<?x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = arith.mulf %in, %cst_0 : f32
      linalg.yield %7 : f32
    } -> tensor<?x40xf32>
    %cst_1 = arith.constant 1.000000e+00 : f32
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<?x40xf32>) outs(%0 : tensor<?x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = arith.addf %in, %cst_1 : f32
      linalg.yield %7 : f32
    } -> tensor<?x40xf32>
    %5 = tensor.empty(%arg2) : tensor<?x40xf32>
    %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%3, %4 : tensor<?x40xf32>, tensor<?x40xf32>) outs(%arg3 : tensor<?x40xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %7 = arith.mulf %in, %in_2 : f32
      linalg.yield %7 : f32
    } -> tensor<?x40xf32>
    return %6 : tensor<?x40xf32>
  }
}
}
