// Attention on matrix tiles whose keys are one block, and rows one tile.
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map5 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  module @k0 attributes {mlc.kernel, mlc.schedule = [{lanes = 16 : i64, row_block = 16 : i64, rows = 16 : i64, scalef = 1 : i64, template = "tile_attention", vectors = 2 : i64}]} {
    func.func @k0(%arg0: tensor<4x20x16xf32>, %arg1: tensor<4x20x16xf32>, %arg2: tensor<4x9x16xf32>, %arg3: tensor<4x9x16xf32>) -> tensor<4x9x16xf32> {
      %0 = tensor.empty() : tensor<4x20x16xbf16>
      %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<4x20x16xf32>) outs(%0 : tensor<4x20x16xbf16>) {
      ^bb0(%in: f32, %out: bf16):
        %24 = arith.truncf %in : f32 to bf16
        linalg.yield %24 : bf16
      } -> tensor<4x20x16xbf16>
      %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1 : tensor<4x20x16xf32>) outs(%0 : tensor<4x20x16xbf16>) {
      ^bb0(%in: f32, %out: bf16):
        %24 = arith.truncf %in : f32 to bf16
        linalg.yield %24 : bf16
      } -> tensor<4x20x16xbf16>
      %3 = tensor.empty() : tensor<4x9x16xbf16>
      %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg2 : tensor<4x9x16xf32>) outs(%3 : tensor<4x9x16xbf16>) {
      ^bb0(%in: f32, %out: bf16):
        %24 = arith.truncf %in : f32 to bf16
        linalg.yield %24 : bf16
      } -> tensor<4x9x16xbf16>
      %5 = tensor.empty() : tensor<4x16x20xbf16>
      %6 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<4x20x16xbf16>) outs(%5 : tensor<4x16x20xbf16>) {
      ^bb0(%in: bf16, %out: bf16):
        linalg.yield %in : bf16
      } -> tensor<4x16x20xbf16>
      %cst = arith.constant 0.000000e+00 : f32
      %7 = tensor.empty() : tensor<4x9x20xf32>
      %8 = linalg.fill ins(%cst : f32) outs(%7 : tensor<4x9x20xf32>) -> tensor<4x9x20xf32>
      %9 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%4, %6 : tensor<4x9x16xbf16>, tensor<4x16x20xbf16>) outs(%8 : tensor<4x9x20xf32>) attrs =  {mlc.contraction} {
      ^bb0(%in: bf16, %in_1: bf16, %out: f32):
        %24 = arith.extf %in : bf16 to f32
        %25 = arith.extf %in_1 : bf16 to f32
        %26 = arith.mulf %24, %25 : f32
        %27 = arith.addf %out, %26 : f32
        linalg.yield %27 : f32
      } -> tensor<4x9x20xf32>
      %cst_0 = arith.constant 0xFF800000 : f32
      %10 = tensor.empty() : tensor<4x9xf32>
      %11 = linalg.fill ins(%cst_0 : f32) outs(%10 : tensor<4x9xf32>) -> tensor<4x9xf32>
      %12 = linalg.generic {indexing_maps = [#map, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%9 : tensor<4x9x20xf32>) outs(%11 : tensor<4x9xf32>) {
      ^bb0(%in: f32, %out: f32):
        %24 = arith.maximumf %out, %in : f32
        linalg.yield %24 : f32
      } -> tensor<4x9xf32>
      %13 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%9, %12 : tensor<4x9x20xf32>, tensor<4x9xf32>) outs(%7 : tensor<4x9x20xf32>) {
      ^bb0(%in: f32, %in_1: f32, %out: f32):
        %24 = arith.subf %in, %in_1 : f32
        linalg.yield %24 : f32
      } -> tensor<4x9x20xf32>
      %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13 : tensor<4x9x20xf32>) outs(%7 : tensor<4x9x20xf32>) {
      ^bb0(%in: f32, %out: f32):
        %24 = math.exp %in : f32
        linalg.yield %24 : f32
      } -> tensor<4x9x20xf32>
      %15 = linalg.fill ins(%cst : f32) outs(%10 : tensor<4x9xf32>) -> tensor<4x9xf32>
      %16 = linalg.generic {indexing_maps = [#map, #map5], iterator_types = ["parallel", "parallel", "reduction"]} ins(%14 : tensor<4x9x20xf32>) outs(%15 : tensor<4x9xf32>) {
      ^bb0(%in: f32, %out: f32):
        %24 = arith.addf %out, %in : f32
        linalg.yield %24 : f32
      } -> tensor<4x9xf32>
      %17 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%14, %16 : tensor<4x9x20xf32>, tensor<4x9xf32>) outs(%7 : tensor<4x9x20xf32>) {
      ^bb0(%in: f32, %in_1: f32, %out: f32):
        %24 = arith.divf %in, %in_1 : f32
        linalg.yield %24 : f32
      } -> tensor<4x9x20xf32>
      %18 = tensor.empty() : tensor<4x9x20xbf16>
      %19 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%17 : tensor<4x9x20xf32>) outs(%18 : tensor<4x9x20xbf16>) {
      ^bb0(%in: f32, %out: bf16):
        %24 = arith.truncf %in : f32 to bf16
        linalg.yield %24 : bf16
      } -> tensor<4x9x20xbf16>
      %20 = tensor.empty() : tensor<4x9x16xf32>
      %21 = linalg.fill ins(%cst : f32) outs(%20 : tensor<4x9x16xf32>) -> tensor<4x9x16xf32>
      %22 = linalg.fill ins(%cst : f32) outs(%arg3 : tensor<4x9x16xf32>) -> tensor<4x9x16xf32>
      %23 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%19, %1 : tensor<4x9x20xbf16>, tensor<4x20x16xbf16>) outs(%22 : tensor<4x9x16xf32>) attrs =  {mlc.contraction} {
      ^bb0(%in: bf16, %in_1: bf16, %out: f32):
        %24 = arith.extf %in : bf16 to f32
        %25 = arith.extf %in_1 : bf16 to f32
        %26 = arith.mulf %24, %25 : f32
        %27 = arith.addf %out, %26 : f32
        linalg.yield %27 : f32
      } -> tensor<4x9x16xf32>
      return %23 : tensor<4x9x16xf32>
    }
  }
}

