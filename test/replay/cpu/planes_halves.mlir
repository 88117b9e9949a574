// Depthwise convolution of 3x3, strided, that stands alone: taps within halves of vectors, ends of lines in parts.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{halves = 1 : i64, lanes = 8 : i64, pieces = 1 : i64, rows = 4 : i64, template = "planes"}]} {
  func.func @k0(%arg0: tensor<1x576x14x14xf32>, %arg1: tensor<576x1x3x3xf32>, %arg2: tensor<576xf32>, %arg3: tensor<1x576x7x7xf32>) -> tensor<1x576x7x7xf32> {
    %0 = tensor.empty() : tensor<1x576x16x16xf32>
    %c1 = arith.constant 1 : index
    %c14 = arith.constant 14 : index
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0.000000e+00 : f32
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%0 : tensor<1x576x16x16xf32>) {
    ^bb0(%out: f32):
      %6 = linalg.index 1 : index
      %7 = linalg.index 2 : index
      %8 = arith.subi %7, %c1 : index
      %9 = arith.cmpi ult, %8, %c14 : index
      %10 = linalg.index 3 : index
      %11 = arith.subi %10, %c1 : index
      %12 = arith.cmpi ult, %11, %c14 : index
      %13 = arith.andi %9, %12 : i1
      %14 = scf.if %13 -> (f32) {
        %extracted = tensor.extract %arg0[%c0, %6, %8, %11] : tensor<1x576x14x14xf32>
        scf.yield %extracted : f32
      } else {
        scf.yield %cst : f32
      }
      linalg.yield %14 : f32
    } -> tensor<1x576x16x16xf32>
    %2 = tensor.empty() : tensor<1x576x7x7xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<1x576x7x7xf32>) -> tensor<1x576x7x7xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2 * 2 + d4, d3 * 2 + d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d1, 0, d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%1, %arg1 : tensor<1x576x16x16xf32>, tensor<576x1x3x3xf32>) outs(%3 : tensor<1x576x7x7xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %6 = arith.mulf %in, %in_0 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<1x576x7x7xf32>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4, %arg2 : tensor<1x576x7x7xf32>, tensor<576xf32>) outs(%arg3 : tensor<1x576x7x7xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %6 = arith.addf %in, %in_0 : f32
      linalg.yield %6 : f32
    } -> tensor<1x576x7x7xf32>
    return %5 : tensor<1x576x7x7xf32>
  }
}
}
