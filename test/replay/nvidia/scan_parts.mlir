// Running sums of parts of lines, the last of which is shorter: backwards along memory, and across it.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{accesses = 2 : i64, ahead = 0 : i64, group = 256 : i64, lanes = 8 : i64, template = "scan", threads = 256 : i64, width = 0 : i64}]} {
  func.func @k0(%arg0: tensor<2x45007xf16>, %arg1: tensor<2x10xf32>, %arg2: tensor<2x45007xf16>) -> tensor<2x45007xf16> {
    %0 = mlc.scan sum %arg0 before(%arg1 : tensor<2x10xf32>) {axis = 1 : i64, exclusive = true, part = 4096 : i64, reverse = true} : tensor<2x45007xf16>
    return %0 : tensor<2x45007xf16>
  }
}
module @k1 attributes {mlc.kernel, mlc.schedule = [{accesses = 4 : i64, ahead = 0 : i64, group = 256 : i64, lanes = 4 : i64, template = "scan", threads = 256 : i64, width = 1 : i64}]} {
  func.func @k1(%arg0: tensor<30000x4xf32>, %arg1: tensor<30x4xf32>, %arg2: tensor<30000x4xf32>) -> tensor<30000x4xf32> {
    %0 = mlc.scan sum %arg0 before(%arg1 : tensor<30x4xf32>) {axis = 0 : i64, part = 1000 : i64} : tensor<30000x4xf32>
    return %0 : tensor<30000x4xf32>
  }
}
}
