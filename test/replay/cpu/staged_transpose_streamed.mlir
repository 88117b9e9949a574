// The same past the caches, of f32.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{ahead = 1 : i64, argument = 0 : i64, block = 64 : i64, down = 0 : i64, height = 128 : i64, lanes = 16 : i64, line = 16 : i64, piece = 4 : i64, read_dim = 0 : i64, read_first = 0 : i64, stream = 1 : i64, template = "staged_transpose", write_dim = 1 : i64, write_first = 1 : i64}]} {
  func.func @k0(%arg0: tensor<4096x768xf32>, %arg1: tensor<768x4096xf32>) -> tensor<768x4096xf32> {
    %0 = tensor.empty() : tensor<768x4096xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<4096x768xf32>) outs(%arg1 : tensor<768x4096xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<768x4096xf32>
    return %1 : tensor<768x4096xf32>
  }
}
}
