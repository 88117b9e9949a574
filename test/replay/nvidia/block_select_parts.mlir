// The least elements of parts of lines, and of these.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{group = 1024 : i64, template = "block_select", threads = 1024 : i64}]} {
  func.func @k0(%arg0: tensor<2x30011xbf16>, %arg1: tensor<2x280xbf16>, %arg2: tensor<2x280xi64>) -> (tensor<2x280xbf16>, tensor<2x280xi64>) {
    %c40 = arith.constant 40 : index
    %0, %1 = mlc.topk %arg0, %c40 {axis = 1 : i64, largest = false, part = 4288 : i64} : tensor<2x30011xbf16> -> tensor<2x280xbf16>, tensor<2x280xi64>
    return %0, %1 : tensor<2x280xbf16>, tensor<2x280xi64>
  }
}
module @k1 attributes {mlc.kernel, mlc.schedule = [{group = 256 : i64, template = "block_select", threads = 256 : i64}]} {
  func.func @k1(%arg0: tensor<2x280xbf16>, %arg1: tensor<2x280xi64>, %arg2: tensor<2x40xbf16>, %arg3: tensor<2x40xi64>) -> (tensor<2x40xbf16>, tensor<2x40xi64>) {
    %c40 = arith.constant 40 : index
    %0, %1 = mlc.topk %arg0, %c40 places(%arg1 : tensor<2x280xi64>) {axis = 1 : i64, largest = false} : tensor<2x280xbf16> -> tensor<2x40xbf16>, tensor<2x40xi64>
    return %0, %1 : tensor<2x40xbf16>, tensor<2x40xi64>
  }
}
}
