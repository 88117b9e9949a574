// Transposition in strips that fetch the lines of the result that come next, to write to them.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{ahead = 0 : i64, argument = 0 : i64, block = 32 : i64, claim = 4 : i64, down = 0 : i64, height = 0 : i64, lanes = 16 : i64, line = 4 : i64, piece = 4 : i64, read_dim = 0 : i64, read_first = 0 : i64, stream = 0 : i64, template = "transpose", write_dim = 1 : i64, write_first = 1 : i64}]} {
  func.func @k0(%arg0: tensor<197x768xf32>, %arg1: tensor<768x197xf32>) -> tensor<768x197xf32> {
    %0 = tensor.empty() : tensor<768x197xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<197x768xf32>) outs(%arg1 : tensor<768x197xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<768x197xf32>
    return %1 : tensor<768x197xf32>
  }
}
}
