// RUN: mlc-opt %s --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @transposes
// CHECK-SAME: (%[[X:.*]]: tensor<2x5x3xf32>, %[[Y:.*]]: tensor<2x5x4xf32>)
func.func @transposes(%x: tensor<2x5x3xf32>, %y: tensor<2x5x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: mlc.matmul %[[X]], %[[Y]] {transpose_lhs} : tensor<2x5x3xf32>, tensor<2x5x4xf32> -> tensor<2x3x4xf32>
  %0 = mlc.transpose %x {permutation = array<i64: 0, 2, 1>} : tensor<2x5x3xf32> -> tensor<2x3x5xf32>
  %1 = mlc.transpose %y {permutation = array<i64: 0, 2, 1>} : tensor<2x5x4xf32> -> tensor<2x4x5xf32>
  %2 = mlc.matmul %0, %1 {transpose_rhs} : tensor<2x3x5xf32>, tensor<2x4x5xf32> -> tensor<2x3x4xf32>
  return %2 : tensor<2x3x4xf32>
}

// -----

// A transpose that moves batch dimensions is none of the matmul's.
// CHECK-LABEL: func.func @batch_transpose
func.func @batch_transpose(%x: tensor<3x2x4xf32>, %y: tensor<4x5xf32>) -> tensor<2x3x5xf32> {
  // CHECK: mlc.transpose
  %0 = mlc.transpose %x {permutation = array<i64: 1, 0, 2>} : tensor<3x2x4xf32> -> tensor<2x3x4xf32>
  %1 = mlc.matmul %0, %y : tensor<2x3x4xf32>, tensor<4x5xf32> -> tensor<2x3x5xf32>
  return %1 : tensor<2x3x5xf32>
}

// -----

// A widening product has its operands in the order that its kernel wants.
// CHECK-LABEL: func.func @widening
func.func @widening(%x: tensor<2x3x4xbf16>, %y: tensor<2x5x4xbf16>) -> tensor<2x3x5xf32> {
  // CHECK: %[[T:.*]] = mlc.transpose
  // CHECK: mlc.matmul %{{.*}}, %[[T]] {widen}
  %0 = mlc.transpose %y {permutation = array<i64: 0, 2, 1>} : tensor<2x5x4xbf16> -> tensor<2x4x5xbf16>
  %1 = mlc.matmul %x, %0 {widen} : tensor<2x3x4xbf16>, tensor<2x4x5xbf16> -> tensor<2x3x5xf32>
  return %1 : tensor<2x3x5xf32>
}
