// Transposition of bytes through a compact buffer, which fetches the lines of the result to write to them.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{ahead = 1 : i64, argument = 0 : i64, block = 128 : i64, claim = 1 : i64, down = 0 : i64, height = 128 : i64, lanes = 64 : i64, line = 64 : i64, piece = 16 : i64, read_dim = 0 : i64, read_first = 0 : i64, stream = 0 : i64, template = "staged_transpose", write_dim = 1 : i64, write_first = 1 : i64}]} {
  func.func @k0(%arg0: tensor<2048x2048xi8>, %arg1: tensor<2048x2048xi8>) -> tensor<2048x2048xi8> {
    %0 = tensor.empty() : tensor<2048x2048xi8>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<2048x2048xi8>) outs(%arg1 : tensor<2048x2048xi8>) {
    ^bb0(%in: i8, %out: i8):
      linalg.yield %in : i8
    } -> tensor<2048x2048xi8>
    return %1 : tensor<2048x2048xi8>
  }
}
}
