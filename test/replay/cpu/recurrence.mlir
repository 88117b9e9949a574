// An LSTM of two directions: any number of steps and rows, sequences of different lengths, hidden elements that are no whole panel.
module {
module @k0 attributes {mlc.kernel, mlc.packed, mlc.schedule = [{group = 1 : i64, lanes = 16 : i64, packed_operand = 1 : i64, panel = 16 : i64, rows = 4 : i64, template = "recurrence"}]} {
  func.func @k0(%a0: tensor<?x?x192xf32>, %a1: tensor<2x2x24x4x16xf32>, %a2: tensor<?xi32>, %a3: tensor<2x?x24xf32>, %a4: tensor<2x?x24xf32>, %o0: tensor<?x?x2x24xf32>, %o1: tensor<2x?x24xf32>, %o2: tensor<2x?x24xf32>) -> (tensor<?x?x2x24xf32>, tensor<2x?x24xf32>, tensor<2x?x24xf32>) {
    %y, %y_h, %y_c = mlc.recurrence lstm %a0, %a1 lengths(%a2 : tensor<?xi32>) initial_h(%a3 : tensor<2x?x24xf32>) initial_c(%a4 : tensor<2x?x24xf32>) {direction = "bidirectional"} : tensor<?x?x192xf32>, tensor<2x2x24x4x16xf32> -> tensor<?x?x2x24xf32>, tensor<2x?x24xf32>, tensor<2x?x24xf32>
    return %y, %y_h, %y_c : tensor<?x?x2x24xf32>, tensor<2x?x24xf32>, tensor<2x?x24xf32>
  }
}
}
