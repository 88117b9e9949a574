// Layer norm of odd rows, with weights that are read one by one.
module {
module @k2 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{blocks = 10 : i64, early = 1 : i64, first = 1 : i64, group = 128 : i64, kept = 1 : i64, lanes = 8 : i64, odd = 1 : i64, template = "rows", threads = 128 : i64}]} {
  func.func @k2(%arg0: tensor<77x1001xf16>, %arg1: tensor<1001xf32>, %arg2: tensor<1001xf32>, %arg3: tensor<77x1001xf16>) -> tensor<77x1001xf16> {
    %0 = tensor.empty() : tensor<77x1001xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<77x1001xf16>) outs(%0 : tensor<77x1001xf32>) {
    ^bb0(%in: f16, %out: f32):
      %18 = arith.extf %in : f16 to f32
      linalg.yield %18 : f32
    } -> tensor<77x1001xf32>
    %cst = arith.constant 0.000000e+00 : f32
    %2 = tensor.empty() : tensor<77xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<77xf32>) -> tensor<77xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%1 : tensor<77x1001xf32>) outs(%3 : tensor<77xf32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = arith.addf %out, %in : f32
      linalg.yield %18 : f32
    } -> tensor<77xf32>
    %5 = tensor.empty() : tensor<77x1xf32>
    %cst_0 = arith.constant 1.001000e+03 : f32
    %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<77xf32>) outs(%5 : tensor<77x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = arith.divf %in, %cst_0 : f32
      linalg.yield %18 : f32
    } -> tensor<77x1xf32>
    %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%1, %6 : tensor<77x1001xf32>, tensor<77x1xf32>) outs(%0 : tensor<77x1001xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %18 = arith.subf %in, %in_2 : f32
      linalg.yield %18 : f32
    } -> tensor<77x1001xf32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%7, %7 : tensor<77x1001xf32>, tensor<77x1001xf32>) outs(%0 : tensor<77x1001xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %18 = arith.mulf %in, %in_2 : f32
      linalg.yield %18 : f32
    } -> tensor<77x1001xf32>
    %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%8 : tensor<77x1001xf32>) outs(%3 : tensor<77xf32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = arith.addf %out, %in : f32
      linalg.yield %18 : f32
    } -> tensor<77xf32>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<77xf32>) outs(%5 : tensor<77x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = arith.divf %in, %cst_0 : f32
      linalg.yield %18 : f32
    } -> tensor<77x1xf32>
    %cst_1 = arith.constant 9.99999974E-6 : f32
    %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%10 : tensor<77x1xf32>) outs(%5 : tensor<77x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = arith.addf %in, %cst_1 : f32
      linalg.yield %18 : f32
    } -> tensor<77x1xf32>
    %12 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<77x1xf32>) outs(%5 : tensor<77x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %18 = math.rsqrt %in : f32
      linalg.yield %18 : f32
    } -> tensor<77x1xf32>
    %13 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%7, %12 : tensor<77x1001xf32>, tensor<77x1xf32>) outs(%0 : tensor<77x1001xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %18 = arith.mulf %in, %in_2 : f32
      linalg.yield %18 : f32
    } -> tensor<77x1001xf32>
    %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%13, %arg1 : tensor<77x1001xf32>, tensor<1001xf32>) outs(%0 : tensor<77x1001xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %18 = arith.mulf %in, %in_2 : f32
      linalg.yield %18 : f32
    } -> tensor<77x1001xf32>
    %15 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%14, %arg2 : tensor<77x1001xf32>, tensor<1001xf32>) outs(%0 : tensor<77x1001xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %18 = arith.addf %in, %in_2 : f32
      linalg.yield %18 : f32
    } -> tensor<77x1001xf32>
    %16 = tensor.empty() : tensor<77x1001xf16>
    %17 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%15 : tensor<77x1001xf32>) outs(%arg3 : tensor<77x1001xf16>) {
    ^bb0(%in: f32, %out: f16):
      %18 = arith.truncf %in : f32 to f16
      linalg.yield %18 : f16
    } -> tensor<77x1001xf16>
    return %17 : tensor<77x1001xf16>
  }
}
}
