// Transposition of the two inner dimensions, in squares of registers.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{ahead = 2 : i64, argument = 0 : i64, block = 16 : i64, down = 0 : i64, height = 32 : i64, lanes = 16 : i64, line = 4 : i64, piece = 4 : i64, read_dim = 1 : i64, read_first = 1 : i64, stream = 0 : i64, template = "transpose", write_dim = 2 : i64, write_first = 2 : i64}]} {
  func.func @k0(%arg0: tensor<?x24x40xf32>, %arg1: index, %arg2: tensor<?x40x24xf32>) -> tensor<?x40x24xf32> {
    %0 = tensor.empty(%arg1) : tensor<?x40x24xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<?x24x40xf32>) outs(%arg2 : tensor<?x40x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<?x40x24xf32>
    return %1 : tensor<?x40x24xf32>
  }
}
}
