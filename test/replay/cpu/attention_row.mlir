// Attention of one row: two blocks of keys, a mask.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{lanes = 8 : i64, row_block = 4 : i64, rows = 4 : i64, template = "attention", vectors = 2 : i64}]} {
  func.func @k0(%arg0: tensor<16x1x16xf32>, %arg1: tensor<16x120x16xf32>, %arg2: tensor<1x120xf32>, %arg3: tensor<16x120x32xf32>, %arg4: tensor<16x1x32xf32>) -> tensor<16x1x32xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<16x1x120xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<16x1x120xf32>) -> tensor<16x1x120xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<16x1x16xf32>, tensor<16x120x16xf32>) outs(%1 : tensor<16x1x120xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %16 = arith.mulf %in, %in_1 : f32
      %17 = arith.addf %out, %16 : f32
      linalg.yield %17 : f32
    } -> tensor<16x1x120xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2, %arg2 : tensor<16x1x120xf32>, tensor<1x120xf32>) outs(%0 : tensor<16x1x120xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %16 = arith.addf %in, %in_1 : f32
      linalg.yield %16 : f32
    } -> tensor<16x1x120xf32>
    %cst_0 = arith.constant 0xFF800000 : f32
    %4 = tensor.empty() : tensor<16x1xf32>
    %5 = linalg.fill ins(%cst_0 : f32) outs(%4 : tensor<16x1xf32>) -> tensor<16x1xf32>
    %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%3 : tensor<16x1x120xf32>) outs(%5 : tensor<16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %16 = arith.maximumf %out, %in : f32
      linalg.yield %16 : f32
    } -> tensor<16x1xf32>
    %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3, %6 : tensor<16x1x120xf32>, tensor<16x1xf32>) outs(%0 : tensor<16x1x120xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %16 = arith.subf %in, %in_1 : f32
      linalg.yield %16 : f32
    } -> tensor<16x1x120xf32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7 : tensor<16x1x120xf32>) outs(%0 : tensor<16x1x120xf32>) {
    ^bb0(%in: f32, %out: f32):
      %16 = math.exp %in : f32
      linalg.yield %16 : f32
    } -> tensor<16x1x120xf32>
    %9 = linalg.fill ins(%cst : f32) outs(%4 : tensor<16x1xf32>) -> tensor<16x1xf32>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%8 : tensor<16x1x120xf32>) outs(%9 : tensor<16x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %16 = arith.addf %out, %in : f32
      linalg.yield %16 : f32
    } -> tensor<16x1xf32>
    %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8, %10 : tensor<16x1x120xf32>, tensor<16x1xf32>) outs(%0 : tensor<16x1x120xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %16 = arith.divf %in, %in_1 : f32
      linalg.yield %16 : f32
    } -> tensor<16x1x120xf32>
    %12 = tensor.empty() : tensor<16x1x32xf32>
    %13 = linalg.fill ins(%cst : f32) outs(%12 : tensor<16x1x32xf32>) -> tensor<16x1x32xf32>
    %14 = linalg.fill ins(%cst : f32) outs(%arg4 : tensor<16x1x32xf32>) -> tensor<16x1x32xf32>
    %15 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%11, %arg3 : tensor<16x1x120xf32>, tensor<16x120x32xf32>) outs(%14 : tensor<16x1x32xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %16 = arith.mulf %in, %in_1 : f32
      %17 = arith.addf %out, %16 : f32
      linalg.yield %17 : f32
    } -> tensor<16x1x32xf32>
    return %15 : tensor<16x1x32xf32>
  }
}
}
