// Coordinates of what is not zero.
module {
module @nonzero0 attributes {mlc.kernel, mlc.schedule = [{template = "nonzero"}]} {
  func.func @nonzero0(%arg0: tensor<?x6xf32>, %arg1: tensor<2x?xi64>) -> tensor<2x?xi64> {
    %0 = mlc.nonzero %arg0 : tensor<?x6xf32> -> tensor<2x?xi64>
    return %0 : tensor<2x?xi64>
  }
}
}
