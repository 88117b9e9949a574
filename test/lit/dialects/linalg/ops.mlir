// Contractions: what is printed parses to the same, in both forms.
// RUN: mlc-opt %s | mlc-opt | FileCheck %s
// RUN: mlc-opt %s --mlir-print-op-generic | mlc-opt | FileCheck %s

// CHECK-LABEL: func.func @linalg
func.func @linalg(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %i: tensor<?x4xi32>, %b: tensor<?x4xi1>, %s: tensor<f32>, %l: tensor<i64>, %n: index) {
  // CHECK: mlc.matmul %{{.*}}, %{{.*}} {transpose_rhs} : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x?xf32>
  %0 = mlc.matmul %x, %y {transpose_rhs} : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x?xf32>
  // CHECK: mlc.matmul %{{.*}}, %{{.*}} {transpose_lhs} : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<4x4xf32>
  %1 = mlc.matmul %x, %y {transpose_lhs} : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<4x4xf32>
  // CHECK: mlc.einsum "ij,kj->ik"(%{{.*}}, %{{.*}}) : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x?xf32>
  %2 = mlc.einsum "ij,kj->ik"(%x, %y) : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x?xf32>
  // CHECK: mlc.einsum "...j,...j"(%{{.*}}, %{{.*}}) : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?xf32>
  %3 = mlc.einsum "...j,...j"(%x, %y) : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?xf32>
  // CHECK: mlc.einsum "ij"(%{{.*}}) : tensor<?x4xf32> -> tensor<?x4xf32>
  %4 = mlc.einsum "ij"(%x) : tensor<?x4xf32> -> tensor<?x4xf32>
  %h = mlc.cast %x : tensor<?x4xf32> -> tensor<?x4xbf16>
  // CHECK: mlc.matmul %{{.*}}, %{{.*}} {transpose_rhs, widen} : tensor<?x4xbf16>, tensor<?x4xbf16> -> tensor<?x?xf32>
  %5 = mlc.matmul %h, %h {transpose_rhs, widen} : tensor<?x4xbf16>, tensor<?x4xbf16> -> tensor<?x?xf32>
  return
}

// CHECK-LABEL: func.func @integers
func.func @integers(%x: tensor<?x4xi8>, %y: tensor<4x5xi8>) {
  // CHECK: mlc.matmul %{{.*}}, %{{.*}} {unsigned_lhs, unsigned_rhs} : tensor<?x4xi8>, tensor<4x5xi8> -> tensor<?x5xi32>
  %0 = mlc.matmul %x, %y {unsigned_lhs, unsigned_rhs} : tensor<?x4xi8>, tensor<4x5xi8> -> tensor<?x5xi32>
  return
}

// A product that widens may read narrower floats on the right.
// CHECK-LABEL: func.func @narrow_right
func.func @narrow_right(%x: tensor<2x3xf32>, %y: tensor<3x5xf16>) -> tensor<2x5xf32> {
  // CHECK: mlc.matmul %{{.*}}, %{{.*}} {widen} : tensor<2x3xf32>, tensor<3x5xf16> -> tensor<2x5xf32>
  %0 = mlc.matmul %x, %y {widen} : tensor<2x3xf32>, tensor<3x5xf16> -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}
