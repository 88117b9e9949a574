// Concatenation of rows of 12 and 20: the inputs change inside of a vector.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{block = 0 : i64, first = 1 : i64, grid = 1 : i64, lanes = 16 : i64, last = 1 : i64, template = "loops"}]} {
  func.func @k0(%arg0: tensor<?x12xf32>, %arg1: tensor<?x20xf32>, %arg2: index, %arg3: tensor<?x32xf32>) -> tensor<?x32xf32> {
    %0 = tensor.empty(%arg2) : tensor<?x32xf32>
    %c12 = arith.constant 12 : index
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%arg3 : tensor<?x32xf32>) {
    ^bb0(%out: f32):
      %2 = linalg.index 0 : index
      %3 = linalg.index 1 : index
      %4 = arith.cmpi ult, %3, %c12 : index
      %5 = scf.if %4 -> (f32) {
        %extracted = tensor.extract %arg0[%2, %3] : tensor<?x12xf32>
        scf.yield %extracted : f32
      } else {
        %6 = arith.subi %3, %c12 : index
        %extracted = tensor.extract %arg1[%2, %6] : tensor<?x20xf32>
        scf.yield %extracted : f32
      }
      linalg.yield %5 : f32
    } -> tensor<?x32xf32>
    return %1 : tensor<?x32xf32>
  }
}
}
