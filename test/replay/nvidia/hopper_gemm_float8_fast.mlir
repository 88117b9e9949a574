// The same formats with the sums of the tensor cores, into f32.
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{blocks = 1 : i64, consumers = 1 : i64, element = "f8", group = 256 : i64, lanes = 4 : i64, multiprocessors = 132 : i64, pairs = 2 : i64, raster = 8 : i64, stages = 9 : i64, template = "hopper_contraction", threads = 256 : i64, tile_columns = 32 : i64, tile_rows = 64 : i64}]} {
  func.func @k0(%arg0: tensor<300x2048xf8E5M2>, %arg1: tensor<520x2048xf8E5M2>, %arg2: tensor<f32>, %arg3: tensor<300x520xf32>) -> tensor<300x520xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<300x520xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<300x520xf32>) -> tensor<300x520xf32>
    %c127_i32 = arith.constant 127 : i32
    %c21_i32 = arith.constant 21 : i32
    %c939524096_i32 = arith.constant 939524096 : i32
    %cst_0 = arith.constant 1.52587891E-5 : f32
    %c4_i32 = arith.constant 4 : i32
    %c124_i32 = arith.constant 124 : i32
    %cst_1 = arith.constant 0x7F800000 : f32
    %cst_2 = arith.constant 0x7FC00000 : f32
    %c128_i32 = arith.constant 128 : i32
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<300x2048xf8E5M2>, tensor<520x2048xf8E5M2>) outs(%1 : tensor<300x520xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: f8E5M2, %in_3: f8E5M2, %out: f32):
      %4 = arith.bitcast %in : f8E5M2 to i8
      %5 = arith.extui %4 : i8 to i32
      %6 = arith.andi %5, %c127_i32 : i32
      %7 = arith.shli %6, %c21_i32 : i32
      %8 = arith.addi %7, %c939524096_i32 : i32
      %9 = arith.sitofp %6 : i32 to f32
      %10 = arith.mulf %9, %cst_0 : f32
      %11 = arith.cmpi ult, %6, %c4_i32 : i32
      %12 = arith.bitcast %8 : i32 to f32
      %13 = arith.select %11, %10, %12 : f32
      %14 = arith.cmpi eq, %6, %c124_i32 : i32
      %15 = arith.select %14, %cst_1, %13 : f32
      %16 = arith.cmpi ugt, %6, %c124_i32 : i32
      %17 = arith.select %16, %cst_2, %15 : f32
      %18 = arith.cmpi uge, %5, %c128_i32 : i32
      %19 = arith.negf %17 : f32
      %20 = arith.select %18, %19, %17 : f32
      %21 = arith.bitcast %in_3 : f8E5M2 to i8
      %22 = arith.extui %21 : i8 to i32
      %23 = arith.andi %22, %c127_i32 : i32
      %24 = arith.shli %23, %c21_i32 : i32
      %25 = arith.addi %24, %c939524096_i32 : i32
      %26 = arith.sitofp %23 : i32 to f32
      %27 = arith.mulf %26, %cst_0 : f32
      %28 = arith.cmpi ult, %23, %c4_i32 : i32
      %29 = arith.bitcast %25 : i32 to f32
      %30 = arith.select %28, %27, %29 : f32
      %31 = arith.cmpi eq, %23, %c124_i32 : i32
      %32 = arith.select %31, %cst_1, %30 : f32
      %33 = arith.cmpi ugt, %23, %c124_i32 : i32
      %34 = arith.select %33, %cst_2, %32 : f32
      %35 = arith.cmpi uge, %22, %c128_i32 : i32
      %36 = arith.negf %34 : f32
      %37 = arith.select %35, %36, %34 : f32
      %38 = arith.mulf %20, %37 : f32
      %39 = arith.addf %out, %38 : f32
      linalg.yield %39 : f32
    } -> tensor<300x520xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> ()>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<300x520xf32>, tensor<f32>) outs(%arg3 : tensor<300x520xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %4 = arith.mulf %in, %in_3 : f32
      linalg.yield %4 : f32
    } -> tensor<300x520xf32>
    return %3 : tensor<300x520xf32>
  }
}
}
