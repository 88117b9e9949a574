// The largest of the words that go to each place.
module {
module @k0 attributes {mlc.inout = array<i64: 0>, mlc.kernel, mlc.schedule = [{atomic = 1 : i64, template = "scatter", threads = 256 : i64}]} {
  func.func @k0(%i: tensor<70x4xi64>, %u: tensor<70x4xi32>, %o: tensor<90x4xi32>) -> tensor<90x4xi32> {
    %r = mlc.scatter_elements %o, %i, %u {axis = 0 : i64, reduction = "max"} : tensor<90x4xi32>, tensor<70x4xi64>, tensor<70x4xi32> -> tensor<90x4xi32>
    return %r : tensor<90x4xi32>
  }
}
}
