// A sum with a row: vectors of the results go on in the next row.
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{early = 1 : i64, first = 0 : i64, flat = 1 : i64, lanes = 8 : i64, last = 1 : i64, template = "elementwise", threads = 256 : i64}]} {
  func.func @k0(%arg0: tensor<1101x1001xf16>, %arg1: tensor<1001xf16>, %arg2: tensor<1101x1001xf16>) -> tensor<1101x1001xf16> {
    %0 = tensor.empty() : tensor<1101x1001xf16>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<1101x1001xf16>, tensor<1001xf16>) outs(%arg2 : tensor<1101x1001xf16>) {
    ^bb0(%in: f16, %in_0: f16, %out: f16):
      %2 = arith.extf %in : f16 to f32
      %3 = arith.extf %in_0 : f16 to f32
      %4 = arith.addf %2, %3 : f32
      %5 = arith.truncf %4 : f32 to f16
      linalg.yield %5 : f16
    } -> tensor<1101x1001xf16>
    return %1 : tensor<1101x1001xf16>
  }
}
}
