// Product of quads of bytes of which the left side is below 128: by pairs in 16 bits.
module {
module @k1 attributes {mlc.kernel, mlc.packed, mlc.schedule = [{block = 8 : i64, instruction = "vpmaddubsw", lanes = 16 : i64, packed_operand = 1 : i64, panel = 64 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 6 : i64, stored = "quads", template = "dot_quads", unroll = 1 : i64, vector_dim = 1 : i64, vector_operand = 1 : i64, vectors = 4 : i64}]} {
  func.func @k1(%arg0: tensor<?x66xi8>, %arg1: tensor<1x17x64x4xi8>, %arg2: index, %arg3: tensor<?x64xi32>) -> tensor<?x64xi32> {
    %c0 = arith.constant 0 : i32
    %2 = linalg.fill ins(%c0 : i32) outs(%arg3 : tensor<?x64xi32>) -> tensor<?x64xi32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1 floordiv 64, d2 floordiv 4, d1 mod 64, d2 mod 4)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<?x66xi8>, tensor<1x17x64x4xi8>) outs(%2 : tensor<?x64xi32>) attrs =  {mlc.contraction} {
    ^bb0(%in: i8, %in_0: i8, %out: i32):
      %4 = arith.extui %in {mlc.never_negative} : i8 to i32
      %5 = arith.extsi %in_0 : i8 to i32
      %6 = arith.muli %4, %5 : i32
      %7 = arith.addi %out, %6 : i32
      linalg.yield %7 : i32
    } -> tensor<?x64xi32>
    return %3 : tensor<?x64xi32>
  }
}
}
