// Transposition in vectors of two registers; the last squares begin earlier instead of being masked.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{ahead = 4 : i64, argument = 0 : i64, back = 1 : i64, block = 64 : i64, down = 0 : i64, height = 0 : i64, lanes = 16 : i64, line = 4 : i64, piece = 4 : i64, read_dim = 0 : i64, read_first = 0 : i64, stream = 0 : i64, template = "transpose", write_dim = 1 : i64, write_first = 1 : i64}]} {
  func.func @k0(%arg0: tensor<333x402xf32>, %arg1: tensor<402x333xf32>) -> tensor<402x333xf32> {
    %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<333x402xf32>) outs(%arg1 : tensor<402x333xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<402x333xf32>
    return %0 : tensor<402x333xf32>
  }
}
}
