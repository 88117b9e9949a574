// Few queries with many keys, a mask, an odd end: the blocks of a cluster share the keys.
#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, 0, 0, d3)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map6 = affine_map<(d0, d1, d2, d3) -> (0, d1, d2)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map8 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{blocks = 1 : i64, consumers = 1 : i64, element = "bf16", group = 256 : i64, keys = 64 : i64, lanes = 4 : i64, multiprocessors = 132 : i64, order = "heads", queries = 1 : i64, result = "bf16", split = 8 : i64, stages = 8 : i64, template = "hopper_attention", threads = 256 : i64}]} {
  func.func @k0(%arg0: tensor<1x2x4x64xbf16>, %arg1: tensor<1x2x1000x64xbf16>, %arg2: tensor<1x1x1x1000xi1>, %arg3: tensor<1x2x1000x64xbf16>, %arg4: tensor<1x2x4x64xbf16>) -> tensor<1x2x4x64xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1x2x4x1000xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x2x4x1000xf32>) -> tensor<1x2x4x1000xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<1x2x4x64xbf16>, tensor<1x2x1000x64xbf16>) outs(%1 : tensor<1x2x4x1000xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_3: bf16, %out: f32):
      %26 = arith.extf %in : bf16 to f32
      %27 = arith.extf %in_3 : bf16 to f32
      %28 = arith.mulf %26, %27 : f32
      %29 = arith.addf %out, %28 : f32
      linalg.yield %29 : f32
    } -> tensor<1x2x4x1000xf32>
    %cst_0 = arith.constant 1.250000e-01 : f32
    %3 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<1x2x4x1000xf32>) outs(%0 : tensor<1x2x4x1000xf32>) {
    ^bb0(%in: f32, %out: f32):
      %26 = arith.mulf %in, %cst_0 : f32
      linalg.yield %26 : f32
    } -> tensor<1x2x4x1000xf32>
    %cst_1 = arith.constant 0xFF800000 : f32
    %4 = linalg.generic {indexing_maps = [#map4, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2, %3 : tensor<1x1x1x1000xi1>, tensor<1x2x4x1000xf32>) outs(%0 : tensor<1x2x4x1000xf32>) {
    ^bb0(%in: i1, %in_3: f32, %out: f32):
      %26 = arith.select %in, %in_3, %cst_1 : f32
      linalg.yield %26 : f32
    } -> tensor<1x2x4x1000xf32>
    %5 = tensor.empty() : tensor<1x2x4xf32>
    %6 = linalg.fill ins(%cst_1 : f32) outs(%5 : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %7 = linalg.generic {indexing_maps = [#map3, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%4 : tensor<1x2x4x1000xf32>) outs(%6 : tensor<1x2x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %26 = arith.maximumf %out, %in : f32
      linalg.yield %26 : f32
    } -> tensor<1x2x4xf32>
    %8 = tensor.empty() : tensor<1x2x4x1xi1>
    %9 = linalg.generic {indexing_maps = [#map6, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7 : tensor<1x2x4xf32>) outs(%8 : tensor<1x2x4x1xi1>) {
    ^bb0(%in: f32, %out: i1):
      %26 = arith.cmpf oeq, %in, %cst_1 : f32
      linalg.yield %26 : i1
    } -> tensor<1x2x4x1xi1>
    %10 = tensor.empty() : tensor<1x2x4x1xf32>
    %11 = linalg.generic {indexing_maps = [#map3, #map6, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9, %7 : tensor<1x2x4x1xi1>, tensor<1x2x4xf32>) outs(%10 : tensor<1x2x4x1xf32>) {
    ^bb0(%in: i1, %in_3: f32, %out: f32):
      %26 = arith.select %in, %cst, %in_3 : f32
      linalg.yield %26 : f32
    } -> tensor<1x2x4x1xf32>
    %12 = linalg.generic {indexing_maps = [#map3, #map7, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4, %11 : tensor<1x2x4x1000xf32>, tensor<1x2x4x1xf32>) outs(%0 : tensor<1x2x4x1000xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %26 = arith.subf %in, %in_3 : f32
      linalg.yield %26 : f32
    } -> tensor<1x2x4x1000xf32>
    %13 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12 : tensor<1x2x4x1000xf32>) outs(%0 : tensor<1x2x4x1000xf32>) {
    ^bb0(%in: f32, %out: f32):
      %26 = math.exp %in : f32
      linalg.yield %26 : f32
    } -> tensor<1x2x4x1000xf32>
    %14 = linalg.fill ins(%cst : f32) outs(%5 : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %15 = linalg.generic {indexing_maps = [#map3, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%13 : tensor<1x2x4x1000xf32>) outs(%14 : tensor<1x2x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %26 = arith.addf %out, %in : f32
      linalg.yield %26 : f32
    } -> tensor<1x2x4xf32>
    %16 = linalg.generic {indexing_maps = [#map6, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15 : tensor<1x2x4xf32>) outs(%8 : tensor<1x2x4x1xi1>) {
    ^bb0(%in: f32, %out: i1):
      %26 = arith.cmpf oeq, %in, %cst : f32
      linalg.yield %26 : i1
    } -> tensor<1x2x4x1xi1>
    %cst_2 = arith.constant 1.000000e+00 : f32
    %17 = linalg.generic {indexing_maps = [#map3, #map6, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16, %15 : tensor<1x2x4x1xi1>, tensor<1x2x4xf32>) outs(%10 : tensor<1x2x4x1xf32>) {
    ^bb0(%in: i1, %in_3: f32, %out: f32):
      %26 = arith.select %in, %cst_2, %in_3 : f32
      linalg.yield %26 : f32
    } -> tensor<1x2x4x1xf32>
    %18 = linalg.generic {indexing_maps = [#map3, #map7, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%13, %17 : tensor<1x2x4x1000xf32>, tensor<1x2x4x1xf32>) outs(%0 : tensor<1x2x4x1000xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %26 = arith.divf %in, %in_3 : f32
      linalg.yield %26 : f32
    } -> tensor<1x2x4x1000xf32>
    %19 = tensor.empty() : tensor<1x2x4x1000xbf16>
    %20 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18 : tensor<1x2x4x1000xf32>) outs(%19 : tensor<1x2x4x1000xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %26 = arith.truncf %in : f32 to bf16
      linalg.yield %26 : bf16
    } -> tensor<1x2x4x1000xbf16>
    %21 = tensor.empty() : tensor<1x2x4x64xf32>
    %22 = linalg.fill ins(%cst : f32) outs(%21 : tensor<1x2x4x64xf32>) -> tensor<1x2x4x64xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map8, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%20, %arg3 : tensor<1x2x4x1000xbf16>, tensor<1x2x1000x64xbf16>) outs(%22 : tensor<1x2x4x64xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_3: bf16, %out: f32):
      %26 = arith.extf %in : bf16 to f32
      %27 = arith.extf %in_3 : bf16 to f32
      %28 = arith.mulf %26, %27 : f32
      %29 = arith.addf %out, %28 : f32
      linalg.yield %29 : f32
    } -> tensor<1x2x4x64xf32>
    %24 = tensor.empty() : tensor<1x2x4x64xbf16>
    %25 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%23 : tensor<1x2x4x64xf32>) outs(%arg4 : tensor<1x2x4x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %26 = arith.truncf %in : f32 to bf16
      linalg.yield %26 : bf16
    } -> tensor<1x2x4x64xbf16>
    return %25 : tensor<1x2x4x64xbf16>
  }
}
}
