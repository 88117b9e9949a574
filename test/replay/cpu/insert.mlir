// New lines of a cache, written where the cache lies.
module {
module @k0 attributes {mlc.inout = array<i64: 0>, mlc.kernel, mlc.schedule = [{lanes = 16 : i64, template = "insert"}]} {
  func.func @k0(%arg0: tensor<2x4x?x72xf32>, %arg1: tensor<2xi64>, %arg2: tensor<2x4x?x72xf32>) -> tensor<2x4x?x72xf32> {
    %0 = mlc.insert %arg2, %arg0, %arg1 {axis = 2 : i64} : tensor<2x4x?x72xf32>, tensor<2x4x?x72xf32>, tensor<2xi64> -> tensor<2x4x?x72xf32>
    return %0 : tensor<2x4x?x72xf32>
  }
}
}
