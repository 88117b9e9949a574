// The five largest of a row, found by vectors.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{lanes = 16 : i64, template = "topk"}]} {
  func.func @k0(%arg0: tensor<1x1000xf32>, %arg1: tensor<1x5xf32>, %arg2: tensor<1x5xi64>) -> (tensor<1x5xf32>, tensor<1x5xi64>) {
    %c5 = arith.constant 5 : index
    %values, %indices = mlc.topk %arg0, %c5 {axis = 1 : i64} : tensor<1x1000xf32> -> tensor<1x5xf32>, tensor<1x5xi64>
    return %values, %indices : tensor<1x5xf32>, tensor<1x5xi64>
  }
}
}
