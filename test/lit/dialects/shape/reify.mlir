// Extents of results are arithmetic on extents of operands.
// RUN: mlc-opt %s --resolve-ranked-shaped-type-result-dims --canonicalize --cse --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @conv
// CHECK-SAME: (%[[X:.*]]: tensor<?x3x?x8xf32>
func.func @conv(%x: tensor<?x3x?x8xf32>, %w: tensor<6x3x3x3xf32>) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  // CHECK-NOT: mlc.conv
  // CHECK-DAG: %[[N:.*]] = tensor.dim %[[X]], %c0
  // CHECK-DAG: %[[H:.*]] = tensor.dim %[[X]], %c2
  // CHECK: %[[REACH:.*]] = arith.addi %[[H]], %c-1
  // CHECK: %[[STEPS:.*]] = arith.floordivsi %[[REACH]], %c2
  // CHECK: %[[OUT:.*]] = arith.addi %[[STEPS]], %c1
  %0 = mlc.conv %x, %w {strides = array<i64: 2, 1>, padding = array<i64: 1, 0, 1, 0>, dilations = array<i64: 1, 1>}
    : tensor<?x3x?x8xf32>, tensor<6x3x3x3xf32> -> tensor<?x6x?x6xf32>
  %n = tensor.dim %0, %c0 : tensor<?x6x?x6xf32>
  %h = tensor.dim %0, %c2 : tensor<?x6x?x6xf32>
  // CHECK: return %[[N]], %[[OUT]]
  return %n, %h : index, index
}

// -----

// The extent that two unknown ones broadcast to: the one that is not 1.
// CHECK-LABEL: func.func @broadcast
// CHECK-SAME: (%[[X:.*]]: tensor<?xf32>, %[[Y:.*]]: tensor<?xf32>)
func.func @broadcast(%x: tensor<?xf32>, %y: tensor<?xf32>) -> index {
  %c0 = arith.constant 0 : index
  // CHECK-DAG: %[[M:.*]] = tensor.dim %[[X]]
  // CHECK-DAG: %[[N:.*]] = tensor.dim %[[Y]]
  // CHECK: %[[ONE:.*]] = arith.cmpi eq, %[[M]], %c1
  // CHECK: %[[S:.*]] = arith.select %[[ONE]], %[[N]], %[[M]]
  %0 = mlc.binary add %x, %y : tensor<?xf32>
  %n = tensor.dim %0, %c0 : tensor<?xf32>
  // CHECK: return %[[S]]
  return %n : index
}

// -----

// CHECK-LABEL: func.func @sizes
// CHECK-SAME: (%[[X:.*]]: tensor<?xf32>, %[[N:.*]]: index)
func.func @sizes(%x: tensor<?xf32>, %n: index) -> (index, index) {
  %c0 = arith.constant 0 : index
  // CHECK-DAG: %[[D:.*]] = tensor.dim %[[X]]
  // CHECK-DAG: %[[P:.*]] = arith.addi
  %0 = mlc.slice %x [0] [%n] [1] : tensor<?xf32> -> tensor<?xf32>
  %1 = mlc.concat %0, %x {axis = 0 : i64} : tensor<?xf32>, tensor<?xf32> -> tensor<?xf32>
  %2 = tensor.dim %0, %c0 : tensor<?xf32>
  %3 = tensor.dim %1, %c0 : tensor<?xf32>
  // CHECK: return %[[N]], %[[P]]
  return %2, %3 : index, index
}

// -----

// A count that only the operation knows stays a question to its result.
// CHECK-LABEL: func.func @nonzero
func.func @nonzero(%x: tensor<?xf32>) -> index {
  %c1 = arith.constant 1 : index
  // CHECK: %[[R:.*]] = mlc.nonzero
  %0 = mlc.nonzero %x : tensor<?xf32> -> tensor<1x?xi64>
  // CHECK: tensor.dim %[[R]]
  %1 = tensor.dim %0, %c1 : tensor<1x?xi64>
  return %1 : index
}
