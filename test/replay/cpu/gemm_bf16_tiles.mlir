// Product of bf16 on matrix tiles, of any number of rows, with a sum that is not whole steps and a matrix behind it.
module {
module @k1 attributes {mlc.kernel, mlc.packed, mlc.schedule = [{block = 8 : i64, instruction = "tdpbf16ps", lanes = 16 : i64, packed_operand = 1 : i64, panel = 32 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 32 : i64, stored = "tiles", template = "tile_product", unroll = 1 : i64, vector_dim = 1 : i64, vector_operand = 1 : i64, vectors = 2 : i64}]} {
  func.func @k1(%arg0: tensor<?x70xbf16>, %arg1: tensor<2x48x32x2xbf16>, %arg2: tensor<?x50xf32>, %arg3: index, %arg4: tensor<?x50xf32>) -> tensor<?x50xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty(%arg3) : tensor<?x50xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<?x50xf32>) -> tensor<?x50xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1 floordiv 32, d2 floordiv 2, d1 mod 32, d2 mod 2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<?x70xbf16>, tensor<2x48x32x2xbf16>) outs(%1 : tensor<?x50xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<?x50xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<?x50xf32>, tensor<?x50xf32>) outs(%arg4 : tensor<?x50xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %4 = arith.addf %in, %in_0 : f32
      linalg.yield %4 : f32
    } -> tensor<?x50xf32>
    return %3 : tensor<?x50xf32>
  }
}
}
