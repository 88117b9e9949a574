// Convolution of 3x3 on matrix tiles, with rows over all lines of a copied image, a column of zeros between two of them.
module {
module @window attributes {mlc.kernel, mlc.packed, mlc.schedule = [{block = 2 : i64, flat = 15 : i64, halo = 1 : i64, instruction = "tdpbf16ps", lanes = 16 : i64, packed_operand = 1 : i64, panel = 32 : i64, row_first = 1 : i64, row_last = 2 : i64, rows = 32 : i64, stored = "tiles", template = "tile_product", unroll = 1 : i64, vector_dim = 3 : i64, vector_operand = 1 : i64, vectors = 2 : i64}]} {
  func.func @window(%arg0: tensor<1x14x14x64xbf16>, %arg1: tensor<2x3x3x32x32x2xbf16>, %arg2: tensor<1x14x14x48xf32>) -> tensor<1x14x14x48xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = linalg.fill ins(%cst : f32) outs(%arg2 : tensor<1x14x14x48xf32>) -> tensor<1x14x14x48xf32>
    %cst_0 = arith.constant 0.000000e+00 : bf16
    %c1 = arith.constant 1 : index
    %c14 = arith.constant 14 : index
    %1 = tensor.empty() : tensor<1x16x16x64xbf16>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%1 : tensor<1x16x16x64xbf16>) {
    ^bb0(%out: bf16):
      %4 = linalg.index 0 : index
      %5 = linalg.index 1 : index
      %6 = linalg.index 2 : index
      %7 = linalg.index 3 : index
      %8 = arith.subi %5, %c1 : index
      %9 = arith.subi %6, %c1 : index
      %10 = arith.cmpi ult, %8, %c14 : index
      %11 = arith.cmpi ult, %9, %c14 : index
      %12 = arith.andi %10, %11 : i1
      %13 = scf.if %12 -> (bf16) {
        %extracted = tensor.extract %arg0[%4, %8, %9, %7] : tensor<1x14x14x64xbf16>
        scf.yield %extracted : bf16
      } else {
        scf.yield %cst_0 : bf16
      }
      linalg.yield %13 : bf16
    } -> tensor<1x16x16x64xbf16>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3 floordiv 32, d4, d5, d6 floordiv 2, d3 mod 32, d6 mod 2)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%2, %arg1 : tensor<1x16x16x64xbf16>, tensor<2x3x3x32x32x2xbf16>) outs(%0 : tensor<1x14x14x48xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_1: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_1 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<1x14x14x48xf32>
    return %3 : tensor<1x14x14x48xf32>
  }
}
}
