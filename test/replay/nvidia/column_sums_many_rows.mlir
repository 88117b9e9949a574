// Sums of columns of bf16: the threads of a warp that share columns combine their parts by shuffles first.
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{first = 0 : i64, lanes = 8 : i64, last = 0 : i64, split = 128 : i64, template = "columns", threads = 512 : i64}]} {
  func.func @k0(%arg0: tensor<16384x4096xbf16>, %arg1: tensor<4096xbf16>) -> tensor<4096xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<4096xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<4096xf32>) -> tensor<4096xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]} ins(%arg0 : tensor<16384x4096xbf16>) outs(%1 : tensor<4096xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %5 = arith.extf %in : bf16 to f32
      %6 = arith.addf %out, %5 : f32
      linalg.yield %6 : f32
    } -> tensor<4096xf32>
    %3 = tensor.empty() : tensor<4096xbf16>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%2 : tensor<4096xf32>) outs(%arg1 : tensor<4096xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %5 = arith.truncf %in : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<4096xbf16>
    return %4 : tensor<4096xbf16>
  }
}
}
