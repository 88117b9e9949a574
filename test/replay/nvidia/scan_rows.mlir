// Running sums of halves along lines that are no multiples of vectors, several chunks each.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{accesses = 1 : i64, ahead = 1 : i64, group = 1024 : i64, lanes = 8 : i64, template = "scan", threads = 1024 : i64, width = 0 : i64}]} {
  func.func @k0(%arg0: tensor<3x20003xf16>, %arg1: tensor<3x20003xf16>) -> tensor<3x20003xf16> {
    %0 = mlc.scan sum %arg0 {axis = 1 : i64, reverse = true} : tensor<3x20003xf16>
    return %0 : tensor<3x20003xf16>
  }
}
}
