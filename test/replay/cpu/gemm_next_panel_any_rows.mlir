// Product with a packed weight and rows that only a run counts: full tiles fetch the next panel, in two lines a step at most.
module {
module @k0 attributes {mlc.kernel, mlc.packed, mlc.schedule = [{ahead = -24 : i64, block = 8 : i64, lanes = 16 : i64, packed_operand = 1 : i64, panel = 64 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 6 : i64, template = "contraction", unroll = 4 : i64, vector_dim = 1 : i64, vectors = 4 : i64}]} {
  func.func @k0(%arg0: tensor<?x300xf32>, %arg1: tensor<2x300x64xf32>, %arg2: tensor<?x100xf32>) -> tensor<?x100xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = linalg.fill ins(%cst : f32) outs(%arg2 : tensor<?x100xf32>) -> tensor<?x100xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1 floordiv 64, d2, d1 mod 64)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<?x300xf32>, tensor<2x300x64xf32>) outs(%0 : tensor<?x100xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %5 = arith.mulf %in, %in_0 : f32
      %6 = arith.addf %out, %5 : f32
      linalg.yield %6 : f32
    } -> tensor<?x100xf32>
    return %1 : tensor<?x100xf32>
  }
}
}
