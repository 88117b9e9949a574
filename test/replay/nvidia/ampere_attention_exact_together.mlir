// f32 multiplied exactly, scores of two tiles of keys at a time, under a causal mask.
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{across = 8 : i64, blocks = 4 : i64, element = "f32", group = 32 : i64, lanes = 4 : i64, template = "ampere_attention", threads = 32 : i64, tile_rows = 32 : i64, together = 2 : i64, warp_rows = 32 : i64}]} {
  func.func @k0(%arg0: tensor<2x3x100x64xf32>, %arg1: tensor<2x3x77x64xf32>, %arg2: tensor<2x3x77x64xf32>, %arg3: tensor<2x3x100x64xf32>) -> tensor<2x3x100x64xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x3x100x77xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x3x100x77xf32>) -> tensor<2x3x100x77xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<2x3x100x64xf32>, tensor<2x3x77x64xf32>) outs(%1 : tensor<2x3x100x77xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %23 = arith.mulf %in, %in_2 : f32
      %24 = arith.addf %out, %23 : f32
      linalg.yield %24 : f32
    } -> tensor<2x3x100x77xf32>
    %cst_0 = arith.constant 1.250000e-01 : f32
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<2x3x100x77xf32>) outs(%0 : tensor<2x3x100x77xf32>) {
    ^bb0(%in: f32, %out: f32):
      %23 = arith.mulf %in, %cst_0 : f32
      linalg.yield %23 : f32
    } -> tensor<2x3x100x77xf32>
    %4 = tensor.empty() : tensor<1x77xi64>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%4 : tensor<1x77xi64>) {
    ^bb0(%out: i64):
      %23 = linalg.index 1 : index
      %24 = arith.index_cast %23 : index to i64
      linalg.yield %24 : i64
    } -> tensor<1x77xi64>
    %6 = tensor.empty() : tensor<100x1xi64>
    %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%6 : tensor<100x1xi64>) {
    ^bb0(%out: i64):
      %23 = linalg.index 0 : index
      %24 = arith.index_cast %23 : index to i64
      linalg.yield %24 : i64
    } -> tensor<100x1xi64>
    %8 = tensor.empty() : tensor<100x77xi1>
    %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (0, d1)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%5, %7 : tensor<1x77xi64>, tensor<100x1xi64>) outs(%8 : tensor<100x77xi1>) {
    ^bb0(%in: i64, %in_2: i64, %out: i1):
      %23 = arith.cmpi sle, %in, %in_2 : i64
      linalg.yield %23 : i1
    } -> tensor<100x77xi1>
    %cst_1 = arith.constant 0xFF800000 : f32
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9, %3 : tensor<100x77xi1>, tensor<2x3x100x77xf32>) outs(%0 : tensor<2x3x100x77xf32>) {
    ^bb0(%in: i1, %in_2: f32, %out: f32):
      %23 = arith.select %in, %in_2, %cst_1 : f32
      linalg.yield %23 : f32
    } -> tensor<2x3x100x77xf32>
    %11 = tensor.empty() : tensor<2x3x100xf32>
    %12 = linalg.fill ins(%cst_1 : f32) outs(%11 : tensor<2x3x100xf32>) -> tensor<2x3x100xf32>
    %13 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%10 : tensor<2x3x100x77xf32>) outs(%12 : tensor<2x3x100xf32>) {
    ^bb0(%in: f32, %out: f32):
      %23 = arith.maximumf %out, %in : f32
      linalg.yield %23 : f32
    } -> tensor<2x3x100xf32>
    %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%10, %13 : tensor<2x3x100x77xf32>, tensor<2x3x100xf32>) outs(%0 : tensor<2x3x100x77xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %23 = arith.subf %in, %in_2 : f32
      linalg.yield %23 : f32
    } -> tensor<2x3x100x77xf32>
    %15 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14 : tensor<2x3x100x77xf32>) outs(%0 : tensor<2x3x100x77xf32>) {
    ^bb0(%in: f32, %out: f32):
      %23 = math.exp %in : f32
      linalg.yield %23 : f32
    } -> tensor<2x3x100x77xf32>
    %16 = linalg.fill ins(%cst : f32) outs(%11 : tensor<2x3x100xf32>) -> tensor<2x3x100xf32>
    %17 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%15 : tensor<2x3x100x77xf32>) outs(%16 : tensor<2x3x100xf32>) {
    ^bb0(%in: f32, %out: f32):
      %23 = arith.addf %out, %in : f32
      linalg.yield %23 : f32
    } -> tensor<2x3x100xf32>
    %18 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15, %17 : tensor<2x3x100x77xf32>, tensor<2x3x100xf32>) outs(%0 : tensor<2x3x100x77xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %23 = arith.divf %in, %in_2 : f32
      linalg.yield %23 : f32
    } -> tensor<2x3x100x77xf32>
    %19 = tensor.empty() : tensor<2x3x100x64xf32>
    %20 = linalg.fill ins(%cst : f32) outs(%19 : tensor<2x3x100x64xf32>) -> tensor<2x3x100x64xf32>
    %21 = linalg.fill ins(%cst : f32) outs(%arg3 : tensor<2x3x100x64xf32>) -> tensor<2x3x100x64xf32>
    %22 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%18, %arg2 : tensor<2x3x100x77xf32>, tensor<2x3x77x64xf32>) outs(%21 : tensor<2x3x100x64xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %23 = arith.mulf %in, %in_2 : f32
      %24 = arith.addf %out, %23 : f32
      linalg.yield %24 : f32
    } -> tensor<2x3x100x64xf32>
    return %22 : tensor<2x3x100x64xf32>
  }
}
}
