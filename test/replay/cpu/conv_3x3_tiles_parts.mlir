// Convolution of 3x3 on matrix tiles: three lines of the image meet the whole weight, and fetch its next panel.
module {
module @k0 attributes {mlc.kernel, mlc.packed, mlc.schedule = [{ahead = 64 : i64, block = 1 : i64, instruction = "tdpbf16ps", lanes = 16 : i64, packed_operand = 1 : i64, panel = 32 : i64, part = 3 : i64, row_first = 2 : i64, row_last = 2 : i64, rows = 32 : i64, stored = "tiles", template = "tile_product", unroll = 1 : i64, vector_dim = 3 : i64, vector_operand = 1 : i64, vectors = 2 : i64}]} {
  func.func @k0(%arg0: tensor<1x9x19x40xbf16>, %arg1: tensor<1x3x3x32x32x2xbf16>, %arg2: tensor<32xf32>, %arg3: tensor<1x9x19x32xf32>) -> tensor<1x9x19x32xf32> {
    %0 = tensor.empty() : tensor<1x11x21x40xbf16>
    %c1 = arith.constant 1 : index
    %c9 = arith.constant 9 : index
    %c0 = arith.constant 0 : index
    %c19 = arith.constant 19 : index
    %zero = arith.constant 0.000000e+00 : bf16
    %cst = arith.constant 0.000000e+00 : f32
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%0 : tensor<1x11x21x40xbf16>) {
    ^bb0(%out: bf16):
      %6 = linalg.index 1 : index
      %7 = arith.subi %6, %c1 : index
      %8 = arith.cmpi ult, %7, %c9 : index
      %9 = linalg.index 2 : index
      %10 = arith.subi %9, %c1 : index
      %11 = arith.cmpi ult, %10, %c19 : index
      %12 = arith.andi %8, %11 : i1
      %13 = linalg.index 3 : index
      %14 = scf.if %12 -> (bf16) {
        %extracted = tensor.extract %arg0[%c0, %7, %10, %13] : tensor<1x9x19x40xbf16>
        scf.yield %extracted : bf16
      } else {
        scf.yield %zero : bf16
      }
      linalg.yield %14 : bf16
    } -> tensor<1x11x21x40xbf16>
    %2 = tensor.empty() : tensor<1x9x19x32xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<1x9x19x32xf32>) -> tensor<1x9x19x32xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3 floordiv 32, d4, d5, d6 floordiv 2, d3 mod 32, d6 mod 2)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%1, %arg1 : tensor<1x11x21x40xbf16>, tensor<1x3x3x32x32x2xbf16>) outs(%3 : tensor<1x9x19x32xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %6 = arith.extf %in : bf16 to f32
      %7 = arith.extf %in_0 : bf16 to f32
      %8 = arith.mulf %6, %7 : f32
      %9 = arith.addf %out, %8 : f32
      linalg.yield %9 : f32
    } -> tensor<1x9x19x32xf32>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4, %arg2 : tensor<1x9x19x32xf32>, tensor<32xf32>) outs(%arg3 : tensor<1x9x19x32xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %6 = arith.addf %in, %in_0 : f32
      linalg.yield %6 : f32
    } -> tensor<1x9x19x32xf32>
    return %5 : tensor<1x9x19x32xf32>
  }
}
}
