// Softmax of rows of 18000 halves in shared memory.
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{blocks = 5 : i64, early = 1 : i64, first = 1 : i64, group = 192 : i64, kept = 0 : i64, lanes = 8 : i64, staged = 1 : i64, template = "rows", threads = 192 : i64}]} {
  func.func @k0(%arg0: tensor<133x18000xf16>, %arg1: tensor<133x18000xf16>) -> tensor<133x18000xf16> {
    %0 = tensor.empty() : tensor<133x18000xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<133x18000xf16>) outs(%0 : tensor<133x18000xf32>) {
    ^bb0(%in: f16, %out: f32):
      %12 = arith.extf %in : f16 to f32
      linalg.yield %12 : f32
    } -> tensor<133x18000xf32>
    %cst = arith.constant 0xFF800000 : f32
    %2 = tensor.empty() : tensor<133xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<133xf32>) -> tensor<133xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%1 : tensor<133x18000xf32>) outs(%3 : tensor<133xf32>) {
    ^bb0(%in: f32, %out: f32):
      %12 = arith.maximumf %out, %in : f32
      linalg.yield %12 : f32
    } -> tensor<133xf32>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%1, %4 : tensor<133x18000xf32>, tensor<133xf32>) outs(%0 : tensor<133x18000xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %12 = arith.subf %in, %in_1 : f32
      linalg.yield %12 : f32
    } -> tensor<133x18000xf32>
    %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<133x18000xf32>) outs(%0 : tensor<133x18000xf32>) {
    ^bb0(%in: f32, %out: f32):
      %12 = math.exp %in : f32
      linalg.yield %12 : f32
    } -> tensor<133x18000xf32>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %7 = linalg.fill ins(%cst_0 : f32) outs(%2 : tensor<133xf32>) -> tensor<133xf32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%6 : tensor<133x18000xf32>) outs(%7 : tensor<133xf32>) {
    ^bb0(%in: f32, %out: f32):
      %12 = arith.addf %out, %in : f32
      linalg.yield %12 : f32
    } -> tensor<133xf32>
    %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%6, %8 : tensor<133x18000xf32>, tensor<133xf32>) outs(%0 : tensor<133x18000xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %12 = arith.divf %in, %in_1 : f32
      linalg.yield %12 : f32
    } -> tensor<133x18000xf32>
    %10 = tensor.empty() : tensor<133x18000xf16>
    %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<133x18000xf32>) outs(%arg1 : tensor<133x18000xf16>) {
    ^bb0(%in: f32, %out: f16):
      %12 = arith.truncf %in : f32 to f16
      linalg.yield %12 : f16
    } -> tensor<133x18000xf16>
    return %11 : tensor<133x18000xf16>
  }
}
}
