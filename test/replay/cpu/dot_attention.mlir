// Attention of bf16 by sums of pairs with a mask: three blocks of keys, the last one with fewer than it has room for, rows that end within a tile.
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d2, d1)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map5 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  module @k0 attributes {mlc.kernel, mlc.schedule = [{lanes = 16 : i64, row_block = 30 : i64, rows = 6 : i64, scalef = 1 : i64, template = "dot_attention", vectors = 4 : i64}]} {
    func.func @k0(%arg0: tensor<16x150x32xf32>, %arg1: tensor<16x150x40xf32>, %arg2: tensor<16x56x40xf32>, %arg3: tensor<56x150xf32>, %arg4: tensor<16x56x32xf32>) -> tensor<16x56x32xf32> {
      %0 = tensor.empty() : tensor<16x150x32xbf16>
      %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<16x150x32xf32>) outs(%0 : tensor<16x150x32xbf16>) {
      ^bb0(%in: f32, %out: bf16):
        %26 = arith.truncf %in : f32 to bf16
        linalg.yield %26 : bf16
      } -> tensor<16x150x32xbf16>
      %2 = tensor.empty() : tensor<16x150x40xbf16>
      %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1 : tensor<16x150x40xf32>) outs(%2 : tensor<16x150x40xbf16>) {
      ^bb0(%in: f32, %out: bf16):
        %26 = arith.truncf %in : f32 to bf16
        linalg.yield %26 : bf16
      } -> tensor<16x150x40xbf16>
      %4 = tensor.empty() : tensor<16x56x40xbf16>
      %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg2 : tensor<16x56x40xf32>) outs(%4 : tensor<16x56x40xbf16>) {
      ^bb0(%in: f32, %out: bf16):
        %26 = arith.truncf %in : f32 to bf16
        linalg.yield %26 : bf16
      } -> tensor<16x56x40xbf16>
      %6 = tensor.empty() : tensor<16x40x150xbf16>
      %7 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<16x150x40xbf16>) outs(%6 : tensor<16x40x150xbf16>) {
      ^bb0(%in: bf16, %out: bf16):
        linalg.yield %in : bf16
      } -> tensor<16x40x150xbf16>
      %cst = arith.constant 0.000000e+00 : f32
      %8 = tensor.empty() : tensor<16x56x150xf32>
      %9 = linalg.fill ins(%cst : f32) outs(%8 : tensor<16x56x150xf32>) -> tensor<16x56x150xf32>
      %10 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%5, %7 : tensor<16x56x40xbf16>, tensor<16x40x150xbf16>) outs(%9 : tensor<16x56x150xf32>) attrs =  {mlc.contraction} {
      ^bb0(%in: bf16, %in_1: bf16, %out: f32):
        %26 = arith.extf %in : bf16 to f32
        %27 = arith.extf %in_1 : bf16 to f32
        %28 = arith.mulf %26, %27 : f32
        %29 = arith.addf %out, %28 : f32
        linalg.yield %29 : f32
      } -> tensor<16x56x150xf32>
      %11 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10, %arg3 : tensor<16x56x150xf32>, tensor<56x150xf32>) outs(%8 : tensor<16x56x150xf32>) {
      ^bb0(%in: f32, %in_1: f32, %out: f32):
        %26 = arith.addf %in, %in_1 : f32
        linalg.yield %26 : f32
      } -> tensor<16x56x150xf32>
      %cst_0 = arith.constant 0xFF800000 : f32
      %12 = tensor.empty() : tensor<16x56xf32>
      %13 = linalg.fill ins(%cst_0 : f32) outs(%12 : tensor<16x56xf32>) -> tensor<16x56xf32>
      %14 = linalg.generic {indexing_maps = [#map, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%11 : tensor<16x56x150xf32>) outs(%13 : tensor<16x56xf32>) {
      ^bb0(%in: f32, %out: f32):
        %26 = arith.maximumf %out, %in : f32
        linalg.yield %26 : f32
      } -> tensor<16x56xf32>
      %15 = linalg.generic {indexing_maps = [#map, #map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11, %14 : tensor<16x56x150xf32>, tensor<16x56xf32>) outs(%8 : tensor<16x56x150xf32>) {
      ^bb0(%in: f32, %in_1: f32, %out: f32):
        %26 = arith.subf %in, %in_1 : f32
        linalg.yield %26 : f32
      } -> tensor<16x56x150xf32>
      %16 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15 : tensor<16x56x150xf32>) outs(%8 : tensor<16x56x150xf32>) {
      ^bb0(%in: f32, %out: f32):
        %26 = math.exp %in : f32
        linalg.yield %26 : f32
      } -> tensor<16x56x150xf32>
      %17 = linalg.fill ins(%cst : f32) outs(%12 : tensor<16x56xf32>) -> tensor<16x56xf32>
      %18 = linalg.generic {indexing_maps = [#map, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%16 : tensor<16x56x150xf32>) outs(%17 : tensor<16x56xf32>) {
      ^bb0(%in: f32, %out: f32):
        %26 = arith.addf %out, %in : f32
        linalg.yield %26 : f32
      } -> tensor<16x56xf32>
      %19 = linalg.generic {indexing_maps = [#map, #map6, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%16, %18 : tensor<16x56x150xf32>, tensor<16x56xf32>) outs(%8 : tensor<16x56x150xf32>) {
      ^bb0(%in: f32, %in_1: f32, %out: f32):
        %26 = arith.divf %in, %in_1 : f32
        linalg.yield %26 : f32
      } -> tensor<16x56x150xf32>
      %20 = tensor.empty() : tensor<16x56x150xbf16>
      %21 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%19 : tensor<16x56x150xf32>) outs(%20 : tensor<16x56x150xbf16>) {
      ^bb0(%in: f32, %out: bf16):
        %26 = arith.truncf %in : f32 to bf16
        linalg.yield %26 : bf16
      } -> tensor<16x56x150xbf16>
      %22 = tensor.empty() : tensor<16x56x32xf32>
      %23 = linalg.fill ins(%cst : f32) outs(%22 : tensor<16x56x32xf32>) -> tensor<16x56x32xf32>
      %24 = linalg.fill ins(%cst : f32) outs(%arg4 : tensor<16x56x32xf32>) -> tensor<16x56x32xf32>
      %25 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%21, %1 : tensor<16x56x150xbf16>, tensor<16x150x32xbf16>) outs(%24 : tensor<16x56x32xf32>) attrs =  {mlc.contraction} {
      ^bb0(%in: bf16, %in_1: bf16, %out: f32):
        %26 = arith.extf %in : bf16 to f32
        %27 = arith.extf %in_1 : bf16 to f32
        %28 = arith.mulf %26, %27 : f32
        %29 = arith.addf %out, %28 : f32
        linalg.yield %29 : f32
      } -> tensor<16x56x32xf32>
      return %25 : tensor<16x56x32xf32>
    }
  }
}

