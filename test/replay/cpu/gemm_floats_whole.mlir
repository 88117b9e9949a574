// Product of bf16 in f32 whose sum is one block, with sixteen registers: two sides of three vectors.
module {
module @k1 attributes {mlc.kernel, mlc.packed, mlc.schedule = [{block = 10 : i64, depth = 64 : i64, lanes = 8 : i64, outer = 0 : i64, packed_operand = 1 : i64, panel = 48 : i64, pieces = 1 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 4 : i64, side = 3 : i64, stored = "pairs", template = "dot_floats", unroll = 4 : i64, vector_dim = 1 : i64, vector_operand = 1 : i64, vectors = 6 : i64}]} {
  func.func @k1(%arg0: tensor<40x64xbf16>, %arg1: tensor<3x32x48x2xbf16>, %arg2: tensor<100xf32>, %arg3: tensor<40x100xf32>) -> tensor<40x100xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<40x100xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<40x100xf32>) -> tensor<40x100xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1 floordiv 48, d2 floordiv 2, d1 mod 48, d2 mod 2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<40x64xbf16>, tensor<3x32x48x2xbf16>) outs(%1 : tensor<40x100xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<40x100xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<40x100xf32>, tensor<100xf32>) outs(%arg3 : tensor<40x100xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %4 = arith.addf %in, %in_0 : f32
      linalg.yield %4 : f32
    } -> tensor<40x100xf32>
    return %3 : tensor<40x100xf32>
  }
}
}
