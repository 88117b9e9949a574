// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views{target=cuda-tf32},mlc-plan-fusion{target=cuda-tf32},mlc-outline-kernels)' | FileCheck %s --check-prefixes=CHECK,ROUND
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views{target=cuda-mma-tf32},mlc-plan-fusion{target=cuda-mma-tf32},mlc-outline-kernels)' | FileCheck %s --check-prefixes=CHECK,ROUND
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views{target=cuda},mlc-plan-fusion{target=cuda},mlc-outline-kernels)' | FileCheck %s --check-prefixes=CHECK,EXACT

module attributes {mlc.target = "nvidia:h200"} {

// f32 is attended in one kernel, rounded or exact, which reads queries, keys and values where a product has written
// them beside each other.
// CHECK-LABEL: func.func @joined
// CHECK: mlc.launch @k0(%arg0) outs(%0) : (tensor<1x48x3x4x64xf32>)
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @joined(%x: tensor<1x48x3x4x64xf32>) -> tensor<1x4x48x64xf32> {
  %t = mlc.transpose %x {permutation = array<i64: 2, 0, 3, 1, 4>} : tensor<1x48x3x4x64xf32> -> tensor<3x1x4x48x64xf32>
  %sq = mlc.slice %t [0, 0, 0, 0, 0] [1, 1, 4, 48, 64] [1, 1, 1, 1, 1] : tensor<3x1x4x48x64xf32> -> tensor<1x1x4x48x64xf32>
  %sk = mlc.slice %t [1, 0, 0, 0, 0] [1, 1, 4, 48, 64] [1, 1, 1, 1, 1] : tensor<3x1x4x48x64xf32> -> tensor<1x1x4x48x64xf32>
  %sv = mlc.slice %t [2, 0, 0, 0, 0] [1, 1, 4, 48, 64] [1, 1, 1, 1, 1] : tensor<3x1x4x48x64xf32> -> tensor<1x1x4x48x64xf32>
  %q = mlc.reshape %sq [1, 4, 48, 64] : tensor<1x1x4x48x64xf32> -> tensor<1x4x48x64xf32>
  %k = mlc.reshape %sk [1, 4, 48, 64] : tensor<1x1x4x48x64xf32> -> tensor<1x4x48x64xf32>
  %v = mlc.reshape %sv [1, 4, 48, 64] : tensor<1x1x4x48x64xf32> -> tensor<1x4x48x64xf32>
  %r = mlc.attention %q, %k, %v : tensor<1x4x48x64xf32>, tensor<1x4x48x64xf32>, tensor<1x4x48x64xf32> -> tensor<1x4x48x64xf32>
  return %r : tensor<1x4x48x64xf32>
}

// Few queries with many keys stay three kernels: keys are not shared by blocks. Exact products of few rows are not in
// tiles, which alone read keys as they lie.
// CHECK-LABEL: func.func @few
// ROUND-COUNT-3: mlc.launch
// ROUND-SAME: reason = "no attention in one kernel: few queries do not fill tiles, and keys are not split between them"
// EXACT-COUNT-4: mlc.launch
// EXACT-SAME: reason = "no attention in one kernel: rows of queries, keys or values are not contiguous in memory"
func.func @few(%q: tensor<1x4x8x64xf32>, %k: tensor<1x4x2048x64xf32>, %v: tensor<1x4x2048x64xf32>) -> tensor<1x4x8x64xf32> {
  %r = mlc.attention %q, %k, %v : tensor<1x4x8x64xf32>, tensor<1x4x2048x64xf32>, tensor<1x4x2048x64xf32> -> tensor<1x4x8x64xf32>
  return %r : tensor<1x4x8x64xf32>
}
}
