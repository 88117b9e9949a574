// Positions of the largest elements of rows.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{block = 0 : i64, first = 1 : i64, grid = 1 : i64, lanes = 16 : i64, last = 0 : i64, template = "loops"}]} {
  func.func @k0(%arg0: tensor<1000x64xf32>, %arg1: tensor<1000xi64>) -> tensor<1000xi64> {
    %cst = arith.constant 0xFF800000 : f32
    %0 = tensor.empty() : tensor<1000xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1000xf32>) -> tensor<1000xf32>
    %c0_i64 = arith.constant 0 : i64
    %2 = tensor.empty() : tensor<1000xi64>
    %3 = linalg.fill ins(%c0_i64 : i64) outs(%2 : tensor<1000xi64>) -> tensor<1000xi64>
    %true = arith.constant true
    %4 = linalg.fill ins(%c0_i64 : i64) outs(%arg1 : tensor<1000xi64>) -> tensor<1000xi64>
    %5:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<1000x64xf32>) outs(%1, %4 : tensor<1000xf32>, tensor<1000xi64>) attrs =  {mlc.arg_reduce = "maximumf"} {
    ^bb0(%in: f32, %out: f32, %out_0: i64):
      %6 = arith.cmpf ogt, %in, %out : f32
      %7 = arith.cmpf uno, %in, %in : f32
      %8 = arith.cmpf uno, %out, %out : f32
      %9 = arith.xori %8, %true : i1
      %10 = arith.andi %6, %9 : i1
      %11 = arith.andi %7, %9 : i1
      %12 = arith.ori %10, %11 : i1
      %13 = linalg.index 1 : index
      %14 = arith.index_cast %13 : index to i64
      %15 = arith.select %12, %in, %out : f32
      %16 = arith.select %12, %14, %out_0 : i64
      linalg.yield %15, %16 : f32, i64
    } -> (tensor<1000xf32>, tensor<1000xi64>)
    return %5#1 : tensor<1000xi64>
  }
}
}
