// Maxima of padded windows, channels last: taps in the padding are left out.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{block = 0 : i64, first = 3 : i64, grid = 3 : i64, lanes = 8 : i64, last = 3 : i64, template = "loops"}]} {
  func.func @k0(%arg0: tensor<1x112x112x64xf32>, %arg1: tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32> {
    %0 = tensor.empty() : tensor<1x114x114x64xf32>
    %c1 = arith.constant 1 : index
    %c112 = arith.constant 112 : index
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0xFF800000 : f32
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%0 : tensor<1x114x114x64xf32>) {
    ^bb0(%out: f32):
      %7 = linalg.index 1 : index
      %8 = arith.subi %7, %c1 : index
      %9 = arith.cmpi ult, %8, %c112 : index
      %10 = linalg.index 2 : index
      %11 = arith.subi %10, %c1 : index
      %12 = arith.cmpi ult, %11, %c112 : index
      %13 = arith.andi %9, %12 : i1
      %14 = linalg.index 3 : index
      %15 = scf.if %13 -> (f32) {
        %extracted = tensor.extract %arg0[%c0, %8, %11, %14] : tensor<1x112x112x64xf32>
        scf.yield %extracted : f32
      } else {
        scf.yield %cst : f32
      }
      linalg.yield %15 : f32
    } -> tensor<1x114x114x64xf32>
    %2 = tensor.empty() : tensor<3x3xf32>
    %3 = tensor.empty() : tensor<1x56x56x64xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%arg1 : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
    %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 * 2 + d4, d2 * 2 + d5, d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%1, %2 : tensor<1x114x114x64xf32>, tensor<3x3xf32>) outs(%5 : tensor<1x56x56x64xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %7 = arith.maximumf %out, %in : f32
      linalg.yield %7 : f32
    } -> tensor<1x56x56x64xf32>
    return %6 : tensor<1x56x56x64xf32>
  }
}
}
