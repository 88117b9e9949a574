// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-turn-attention,canonicalize)' | FileCheck %s

// Values with their channels in front come to the right of the shares, whichever way these were transposed.
// CHECK-LABEL: func.func @values_first
// CHECK: [[P:%.+]] = mlc.softmax %arg1
// CHECK: [[Z:%.+]] = mlc.matmul [[P]], %arg0 {transpose_rhs} : tensor<1x8x40x40xf32>, tensor<1x8x16x40xf32> -> tensor<1x8x40x16xf32>
// CHECK: mlc.transpose [[Z]] {permutation = array<i64: 0, 1, 3, 2>}
func.func @values_first(%v: tensor<1x8x16x40xf32>, %s: tensor<1x8x40x40xf32>) -> tensor<1x8x16x40xf32> {
  %p = mlc.softmax %s {axis = 3 : i64} : tensor<1x8x40x40xf32>
  %t = mlc.transpose %p {permutation = array<i64: 0, 1, 3, 2>} : tensor<1x8x40x40xf32> -> tensor<1x8x40x40xf32>
  %y = mlc.matmul %v, %t : tensor<1x8x16x40xf32>, tensor<1x8x40x40xf32> -> tensor<1x8x16x40xf32>
  return %y : tensor<1x8x16x40xf32>
}

// CHECK-LABEL: func.func @any_number
// CHECK: [[C:%.+]] = mlc.cast
// CHECK: mlc.matmul [[C]], %arg0 : tensor<?x40x40xf16>, tensor<?x40x16xf16> -> tensor<?x40x16xf16>
// CHECK: mlc.transpose {{.*}} -> tensor<?x16x40xf16>
func.func @any_number(%v: tensor<?x40x16xf16>, %s: tensor<?x40x40xf32>) -> tensor<?x16x40xf16> {
  %p = mlc.softmax %s {axis = 2 : i64} : tensor<?x40x40xf32>
  %c = mlc.cast %p : tensor<?x40x40xf32> -> tensor<?x40x40xf16>
  %y = mlc.matmul %v, %c {transpose_lhs, transpose_rhs} : tensor<?x40x16xf16>, tensor<?x40x40xf16> -> tensor<?x16x40xf16>
  return %y : tensor<?x16x40xf16>
}

// Shares that are on the left, those of columns, and what is no transpose of matrices stay.
// CHECK-LABEL: func.func @others
// CHECK: mlc.matmul %{{.+}}, %arg0
// CHECK: mlc.matmul %arg0, %{{.+}}
// CHECK: mlc.matmul %arg0, %{{.+}}
func.func @others(%v: tensor<40x40xf32>, %s: tensor<40x40xf32>) -> (tensor<40x40xf32>, tensor<40x40xf32>, tensor<40x40xf32>) {
  %p = mlc.softmax %s {axis = 1 : i64} : tensor<40x40xf32>
  %q = mlc.softmax %s {axis = 0 : i64} : tensor<40x40xf32>
  %a = mlc.matmul %p, %v : tensor<40x40xf32>, tensor<40x40xf32> -> tensor<40x40xf32>
  %b = mlc.matmul %v, %p : tensor<40x40xf32>, tensor<40x40xf32> -> tensor<40x40xf32>
  %c = mlc.matmul %v, %q {transpose_rhs} : tensor<40x40xf32>, tensor<40x40xf32> -> tensor<40x40xf32>
  return %a, %b, %c : tensor<40x40xf32>, tensor<40x40xf32>, tensor<40x40xf32>
}
