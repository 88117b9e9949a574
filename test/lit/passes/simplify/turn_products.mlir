// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-turn-products,canonicalize)' | FileCheck %s

// Two layers that mix tokens: weights come to the left, vectors are added to columns, no transpose is left.
// CHECK-LABEL: func.func @mixer
// CHECK-NOT: mlc.transpose
// CHECK: [[P:%.+]] = mlc.matmul {{%.+}}, %arg0 : tensor<384x196xf32>, tensor<16x196x768xf32> -> tensor<16x384x768xf32>
// CHECK: [[B:%.+]] = mlc.reshape {{.*}} -> tensor<384x1xf32>
// CHECK: [[Q:%.+]] = mlc.binary add [[P]], [[B]]
// CHECK: [[R:%.+]] = mlc.activation gelu [[Q]] : tensor<16x384x768xf32>
// CHECK: mlc.matmul {{%.+}}, [[R]] {transpose_lhs} : tensor<384x196xf32>, tensor<16x384x768xf32> -> tensor<16x196x768xf32>
// CHECK-NOT: mlc.transpose
func.func @mixer(%x: tensor<16x196x768xf32>) -> tensor<16x196x768xf32> {
  %w = mlc.weight "w" : tensor<384x196xf32>
  %b = mlc.weight "b" : tensor<384xf32>
  %v = mlc.weight "v" : tensor<384x196xf32>
  %0 = mlc.matmul %x, %w {transpose_lhs, transpose_rhs} : tensor<16x196x768xf32>, tensor<384x196xf32> -> tensor<16x768x384xf32>
  %1 = mlc.binary add %0, %b : tensor<16x768x384xf32>, tensor<384xf32> -> tensor<16x768x384xf32>
  %2 = mlc.activation gelu %1 : tensor<16x768x384xf32>
  %3 = mlc.matmul %2, %v : tensor<16x768x384xf32>, tensor<384x196xf32> -> tensor<16x768x196xf32>
  %4 = mlc.transpose %3 {permutation = array<i64: 0, 2, 1>} : tensor<16x768x196xf32> -> tensor<16x196x768xf32>
  return %4 : tensor<16x196x768xf32>
}

// What something else reads stays, as do rows that are no transpose, matrices of a run, and other orders.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-4: mlc.transpose
func.func @others(%x: tensor<2x20x30xf32>, %m: tensor<20x20xf32>, %z: tensor<2x30x20xf32>)
    -> (tensor<2x20x30xf32>, tensor<2x30x20xf32>, tensor<2x20x30xf32>, tensor<2x20x30xf32>, tensor<30x2x20xf32>) {
  %w = mlc.weight "w" : tensor<20x20xf32>
  %0 = mlc.matmul %x, %w {transpose_lhs} : tensor<2x20x30xf32>, tensor<20x20xf32> -> tensor<2x30x20xf32>
  %1 = mlc.transpose %0 {permutation = array<i64: 0, 2, 1>} : tensor<2x30x20xf32> -> tensor<2x20x30xf32>
  %2 = mlc.matmul %x, %m {transpose_lhs} : tensor<2x20x30xf32>, tensor<20x20xf32> -> tensor<2x30x20xf32>
  %3 = mlc.transpose %2 {permutation = array<i64: 0, 2, 1>} : tensor<2x30x20xf32> -> tensor<2x20x30xf32>
  %4 = mlc.matmul %z, %w : tensor<2x30x20xf32>, tensor<20x20xf32> -> tensor<2x30x20xf32>
  %5 = mlc.transpose %4 {permutation = array<i64: 0, 2, 1>} : tensor<2x30x20xf32> -> tensor<2x20x30xf32>
  %6 = mlc.matmul %x, %w {transpose_lhs} : tensor<2x20x30xf32>, tensor<20x20xf32> -> tensor<2x30x20xf32>
  %7 = mlc.transpose %6 {permutation = array<i64: 1, 0, 2>} : tensor<2x30x20xf32> -> tensor<30x2x20xf32>
  return %1, %0, %3, %5, %7 : tensor<2x20x30xf32>, tensor<2x30x20xf32>, tensor<2x20x30xf32>, tensor<2x20x30xf32>, tensor<30x2x20xf32>
}
