// Products with weights of four bits that have scales in blocks: of rows that are codes, of floats, of one row.
#map = affine_map<(d0, d1, d2) -> (d0, d1 floordiv 8, d2, d1 mod 4)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1 floordiv 32, d2)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0, d1 floordiv 32)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d1, d3)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d1, d0, d2)>
#map8 = affine_map<(d0, d1, d2, d3) -> (0, d3)>
module {
  func.func @main() {
    return
  }
  module @codes attributes {mlc.kernel, mlc.schedule = [{block = 32 : i64, depth = 2560 : i64, distance = 16 : i64, instruction = "vpdpbusd", lanes = 16 : i64, least = 12 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 6 : i64, template = "scaled_blocks", unroll = 4 : i64, vector_dim = 2 : i64, vector_operand = 1 : i64, vectors = 4 : i64}]} {
    func.func @codes(%arg0: tensor<?x5120xi8>, %arg1: tensor<?x160xf32>, %arg2: tensor<4x640x64x4xi8>, %arg3: tensor<4x160x64xf32>, %arg4: tensor<?x4x64xf32>) -> tensor<?x4x64xf32> {
      %0 = tensor.empty() : tensor<4x5120x64xi8>
      %c4 = arith.constant 4 : index
      %c2 = arith.constant 2 : index
      %c15_i8 = arith.constant 15 : i8
      %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg2 : tensor<4x640x64x4xi8>) outs(%0 : tensor<4x5120x64xi8>) attrs =  {mlc.streamed} {
      ^bb0(%in: i8, %out: i8):
        %8 = linalg.index 1 : index
        %9 = arith.divui %8, %c4 : index
        %10 = arith.remui %9, %c2 : index
        %11 = arith.muli %10, %c4 : index
        %12 = arith.index_cast %11 : index to i8
        %13 = arith.shrui %in, %12 : i8
        %14 = arith.andi %13, %c15_i8 : i8
        linalg.yield %14 : i8
      } -> tensor<4x5120x64xi8>
      %2 = tensor.empty() : tensor<4x5120x64xf32>
      %c8_i32 = arith.constant 8 : i32
      %3 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %arg3 : tensor<4x5120x64xi8>, tensor<4x160x64xf32>) outs(%2 : tensor<4x5120x64xf32>) attrs =  {mlc.streamed} {
      ^bb0(%in: i8, %in_0: f32, %out: f32):
        %8 = arith.extui %in : i8 to i32
        %9 = arith.subi %8, %c8_i32 : i32
        %10 = arith.sitofp %9 : i32 to f32
        %11 = arith.mulf %10, %in_0 : f32
        linalg.yield %11 : f32
      } -> tensor<4x5120x64xf32>
      %c0 = arith.constant 0 : index
      %dim = tensor.dim %arg0, %c0 : tensor<?x5120xi8>
      %4 = tensor.empty(%dim) : tensor<?x5120xf32>
      %5 = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]} ins(%arg0, %arg1 : tensor<?x5120xi8>, tensor<?x160xf32>) outs(%4 : tensor<?x5120xf32>) attrs =  {mlc.streamed} {
      ^bb0(%in: i8, %in_0: f32, %out: f32):
        %8 = arith.extsi %in : i8 to i32
        %9 = arith.sitofp %8 : i32 to f32
        %10 = arith.mulf %9, %in_0 : f32
        linalg.yield %10 : f32
      } -> tensor<?x5120xf32>
      %cst = arith.constant 0.000000e+00 : f32
      %6 = linalg.fill ins(%cst : f32) outs(%arg4 : tensor<?x4x64xf32>) -> tensor<?x4x64xf32>
      %7 = linalg.generic {indexing_maps = [#map5, #map6, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%5, %3 : tensor<?x5120xf32>, tensor<4x5120x64xf32>) outs(%6 : tensor<?x4x64xf32>) attrs =  {mlc.contraction} {
      ^bb0(%in: f32, %in_0: f32, %out: f32):
        %8 = arith.mulf %in, %in_0 : f32
        %9 = arith.addf %out, %8 : f32
        linalg.yield %9 : f32
      } -> tensor<?x4x64xf32>
      return %7 : tensor<?x4x64xf32>
    }
  }
  module @floats attributes {mlc.kernel, mlc.schedule = [{block = 32 : i64, depth = 1024 : i64, distance = 32 : i64, instruction = "lookup", lanes = 16 : i64, least = 24 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 12 : i64, template = "scaled_blocks", unroll = 1 : i64, vector_dim = 2 : i64, vector_operand = 1 : i64, vectors = 2 : i64}]} {
    func.func @floats(%arg0: tensor<?x5120xf32>, %arg1: tensor<4x640x32x4xi8>, %arg2: tensor<4x160x32xf32>, %arg3: tensor<?x4x32xf32>) -> tensor<?x4x32xf32> {
      %0 = tensor.empty() : tensor<4x5120x32xi8>
      %c4 = arith.constant 4 : index
      %c2 = arith.constant 2 : index
      %c15_i8 = arith.constant 15 : i8
      %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1 : tensor<4x640x32x4xi8>) outs(%0 : tensor<4x5120x32xi8>) attrs =  {mlc.streamed} {
      ^bb0(%in: i8, %out: i8):
        %6 = linalg.index 1 : index
        %7 = arith.divui %6, %c4 : index
        %8 = arith.remui %7, %c2 : index
        %9 = arith.muli %8, %c4 : index
        %10 = arith.index_cast %9 : index to i8
        %11 = arith.shrui %in, %10 : i8
        %12 = arith.andi %11, %c15_i8 : i8
        linalg.yield %12 : i8
      } -> tensor<4x5120x32xi8>
      %2 = tensor.empty() : tensor<4x5120x32xf32>
      %c8_i32 = arith.constant 8 : i32
      %3 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %arg2 : tensor<4x5120x32xi8>, tensor<4x160x32xf32>) outs(%2 : tensor<4x5120x32xf32>) attrs =  {mlc.streamed} {
      ^bb0(%in: i8, %in_0: f32, %out: f32):
        %6 = arith.extui %in : i8 to i32
        %7 = arith.subi %6, %c8_i32 : i32
        %8 = arith.sitofp %7 : i32 to f32
        %9 = arith.mulf %8, %in_0 : f32
        linalg.yield %9 : f32
      } -> tensor<4x5120x32xf32>
      %cst = arith.constant 0.000000e+00 : f32
      %4 = linalg.fill ins(%cst : f32) outs(%arg3 : tensor<?x4x32xf32>) -> tensor<?x4x32xf32>
      %5 = linalg.generic {indexing_maps = [#map5, #map6, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %3 : tensor<?x5120xf32>, tensor<4x5120x32xf32>) outs(%4 : tensor<?x4x32xf32>) attrs =  {mlc.contraction} {
      ^bb0(%in: f32, %in_0: f32, %out: f32):
        %6 = arith.mulf %in, %in_0 : f32
        %7 = arith.addf %out, %6 : f32
        linalg.yield %7 : f32
      } -> tensor<?x4x32xf32>
      return %5 : tensor<?x4x32xf32>
    }
  }
  module @one_row attributes {mlc.kernel, mlc.schedule = [{block = 1 : i64, depth = 5120 : i64, distance = 32 : i64, instruction = "lookup", lanes = 16 : i64, row_first = -1 : i64, row_last = -2 : i64, rows = 1 : i64, template = "scaled_blocks", unroll = 1 : i64, vector_dim = 2 : i64, vector_operand = 1 : i64, vectors = 2 : i64}]} {
    func.func @one_row(%arg0: tensor<1x5120xf32>, %arg1: tensor<4x640x32x4xi8>, %arg2: tensor<4x160x32xf32>, %arg3: tensor<1x4x32xf32>) -> tensor<1x4x32xf32> {
      %0 = tensor.empty() : tensor<4x5120x32xi8>
      %c4 = arith.constant 4 : index
      %c2 = arith.constant 2 : index
      %c15_i8 = arith.constant 15 : i8
      %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1 : tensor<4x640x32x4xi8>) outs(%0 : tensor<4x5120x32xi8>) attrs =  {mlc.streamed} {
      ^bb0(%in: i8, %out: i8):
        %6 = linalg.index 1 : index
        %7 = arith.divui %6, %c4 : index
        %8 = arith.remui %7, %c2 : index
        %9 = arith.muli %8, %c4 : index
        %10 = arith.index_cast %9 : index to i8
        %11 = arith.shrui %in, %10 : i8
        %12 = arith.andi %11, %c15_i8 : i8
        linalg.yield %12 : i8
      } -> tensor<4x5120x32xi8>
      %2 = tensor.empty() : tensor<4x5120x32xf32>
      %c8_i32 = arith.constant 8 : i32
      %3 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %arg2 : tensor<4x5120x32xi8>, tensor<4x160x32xf32>) outs(%2 : tensor<4x5120x32xf32>) attrs =  {mlc.streamed} {
      ^bb0(%in: i8, %in_0: f32, %out: f32):
        %6 = arith.extui %in : i8 to i32
        %7 = arith.subi %6, %c8_i32 : i32
        %8 = arith.sitofp %7 : i32 to f32
        %9 = arith.mulf %8, %in_0 : f32
        linalg.yield %9 : f32
      } -> tensor<4x5120x32xf32>
      %cst = arith.constant 0.000000e+00 : f32
      %4 = linalg.fill ins(%cst : f32) outs(%arg3 : tensor<1x4x32xf32>) -> tensor<1x4x32xf32>
      %5 = linalg.generic {indexing_maps = [#map8, #map6, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %3 : tensor<1x5120xf32>, tensor<4x5120x32xf32>) outs(%4 : tensor<1x4x32xf32>) attrs =  {mlc.contraction} {
      ^bb0(%in: f32, %in_0: f32, %out: f32):
        %6 = arith.mulf %in, %in_0 : f32
        %7 = arith.addf %out, %6 : f32
        linalg.yield %7 : f32
      } -> tensor<1x4x32xf32>
      return %5 : tensor<1x4x32xf32>
    }
  }
}

