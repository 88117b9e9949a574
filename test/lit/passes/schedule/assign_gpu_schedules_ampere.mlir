// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-gpu-schedules)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-gpu-schedules{precision=tf32})' | FileCheck %s --check-prefix=TF32

module attributes {mlc.target = "nvidia:sm_80"} {
  // Many tiles are large ones, of warps with 64 rows and columns each.
  // CHECK: module @large
  // CHECK-SAME: template = "ampere_contraction"
  // CHECK-SAME: warp_columns = 64 : i64, warp_rows = 64 : i64
  module @large attributes {mlc.kernel} {
    func.func @large(%arg0: tensor<8192x8192xbf16>, %arg1: tensor<8192x8192xbf16>, %arg2: tensor<8192xf32>, %arg3: tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16> {
      %cst = arith.constant 0.000000e+00 : f32
      %0 = tensor.empty() : tensor<8192x8192xf32>
      %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
      %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) outs(%1 : tensor<8192x8192xf32>) attrs =  {mlc.contraction} {
      ^bb0(%in: bf16, %in_0: bf16, %out: f32):
        %4 = arith.extf %in : bf16 to f32
        %5 = arith.extf %in_0 : bf16 to f32
        %6 = arith.mulf %4, %5 : f32
        %7 = arith.addf %out, %6 : f32
        linalg.yield %7 : f32
      } -> tensor<8192x8192xf32>
      %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<8192x8192xf32>, tensor<8192xf32>) outs(%arg3 : tensor<8192x8192xbf16>) {
      ^bb0(%in: f32, %in_0: f32, %out: bf16):
        %4 = arith.addf %in, %in_0 : f32
        %5 = arith.truncf %4 : f32 to bf16
        linalg.yield %5 : bf16
      } -> tensor<8192x8192xbf16>
      return %3 : tensor<8192x8192xbf16>
    }
  }

  // Rows that are no multiples of 16 bytes apart are not for copies of 16 bytes.
  // CHECK: module @ragged_rows
  // CHECK-SAME: template = "contraction"
  module @ragged_rows attributes {mlc.kernel} {
    func.func @ragged_rows(%arg0: tensor<128x761xbf16>, %arg1: tensor<761x768xbf16>, %arg2: tensor<768xf32>, %arg3: tensor<128x768xbf16>) -> tensor<128x768xbf16> {
      %cst = arith.constant 0.000000e+00 : f32
      %0 = tensor.empty() : tensor<128x768xf32>
      %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<128x768xf32>) -> tensor<128x768xf32>
      %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<128x761xbf16>, tensor<761x768xbf16>) outs(%1 : tensor<128x768xf32>) attrs =  {mlc.contraction} {
      ^bb0(%in: bf16, %in_0: bf16, %out: f32):
        %4 = arith.extf %in : bf16 to f32
        %5 = arith.extf %in_0 : bf16 to f32
        %6 = arith.mulf %4, %5 : f32
        %7 = arith.addf %out, %6 : f32
        linalg.yield %7 : f32
      } -> tensor<128x768xf32>
      %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<128x768xf32>, tensor<768xf32>) outs(%arg3 : tensor<128x768xbf16>) {
      ^bb0(%in: f32, %in_0: f32, %out: bf16):
        %4 = arith.addf %in, %in_0 : f32
        %5 = arith.truncf %4 : f32 to bf16
        linalg.yield %5 : bf16
      } -> tensor<128x768xbf16>
      return %3 : tensor<128x768xbf16>
    }
  }

  // f32 is exact, unless it may be rounded: tiles that ordinary arithmetic multiplies.
  // CHECK: module @exact
  // CHECK-SAME: element = "f32"
  // CHECK-SAME: template = "ampere_contraction"
  // TF32: module @exact
  // TF32-SAME: element = "tf32"
  // TF32-SAME: template = "ampere_contraction"
  module @exact attributes {mlc.kernel} {
    func.func @exact(%arg0: tensor<?x136xf32>, %arg1: tensor<200x136xf32>, %arg2: tensor<200xf32>, %arg3: tensor<?x200xf32>) -> tensor<?x200xf32> {
      %cst = arith.constant 0.000000e+00 : f32
      %c0 = arith.constant 0 : index
      %d = tensor.dim %arg0, %c0 : tensor<?x136xf32>
      %0 = tensor.empty(%d) : tensor<?x200xf32>
      %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<?x200xf32>) -> tensor<?x200xf32>
      %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<?x136xf32>, tensor<200x136xf32>) outs(%1 : tensor<?x200xf32>) attrs =  {mlc.contraction} {
      ^bb0(%in: f32, %in_0: f32, %out: f32):
        %6 = arith.mulf %in, %in_0 : f32
        %7 = arith.addf %out, %6 : f32
        linalg.yield %7 : f32
      } -> tensor<?x200xf32>
      %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<?x200xf32>, tensor<200xf32>) outs(%arg3 : tensor<?x200xf32>) {
      ^bb0(%in: f32, %in_0: f32, %out: f32):
        %4 = arith.addf %in, %in_0 : f32
        linalg.yield %4 : f32
      } -> tensor<?x200xf32>
      return %3 : tensor<?x200xf32>
    }
  }
}
