// Attention on matrix tiles of any size, with keys that lie along the keys and an odd head dimension.
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  module @k0 attributes {mlc.kernel, mlc.schedule = [{lanes = 16 : i64, row_block = 192 : i64, rows = 32 : i64, scalef = 1 : i64, template = "tile_attention", vectors = 8 : i64}]} {
    func.func @k0(%arg0: tensor<4x?x48xf32>, %arg1: tensor<4x25x?xf32>, %arg2: tensor<4x?x25xf32>, %arg3: index, %arg4: index, %arg5: index, %arg6: tensor<4x?x48xf32>) -> tensor<4x?x48xf32> {
      %0 = tensor.empty(%arg3) : tensor<4x?x48xbf16>
      %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<4x?x48xf32>) outs(%0 : tensor<4x?x48xbf16>) {
      ^bb0(%in: f32, %out: bf16):
        %23 = arith.truncf %in : f32 to bf16
        linalg.yield %23 : bf16
      } -> tensor<4x?x48xbf16>
      %2 = tensor.empty(%arg4) : tensor<4x25x?xbf16>
      %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1 : tensor<4x25x?xf32>) outs(%2 : tensor<4x25x?xbf16>) {
      ^bb0(%in: f32, %out: bf16):
        %23 = arith.truncf %in : f32 to bf16
        linalg.yield %23 : bf16
      } -> tensor<4x25x?xbf16>
      %4 = tensor.empty(%arg5) : tensor<4x?x25xbf16>
      %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg2 : tensor<4x?x25xf32>) outs(%4 : tensor<4x?x25xbf16>) {
      ^bb0(%in: f32, %out: bf16):
        %23 = arith.truncf %in : f32 to bf16
        linalg.yield %23 : bf16
      } -> tensor<4x?x25xbf16>
      %cst = arith.constant 0.000000e+00 : f32
      %6 = tensor.empty(%arg5, %arg4) : tensor<4x?x?xf32>
      %7 = linalg.fill ins(%cst : f32) outs(%6 : tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
      %8 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%5, %3 : tensor<4x?x25xbf16>, tensor<4x25x?xbf16>) outs(%7 : tensor<4x?x?xf32>) attrs =  {mlc.contraction} {
      ^bb0(%in: bf16, %in_1: bf16, %out: f32):
        %23 = arith.extf %in : bf16 to f32
        %24 = arith.extf %in_1 : bf16 to f32
        %25 = arith.mulf %23, %24 : f32
        %26 = arith.addf %out, %25 : f32
        linalg.yield %26 : f32
      } -> tensor<4x?x?xf32>
      %cst_0 = arith.constant 0xFF800000 : f32
      %9 = tensor.empty(%arg5) : tensor<4x?xf32>
      %10 = linalg.fill ins(%cst_0 : f32) outs(%9 : tensor<4x?xf32>) -> tensor<4x?xf32>
      %11 = linalg.generic {indexing_maps = [#map, #map4], iterator_types = ["parallel", "parallel", "reduction"]} ins(%8 : tensor<4x?x?xf32>) outs(%10 : tensor<4x?xf32>) {
      ^bb0(%in: f32, %out: f32):
        %23 = arith.maximumf %out, %in : f32
        linalg.yield %23 : f32
      } -> tensor<4x?xf32>
      %12 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8, %11 : tensor<4x?x?xf32>, tensor<4x?xf32>) outs(%6 : tensor<4x?x?xf32>) {
      ^bb0(%in: f32, %in_1: f32, %out: f32):
        %23 = arith.subf %in, %in_1 : f32
        linalg.yield %23 : f32
      } -> tensor<4x?x?xf32>
      %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%12 : tensor<4x?x?xf32>) outs(%6 : tensor<4x?x?xf32>) {
      ^bb0(%in: f32, %out: f32):
        %23 = math.exp %in : f32
        linalg.yield %23 : f32
      } -> tensor<4x?x?xf32>
      %14 = linalg.fill ins(%cst : f32) outs(%9 : tensor<4x?xf32>) -> tensor<4x?xf32>
      %15 = linalg.generic {indexing_maps = [#map, #map4], iterator_types = ["parallel", "parallel", "reduction"]} ins(%13 : tensor<4x?x?xf32>) outs(%14 : tensor<4x?xf32>) {
      ^bb0(%in: f32, %out: f32):
        %23 = arith.addf %out, %in : f32
        linalg.yield %23 : f32
      } -> tensor<4x?xf32>
      %16 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13, %15 : tensor<4x?x?xf32>, tensor<4x?xf32>) outs(%6 : tensor<4x?x?xf32>) {
      ^bb0(%in: f32, %in_1: f32, %out: f32):
        %23 = arith.divf %in, %in_1 : f32
        linalg.yield %23 : f32
      } -> tensor<4x?x?xf32>
      %17 = tensor.empty(%arg5, %arg4) : tensor<4x?x?xbf16>
      %18 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%16 : tensor<4x?x?xf32>) outs(%17 : tensor<4x?x?xbf16>) {
      ^bb0(%in: f32, %out: bf16):
        %23 = arith.truncf %in : f32 to bf16
        linalg.yield %23 : bf16
      } -> tensor<4x?x?xbf16>
      %19 = tensor.empty(%arg5) : tensor<4x?x48xf32>
      %20 = linalg.fill ins(%cst : f32) outs(%19 : tensor<4x?x48xf32>) -> tensor<4x?x48xf32>
      %21 = linalg.fill ins(%cst : f32) outs(%arg6 : tensor<4x?x48xf32>) -> tensor<4x?x48xf32>
      %22 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%18, %1 : tensor<4x?x?xbf16>, tensor<4x?x48xbf16>) outs(%21 : tensor<4x?x48xf32>) attrs =  {mlc.contraction} {
      ^bb0(%in: bf16, %in_1: bf16, %out: f32):
        %23 = arith.extf %in : bf16 to f32
        %24 = arith.extf %in_1 : bf16 to f32
        %25 = arith.mulf %23, %24 : f32
        %26 = arith.addf %out, %25 : f32
        linalg.yield %26 : f32
      } -> tensor<4x?x48xf32>
      return %22 : tensor<4x?x48xf32>
    }
  }
}

