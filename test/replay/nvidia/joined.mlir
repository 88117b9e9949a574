// Two rotations of another number of heads, and a vector that is no multiple of an access, side by side.
module {
module @k0 attributes {mlc.kernel, mlc.parts = array<i64: 1, 1, 1>, mlc.placement = "device", mlc.schedule = [{early = 1 : i64, first = "2 2 0", flat = "0 0 0", lanes = "8 8 4", last = "2 2 0", rows = "1 1 1", template = "joined", threads = 256 : i64}]} {
  func.func @k0(%arg0: tensor<32x2x32xbf16>, %arg1: tensor<8x?x32xbf16>, %arg2: tensor<32xbf16>, %arg3: tensor<1001xf32>, %o0: tensor<32x2x32xbf16>, %o1: tensor<8x?x32xbf16>, %o2: tensor<1001xf32>) -> (tensor<32x2x32xbf16>, tensor<8x?x32xbf16>, tensor<1001xf32>) {
    %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %arg2 : tensor<32x2x32xbf16>, tensor<32xbf16>) outs(%o0 : tensor<32x2x32xbf16>) {
    ^bb0(%in: bf16, %in_1: bf16, %out: bf16):
      %3 = arith.extf %in : bf16 to f32
      %4 = arith.extf %in_1 : bf16 to f32
      %5 = arith.mulf %3, %4 : f32
      %6 = arith.truncf %5 : f32 to bf16
      linalg.yield %6 : bf16
    } -> tensor<32x2x32xbf16>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1, %arg2 : tensor<8x?x32xbf16>, tensor<32xbf16>) outs(%o1 : tensor<8x?x32xbf16>) {
    ^bb0(%in: bf16, %in_1: bf16, %out: bf16):
      %3 = arith.extf %in : bf16 to f32
      %4 = arith.extf %in_1 : bf16 to f32
      %5 = arith.mulf %3, %4 : f32
      %6 = arith.truncf %5 : f32 to bf16
      linalg.yield %6 : bf16
    } -> tensor<8x?x32xbf16>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%arg3 : tensor<1001xf32>) outs(%o2 : tensor<1001xf32>) {
    ^bb0(%in: f32, %out: f32):
      %3 = arith.negf %in : f32
      linalg.yield %3 : f32
    } -> tensor<1001xf32>
    return %0, %1, %2 : tensor<32x2x32xbf16>, tensor<8x?x32xbf16>, tensor<1001xf32>
  }
}
}
