// Every column in descending order, by digits.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{template = "radix_sort", digit = 8 : i64, least = 128 : i64}]} {
  func.func @k0(%arg0: tensor<?x4xf32>, %arg1: tensor<?x4xf32>, %arg2: tensor<?x4xi64>) -> (tensor<?x4xf32>, tensor<?x4xi64>) {
    %values, %indices = mlc.sort %arg0 {axis = 0 : i64, descending = true} : tensor<?x4xf32> -> tensor<?x4xf32>, tensor<?x4xi64>
    return %values, %indices : tensor<?x4xf32>, tensor<?x4xi64>
  }
}
}
