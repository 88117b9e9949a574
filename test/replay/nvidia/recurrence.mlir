// An LSTM of two directions, any number of steps and rows, whose weights are in registers.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{ahead = 0 : i64, blocks = 1 : i64, cluster = 1 : i64, element = "bf16", group = 192 : i64, kept = 2 : i64, near = 0 : i64, threads = 192 : i64, template = "recurrence"}]} {
  func.func @k0(%a0: tensor<?x?x384xf32>, %a1: tensor<2x192x48xbf16>, %a2: tensor<?xi32>, %a3: tensor<2x?x48xf32>, %a4: tensor<2x?x48xf32>, %o0: tensor<?x?x2x48xf32>, %o1: tensor<2x?x48xf32>, %o2: tensor<2x?x48xf32>) -> (tensor<?x?x2x48xf32>, tensor<2x?x48xf32>, tensor<2x?x48xf32>) {
    %y, %y_h, %y_c = mlc.recurrence lstm %a0, %a1 lengths(%a2 : tensor<?xi32>) initial_h(%a3 : tensor<2x?x48xf32>) initial_c(%a4 : tensor<2x?x48xf32>) {direction = "bidirectional"} : tensor<?x?x384xf32>, tensor<2x192x48xbf16> -> tensor<?x?x2x48xf32>, tensor<2x?x48xf32>, tensor<2x?x48xf32>
    return %y, %y_h, %y_c : tensor<?x?x2x48xf32>, tensor<2x?x48xf32>, tensor<2x?x48xf32>
  }
}
}
