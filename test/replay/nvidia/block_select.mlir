// The best 50 of lines of 700.
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{group = 256 : i64, template = "block_select", threads = 256 : i64}]} {
  func.func @k0(%arg0: tensor<3x700xf32>, %arg1: tensor<3x50xf32>, %arg2: tensor<3x50xi64>) -> (tensor<3x50xf32>, tensor<3x50xi64>) {
    %c50 = arith.constant 50 : index
    %values, %indices = mlc.topk %arg0, %c50 {axis = 1 : i64, largest = true, sorted = true} : tensor<3x700xf32> -> tensor<3x50xf32>, tensor<3x50xi64>
    return %values, %indices : tensor<3x50xf32>, tensor<3x50xi64>
  }
}
}
