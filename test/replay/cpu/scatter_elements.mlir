// Elements written to places that are checked.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{template = "scatter_elements"}]} {
  func.func @k0(%arg0: tensor<10x6xf32>, %arg1: tensor<?x6xi64>, %arg2: tensor<?x6xf32>, %arg3: tensor<10x6xf32>) -> tensor<10x6xf32> {
    %0 = mlc.scatter_elements %arg0, %arg1, %arg2 {axis = 0 : i64} : tensor<10x6xf32>, tensor<?x6xi64>, tensor<?x6xf32> -> tensor<10x6xf32>
    return %0 : tensor<10x6xf32>
  }
}
}
