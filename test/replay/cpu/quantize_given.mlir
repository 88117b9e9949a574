// Rounding to bytes about a zero point that is an input: read once, with the bounds that it moves.
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{block = 8192 : i64, first = 0 : i64, grid = 0 : i64, lanes = 16 : i64, last = 0 : i64, template = "loops"}]} {
  func.func @k0(%arg0: tensor<?xf32>, %arg1: tensor<2xf32>, %arg2: tensor<?xi8>) -> tensor<?xi8> {
    %c0 = arith.constant 0 : index
    %n = tensor.dim %arg0, %c0 : tensor<?xf32>
    %0 = tensor.empty(%n) : tensor<?xf32>
    %c1 = arith.constant 1 : index
    %zero = tensor.extract %arg1[%c1] {mlc.whole} : tensor<2xf32>
    %low = arith.constant 0.000000e+00 : f32
    %high = arith.constant 2.550000e+02 : f32
    %1 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%arg0 : tensor<?xf32>) outs(%0 : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %4 = math.roundeven %in : f32
      linalg.yield %4 : f32
    } -> tensor<?xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%1 : tensor<?xf32>) outs(%0 : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %4 = arith.addf %in, %zero : f32
      linalg.yield %4 : f32
    } -> tensor<?xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%2 : tensor<?xf32>) outs(%arg2 : tensor<?xi8>) {
    ^bb0(%in: f32, %out: i8):
      %4 = arith.cmpf ogt, %in, %low : f32
      %5 = arith.select %4, %in, %low : f32
      %6 = arith.cmpf olt, %5, %high : f32
      %7 = arith.select %6, %5, %high : f32
      %8 = arith.fptosi %7 : f32 to i32
      %9 = arith.trunci %8 : i32 to i8
      linalg.yield %9 : i8
    } -> tensor<?xi8>
    return %3 : tensor<?xi8>
  }
}
}
