// GELU of a sum with a bias: a thread does an element of eight rows.
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{first = 1 : i64, lanes = 1 : i64, last = 1 : i64, rows = 8 : i64, template = "elementwise", threads = 256 : i64}]} {
  func.func @k0(%arg0: tensor<67000x1001xbf16>, %arg1: tensor<1001xbf16>, %arg2: tensor<67000x1001xbf16>) -> tensor<67000x1001xbf16> {
    %0 = tensor.empty() : tensor<67000x1001xbf16>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<67000x1001xbf16>, tensor<1001xbf16>) outs(%0 : tensor<67000x1001xbf16>) {
    ^bb0(%in: bf16, %in_2: bf16, %out: bf16):
      %10 = arith.extf %in : bf16 to f32
      %11 = arith.extf %in_2 : bf16 to f32
      %12 = arith.addf %10, %11 : f32
      %13 = arith.truncf %12 : f32 to bf16
      linalg.yield %13 : bf16
    } -> tensor<67000x1001xbf16>
    %2 = tensor.empty() : tensor<67000x1001xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<67000x1001xbf16>) outs(%2 : tensor<67000x1001xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %10 = arith.extf %in : bf16 to f32
      linalg.yield %10 : f32
    } -> tensor<67000x1001xf32>
    %cst = arith.constant 0.707106769 : f32
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<67000x1001xf32>) outs(%2 : tensor<67000x1001xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = arith.mulf %in, %cst : f32
      linalg.yield %10 : f32
    } -> tensor<67000x1001xf32>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<67000x1001xf32>) outs(%2 : tensor<67000x1001xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = math.erf %in : f32
      linalg.yield %10 : f32
    } -> tensor<67000x1001xf32>
    %cst_0 = arith.constant 5.000000e-01 : f32
    %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<67000x1001xf32>) outs(%2 : tensor<67000x1001xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = arith.mulf %in, %cst_0 : f32
      linalg.yield %10 : f32
    } -> tensor<67000x1001xf32>
    %cst_1 = arith.constant 1.000000e+00 : f32
    %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<67000x1001xf32>) outs(%2 : tensor<67000x1001xf32>) {
    ^bb0(%in: f32, %out: f32):
      %10 = arith.addf %in, %cst_1 : f32
      linalg.yield %10 : f32
    } -> tensor<67000x1001xf32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%6, %7 : tensor<67000x1001xf32>, tensor<67000x1001xf32>) outs(%2 : tensor<67000x1001xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %10 = arith.mulf %in, %in_2 : f32
      linalg.yield %10 : f32
    } -> tensor<67000x1001xf32>
    %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<67000x1001xf32>) outs(%arg2 : tensor<67000x1001xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %10 = arith.truncf %in : f32 to bf16
      linalg.yield %10 : bf16
    } -> tensor<67000x1001xbf16>
    return %9 : tensor<67000x1001xbf16>
  }
}
}
