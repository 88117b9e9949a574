// A depthwise convolution of bytes, 70 channels: a panel of 64 and a part of one, padding left out at known ends of lines.
module {
module @k1 attributes {mlc.kernel, mlc.schedule = [{block = 2 : i64, lanes = 16 : i64, row_first = 2 : i64, row_last = 2 : i64, rows = 4 : i64, template = "depthwise_quads", unroll = 1 : i64, vector_dim = 3 : i64, vectors = 4 : i64}]} {
  func.func @k1(%arg0: tensor<1x6x9x70xi8>, %arg1: tensor<3x3x1x70xi8>, %arg2: tensor<1x6x9x70xi32>) -> tensor<1x6x9x70xi32> {
    %0 = tensor.empty() : tensor<1x8x11x70xi8>
    %c1 = arith.constant 1 : index
    %c6 = arith.constant 6 : index
    %c9 = arith.constant 9 : index
    %c0 = arith.constant 0 : index
    %c0_i8 = arith.constant 0 : i8
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%0 : tensor<1x8x11x70xi8>) {
    ^bb0(%out: i8):
      %6 = linalg.index 1 : index
      %7 = arith.subi %6, %c1 : index
      %8 = arith.cmpi ult, %7, %c6 : index
      %9 = linalg.index 2 : index
      %10 = arith.subi %9, %c1 : index
      %11 = arith.cmpi ult, %10, %c9 : index
      %12 = arith.andi %8, %11 : i1
      %13 = linalg.index 3 : index
      %14 = scf.if %12 -> (i8) {
        %extracted = tensor.extract %arg0[%c0, %7, %10, %13] : tensor<1x6x9x70xi8>
        scf.yield %extracted : i8
      } else {
        scf.yield %c0_i8 : i8
      }
      linalg.yield %14 : i8
    } -> tensor<1x8x11x70xi8>
    %c0_i32 = arith.constant 0 : i32
    %2 = tensor.empty() : tensor<1x6x9x70xi32>
    %3 = linalg.fill ins(%c0_i32 : i32) outs(%2 : tensor<1x6x9x70xi32>) -> tensor<1x6x9x70xi32>
    %4 = linalg.fill ins(%c0_i32 : i32) outs(%arg2 : tensor<1x6x9x70xi32>) -> tensor<1x6x9x70xi32>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d2 + d5, d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, 0, d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%1, %arg1 : tensor<1x8x11x70xi8>, tensor<3x3x1x70xi8>) outs(%4 : tensor<1x6x9x70xi32>) attrs =  {mlc.contraction} {
    ^bb0(%in: i8, %in_0: i8, %out: i32):
      %6 = arith.extui %in : i8 to i32
      %7 = arith.extsi %in_0 : i8 to i32
      %8 = arith.muli %6, %7 : i32
      %9 = arith.addi %out, %8 : i32
      linalg.yield %9 : i32
    } -> tensor<1x6x9x70xi32>
    return %5 : tensor<1x6x9x70xi32>
  }
}}
