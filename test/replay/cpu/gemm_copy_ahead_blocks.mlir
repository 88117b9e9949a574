// A product of two run-time operands: while tiles multiply a panel of the right one they copy the next block of its lines, the last of which is
// shorter.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{ahead = 512 : i64, block = 86 : i64, depth = 150 : i64, lanes = 16 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 6 : i64, template = "copy_ahead", unroll = 1 : i64, vector_dim = 1 : i64, vector_operand = 1 : i64, vectors = 4 : i64}]} {
  func.func @k0(%arg0: tensor<512x256xf32>, %arg1: tensor<256x500xf32>, %arg2: tensor<512x500xf32>) -> tensor<512x500xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = linalg.fill ins(%cst : f32) outs(%arg2 : tensor<512x500xf32>) -> tensor<512x500xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<512x256xf32>, tensor<256x500xf32>) outs(%0 : tensor<512x500xf32>) attrs = {mlc.contraction} {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %2 = arith.mulf %in, %in_0 : f32
      %3 = arith.addf %out, %2 : f32
      linalg.yield %3 : f32
    } -> tensor<512x500xf32>
    return %1 : tensor<512x500xf32>
  }
}
}
