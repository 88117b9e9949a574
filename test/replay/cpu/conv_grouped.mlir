// Convolution of 3x3 with stride 2 in four groups.
module {
module @k1 attributes {mlc.kernel, mlc.packed, mlc.schedule = [{block = 1 : i64, lanes = 16 : i64, packed_operand = 1 : i64, panel = 16 : i64, row_first = 2 : i64, row_last = 2 : i64, rows = 8 : i64, template = "contraction", unroll = 4 : i64, vector_dim = 4 : i64, vectors = 1 : i64}]} {
  func.func @k1(%arg0: tensor<1x8x8x4x8xf32>, %arg1: tensor<4x1x3x3x8x16xf32>, %arg2: tensor<1x4x4x4x8xf32>) -> tensor<1x4x4x4x8xf32> {
    %0 = tensor.empty() : tensor<1x10x10x4x8xf32>
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0.000000e+00 : f32
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} outs(%0 : tensor<1x10x10x4x8xf32>) {
    ^bb0(%out: f32):
      %6 = linalg.index 1 : index
      %7 = arith.subi %6, %c1 : index
      %8 = arith.cmpi ult, %7, %c8 : index
      %9 = linalg.index 2 : index
      %10 = arith.subi %9, %c1 : index
      %11 = arith.cmpi ult, %10, %c8 : index
      %12 = arith.andi %8, %11 : i1
      %13 = linalg.index 3 : index
      %14 = linalg.index 4 : index
      %15 = scf.if %12 -> (f32) {
        %extracted = tensor.extract %arg0[%c0, %7, %10, %13, %14] : tensor<1x8x8x4x8xf32>
        scf.yield %extracted : f32
      } else {
        scf.yield %cst : f32
      }
      linalg.yield %15 : f32
    } -> tensor<1x10x10x4x8xf32>
    %2 = tensor.empty() : tensor<1x4x4x4x8xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<1x4x4x4x8xf32>) -> tensor<1x4x4x4x8xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%arg2 : tensor<1x4x4x4x8xf32>) -> tensor<1x4x4x4x8xf32>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1 * 2 + d5, d2 * 2 + d6, d3, d7)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d3, d4 floordiv 16, d5, d6, d7, d4 mod 16)>, affine_map<(d0, d1, d2, d3, d4, d5, d6, d7) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%1, %arg1 : tensor<1x10x10x4x8xf32>, tensor<4x1x3x3x8x16xf32>) outs(%4 : tensor<1x4x4x4x8xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %6 = arith.mulf %in, %in_0 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<1x4x4x4x8xf32>
    return %5 : tensor<1x4x4x4x8xf32>
  }
}
}
