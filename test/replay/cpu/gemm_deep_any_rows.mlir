// Product whose reduction goes in two blocks, of rows that only a run counts.
module {
module @k0 attributes {mlc.kernel, mlc.packed, mlc.schedule = [{ahead = -24 : i64, block = 16 : i64, depth = 32 : i64, lanes = 16 : i64, packed_operand = 1 : i64, panel = 64 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 6 : i64, tail = 8 : i64, template = "deep_contraction", unroll = 4 : i64, vector_dim = 1 : i64, vectors = 4 : i64}]} {
  func.func @k0(%arg0: tensor<?x64xf32>, %arg1: tensor<2x64x64xf32>, %arg2: tensor<100xf32>, %arg3: tensor<?x100xf32>) -> tensor<?x100xf32> {
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0.000000e+00 : f32
    %d = tensor.dim %arg0, %c0 : tensor<?x64xf32>
    %0 = tensor.empty(%d) : tensor<?x100xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<?x100xf32>) -> tensor<?x100xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1 floordiv 64, d2, d1 mod 64)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<?x64xf32>, tensor<2x64x64xf32>) outs(%1 : tensor<?x100xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %5 = arith.mulf %in, %in_0 : f32
      %6 = arith.addf %out, %5 : f32
      linalg.yield %6 : f32
    } -> tensor<?x100xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<?x100xf32>, tensor<100xf32>) outs(%arg3 : tensor<?x100xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %5 = arith.addf %in, %in_0 : f32
      linalg.yield %5 : f32
    } -> tensor<?x100xf32>
    return %3 : tensor<?x100xf32>
  }
}
}
