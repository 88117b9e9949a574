// Transposition whose result's lines begin anywhere: panels, and half vectors, as lines of the input share few sets.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{ahead = 4 : i64, argument = 0 : i64, block = 64 : i64, down = 0 : i64, height = 0 : i64, lanes = 8 : i64, line = 4 : i64, piece = 4 : i64, read_dim = 1 : i64, read_first = 1 : i64, stream = 0 : i64, template = "transpose", write_dim = 3 : i64, write_first = 2 : i64}]} {
  func.func @k0(%arg0: tensor<1x14x14x512xf32>, %arg1: tensor<1x512x14x14xf32>) -> tensor<1x512x14x14xf32> {
    %0 = tensor.empty() : tensor<1x512x14x14xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<1x14x14x512xf32>) outs(%arg1 : tensor<1x512x14x14xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x512x14x14xf32>
    return %1 : tensor<1x512x14x14xf32>
  }
}
}
