// Product of bytes by words: 600 elements are widened in two pieces, highest bits of the left side are turned over before.
module {
module @k1 attributes {mlc.kernel, mlc.packed, mlc.schedule = [{block = 8 : i64, lanes = 8 : i64, packed_operand = 1 : i64, panel = 16 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 6 : i64, stored = "pairs", template = "dot_words", unroll = 1 : i64, vector_dim = 1 : i64, vector_operand = 1 : i64, vectors = 2 : i64}]} {
  func.func @k1(%arg0: tensor<?x601xi8>, %arg1: tensor<4x301x16x2xi8>, %arg2: index, %arg3: tensor<?x64xi32>) -> tensor<?x64xi32> {
    %c0 = arith.constant 0 : i32
    %e = tensor.empty(%arg2) : tensor<?x601xi8>
    %x = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<?x601xi8>) outs(%e : tensor<?x601xi8>) {
    ^bb0(%in: i8, %out: i8):
      %c = arith.constant -128 : i8
      %4 = arith.xori %in, %c : i8
      linalg.yield %4 : i8
    } -> tensor<?x601xi8>
    %2 = linalg.fill ins(%c0 : i32) outs(%arg3 : tensor<?x64xi32>) -> tensor<?x64xi32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1 floordiv 16, d2 floordiv 2, d1 mod 16, d2 mod 2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %arg1 : tensor<?x601xi8>, tensor<4x301x16x2xi8>) outs(%2 : tensor<?x64xi32>) attrs =  {mlc.contraction} {
    ^bb0(%in: i8, %in_0: i8, %out: i32):
      %4 = arith.extui %in : i8 to i32
      %5 = arith.extsi %in_0 : i8 to i32
      %6 = arith.muli %4, %5 : i32
      %7 = arith.addi %out, %6 : i32
      linalg.yield %7 : i32
    } -> tensor<?x64xi32>
    return %3 : tensor<?x64xi32>
  }
}
}
