// Convolution of bf16 in f32: a block is a line of three taps, of four lines of the image.
module {
module @k1 attributes {mlc.kernel, mlc.packed, mlc.schedule = [{block = 2 : i64, depth = 1 : i64, lanes = 16 : i64, line_dim = 1 : i64, lines = 4 : i64, outer = 0 : i64, packed_operand = 1 : i64, panel = 48 : i64, row_first = 2 : i64, row_last = 2 : i64, rows = 8 : i64, side = 3 : i64, stored = "pairs", template = "dot_floats", unroll = 4 : i64, vector_dim = 3 : i64, vector_operand = 1 : i64, vectors = 3 : i64}]} {
  func.func @k1(%arg0: tensor<1x14x14x16xbf16>, %arg1: tensor<1x3x3x8x48x2xbf16>, %arg2: tensor<1x14x14x48xf32>) -> tensor<1x14x14x48xf32> {
    %0 = tensor.empty() : tensor<1x16x16x16xbf16>
    %c1 = arith.constant 1 : index
    %c14 = arith.constant 14 : index
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0.000000e+00 : bf16
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%0 : tensor<1x16x16x16xbf16>) {
    ^bb0(%out: bf16):
      %6 = linalg.index 1 : index
      %7 = arith.subi %6, %c1 : index
      %8 = arith.cmpi ult, %7, %c14 : index
      %9 = linalg.index 2 : index
      %10 = arith.subi %9, %c1 : index
      %11 = arith.cmpi ult, %10, %c14 : index
      %12 = arith.andi %8, %11 : i1
      %13 = linalg.index 3 : index
      %14 = scf.if %12 -> (bf16) {
        %extracted = tensor.extract %arg0[%c0, %7, %10, %13] : tensor<1x14x14x16xbf16>
        scf.yield %extracted : bf16
      } else {
        scf.yield %cst : bf16
      }
      linalg.yield %14 : bf16
    } -> tensor<1x16x16x16xbf16>
    %cst_0 = arith.constant 0.000000e+00 : f32
    %2 = tensor.empty() : tensor<1x14x14x48xf32>
    %3 = linalg.fill ins(%cst_0 : f32) outs(%2 : tensor<1x14x14x48xf32>) -> tensor<1x14x14x48xf32>
    %4 = linalg.fill ins(%cst_0 : f32) outs(%arg2 : tensor<1x14x14x48xf32>) -> tensor<1x14x14x48xf32>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3 floordiv 48, d4, d5, d6 floordiv 2, d3 mod 48, d6 mod 2)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%1, %arg1 : tensor<1x16x16x16xbf16>, tensor<1x3x3x8x48x2xbf16>) outs(%4 : tensor<1x14x14x48xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_1: bf16, %out: f32):
      %6 = arith.extf %in : bf16 to f32
      %7 = arith.extf %in_1 : bf16 to f32
      %8 = arith.mulf %6, %7 : f32
      %9 = arith.addf %out, %8 : f32
      linalg.yield %9 : f32
    } -> tensor<1x14x14x48xf32>
    return %5 : tensor<1x14x14x48xf32>
  }
}
}
