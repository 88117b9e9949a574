// Elements that are stored twice.
module {
module @k1 attributes {mlc.kernel, mlc.schedule = [{block = 0 : i64, first = 3 : i64, grid = 2 : i64, lanes = 16 : i64, last = 4 : i64, repeat = 2 : i64, template = "loops"}]} {
  func.func @k1(%arg0: tensor<1x64x112x56xf32>, %arg1: tensor<1x64x112x56x2xf32>) -> tensor<1x64x112x56x2xf32> {
    %0 = tensor.empty() : tensor<1x64x112x56x2xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<1x64x112x56xf32>) outs(%arg1 : tensor<1x64x112x56x2xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<1x64x112x56x2xf32>
    return %1 : tensor<1x64x112x56x2xf32>
  }
}
}
