// Two rows times a matrix that is read in whole lines; columns and steps leave a rest.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{block = 1 : i64, item = 64 : i64, lanes = 8 : i64, line = 2048 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 2 : i64, steps = 8 : i64, tail = 0 : i64, template = "line_product", unroll = 1 : i64, vector_dim = 1 : i64, vectors = 2 : i64}]} {
  func.func @k0(%arg0: tensor<2x300xf32>, %arg1: tensor<300x1001xf32>, %arg2: tensor<2x1001xf32>) -> tensor<2x1001xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x1001xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x1001xf32>) -> tensor<2x1001xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%arg2 : tensor<2x1001xf32>) -> tensor<2x1001xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<2x300xf32>, tensor<300x1001xf32>) outs(%2 : tensor<2x1001xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %4 = arith.mulf %in, %in_0 : f32
      %5 = arith.addf %out, %4 : f32
      linalg.yield %5 : f32
    } -> tensor<2x1001xf32>
    return %3 : tensor<2x1001xf32>
  }
}
}
