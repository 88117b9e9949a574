// Rows picked by indices that are checked.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{block = 0 : i64, first = 1 : i64, grid = 1 : i64, lanes = 16 : i64, last = 1 : i64, template = "loops"}]} {
  func.func @k0(%arg0: tensor<?xi64>, %arg1: tensor<50x24xf32>, %arg2: index, %arg3: tensor<?x24xf32>) -> tensor<?x24xf32> {
    %0 = tensor.empty(%arg2) : tensor<?x24xf32>
    %c-50 = arith.constant -50 : index
    %c50 = arith.constant 50 : index
    %c0 = arith.constant 0 : index
    %c49 = arith.constant 49 : index
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<?xi64>) outs(%arg3 : tensor<?x24xf32>) {
    ^bb0(%in: i64, %out: f32):
      %2 = linalg.index 1 : index
      %3 = arith.index_cast %in : i64 to index
      %4 = arith.cmpi sge, %3, %c-50 : index
      %5 = arith.cmpi slt, %3, %c50 : index
      %6 = arith.andi %4, %5 : i1
      cf.assert %6, "index out of range in node y"
      %7 = arith.addi %3, %c50 : index
      %8 = arith.cmpi slt, %3, %c0 : index
      %9 = arith.select %8, %7, %3 : index
      %10 = arith.minsi %9, %c49 : index
      %11 = arith.maxsi %10, %c0 : index
      %extracted = tensor.extract %arg1[%11, %2] : tensor<50x24xf32>
      linalg.yield %extracted : f32
    } -> tensor<?x24xf32>
    return %1 : tensor<?x24xf32>
  }
}
}
