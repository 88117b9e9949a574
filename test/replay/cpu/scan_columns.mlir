// Running sums of columns.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{lanes = 16 : i64, template = "scan", vectors = 4 : i64}]} {
  func.func @k0(%arg0: tensor<1024x128xf32>, %arg1: tensor<1024x128xf32>) -> tensor<1024x128xf32> {
    %0 = mlc.scan sum %arg0 {axis = 0 : i64} : tensor<1024x128xf32>
    return %0 : tensor<1024x128xf32>
  }
}
}
