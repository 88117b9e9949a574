// Positions of the largest elements of rows that two blocks share.
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{cluster = 2 : i64, first = 1 : i64, group = 128 : i64, kept = 5 : i64, lanes = 4 : i64, template = "rows", threads = 128 : i64}]} {
  func.func @k0(%arg0: tensor<3x4100xf32>, %arg1: tensor<3xi64>) -> tensor<3xi64> {
    %cst = arith.constant 0xFF800000 : f32
    %0 = tensor.empty() : tensor<3xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<3xf32>) -> tensor<3xf32>
    %c0_i32 = arith.constant 0 : i32
    %2 = tensor.empty() : tensor<3xi32>
    %3 = linalg.fill ins(%c0_i32 : i32) outs(%2 : tensor<3xi32>) -> tensor<3xi32>
    %4:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
        ins(%arg0 : tensor<3x4100xf32>) outs(%1, %3 : tensor<3xf32>, tensor<3xi32>) attrs =  {mlc.arg_reduce = "maximumf"} {
    ^bb0(%in: f32, %out: f32, %out_0: i32):
      %7 = arith.cmpf ord, %out, %out : f32
      %8 = arith.cmpf ugt, %in, %out : f32
      %9 = arith.andi %8, %7 : i1
      %10 = linalg.index 1 : index
      %11 = arith.index_cast %10 : index to i32
      %12 = arith.select %9, %in, %out : f32
      %13 = arith.select %9, %11, %out_0 : i32
      linalg.yield %12, %13 : f32, i32
    } -> (tensor<3xf32>, tensor<3xi32>)
    %6 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        ins(%4#1 : tensor<3xi32>) outs(%arg1 : tensor<3xi64>) {
    ^bb0(%in: i32, %out: i64):
      %7 = arith.extsi %in : i32 to i64
      linalg.yield %7 : i64
    } -> tensor<3xi64>
    return %6 : tensor<3xi64>
  }
}
}
