// Large transposition whose result's lines begin anywhere: columns are joined to whole lines of the cache.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{ahead = 4 : i64, argument = 0 : i64, beside = 4 : i64, block = 16 : i64, down = 1 : i64, height = 704 : i64, joined = 1 : i64, lanes = 16 : i64, line = 4 : i64, piece = 4 : i64, read_dim = 0 : i64, read_first = 0 : i64, stream = 1 : i64, template = "transpose", write_dim = 1 : i64, write_first = 1 : i64}]} {
  func.func @k0(%arg0: tensor<2100x1300xf32>, %arg1: tensor<1300x2100xf32>) -> tensor<1300x2100xf32> {
    %0 = tensor.empty() : tensor<1300x2100xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<2100x1300xf32>) outs(%arg1 : tensor<1300x2100xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1300x2100xf32>
    return %1 : tensor<1300x2100xf32>
  }
}
}
