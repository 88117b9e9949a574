// Pool of 3x3, stride 2, over a padded input.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{block = 0 : i64, first = 3 : i64, grid = 3 : i64, lanes = 16 : i64, last = 3 : i64, template = "loops"}]} {
  func.func @k0(%arg0: tensor<1x16x12x12xf32>, %arg1: tensor<1x16x14x14xf32>) -> tensor<1x16x14x14xf32> {
    %0 = tensor.empty() : tensor<1x16x14x14xf32>
    %c1 = arith.constant 1 : index
    %c12 = arith.constant 12 : index
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0xFF800000 : f32
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%arg1 : tensor<1x16x14x14xf32>) {
    ^bb0(%out: f32):
      %2 = linalg.index 1 : index
      %3 = linalg.index 2 : index
      %4 = arith.subi %3, %c1 : index
      %5 = arith.cmpi ult, %4, %c12 : index
      %6 = linalg.index 3 : index
      %7 = arith.subi %6, %c1 : index
      %8 = arith.cmpi ult, %7, %c12 : index
      %9 = arith.andi %5, %8 : i1
      %10 = scf.if %9 -> (f32) {
        %extracted = tensor.extract %arg0[%c0, %2, %4, %7] : tensor<1x16x12x12xf32>
        scf.yield %extracted : f32
      } else {
        scf.yield %cst : f32
      }
      linalg.yield %10 : f32
    } -> tensor<1x16x14x14xf32>
    return %1 : tensor<1x16x14x14xf32>
  }
}
}
