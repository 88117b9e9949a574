// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views{target=cuda},mlc-plan-fusion{target=cuda},mlc-outline-kernels)' | FileCheck %s

module attributes {mlc.target = "nvidia:h200"} {

// Products of bf16 with the softmax between them are one kernel; nothing is widened in memory.
// CHECK-LABEL: func.func @plain
// CHECK: mlc.launch @k0(%arg0, %arg1, %arg2)
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @plain(%q: tensor<1x4x32x64xbf16>, %k: tensor<1x4x48x64xbf16>, %v: tensor<1x4x48x64xbf16>) -> tensor<1x4x32x64xbf16> {
  %r = mlc.attention %q, %k, %v : tensor<1x4x32x64xbf16>, tensor<1x4x48x64xbf16>, tensor<1x4x48x64xbf16> -> tensor<1x4x32x64xbf16>
  return %r : tensor<1x4x32x64xbf16>
}

// A causal mask is computed from positions, in each of the kernels that share it.
// CHECK-LABEL: func.func @causal
// CHECK-COUNT-2: mlc.launch
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @causal(%q: tensor<1x4x48x64xf16>, %k: tensor<1x4x48x64xf16>, %v: tensor<1x4x48x64xf16>) -> tensor<1x4x48x64xf16> {
  %r = mlc.attention %q, %k, %v {causal = true} : tensor<1x4x48x64xf16>, tensor<1x4x48x64xf16>, tensor<1x4x48x64xf16> -> tensor<1x4x48x64xf16>
  %s = mlc.attention %r, %k, %v {causal = true} : tensor<1x4x48x64xf16>, tensor<1x4x48x64xf16>, tensor<1x4x48x64xf16> -> tensor<1x4x48x64xf16>
  return %s : tensor<1x4x48x64xf16>
}

// A mask of data is read; what moves the result is written that way.
// CHECK-LABEL: func.func @masked
// CHECK: mlc.launch @{{.*}}(%arg0, %arg1, %arg3, %arg2)
// CHECK-SAME: tensor<1x32x4x64xbf16>
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @masked(%q: tensor<1x4x32x64xbf16>, %k: tensor<1x4x48x64xbf16>, %v: tensor<1x4x48x64xbf16>, %m: tensor<1x1x32x48xi1>) -> tensor<1x32x4x64xbf16> {
  %r = mlc.attention %q, %k, %v mask(%m : tensor<1x1x32x48xi1>) : tensor<1x4x32x64xbf16>, tensor<1x4x48x64xbf16>, tensor<1x4x48x64xbf16> -> tensor<1x4x32x64xbf16>
  %t = mlc.transpose %r {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x4x32x64xbf16> -> tensor<1x32x4x64xbf16>
  return %t : tensor<1x32x4x64xbf16>
}

// Products of f32 are exact, and in one kernel all the same: it multiplies without tensor cores.
// CHECK-LABEL: func.func @exact
// CHECK: mlc.launch
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @exact(%q: tensor<1x4x32x64xf32>, %k: tensor<1x4x48x64xf32>, %v: tensor<1x4x48x64xf32>) -> tensor<1x4x32x64xf32> {
  %r = mlc.attention %q, %k, %v : tensor<1x4x32x64xf32>, tensor<1x4x48x64xf32>, tensor<1x4x48x64xf32> -> tensor<1x4x32x64xf32>
  return %r : tensor<1x4x32x64xf32>
}

// A text is continued: one query, any number of keys, which blocks of a cluster share.
// CHECK-LABEL: func.func @one_query
// CHECK: mlc.launch
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @one_query(%q: tensor<1x4x1x64xbf16>, %k: tensor<1x4x?x64xbf16>, %v: tensor<1x4x?x64xbf16>) -> tensor<1x4x1x64xbf16> {
  %r = mlc.attention %q, %k, %v : tensor<1x4x1x64xbf16>, tensor<1x4x?x64xbf16>, tensor<1x4x?x64xbf16> -> tensor<1x4x1x64xbf16>
  return %r : tensor<1x4x1x64xbf16>
}

// Keys that lie across.
// CHECK-LABEL: func.func @across
// CHECK-COUNT-3: mlc.launch
// CHECK: return
func.func @across(%q: tensor<4x32x64xbf16>, %k: tensor<4x64x48xbf16>, %v: tensor<4x48x64xbf16>) -> tensor<4x32x64xf32> {
  %s = mlc.matmul %q, %k {widen} : tensor<4x32x64xbf16>, tensor<4x64x48xbf16> -> tensor<4x32x48xf32>
  %p = mlc.softmax %s {axis = 2 : i64, log = false} : tensor<4x32x48xf32> -> tensor<4x32x48xf32>
  %b = mlc.cast %p : tensor<4x32x48xf32> -> tensor<4x32x48xbf16>
  %r = mlc.matmul %b, %v {widen} : tensor<4x32x48xbf16>, tensor<4x48x64xbf16> -> tensor<4x32x64xf32>
  return %r : tensor<4x32x64xf32>
}
}
