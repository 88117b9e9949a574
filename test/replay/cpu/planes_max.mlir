// Maxima of padded windows over planes.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{lanes = 8 : i64, rows = 4 : i64, template = "planes"}]} {
  func.func @k0(%arg0: tensor<1x64x112x112xf32>, %arg1: tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32> {
    %0 = tensor.empty() : tensor<1x64x114x114xf32>
    %c1 = arith.constant 1 : index
    %c112 = arith.constant 112 : index
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0xFF800000 : f32
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%0 : tensor<1x64x114x114xf32>) {
    ^bb0(%out: f32):
      %7 = linalg.index 1 : index
      %8 = linalg.index 2 : index
      %9 = arith.subi %8, %c1 : index
      %10 = arith.cmpi ult, %9, %c112 : index
      %11 = linalg.index 3 : index
      %12 = arith.subi %11, %c1 : index
      %13 = arith.cmpi ult, %12, %c112 : index
      %14 = arith.andi %10, %13 : i1
      %15 = scf.if %14 -> (f32) {
        %extracted = tensor.extract %arg0[%c0, %7, %9, %12] : tensor<1x64x112x112xf32>
        scf.yield %extracted : f32
      } else {
        scf.yield %cst : f32
      }
      linalg.yield %15 : f32
    } -> tensor<1x64x114x114xf32>
    %2 = tensor.empty() : tensor<3x3xf32>
    %3 = tensor.empty() : tensor<1x64x56x56xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
    %5 = linalg.fill ins(%cst : f32) outs(%arg1 : tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32>
    %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2 * 2 + d4, d3 * 2 + d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%1, %2 : tensor<1x64x114x114xf32>, tensor<3x3xf32>) outs(%5 : tensor<1x64x56x56xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %7 = arith.maximumf %out, %in : f32
      linalg.yield %7 : f32
    } -> tensor<1x64x56x56xf32>
    return %6 : tensor<1x64x56x56xf32>
  }
}
}
