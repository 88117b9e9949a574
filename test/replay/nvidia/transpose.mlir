// Transposition of the two inner dimensions.
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{argument = 0 : i64, read_dim = 1 : i64, template = "transpose", threads = 256 : i64, tile = 64 : i64, write_dim = 2 : i64}]} {
  func.func @k0(%arg0: tensor<?x128x96xf32>, %arg1: index, %arg2: tensor<?x96x128xf32>) -> tensor<?x96x128xf32> {
    %0 = tensor.empty(%arg1) : tensor<?x96x128xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<?x128x96xf32>) outs(%arg2 : tensor<?x96x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<?x96x128xf32>
    return %1 : tensor<?x96x128xf32>
  }
}
}
