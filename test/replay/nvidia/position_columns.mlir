// Positions of the last ones of the least bytes of columns.
module {
module @k1 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{first = 0 : i64, lanes = 2 : i64, last = 0 : i64, split = 32 : i64, template = "columns", threads = 256 : i64}]} {
  func.func @k1(%arg0: tensor<4000x16xi8>, %arg1: tensor<16xi64>) -> tensor<16xi64> {
    %c-1_i8 = arith.constant -1 : i8
    %0 = tensor.empty() : tensor<16xi8>
    %1 = linalg.fill ins(%c-1_i8 : i8) outs(%0 : tensor<16xi8>) -> tensor<16xi8>
    %c0_i32 = arith.constant 0 : i32
    %2 = tensor.empty() : tensor<16xi32>
    %3 = linalg.fill ins(%c0_i32 : i32) outs(%2 : tensor<16xi32>) -> tensor<16xi32>
    %4:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]}
        ins(%arg0 : tensor<4000x16xi8>) outs(%1, %3 : tensor<16xi8>, tensor<16xi32>) attrs =  {mlc.arg_reduce = "minui", mlc.select_last} {
    ^bb0(%in: i8, %out: i8, %out_0: i32):
      %7 = arith.cmpi ule, %in, %out : i8
      %8 = linalg.index 0 : index
      %9 = arith.index_cast %8 : index to i32
      %10 = arith.select %7, %in, %out : i8
      %11 = arith.select %7, %9, %out_0 : i32
      linalg.yield %10, %11 : i8, i32
    } -> (tensor<16xi8>, tensor<16xi32>)
    %6 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        ins(%4#1 : tensor<16xi32>) outs(%arg1 : tensor<16xi64>) {
    ^bb0(%in: i32, %out: i64):
      %7 = arith.extsi %in : i32 to i64
      linalg.yield %7 : i64
    } -> tensor<16xi64>
    return %6 : tensor<16xi64>
  }
}
}
