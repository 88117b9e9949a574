// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views,mlc-plan-fusion,mlc-outline-kernels)' | FileCheck %s

// Both products and the softmax between them are one kernel, with the scale of the queries; the mask is read there.
// CHECK-LABEL: func.func @masked
// CHECK-COUNT-1: mlc.launch
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @masked(%q: tensor<1x4x32x16xf32>, %k: tensor<1x4x48x16xf32>, %v: tensor<1x4x48x16xf32>, %m: tensor<32x48xf32>) -> tensor<1x4x32x16xf32> {
  %r = mlc.attention %q, %k, %v mask(%m : tensor<32x48xf32>) : tensor<1x4x32x16xf32>, tensor<1x4x48x16xf32>, tensor<1x4x48x16xf32> -> tensor<1x4x32x16xf32>
  return %r : tensor<1x4x32x16xf32>
}

// Grouped heads regroup dimensions on the way; what reads the result joins.
// CHECK-LABEL: func.func @grouped
// CHECK: mlc.launch
// CHECK: tensor.expand_shape
// CHECK: mlc.launch
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @grouped(%q: tensor<1x4x?x16xf32>, %k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x16xf32>) -> tensor<1x4x?x16xf32> {
  %r = mlc.attention %q, %k, %v : tensor<1x4x?x16xf32>, tensor<1x2x?x16xf32>, tensor<1x2x?x16xf32> -> tensor<1x4x?x16xf32>
  return %r : tensor<1x4x?x16xf32>
}

// Somebody else reads the weights: three kernels.
// CHECK-LABEL: func.func @weights_are_a_result
// CHECK-COUNT-3: mlc.launch
// CHECK: return
func.func @weights_are_a_result(%q: tensor<4x32x16xf32>, %k: tensor<4x16x48xf32>, %v: tensor<4x48x16xf32>) -> (tensor<4x32x16xf32>, tensor<4x32x48xf32>) {
  %s = mlc.matmul %q, %k : tensor<4x32x16xf32>, tensor<4x16x48xf32> -> tensor<4x32x48xf32>
  %p = mlc.softmax %s {axis = 2 : i64, log = false} : tensor<4x32x48xf32> -> tensor<4x32x48xf32>
  %r = mlc.matmul %p, %v : tensor<4x32x48xf32>, tensor<4x48x16xf32> -> tensor<4x32x16xf32>
  return %r, %p : tensor<4x32x16xf32>, tensor<4x32x48xf32>
}

// Softmax over another dimension than the one that is summed.
// CHECK-LABEL: func.func @other_axis
// CHECK-COUNT-3: mlc.launch
// CHECK: return
func.func @other_axis(%q: tensor<4x32x16xf32>, %k: tensor<4x16x48xf32>, %v: tensor<4x48x16xf32>) -> tensor<4x32x16xf32> {
  %s = mlc.matmul %q, %k : tensor<4x32x16xf32>, tensor<4x16x48xf32> -> tensor<4x32x48xf32>
  %p = mlc.softmax %s {axis = 1 : i64, log = false} : tensor<4x32x48xf32> -> tensor<4x32x48xf32>
  %r = mlc.matmul %p, %v : tensor<4x32x48xf32>, tensor<4x48x16xf32> -> tensor<4x32x16xf32>
  return %r : tensor<4x32x16xf32>
}

// One query, as when a text is continued: keys and values are read where they lie.
// CHECK-LABEL: func.func @one_query
// CHECK-COUNT-1: mlc.launch
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @one_query(%q: tensor<4x1x16xf32>, %k: tensor<4x16x48xf32>, %v: tensor<4x48x16xf32>) -> tensor<4x1x16xf32> {
  %s = mlc.matmul %q, %k : tensor<4x1x16xf32>, tensor<4x16x48xf32> -> tensor<4x1x48xf32>
  %p = mlc.softmax %s {axis = 2 : i64, log = false} : tensor<4x1x48xf32> -> tensor<4x1x48xf32>
  %r = mlc.matmul %p, %v : tensor<4x1x48xf32>, tensor<4x48x16xf32> -> tensor<4x1x16xf32>
  return %r : tensor<4x1x16xf32>
}

// A few queries are fewer than packed keys and values are worth.
// CHECK-LABEL: func.func @few_queries
// CHECK-COUNT-3: mlc.launch
// CHECK: return
func.func @few_queries(%q: tensor<4x3x16xf32>, %k: tensor<4x16x48xf32>, %v: tensor<4x48x16xf32>) -> tensor<4x3x16xf32> {
  %s = mlc.matmul %q, %k : tensor<4x3x16xf32>, tensor<4x16x48xf32> -> tensor<4x3x48xf32>
  %p = mlc.softmax %s {axis = 2 : i64, log = false} : tensor<4x3x48xf32> -> tensor<4x3x48xf32>
  %r = mlc.matmul %p, %v : tensor<4x3x48xf32>, tensor<4x48x16xf32> -> tensor<4x3x16xf32>
  return %r : tensor<4x3x16xf32>
}

// Head dimensions that are known at run time only, and other types than f32.
// CHECK-LABEL: func.func @unknown_depth
// CHECK-COUNT-3: mlc.launch
// CHECK: return
func.func @unknown_depth(%q: tensor<4x32x?xf32>, %k: tensor<4x?x48xf32>, %v: tensor<4x48x16xf32>) -> tensor<4x32x16xf32> {
  %s = mlc.matmul %q, %k : tensor<4x32x?xf32>, tensor<4x?x48xf32> -> tensor<4x32x48xf32>
  %p = mlc.softmax %s {axis = 2 : i64, log = false} : tensor<4x32x48xf32> -> tensor<4x32x48xf32>
  %r = mlc.matmul %p, %v : tensor<4x32x48xf32>, tensor<4x48x16xf32> -> tensor<4x32x16xf32>
  return %r : tensor<4x32x16xf32>
}

// CHECK-LABEL: func.func @doubles
// CHECK-COUNT-3: mlc.launch
// CHECK: return
func.func @doubles(%q: tensor<4x32x16xf64>, %k: tensor<4x16x48xf64>, %v: tensor<4x48x16xf64>) -> tensor<4x32x16xf64> {
  %s = mlc.matmul %q, %k : tensor<4x32x16xf64>, tensor<4x16x48xf64> -> tensor<4x32x48xf64>
  %p = mlc.softmax %s {axis = 2 : i64, log = false} : tensor<4x32x48xf64> -> tensor<4x32x48xf64>
  %r = mlc.matmul %p, %v : tensor<4x32x48xf64>, tensor<4x48x16xf64> -> tensor<4x32x16xf64>
  return %r : tensor<4x32x16xf64>
}

// Parts of one product for queries, keys and values: the batch of one is a constant where they are read.
// CHECK-LABEL: func.func @parts
// CHECK: mlc.launch @[[PARTS:.+]](%{{.+}}, %{{.+}}, %{{.+}}) outs
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @parts(%x: tensor<1x32x192xf32>) -> tensor<1x4x32x16xf32> {
  %q = mlc.slice %x [0, 0, 0] [1, 32, 64] [1, 1, 1] : tensor<1x32x192xf32> -> tensor<1x32x64xf32>
  %k = mlc.slice %x [0, 0, 64] [1, 32, 64] [1, 1, 1] : tensor<1x32x192xf32> -> tensor<1x32x64xf32>
  %v = mlc.slice %x [0, 0, 128] [1, 32, 64] [1, 1, 1] : tensor<1x32x192xf32> -> tensor<1x32x64xf32>
  %qr = mlc.reshape %q [1, 32, 4, 16] : tensor<1x32x64xf32> -> tensor<1x32x4x16xf32>
  %kr = mlc.reshape %k [1, 32, 4, 16] : tensor<1x32x64xf32> -> tensor<1x32x4x16xf32>
  %vr = mlc.reshape %v [1, 32, 4, 16] : tensor<1x32x64xf32> -> tensor<1x32x4x16xf32>
  %qt = mlc.transpose %qr {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x32x4x16xf32> -> tensor<1x4x32x16xf32>
  %kt = mlc.transpose %kr {permutation = array<i64: 0, 2, 3, 1>} : tensor<1x32x4x16xf32> -> tensor<1x4x16x32xf32>
  %vt = mlc.transpose %vr {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x32x4x16xf32> -> tensor<1x4x32x16xf32>
  %s = mlc.matmul %qt, %kt : tensor<1x4x32x16xf32>, tensor<1x4x16x32xf32> -> tensor<1x4x32x32xf32>
  %p = mlc.softmax %s {axis = 3} : tensor<1x4x32x32xf32>
  %o = mlc.matmul %p, %vt : tensor<1x4x32x32xf32>, tensor<1x4x32x16xf32> -> tensor<1x4x32x16xf32>
  return %o : tensor<1x4x32x16xf32>
}
