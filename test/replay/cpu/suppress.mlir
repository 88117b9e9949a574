// Which boxes remain, four at most in a class.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{template = "suppress", digit = 8 : i64, lanes = 16 : i64}]} {
  func.func @k0(%arg0: tensor<?x9x4xf32>, %arg1: tensor<?x3x9xf32>, %arg2: tensor<f32>, %arg3: tensor<f32>, %arg4: tensor<?x3x9xi64>, %arg5: tensor<?x3xi64>) -> (tensor<?x3x9xi64>, tensor<?x3xi64>) {
    %c4 = arith.constant 4 : index
    %0, %1 = mlc.suppress %arg0, %arg1, %arg2, %arg3, %c4 : tensor<?x9x4xf32>, tensor<?x3x9xf32>, tensor<f32>, tensor<f32> -> tensor<?x3x9xi64>, tensor<?x3xi64>
    return %0, %1 : tensor<?x3x9xi64>, tensor<?x3xi64>
  }
}
}
