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

// One query, as when a text is continued: nothing is used twice.
// CHECK-LABEL: func.func @one_query
// CHECK-COUNT-3: mlc.launch
// CHECK: return
func.func @one_query(%q: tensor<4x1x16xf32>, %k: tensor<4x16x48xf32>, %v: tensor<4x48x16xf32>) -> tensor<4x1x16xf32> {
  %s = mlc.matmul %q, %k : tensor<4x1x16xf32>, tensor<4x16x48xf32> -> tensor<4x1x48xf32>
  %p = mlc.softmax %s {axis = 2 : i64, log = false} : tensor<4x1x48xf32> -> tensor<4x1x48xf32>
  %r = mlc.matmul %p, %v : tensor<4x1x48xf32>, tensor<4x48x16xf32> -> tensor<4x1x16xf32>
  return %r : tensor<4x1x16xf32>
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
