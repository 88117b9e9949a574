// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-lift-reductions)' | FileCheck %s

// Squares of a part of what a transpose has turned are summed where they lay before.
// CHECK-LABEL: func.func @squares
// CHECK: [[P:%.+]] = mlc.slice %arg0 [0, 0, 1, 0, 0] [16, 50, 1, 4, 8]
// CHECK: [[S:%.+]] = mlc.binary mul [[P]], [[P]] : tensor<16x50x1x4x8xf32>
// CHECK: [[R:%.+]] = mlc.reduce sum [[S]] {axes = array<i64: 1>, keepdims = true} : tensor<16x50x1x4x8xf32> -> tensor<16x1x1x4x8xf32>
// CHECK: [[T:%.+]] = mlc.transpose [[R]] {permutation = array<i64: 2, 0, 3, 4, 1>}
// CHECK: mlc.reshape [[T]] [16, 4, 8, 1]
func.func @squares(%x: tensor<16x50x3x4x8xf32>) -> tensor<16x4x8x1xf32> {
  %0 = mlc.transpose %x {permutation = array<i64: 2, 0, 3, 4, 1>} : tensor<16x50x3x4x8xf32> -> tensor<3x16x4x8x50xf32>
  %1 = mlc.slice %0 [1, 0, 0, 0, 0] [1, 16, 4, 8, 50] [1, 1, 1, 1, 1] : tensor<3x16x4x8x50xf32> -> tensor<1x16x4x8x50xf32>
  %2 = mlc.reshape %1 [16, 4, 8, 50] : tensor<1x16x4x8x50xf32> -> tensor<16x4x8x50xf32>
  %3 = mlc.binary mul %2, %2 : tensor<16x4x8x50xf32>
  %4 = mlc.reduce sum %3 {axes = array<i64: 3>, keepdims = true} : tensor<16x4x8x50xf32> -> tensor<16x4x8x1xf32>
  return %4 : tensor<16x4x8x1xf32>
}

// CHECK-LABEL: func.func @largest
// CHECK: [[A:%.+]] = mlc.unary abs %arg0
// CHECK: [[R:%.+]] = mlc.reduce max [[A]] {axes = array<i64: 0>, keepdims = true}
// CHECK: mlc.transpose [[R]]
// CHECK: mlc.reshape %{{.+}} [8]
func.func @largest(%x: tensor<50x8xf32>) -> tensor<8xf32> {
  %0 = mlc.transpose %x {permutation = array<i64: 1, 0>} : tensor<50x8xf32> -> tensor<8x50xf32>
  %1 = mlc.unary abs %0 : tensor<8x50xf32>
  %2 = mlc.reduce max %1 {axes = array<i64: 1>} : tensor<8x50xf32> -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// Nothing is gained where the last dimension was reduced before, or is not reduced now.
// CHECK-LABEL: func.func @rows
// CHECK: mlc.transpose %arg0
// CHECK-NEXT: mlc.reduce sum
// CHECK-NEXT: mlc.transpose %arg0
// CHECK-NEXT: mlc.reduce sum
func.func @rows(%x: tensor<4x5x8xf32>) -> (tensor<5x4xf32>, tensor<8x4xf32>) {
  %0 = mlc.transpose %x {permutation = array<i64: 1, 0, 2>} : tensor<4x5x8xf32> -> tensor<5x4x8xf32>
  %1 = mlc.reduce sum %0 {axes = array<i64: 2>} : tensor<5x4x8xf32> -> tensor<5x4xf32>
  %2 = mlc.transpose %x {permutation = array<i64: 2, 1, 0>} : tensor<4x5x8xf32> -> tensor<8x5x4xf32>
  %3 = mlc.reduce sum %2 {axes = array<i64: 1>} : tensor<8x5x4xf32> -> tensor<8x4xf32>
  return %1, %3 : tensor<5x4xf32>, tensor<8x4xf32>
}

// Two tensors, and functions that others read too, stay in the order that they have.
// CHECK-LABEL: func.func @two
// CHECK: mlc.transpose %arg0
// CHECK-NEXT: mlc.binary mul
// CHECK-NEXT: mlc.reduce sum
func.func @two(%x: tensor<50x8xf32>, %y: tensor<8x50xf32>) -> tensor<8xf32> {
  %0 = mlc.transpose %x {permutation = array<i64: 1, 0>} : tensor<50x8xf32> -> tensor<8x50xf32>
  %1 = mlc.binary mul %0, %y : tensor<8x50xf32>
  %2 = mlc.reduce sum %1 {axes = array<i64: 1>} : tensor<8x50xf32> -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// The quotient wants the new order, and has rows in it: one kernel sums them up and divides them.
// CHECK-LABEL: func.func @quotient
// CHECK: mlc.transpose %arg0
// CHECK-NEXT: mlc.unary abs
// CHECK-NEXT: mlc.reduce sum
// CHECK-NEXT: mlc.binary div
func.func @quotient(%x: tensor<50x8xf32>) -> tensor<8x50xf32> {
  %0 = mlc.transpose %x {permutation = array<i64: 1, 0>} : tensor<50x8xf32> -> tensor<8x50xf32>
  %1 = mlc.unary abs %0 : tensor<8x50xf32>
  %2 = mlc.reduce sum %1 {axes = array<i64: 1>, keepdims = true} : tensor<8x50xf32> -> tensor<8x1xf32>
  %3 = mlc.binary div %0, %2 : tensor<8x50xf32>, tensor<8x1xf32> -> tensor<8x50xf32>
  return %3 : tensor<8x50xf32>
}
