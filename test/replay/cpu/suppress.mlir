// Which boxes remain, four at most in a group.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{template = "suppress"}]} {
  func.func @k0(%arg0: tensor<?x9x4xf32>, %arg1: tensor<?x9xi1>, %arg2: tensor<f32>, %arg3: tensor<?x9xi1>) -> tensor<?x9xi1> {
    %c4 = arith.constant 4 : index
    %0 = mlc.suppress %arg0, %arg1, %arg2, %c4 : tensor<?x9x4xf32>, tensor<?x9xi1>, tensor<f32> -> tensor<?x9xi1>
    return %0 : tensor<?x9xi1>
  }
}
}
