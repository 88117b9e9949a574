// A gated unit in bf16: two products of one left operand are one, with 64 columns of each in a tile.
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{blocks = 1 : i64, consumers = 2 : i64, element = "bf16", group = 384 : i64, lanes = 8 : i64, multiprocessors = 132 : i64, raster = 8 : i64, stages = 6 : i64, template = "hopper_contraction", threads = 384 : i64, tile_columns = 128 : i64, tile_rows = 128 : i64, twins = 2 : i64}]} {
  func.func @k0(%arg0: tensor<130x264xbf16>, %arg1: tensor<200x264xbf16>, %arg2: tensor<200x264xbf16>, %arg3: tensor<130x200xbf16>) -> tensor<130x200xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<130x200xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<130x200xf32>) -> tensor<130x200xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<130x264xbf16>, tensor<200x264xbf16>) outs(%1 : tensor<130x200xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %6 = arith.extf %in : bf16 to f32
      %7 = arith.extf %in_0 : bf16 to f32
      %8 = arith.mulf %6, %7 : f32
      %9 = arith.addf %out, %8 : f32
      linalg.yield %9 : f32
    } -> tensor<130x200xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg2 : tensor<130x264xbf16>, tensor<200x264xbf16>) outs(%1 : tensor<130x200xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %6 = arith.extf %in : bf16 to f32
      %7 = arith.extf %in_0 : bf16 to f32
      %8 = arith.mulf %6, %7 : f32
      %9 = arith.addf %out, %8 : f32
      linalg.yield %9 : f32
    } -> tensor<130x200xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %3 : tensor<130x200xf32>, tensor<130x200xf32>) outs(%arg3 : tensor<130x200xbf16>) {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %6 = math.tanh %in_0 : f32
      %7 = arith.mulf %in, %6 : f32
      %8 = arith.truncf %7 : f32 to bf16
      linalg.yield %8 : bf16
    } -> tensor<130x200xbf16>
    return %4 : tensor<130x200xbf16>
  }
}
}
