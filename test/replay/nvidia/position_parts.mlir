// Positions in parts of few columns: all threads of a block share four columns, and meet in a loop.
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{first = 1 : i64, lanes = 4 : i64, last = 1 : i64, split = 512 : i64, template = "columns", threads = 512 : i64}]} {
  func.func @k0(%arg0: tensor<160x625x4xf32>, %arg1: tensor<160x4xf32>, %arg2: tensor<160x4xi32>) -> (tensor<160x4xf32>, tensor<160x4xi32>) {
    %cst = arith.constant 0xFF800000 : f32
    %0 = tensor.empty() : tensor<160x4xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<160x4xf32>) -> tensor<160x4xf32>
    %c0_i32 = arith.constant 0 : i32
    %2 = tensor.empty() : tensor<160x4xi32>
    %3 = linalg.fill ins(%c0_i32 : i32) outs(%2 : tensor<160x4xi32>) -> tensor<160x4xi32>
    %4 = linalg.fill ins(%cst : f32) outs(%arg1 : tensor<160x4xf32>) -> tensor<160x4xf32>
    %5 = linalg.fill ins(%c0_i32 : i32) outs(%arg2 : tensor<160x4xi32>) -> tensor<160x4xi32>
    %6:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d0, d2)>], iterator_types = ["parallel", "reduction", "parallel"]} ins(%arg0 : tensor<160x625x4xf32>) outs(%4, %5 : tensor<160x4xf32>, tensor<160x4xi32>) attrs =  {mlc.arg_reduce = "maximumf"} {
    ^bb0(%in: f32, %out: f32, %out_0: i32):
      %7 = arith.cmpf ord, %out, %out : f32
      %8 = arith.cmpf ugt, %in, %out : f32
      %9 = arith.andi %8, %7 : i1
      %c0 = arith.constant 0 : index
      %10 = linalg.index 1 : index
      %c1 = arith.constant 1 : index
      %11 = arith.muli %10, %c1 : index
      %12 = arith.addi %c0, %11 : index
      %13 = linalg.index 0 : index
      %c625 = arith.constant 625 : index
      %14 = arith.muli %13, %c625 : index
      %15 = arith.addi %12, %14 : index
      %16 = arith.index_cast %15 : index to i32
      %17 = arith.select %9, %in, %out : f32
      %18 = arith.select %9, %16, %out_0 : i32
      linalg.yield %17, %18 : f32, i32
    } -> (tensor<160x4xf32>, tensor<160x4xi32>)
    return %6#0, %6#1 : tensor<160x4xf32>, tensor<160x4xi32>
  }
}
}
