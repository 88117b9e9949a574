// A GRU of one row whose weights are pairs of bf16: sums in parts, and a bias behind the reset gate.
module {
module @k0 attributes {mlc.kernel, mlc.packed, mlc.schedule = [{group = 2 : i64, lanes = 16 : i64, packed_operand = 1 : i64, panel = 16 : i64, rows = 1 : i64, template = "recurrence"}]} {
  func.func @k0(%a0: tensor<9x1x96xf32>, %a1: tensor<1x2x16x3x16x2xbf16>, %a2: tensor<1x32xf32>, %o0: tensor<9x1x1x32xf32>, %o1: tensor<1x1x32xf32>, %o2: tensor<1x1x32xf32>) -> (tensor<9x1x1x32xf32>, tensor<1x1x32xf32>, tensor<1x1x32xf32>) {
    %y, %y_h, %y_c = mlc.recurrence gru %a0, %a1 bias(%a2 : tensor<1x32xf32>) {direction = "reverse"} : tensor<9x1x96xf32>, tensor<1x2x16x3x16x2xbf16> -> tensor<9x1x1x32xf32>, tensor<1x1x32xf32>, tensor<1x1x32xf32>
    return %y, %y_h, %y_c : tensor<9x1x1x32xf32>, tensor<1x1x32xf32>, tensor<1x1x32xf32>
  }
}
}
