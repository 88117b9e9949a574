// A product of few rows, both of whose operands lie along the sum; no extent is a multiple of the lanes.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{block = 2 : i64, lanes = 16 : i64, row_first = 1 : i64, row_last = 1 : i64, rows = 4 : i64, template = "inner_product", unroll = 1 : i64, vector_dim = 2 : i64, vectors = 1 : i64}]} {
  func.func @k0(%arg0: tensor<3x7x100xf32>, %arg1: tensor<3x50x100xf32>, %arg2: tensor<3x7x50xf32>) -> tensor<3x7x50xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = linalg.fill ins(%cst : f32) outs(%arg2 : tensor<3x7x50xf32>) -> tensor<3x7x50xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<3x7x100xf32>, tensor<3x50x100xf32>) outs(%0 : tensor<3x7x50xf32>) attrs = {mlc.contraction} {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %2 = arith.mulf %in, %in_0 : f32
      %3 = arith.addf %out, %2 : f32
      linalg.yield %3 : f32
    } -> tensor<3x7x50xf32>
    return %1 : tensor<3x7x50xf32>
  }
}
}
