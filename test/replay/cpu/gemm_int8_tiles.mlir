// Product of bytes on matrix tiles: every work item interleaves its panel of the right side, which only a run knows.
module {
module @k1 attributes {mlc.kernel, mlc.packed, mlc.schedule = [{block = 1 : i64, instruction = "tdpbusd", lanes = 16 : i64, row_first = 1 : i64, row_last = 1 : i64, rows = 32 : i64, stored = "rows", template = "tile_product", unroll = 1 : i64, vector_dim = 2 : i64, vector_operand = 1 : i64, vectors = 2 : i64}]} {
  func.func @k1(%arg0: tensor<3x40x128xi8>, %arg1: tensor<3x128x?xi8>, %arg2: index, %arg3: tensor<3x40x?xi32>) -> tensor<3x40x?xi32> {
    %c0 = arith.constant 0 : i32
    %0 = linalg.fill ins(%c0 : i32) outs(%arg3 : tensor<3x40x?xi32>) -> tensor<3x40x?xi32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<3x40x128xi8>, tensor<3x128x?xi8>) outs(%0 : tensor<3x40x?xi32>) attrs =  {mlc.contraction} {
    ^bb0(%in: i8, %in_0: i8, %out: i32):
      %2 = arith.extui %in : i8 to i32
      %3 = arith.extsi %in_0 : i8 to i32
      %4 = arith.muli %2, %3 : i32
      %5 = arith.addi %out, %4 : i32
      linalg.yield %5 : i32
    } -> tensor<3x40x?xi32>
    return %1 : tensor<3x40x?xi32>
  }
}
}
