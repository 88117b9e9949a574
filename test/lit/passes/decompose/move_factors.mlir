// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-move-factors)' | FileCheck %s

// The factor of keys in a cache, behind a transposition.
// CHECK-LABEL: func.func @keys
// CHECK-SAME: %[[Q:.*]]: tensor<1x4x8x?x64xf32>, %[[K:.*]]: tensor<1x4x1x?x64xf32>, %[[F:.*]]: tensor<f32>
// CHECK: %[[T:.*]] = mlc.transpose %[[K]]
// CHECK: %[[L:.*]] = mlc.binary mul %[[Q]], %[[F]]
// CHECK: mlc.matmul %[[L]], %[[T]]
func.func @keys(%q: tensor<1x4x8x?x64xf32>, %k: tensor<1x4x1x?x64xf32>, %f: tensor<f32>) -> tensor<1x4x8x?x?xf32> {
  %0 = mlc.binary mul %k, %f : tensor<1x4x1x?x64xf32>, tensor<f32> -> tensor<1x4x1x?x64xf32>
  %1 = mlc.transpose %0 {permutation = array<i64: 0, 1, 2, 4, 3>} : tensor<1x4x1x?x64xf32> -> tensor<1x4x1x64x?xf32>
  %2 = mlc.matmul %q, %1 : tensor<1x4x8x?x64xf32>, tensor<1x4x1x64x?xf32> -> tensor<1x4x8x?x?xf32>
  return %2 : tensor<1x4x8x?x?xf32>
}

// One that the run computes, on the left of its multiplication, and one of constants behind it.
// CHECK-LABEL: func.func @two
// CHECK-SAME: %[[Q:.*]]: tensor<4x8x64xf32>, %[[K:.*]]: tensor<4x64x9xf32>, %[[F:.*]]: tensor<1xf32>
// CHECK: %[[C:.*]] = mlc.constant
// CHECK: %[[A:.*]] = mlc.binary mul %[[Q]], %[[C]]
// CHECK: %[[B:.*]] = mlc.binary mul %[[A]], %[[F]]
// CHECK: mlc.matmul %[[B]], %[[K]]
func.func @two(%q: tensor<4x8x64xf32>, %k: tensor<4x64x9xf32>, %f: tensor<1xf32>) -> tensor<4x8x9xf32> {
  %c = mlc.constant dense<0.5> : tensor<1x1xf32>
  %0 = mlc.binary mul %f, %k : tensor<1xf32>, tensor<4x64x9xf32> -> tensor<4x64x9xf32>
  %1 = mlc.binary mul %0, %c : tensor<4x64x9xf32>, tensor<1x1xf32> -> tensor<4x64x9xf32>
  %2 = mlc.matmul %q, %1 : tensor<4x8x64xf32>, tensor<4x64x9xf32> -> tensor<4x8x9xf32>
  return %2 : tensor<4x8x9xf32>
}

// What somebody else reads as well, what has a factor for each column, a weight, a smaller right side, and a sum over a
// length that a run knows keep their factors.
// CHECK-LABEL: func.func @stay
// CHECK: %[[R:.*]] = mlc.binary mul
// CHECK: mlc.matmul %arg0, %[[R]]
// CHECK: %[[C:.*]] = mlc.binary mul
// CHECK: mlc.matmul %arg0, %[[C]]
// CHECK: %[[W:.*]] = mlc.binary mul
// CHECK: mlc.matmul %arg0, %[[W]]
func.func @stay(%q: tensor<4x8x64xf32>, %k: tensor<4x64x9xf32>, %f: tensor<f32>, %g: tensor<9xf32>) -> (tensor<4x8x9xf32>, tensor<4x64x9xf32>, tensor<4x8x9xf32>, tensor<4x8x9xf32>) {
  %0 = mlc.binary mul %k, %f : tensor<4x64x9xf32>, tensor<f32> -> tensor<4x64x9xf32>
  %1 = mlc.matmul %q, %0 : tensor<4x8x64xf32>, tensor<4x64x9xf32> -> tensor<4x8x9xf32>
  %2 = mlc.binary mul %k, %g : tensor<4x64x9xf32>, tensor<9xf32> -> tensor<4x64x9xf32>
  %3 = mlc.matmul %q, %2 : tensor<4x8x64xf32>, tensor<4x64x9xf32> -> tensor<4x8x9xf32>
  %w = mlc.weight "w" : tensor<4x64x9xf32>
  %c = mlc.constant dense<0.5> : tensor<f32>
  %4 = mlc.binary mul %w, %c : tensor<4x64x9xf32>, tensor<f32> -> tensor<4x64x9xf32>
  %5 = mlc.matmul %q, %4 : tensor<4x8x64xf32>, tensor<4x64x9xf32> -> tensor<4x8x9xf32>
  return %1, %0, %3, %5 : tensor<4x8x9xf32>, tensor<4x64x9xf32>, tensor<4x8x9xf32>, tensor<4x8x9xf32>
}

// CHECK-LABEL: func.func @values
// CHECK: %[[V:.*]] = mlc.binary mul
// CHECK: mlc.matmul %arg0, %[[V]]
// CHECK: %[[U:.*]] = mlc.binary mul
// CHECK: mlc.matmul %arg2, %[[U]]
func.func @values(%p: tensor<4x8x64xf32>, %v: tensor<4x64x7xf32>, %d: tensor<4x8x?xf32>, %u: tensor<4x?x7xf32>, %f: tensor<f32>) -> (tensor<4x8x7xf32>, tensor<4x8x7xf32>) {
  %0 = mlc.binary mul %v, %f : tensor<4x64x7xf32>, tensor<f32> -> tensor<4x64x7xf32>
  %1 = mlc.matmul %p, %0 : tensor<4x8x64xf32>, tensor<4x64x7xf32> -> tensor<4x8x7xf32>
  %2 = mlc.binary mul %u, %f : tensor<4x?x7xf32>, tensor<f32> -> tensor<4x?x7xf32>
  %3 = mlc.matmul %d, %2 : tensor<4x8x?xf32>, tensor<4x?x7xf32> -> tensor<4x8x7xf32>
  return %1, %3 : tensor<4x8x7xf32>, tensor<4x8x7xf32>
}

// Probabilities are more than values, whatever the batch: heads of 64 columns behind 128 words.
// CHECK-LABEL: func.func @values_of_a_batch
// CHECK: %[[V:.*]] = mlc.binary mul %arg1
// CHECK: mlc.matmul %arg0, %[[V]]
func.func @values_of_a_batch(%p: tensor<?x12x128x128xf32>, %v: tensor<?x12x128x64xf32>, %f: tensor<f32>) -> tensor<?x12x128x64xf32> {
  %0 = mlc.binary mul %v, %f : tensor<?x12x128x64xf32>, tensor<f32> -> tensor<?x12x128x64xf32>
  %1 = mlc.matmul %p, %0 : tensor<?x12x128x128xf32>, tensor<?x12x128x64xf32> -> tensor<?x12x128x64xf32>
  return %1 : tensor<?x12x128x64xf32>
}
