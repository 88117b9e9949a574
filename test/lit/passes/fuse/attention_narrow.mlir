// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose,mlc-narrow-contractions,cse,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views,mlc-plan-fusion,mlc-outline-kernels)' | FileCheck %s

// Products of bf16: one kernel, with the scale, the transposition and the rounding of what it reads.
// CHECK-LABEL: func.func @plain
// CHECK: mlc.launch @{{k[0-9]+}}(%arg2, %arg1, %arg0)
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @plain(%q: tensor<1x4x32x16xf32>, %k: tensor<1x4x48x16xf32>, %v: tensor<1x4x48x16xf32>) -> tensor<1x4x32x16xf32> {
  %r = mlc.attention %q, %k, %v : tensor<1x4x32x16xf32>, tensor<1x4x48x16xf32>, tensor<1x4x48x16xf32> -> tensor<1x4x32x16xf32>
  return %r : tensor<1x4x32x16xf32>
}

// Heads of fewer than eight elements are multiplied in f32 (mlc-narrow-contractions): there is no template for both.
// CHECK-LABEL: func.func @two_types
// CHECK-COUNT-4: mlc.launch
// CHECK-SAME: reason = "no attention in one kernel: attention in one kernel is for products of f32, bf16 or f16"
// CHECK: return
func.func @two_types(%q: tensor<4x32x4xf32>, %k: tensor<4x4x48xf32>, %v: tensor<4x48x16xf32>) -> tensor<4x32x16xf32> {
  %s = mlc.matmul %q, %k : tensor<4x32x4xf32>, tensor<4x4x48xf32> -> tensor<4x32x48xf32>
  %p = mlc.softmax %s {axis = 2 : i64, log = false} : tensor<4x32x48xf32> -> tensor<4x32x48xf32>
  %r = mlc.matmul %p, %v : tensor<4x32x48xf32>, tensor<4x48x16xf32> -> tensor<4x32x16xf32>
  return %r : tensor<4x32x16xf32>
}

// Products of f32 are taken, too.
// CHECK-LABEL: func.func @floats
// CHECK-COUNT-1: mlc.launch
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @floats(%q: tensor<4x32x4xf32>, %k: tensor<4x4x48xf32>, %v: tensor<4x48x4xf32>) -> tensor<4x32x4xf32> {
  %s = mlc.matmul %q, %k : tensor<4x32x4xf32>, tensor<4x4x48xf32> -> tensor<4x32x48xf32>
  %p = mlc.softmax %s {axis = 2 : i64, log = false} : tensor<4x32x48xf32> -> tensor<4x32x48xf32>
  %r = mlc.matmul %p, %v : tensor<4x32x48xf32>, tensor<4x48x4xf32> -> tensor<4x32x4xf32>
  return %r : tensor<4x32x4xf32>
}

// One query alone reads keys and values where they lie, if they are of f32, which a product of one row stays: tiles take
// them packed.
// CHECK-LABEL: func.func @one_query
// CHECK-COUNT-1: mlc.launch
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @one_query(%q: tensor<1x4x1x16xf32>, %k: tensor<1x4x48x16xf32>, %v: tensor<1x4x48x16xf32>) -> tensor<1x4x1x16xf32> {
  %r = mlc.attention %q, %k, %v : tensor<1x4x1x16xf32>, tensor<1x4x48x16xf32>, tensor<1x4x48x16xf32> -> tensor<1x4x1x16xf32>
  return %r : tensor<1x4x1x16xf32>
}

// CHECK-LABEL: func.func @one_narrow_query
// CHECK-COUNT-1: mlc.launch
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @one_narrow_query(%q: tensor<4x1x16xbf16>, %k: tensor<4x16x48xbf16>, %v: tensor<4x48x16xbf16>) -> tensor<4x1x16xf32> {
  %s = mlc.matmul %q, %k {widen} : tensor<4x1x16xbf16>, tensor<4x16x48xbf16> -> tensor<4x1x48xf32>
  %p = mlc.softmax %s {axis = 2 : i64, log = false} : tensor<4x1x48xf32> -> tensor<4x1x48xf32>
  %n = mlc.cast %p : tensor<4x1x48xf32> -> tensor<4x1x48xbf16>
  %r = mlc.matmul %n, %v {widen} : tensor<4x1x48xbf16>, tensor<4x48x16xbf16> -> tensor<4x1x16xf32>
  return %r : tensor<4x1x16xf32>
}

// Half precision, whose probabilities are rounded, too.
// CHECK-LABEL: func.func @halves
// CHECK-COUNT-1: mlc.launch
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @halves(%q: tensor<4x1x16xf16>, %k: tensor<4x16x48xf16>, %v: tensor<4x48x16xf16>) -> tensor<4x1x16xf16> {
  %s = mlc.matmul %q, %k : tensor<4x1x16xf16>, tensor<4x16x48xf16> -> tensor<4x1x48xf16>
  %p = mlc.softmax %s {axis = 2 : i64, log = false} : tensor<4x1x48xf16> -> tensor<4x1x48xf16>
  %r = mlc.matmul %p, %v : tensor<4x1x48xf16>, tensor<4x48x16xf16> -> tensor<4x1x16xf16>
  return %r : tensor<4x1x16xf16>
}
