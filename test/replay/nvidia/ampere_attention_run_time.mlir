// Extents that are known at run time only.
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{blocks = 2 : i64, element = "bf16", group = 128 : i64, lanes = 4 : i64, template = "ampere_attention", threads = 128 : i64, tile_rows = 64 : i64, warp_rows = 16 : i64}]} {
  func.func @k0(%arg0: tensor<?x2x?x64xbf16>, %arg1: tensor<?x2x?x64xbf16>, %arg2: tensor<?x2x?x64xbf16>, %arg3: index, %arg4: index, %arg5: index, %arg6: index, %arg7: tensor<?x2x?x64xbf16>) -> tensor<?x2x?x64xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty(%arg3, %arg4, %arg5) : tensor<?x2x?x?xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<?x2x?x?xf32>) -> tensor<?x2x?x?xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16>) outs(%1 : tensor<?x2x?x?xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_2: bf16, %out: f32):
      %19 = arith.extf %in : bf16 to f32
      %20 = arith.extf %in_2 : bf16 to f32
      %21 = arith.mulf %19, %20 : f32
      %22 = arith.addf %out, %21 : f32
      linalg.yield %22 : f32
    } -> tensor<?x2x?x?xf32>
    %cst_0 = arith.constant 1.250000e-01 : f32
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<?x2x?x?xf32>) outs(%0 : tensor<?x2x?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.mulf %in, %cst_0 : f32
      linalg.yield %19 : f32
    } -> tensor<?x2x?x?xf32>
    %cst_1 = arith.constant 0xFF800000 : f32
    %4 = tensor.empty(%arg3, %arg4) : tensor<?x2x?xf32>
    %5 = linalg.fill ins(%cst_1 : f32) outs(%4 : tensor<?x2x?xf32>) -> tensor<?x2x?xf32>
    %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%3 : tensor<?x2x?x?xf32>) outs(%5 : tensor<?x2x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.maximumf %out, %in : f32
      linalg.yield %19 : f32
    } -> tensor<?x2x?xf32>
    %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3, %6 : tensor<?x2x?x?xf32>, tensor<?x2x?xf32>) outs(%0 : tensor<?x2x?x?xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %19 = arith.subf %in, %in_2 : f32
      linalg.yield %19 : f32
    } -> tensor<?x2x?x?xf32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7 : tensor<?x2x?x?xf32>) outs(%0 : tensor<?x2x?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = math.exp %in : f32
      linalg.yield %19 : f32
    } -> tensor<?x2x?x?xf32>
    %9 = linalg.fill ins(%cst : f32) outs(%4 : tensor<?x2x?xf32>) -> tensor<?x2x?xf32>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%8 : tensor<?x2x?x?xf32>) outs(%9 : tensor<?x2x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.addf %out, %in : f32
      linalg.yield %19 : f32
    } -> tensor<?x2x?xf32>
    %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8, %10 : tensor<?x2x?x?xf32>, tensor<?x2x?xf32>) outs(%0 : tensor<?x2x?x?xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %19 = arith.divf %in, %in_2 : f32
      linalg.yield %19 : f32
    } -> tensor<?x2x?x?xf32>
    %12 = tensor.empty(%arg3, %arg4, %arg5) : tensor<?x2x?x?xbf16>
    %13 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<?x2x?x?xf32>) outs(%12 : tensor<?x2x?x?xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %19 = arith.truncf %in : f32 to bf16
      linalg.yield %19 : bf16
    } -> tensor<?x2x?x?xbf16>
    %14 = tensor.empty(%arg6, %arg4) : tensor<?x2x?x64xf32>
    %15 = linalg.fill ins(%cst : f32) outs(%14 : tensor<?x2x?x64xf32>) -> tensor<?x2x?x64xf32>
    %16 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%13, %arg2 : tensor<?x2x?x?xbf16>, tensor<?x2x?x64xbf16>) outs(%15 : tensor<?x2x?x64xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_2: bf16, %out: f32):
      %19 = arith.extf %in : bf16 to f32
      %20 = arith.extf %in_2 : bf16 to f32
      %21 = arith.mulf %19, %20 : f32
      %22 = arith.addf %out, %21 : f32
      linalg.yield %22 : f32
    } -> tensor<?x2x?x64xf32>
    %17 = tensor.empty(%arg6, %arg4) : tensor<?x2x?x64xbf16>
    %18 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16 : tensor<?x2x?x64xf32>) outs(%arg7 : tensor<?x2x?x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %19 = arith.truncf %in : f32 to bf16
      linalg.yield %19 : bf16
    } -> tensor<?x2x?x64xbf16>
    return %18 : tensor<?x2x?x64xbf16>
  }
}
}
