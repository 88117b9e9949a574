// Maxima of padded windows of bf16, compared by their bits.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{block = 0 : i64, first = 3 : i64, grid = 3 : i64, lanes = 16 : i64, last = 3 : i64, template = "loops"}]} {
  func.func @k0(%arg0: tensor<1x112x112x64xbf16>, %arg1: tensor<1x56x56x64xbf16>) -> tensor<1x56x56x64xbf16> {
    %0 = tensor.empty() : tensor<1x112x112x64xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<1x112x112x64xbf16>) outs(%0 : tensor<1x112x112x64xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %10 = arith.extf %in : bf16 to f32
      linalg.yield %10 : f32
    } -> tensor<1x112x112x64xf32>
    %2 = tensor.empty() : tensor<1x114x114x64xf32>
    %c1 = arith.constant 1 : index
    %c112 = arith.constant 112 : index
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0xFF800000 : f32
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%2 : tensor<1x114x114x64xf32>) {
    ^bb0(%out: f32):
      %10 = linalg.index 1 : index
      %11 = arith.subi %10, %c1 : index
      %12 = arith.cmpi ult, %11, %c112 : index
      %13 = linalg.index 2 : index
      %14 = arith.subi %13, %c1 : index
      %15 = arith.cmpi ult, %14, %c112 : index
      %16 = arith.andi %12, %15 : i1
      %17 = linalg.index 3 : index
      %18 = scf.if %16 -> (f32) {
        %extracted = tensor.extract %1[%c0, %11, %14, %17] : tensor<1x112x112x64xf32>
        scf.yield %extracted : f32
      } else {
        scf.yield %cst : f32
      }
      linalg.yield %18 : f32
    } -> tensor<1x114x114x64xf32>
    %4 = tensor.empty() : tensor<3x3xf32>
    %5 = tensor.empty() : tensor<1x56x56x64xf32>
    %6 = linalg.fill ins(%cst : f32) outs(%5 : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
    %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 * 2 + d4, d2 * 2 + d5, d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%3, %4 : tensor<1x114x114x64xf32>, tensor<3x3xf32>) outs(%6 : tensor<1x56x56x64xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %10 = arith.maximumf %out, %in : f32
      linalg.yield %10 : f32
    } -> tensor<1x56x56x64xf32>
    %8 = tensor.empty() : tensor<1x56x56x64xbf16>
    %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7 : tensor<1x56x56x64xf32>) outs(%arg1 : tensor<1x56x56x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %10 = arith.truncf %in : f32 to bf16
      linalg.yield %10 : bf16
    } -> tensor<1x56x56x64xbf16>
    return %9 : tensor<1x56x56x64xbf16>
  }
}
}
