// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-gpu-schedules)' | FileCheck %s

// Two tiles of few queries with many keys: blocks of 32 clusters for each draw what the memory gives.
// CHECK: module @k0
// CHECK-SAME: groups = 32 : i64
// CHECK-SAME: split = 2 : i64
// CHECK-SAME: template = "hopper_attention"
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device"} {
  func.func @k0(%arg0: tensor<2x4x1x64xf16>, %arg1: tensor<2x1x65536x64xf16>, %arg2: tensor<2x1x65536x64xf16>, %arg3: tensor<2x1x4x64xf16>) -> tensor<2x1x4x64xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x1x4x65536xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x1x4x65536xf32>) -> tensor<2x1x4x65536xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, 0, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<2x4x1x64xf16>, tensor<2x1x65536x64xf16>) outs(%1 : tensor<2x1x4x65536xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: f16, %in_2: f16, %out: f32):
      %19 = arith.extf %in : f16 to f32
      %20 = arith.extf %in_2 : f16 to f32
      %21 = arith.mulf %19, %20 : f32
      %22 = arith.addf %out, %21 : f32
      linalg.yield %22 : f32
    } -> tensor<2x1x4x65536xf32>
    %cst_0 = arith.constant 1.250000e-01 : f32
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<2x1x4x65536xf32>) outs(%0 : tensor<2x1x4x65536xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.mulf %in, %cst_0 : f32
      linalg.yield %19 : f32
    } -> tensor<2x1x4x65536xf32>
    %cst_1 = arith.constant 0xFF800000 : f32
    %4 = tensor.empty() : tensor<2x1x4xf32>
    %5 = linalg.fill ins(%cst_1 : f32) outs(%4 : tensor<2x1x4xf32>) -> tensor<2x1x4xf32>
    %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%3 : tensor<2x1x4x65536xf32>) outs(%5 : tensor<2x1x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.maximumf %out, %in : f32
      linalg.yield %19 : f32
    } -> tensor<2x1x4xf32>
    %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, 0, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3, %6 : tensor<2x1x4x65536xf32>, tensor<2x1x4xf32>) outs(%0 : tensor<2x1x4x65536xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %19 = arith.subf %in, %in_2 : f32
      linalg.yield %19 : f32
    } -> tensor<2x1x4x65536xf32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7 : tensor<2x1x4x65536xf32>) outs(%0 : tensor<2x1x4x65536xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = math.exp %in : f32
      linalg.yield %19 : f32
    } -> tensor<2x1x4x65536xf32>
    %9 = linalg.fill ins(%cst : f32) outs(%4 : tensor<2x1x4xf32>) -> tensor<2x1x4xf32>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%8 : tensor<2x1x4x65536xf32>) outs(%9 : tensor<2x1x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.addf %out, %in : f32
      linalg.yield %19 : f32
    } -> tensor<2x1x4xf32>
    %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, 0, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8, %10 : tensor<2x1x4x65536xf32>, tensor<2x1x4xf32>) outs(%0 : tensor<2x1x4x65536xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %19 = arith.divf %in, %in_2 : f32
      linalg.yield %19 : f32
    } -> tensor<2x1x4x65536xf32>
    %12 = tensor.empty() : tensor<2x1x4x65536xf16>
    %13 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<2x1x4x65536xf32>) outs(%12 : tensor<2x1x4x65536xf16>) {
    ^bb0(%in: f32, %out: f16):
      %19 = arith.truncf %in : f32 to f16
      linalg.yield %19 : f16
    } -> tensor<2x1x4x65536xf16>
    %14 = tensor.empty() : tensor<2x1x4x64xf32>
    %15 = linalg.fill ins(%cst : f32) outs(%14 : tensor<2x1x4x64xf32>) -> tensor<2x1x4x64xf32>
    %16 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%13, %arg2 : tensor<2x1x4x65536xf16>, tensor<2x1x65536x64xf16>) outs(%15 : tensor<2x1x4x64xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: f16, %in_2: f16, %out: f32):
      %19 = arith.extf %in : f16 to f32
      %20 = arith.extf %in_2 : f16 to f32
      %21 = arith.mulf %19, %20 : f32
      %22 = arith.addf %out, %21 : f32
      linalg.yield %22 : f32
    } -> tensor<2x1x4x64xf32>
    %17 = tensor.empty() : tensor<2x1x4x64xf16>
    %18 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16 : tensor<2x1x4x64xf32>) outs(%arg3 : tensor<2x1x4x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %19 = arith.truncf %in : f32 to f16
      linalg.yield %19 : f16
    } -> tensor<2x1x4x64xf16>
    return %18 : tensor<2x1x4x64xf16>
  }
}
}
