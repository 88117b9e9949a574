// Product with a packed weight of 70 columns that is written over the matrix that it is added to, in tiles for sixteen registers: what is added is in the destination, and a tile fetches it first.
module {
module @k0 attributes {mlc.inout = array<i64: 0>, mlc.kernel, mlc.packed, mlc.schedule = [{block = 8 : i64, early = 1 : i64, lanes = 8 : i64, packed_operand = 1 : i64, panel = 24 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 4 : i64, template = "contraction", unroll = 4 : i64, vector_dim = 1 : i64, vectors = 3 : i64}]} {
  func.func @k0(%arg0: tensor<?x64xf32>, %arg1: tensor<3x64x24xf32>, %arg3: index, %arg4: tensor<?x70xf32>) -> tensor<?x70xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty(%arg3) : tensor<?x70xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<?x70xf32>) -> tensor<?x70xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1 floordiv 24, d2, d1 mod 24)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<?x64xf32>, tensor<3x64x24xf32>) outs(%1 : tensor<?x70xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %5 = arith.mulf %in, %in_0 : f32
      %6 = arith.addf %out, %5 : f32
      linalg.yield %6 : f32
    } -> tensor<?x70xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg4 : tensor<?x70xf32>, tensor<?x70xf32>) outs(%0 : tensor<?x70xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %5 = arith.addf %in, %in_0 : f32
      linalg.yield %5 : f32
    } -> tensor<?x70xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<?x70xf32>) outs(%arg4 : tensor<?x70xf32>) {
    ^bb0(%in: f32, %out: f32):
      %5 = arith.maximumf %in, %cst : f32
      linalg.yield %5 : f32
    } -> tensor<?x70xf32>
    return %4 : tensor<?x70xf32>
  }
}
}
