// Floats added to slices, in order.
module {
module @k0 attributes {mlc.inout = array<i64: 0>, mlc.kernel, mlc.schedule = [{atomic = 0 : i64, template = "scatter", threads = 256 : i64}]} {
  func.func @k0(%i: tensor<70x1xi64>, %u: tensor<70x4xf32>, %o: tensor<90x4xf32>) -> tensor<90x4xf32> {
    %r = mlc.scatter_nd %o, %i, %u {reduction = "add"} : tensor<90x4xf32>, tensor<70x1xi64>, tensor<70x4xf32> -> tensor<90x4xf32>
    return %r : tensor<90x4xf32>
  }
}
}
