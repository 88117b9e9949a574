// A GRU of any number of rows on matrix tiles.
module {
module @k0 attributes {mlc.kernel, mlc.packed, mlc.schedule = [{group = 32 : i64, lanes = 16 : i64, packed_operand = 1 : i64, panel = 16 : i64, rows = 16 : i64, template = "tile_recurrence"}]} {
  func.func @k0(%a0: tensor<9x?x120xf32>, %a1: tensor<1x3x2x3x16x16x2xbf16>, %o0: tensor<9x?x1x40xf32>, %o1: tensor<1x?x40xf32>, %o2: tensor<1x?x40xf32>) -> (tensor<9x?x1x40xf32>, tensor<1x?x40xf32>, tensor<1x?x40xf32>) {
    %y, %y_h, %y_c = mlc.recurrence gru %a0, %a1 {direction = "reverse"} : tensor<9x?x120xf32>, tensor<1x3x2x3x16x16x2xbf16> -> tensor<9x?x1x40xf32>, tensor<1x?x40xf32>, tensor<1x?x40xf32>
    return %y, %y_h, %y_c : tensor<9x?x1x40xf32>, tensor<1x?x40xf32>, tensor<1x?x40xf32>
  }
}
}
