// Transposition in whole lines, past the caches of one thread that has all of it; items follow the results' lines.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{ahead = 4 : i64, argument = 0 : i64, block = 256 : i64, down = 1 : i64, height = 256 : i64, lanes = 16 : i64, line = 16 : i64, piece = 4 : i64, read_dim = 1 : i64, read_first = 1 : i64, stream = 2 : i64, template = "transpose", turned = 1 : i64, write_dim = 3 : i64, write_first = 2 : i64}]} {
  func.func @k0(%arg0: tensor<1x112x112x250xf32>, %arg1: tensor<1x250x112x112xf32>) -> tensor<1x250x112x112xf32> {
    %0 = tensor.empty() : tensor<1x250x112x112xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<1x112x112x250xf32>) outs(%arg1 : tensor<1x250x112x112xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x250x112x112xf32>
    return %1 : tensor<1x250x112x112xf32>
  }
}
}
