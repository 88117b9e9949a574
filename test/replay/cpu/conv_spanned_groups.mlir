// Convolution of 3x3 in five groups of four filters: vectors go across groups, the last one has four lanes.
module {
module @k0 attributes {mlc.kernel, mlc.packed, mlc.schedule = [{block = 1 : i64, lanes = 16 : i64, packed_operand = 1 : i64, panel = 32 : i64, row_first = 2 : i64, row_last = 2 : i64, rows = 8 : i64, template = "contraction", unroll = 4 : i64, vector_dim = 3 : i64, vectors = 2 : i64}]} {
  func.func @k0(%arg0: tensor<1x6x6x20xf32>, %arg1: tensor<1x3x3x4x32xf32>, %arg2: tensor<20xf32>, %arg3: tensor<1x6x6x20xf32>, %arg4: tensor<1x6x6x20xf32>) -> tensor<1x6x6x20xf32> {
    %0 = tensor.empty() : tensor<1x8x8x20xf32>
    %c1 = arith.constant 1 : index
    %c6 = arith.constant 6 : index
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0.000000e+00 : f32
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%0 : tensor<1x8x8x20xf32>) {
    ^bb0(%out: f32):
      %8 = linalg.index 1 : index
      %9 = arith.subi %8, %c1 : index
      %10 = arith.cmpi ult, %9, %c6 : index
      %11 = linalg.index 2 : index
      %12 = arith.subi %11, %c1 : index
      %13 = arith.cmpi ult, %12, %c6 : index
      %14 = arith.andi %10, %13 : i1
      %15 = linalg.index 3 : index
      %16 = scf.if %14 -> (f32) {
        %extracted = tensor.extract %arg0[%c0, %9, %12, %15] : tensor<1x6x6x20xf32>
        scf.yield %extracted : f32
      } else {
        scf.yield %cst : f32
      }
      linalg.yield %16 : f32
    } -> tensor<1x8x8x20xf32>
    %2 = tensor.empty() : tensor<1x6x6x20xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<1x6x6x20xf32>) -> tensor<1x6x6x20xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, (d3 floordiv 4) * 4 + d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d3 floordiv 32, d4, d5, d6, d3 mod 32)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%1, %arg1 : tensor<1x8x8x20xf32>, tensor<1x3x3x4x32xf32>) outs(%3 : tensor<1x6x6x20xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %8 = arith.mulf %in, %in_0 : f32
      %9 = arith.addf %out, %8 : f32
      linalg.yield %9 : f32
    } -> tensor<1x6x6x20xf32>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4, %arg2 : tensor<1x6x6x20xf32>, tensor<20xf32>) outs(%2 : tensor<1x6x6x20xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %8 = arith.addf %in, %in_0 : f32
      linalg.yield %8 : f32
    } -> tensor<1x6x6x20xf32>
    %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %arg3 : tensor<1x6x6x20xf32>, tensor<1x6x6x20xf32>) outs(%2 : tensor<1x6x6x20xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %8 = arith.addf %in, %in_0 : f32
      linalg.yield %8 : f32
    } -> tensor<1x6x6x20xf32>
    %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6 : tensor<1x6x6x20xf32>) outs(%arg4 : tensor<1x6x6x20xf32>) {
    ^bb0(%in: f32, %out: f32):
      %8 = arith.maximumf %in, %cst : f32
      linalg.yield %8 : f32
    } -> tensor<1x6x6x20xf32>
    return %7 : tensor<1x6x6x20xf32>
  }
}
}
