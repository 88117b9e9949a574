// Two groups have tiles in turns whose sums leave a thread few registers: addresses are computed and weights read late.
module {
module @k0 attributes {mlc.constants = array<i64: 0, 0, 800>, mlc.kernel, mlc.placement = "device", mlc.schedule = [{blocks = 1 : i64, consumers = 2 : i64, early = 1 : i64, element = "bf16", group = 384 : i64, lanes = 8 : i64, multiprocessors = 132 : i64, raster = 8 : i64, stages = 4 : i64, template = "hopper_contraction", threads = 384 : i64, tile_columns = 128 : i64, tile_rows = 192 : i64, turns = 2 : i64}]} {
  func.func @k0(%arg0: tensor<300x136xbf16>, %arg1: tensor<136x200xbf16>, %arg2: tensor<200xf32>, %arg3: tensor<300x200xbf16>) -> tensor<300x200xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<300x200xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<300x200xf32>) -> tensor<300x200xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<300x136xbf16>, tensor<136x200xbf16>) outs(%1 : tensor<300x200xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<300x200xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<300x200xf32>, tensor<200xf32>) outs(%arg3 : tensor<300x200xbf16>) {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %4 = arith.addf %in, %in_0 : f32
      %5 = arith.truncf %4 : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<300x200xbf16>
    return %3 : tensor<300x200xbf16>
  }
}
}
