// Product of bf16 pairs with 56 columns: the last eight are half a vector.
module {
module @k1 attributes {mlc.kernel, mlc.packed, mlc.schedule = [{block = 8 : i64, instruction = "vdpbf16ps", lanes = 16 : i64, packed_operand = 1 : i64, panel = 64 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 6 : i64, stored = "pairs", tail = 8 : i64, template = "dot_product", unroll = 4 : i64, vector_dim = 1 : i64, vector_operand = 1 : i64, vectors = 4 : i64}]} {
  func.func @k1(%arg0: tensor<?x64xbf16>, %arg1: tensor<1x32x64x2xbf16>, %arg2: index, %arg3: tensor<?x56xf32>) -> tensor<?x56xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty(%arg2) : tensor<?x56xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<?x56xf32>) -> tensor<?x56xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%arg3 : tensor<?x56xf32>) -> tensor<?x56xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1 floordiv 64, d2 floordiv 2, d1 mod 64, d2 mod 2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<?x64xbf16>, tensor<1x32x64x2xbf16>) outs(%2 : tensor<?x56xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<?x56xf32>
    return %3 : tensor<?x56xf32>
  }
}
}
