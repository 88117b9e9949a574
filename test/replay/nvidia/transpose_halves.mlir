// A transposition of bf16, four elements at a time.
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{argument = 0 : i64, lanes = 4 : i64, read_dim = 0 : i64, template = "transpose", threads = 256 : i64, tile = 64 : i64, write_dim = 1 : i64}]} {
  func.func @k0(%arg0: tensor<1000x768xbf16>, %arg1: tensor<768x1000xbf16>) -> tensor<768x1000xbf16> {
    %0 = tensor.empty() : tensor<768x1000xbf16>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<1000x768xbf16>) outs(%arg1 : tensor<768x1000xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<768x1000xbf16>
    return %1 : tensor<768x1000xbf16>
  }
}
}
