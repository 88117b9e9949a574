// Heads of an attention change places, past the caches and fetched some positions ahead.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{ahead = 8 : i64, block = 0 : i64, first = 3 : i64, grid = 2 : i64, lanes = 16 : i64, last = 3 : i64, stream = 1 : i64, template = "loops"}]} {
  func.func @k0(%arg0: tensor<8x512x12x64xf32>, %arg1: tensor<8x12x512x64xf32>) -> tensor<8x12x512x64xf32> {
    %0 = tensor.empty() : tensor<8x12x512x64xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<8x512x12x64xf32>) outs(%arg1 : tensor<8x12x512x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<8x12x512x64xf32>
    return %1 : tensor<8x12x512x64xf32>
  }
}
}
