// A GRU in tf32 whose hidden elements four blocks share, with weights in registers, in shared memory and read in every step.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{ahead = 1 : i64, blocks = 1 : i64, cluster = 4 : i64, element = "tf32", group = 64 : i64, kept = 3 : i64, near = 3 : i64, threads = 64 : i64, template = "recurrence"}]} {
  func.func @k0(%a0: tensor<9x5x384xf32>, %a1: tensor<1x384x128xf32>, %a2: tensor<1x128xf32>, %o0: tensor<9x5x1x128xf32>, %o1: tensor<1x5x128xf32>, %o2: tensor<1x5x128xf32>) -> (tensor<9x5x1x128xf32>, tensor<1x5x128xf32>, tensor<1x5x128xf32>) {
    %y, %y_h, %y_c = mlc.recurrence gru %a0, %a1 bias(%a2 : tensor<1x128xf32>) {direction = "reverse"} : tensor<9x5x384xf32>, tensor<1x384x128xf32> -> tensor<9x5x1x128xf32>, tensor<1x5x128xf32>, tensor<1x5x128xf32>
    return %y, %y_h, %y_c : tensor<9x5x1x128xf32>, tensor<1x5x128xf32>, tensor<1x5x128xf32>
  }
}
}
