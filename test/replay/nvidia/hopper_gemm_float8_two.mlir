// A product of floats of eight bits whose exact sums are those of two stages, scales of rows and of columns, a bias and a GELU.
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{blocks = 1 : i64, consumers = 1 : i64, element = "f8", exact = 2 : i64, group = 256 : i64, lanes = 8 : i64, multiprocessors = 132 : i64, raster = 8 : i64, stages = 12 : i64, template = "hopper_contraction", threads = 256 : i64, tile_columns = 32 : i64, tile_rows = 64 : i64}]} {
  func.func @k0(%arg0: tensor<300x208xf8E4M3FN>, %arg1: tensor<520x208xf8E4M3FN>, %arg2: tensor<300x1xf32>, %arg3: tensor<1x520xf32>, %arg4: tensor<520xf32>, %arg5: tensor<300x520xbf16>) -> tensor<300x520xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<300x520xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<300x520xf32>) -> tensor<300x520xf32>
    %c127_i32 = arith.constant 127 : i32
    %c20_i32 = arith.constant 20 : i32
    %c1006632960_i32 = arith.constant 1006632960 : i32
    %cst_0 = arith.constant 0.001953125 : f32
    %c8_i32 = arith.constant 8 : i32
    %cst_1 = arith.constant 0x7FC00000 : f32
    %c128_i32 = arith.constant 128 : i32
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<300x208xf8E4M3FN>, tensor<520x208xf8E4M3FN>) outs(%1 : tensor<300x520xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: f8E4M3FN, %in_5: f8E4M3FN, %out: f32):
      %13 = arith.bitcast %in : f8E4M3FN to i8
      %14 = arith.extui %13 : i8 to i32
      %15 = arith.andi %14, %c127_i32 : i32
      %16 = arith.shli %15, %c20_i32 : i32
      %17 = arith.addi %16, %c1006632960_i32 : i32
      %18 = arith.sitofp %15 : i32 to f32
      %19 = arith.mulf %18, %cst_0 : f32
      %20 = arith.cmpi ult, %15, %c8_i32 : i32
      %21 = arith.bitcast %17 : i32 to f32
      %22 = arith.select %20, %19, %21 : f32
      %23 = arith.cmpi eq, %15, %c127_i32 : i32
      %24 = arith.select %23, %cst_1, %22 : f32
      %25 = arith.cmpi uge, %14, %c128_i32 : i32
      %26 = arith.negf %24 : f32
      %27 = arith.select %25, %26, %24 : f32
      %28 = arith.bitcast %in_5 : f8E4M3FN to i8
      %29 = arith.extui %28 : i8 to i32
      %30 = arith.andi %29, %c127_i32 : i32
      %31 = arith.shli %30, %c20_i32 : i32
      %32 = arith.addi %31, %c1006632960_i32 : i32
      %33 = arith.sitofp %30 : i32 to f32
      %34 = arith.mulf %33, %cst_0 : f32
      %35 = arith.cmpi ult, %30, %c8_i32 : i32
      %36 = arith.bitcast %32 : i32 to f32
      %37 = arith.select %35, %34, %36 : f32
      %38 = arith.cmpi eq, %30, %c127_i32 : i32
      %39 = arith.select %38, %cst_1, %37 : f32
      %40 = arith.cmpi uge, %29, %c128_i32 : i32
      %41 = arith.negf %39 : f32
      %42 = arith.select %40, %41, %39 : f32
      %43 = arith.mulf %27, %42 : f32
      %44 = arith.addf %out, %43 : f32
      linalg.yield %44 : f32
    } -> tensor<300x520xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<300x520xf32>, tensor<300x1xf32>) outs(%0 : tensor<300x520xf32>) {
    ^bb0(%in: f32, %in_5: f32, %out: f32):
      %13 = arith.mulf %in, %in_5 : f32
      linalg.yield %13 : f32
    } -> tensor<300x520xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%3, %arg3 : tensor<300x520xf32>, tensor<1x520xf32>) outs(%0 : tensor<300x520xf32>) {
    ^bb0(%in: f32, %in_5: f32, %out: f32):
      %13 = arith.mulf %in, %in_5 : f32
      linalg.yield %13 : f32
    } -> tensor<300x520xf32>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%4, %arg4 : tensor<300x520xf32>, tensor<520xf32>) outs(%0 : tensor<300x520xf32>) {
    ^bb0(%in: f32, %in_5: f32, %out: f32):
      %13 = arith.addf %in, %in_5 : f32
      linalg.yield %13 : f32
    } -> tensor<300x520xf32>
    %cst_2 = arith.constant 0.707106769 : f32
    %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<300x520xf32>) outs(%0 : tensor<300x520xf32>) {
    ^bb0(%in: f32, %out: f32):
      %13 = arith.mulf %in, %cst_2 : f32
      linalg.yield %13 : f32
    } -> tensor<300x520xf32>
    %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%6 : tensor<300x520xf32>) outs(%0 : tensor<300x520xf32>) {
    ^bb0(%in: f32, %out: f32):
      %13 = math.erf %in : f32
      linalg.yield %13 : f32
    } -> tensor<300x520xf32>
    %cst_3 = arith.constant 5.000000e-01 : f32
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<300x520xf32>) outs(%0 : tensor<300x520xf32>) {
    ^bb0(%in: f32, %out: f32):
      %13 = arith.mulf %in, %cst_3 : f32
      linalg.yield %13 : f32
    } -> tensor<300x520xf32>
    %cst_4 = arith.constant 1.000000e+00 : f32
    %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%7 : tensor<300x520xf32>) outs(%0 : tensor<300x520xf32>) {
    ^bb0(%in: f32, %out: f32):
      %13 = arith.addf %in, %cst_4 : f32
      linalg.yield %13 : f32
    } -> tensor<300x520xf32>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%8, %9 : tensor<300x520xf32>, tensor<300x520xf32>) outs(%0 : tensor<300x520xf32>) {
    ^bb0(%in: f32, %in_5: f32, %out: f32):
      %13 = arith.mulf %in, %in_5 : f32
      linalg.yield %13 : f32
    } -> tensor<300x520xf32>
    %11 = tensor.empty() : tensor<300x520xbf16>
    %12 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%10 : tensor<300x520xf32>) outs(%arg5 : tensor<300x520xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %13 = arith.truncf %in : f32 to bf16
      linalg.yield %13 : bf16
    } -> tensor<300x520xbf16>
    return %12 : tensor<300x520xbf16>
  }
}
}
