// RUN: mlc-opt %s --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @identities
// CHECK-SAME: (%[[X:.*]]: tensor<3x4xf32>)
func.func @identities(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = mlc.reshape %x [3, 4] : tensor<3x4xf32> -> tensor<3x4xf32>
  %1 = mlc.transpose %0 {permutation = array<i64: 0, 1>} : tensor<3x4xf32> -> tensor<3x4xf32>
  %2 = mlc.broadcast %1 [3, 4] : tensor<3x4xf32> -> tensor<3x4xf32>
  %3 = mlc.slice %2 [0, 0] [3, 4] [1, 1] : tensor<3x4xf32> -> tensor<3x4xf32>
  %4 = mlc.pad constant %3 low [0, 0] high [0, 0] : tensor<3x4xf32> -> tensor<3x4xf32>
  %5 = mlc.concat %4 {axis = 0 : i64} : tensor<3x4xf32> -> tensor<3x4xf32>
  %6 = mlc.reduce sum %5 {axes = array<i64>} : tensor<3x4xf32> -> tensor<3x4xf32>
  // CHECK-NEXT: return %[[X]]
  return %6 : tensor<3x4xf32>
}

// -----

// One unknown extent follows from the number of elements, two do not.
// CHECK-LABEL: func.func @dynamic_reshapes
// CHECK-SAME: (%[[X:.*]]: tensor<?x4xf32>, %[[Y:.*]]: tensor<?x?xf32>, %[[Z:.*]]: tensor<0x?xf32>, %[[N:.*]]: index)
func.func @dynamic_reshapes(%x: tensor<?x4xf32>, %y: tensor<?x?xf32>, %z: tensor<0x?xf32>, %n: index)
    -> (tensor<?x4xf32>, tensor<?x?xf32>, tensor<0x?xf32>) {
  %0 = mlc.reshape %x [%n, 4] : tensor<?x4xf32> -> tensor<?x4xf32>
  // CHECK: %[[R:.*]] = mlc.reshape %[[Y]]
  %1 = mlc.reshape %y [%n, %n] : tensor<?x?xf32> -> tensor<?x?xf32>
  // CHECK: %[[E:.*]] = mlc.reshape %[[Z]]
  %2 = mlc.reshape %z [0, %n] : tensor<0x?xf32> -> tensor<0x?xf32>
  // CHECK: return %[[X]], %[[R]], %[[E]]
  return %0, %1, %2 : tensor<?x4xf32>, tensor<?x?xf32>, tensor<0x?xf32>
}

// -----

// CHECK-LABEL: func.func @chains
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>)
func.func @chains(%x: tensor<2x3x4xf32>) -> (tensor<24xf32>, tensor<3x4x2xf32>, tensor<2x3x4xf32>, tensor<5x2x3x4xf32>) {
  // CHECK-DAG: %[[R:.*]] = mlc.reshape %[[X]] [24] : tensor<2x3x4xf32> -> tensor<24xf32>
  %0 = mlc.reshape %x [6, 4] : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %1 = mlc.reshape %0 [24] : tensor<6x4xf32> -> tensor<24xf32>
  // CHECK-DAG: %[[T:.*]] = mlc.transpose %[[X]] {permutation = array<i64: 1, 2, 0>} : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %2 = mlc.transpose %x {permutation = array<i64: 2, 0, 1>} : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  %3 = mlc.transpose %2 {permutation = array<i64: 2, 0, 1>} : tensor<4x2x3xf32> -> tensor<3x4x2xf32>
  %4 = mlc.transpose %3 {permutation = array<i64: 2, 0, 1>} : tensor<3x4x2xf32> -> tensor<2x3x4xf32>
  // CHECK-DAG: %[[B:.*]] = mlc.broadcast %[[X]] [5, 2, 3, 4] : tensor<2x3x4xf32> -> tensor<5x2x3x4xf32>
  %5 = mlc.broadcast %x [1, 2, 3, 4] : tensor<2x3x4xf32> -> tensor<1x2x3x4xf32>
  %6 = mlc.broadcast %5 [5, 2, 3, 4] : tensor<1x2x3x4xf32> -> tensor<5x2x3x4xf32>
  // CHECK: return %[[R]], %[[T]], %[[X]], %[[B]]
  return %1, %3, %4, %6 : tensor<24xf32>, tensor<3x4x2xf32>, tensor<2x3x4xf32>, tensor<5x2x3x4xf32>
}

// -----

// CHECK-LABEL: func.func @concats
// CHECK-SAME: (%[[X:.*]]: tensor<2xf32>, %[[Y:.*]]: tensor<?xf32>, %[[E:.*]]: tensor<0xf32>)
func.func @concats(%x: tensor<2xf32>, %y: tensor<?xf32>, %e: tensor<0xf32>) -> tensor<?xf32> {
  // CHECK-NEXT: mlc.concat %[[X]], %[[Y]], %[[X]] {axis = 0 : i64}
  %0 = mlc.concat %x, %y {axis = 0 : i64} : tensor<2xf32>, tensor<?xf32> -> tensor<?xf32>
  %1 = mlc.concat %0, %e, %x {axis = 0 : i64} : tensor<?xf32>, tensor<0xf32>, tensor<2xf32> -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// -----

// Constant operands become part of the static lists; declared types stay.
// CHECK-LABEL: func.func @static_sizes
func.func @static_sizes(%x: tensor<?x4xf32>) -> (tensor<?x?xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x?xf32>, tensor<?xi64>) {
  %c2 = arith.constant 2 : index
  %c0 = arith.constant 0 : index
  // CHECK: mlc.reshape %{{.*}} [2, 2] : tensor<?x4xf32> -> tensor<?x?xf32>
  %0 = mlc.reshape %x [%c2, %c2] : tensor<?x4xf32> -> tensor<?x?xf32>
  // CHECK: mlc.broadcast %{{.*}} [2, 4] : tensor<?x4xf32> -> tensor<?x4xf32>
  %1 = mlc.broadcast %x [%c2, 4] : tensor<?x4xf32> -> tensor<?x4xf32>
  // CHECK: mlc.slice %{{.*}} [0, 0] [2, 4] [2, 1] : tensor<?x4xf32> -> tensor<?x4xf32>
  %2 = mlc.slice %x [%c0, 0] [%c2, 4] [%c2, 1] : tensor<?x4xf32> -> tensor<?x4xf32>
  // CHECK: mlc.pad constant %{{.*}} low [0, 2] high [2, 0] : tensor<?x4xf32> -> tensor<?x?xf32>
  %3 = mlc.pad constant %x low [0, %c2] high [%c2, 0] : tensor<?x4xf32> -> tensor<?x?xf32>
  // CHECK: mlc.iota [2] {axis = 0 : i64} : tensor<?xi64>
  %4 = mlc.iota [%c2] {axis = 0 : i64} : tensor<?xi64>
  return %0, %1, %2, %3, %4 : tensor<?x?xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x?xf32>, tensor<?xi64>
}

// -----

// CHECK-LABEL: func.func @constants
func.func @constants(%x: tensor<2x3xf32>, %d: tensor<?x3xf32>) -> (tensor<2xi64>, tensor<2xi64>, tensor<4xi32>, tensor<3x2xf32>) {
  // CHECK-DAG: %[[SHAPE:.*]] = mlc.constant dense<[2, 3]> : tensor<2xi64>
  %0 = mlc.shape_of %x : tensor<2x3xf32> -> tensor<2xi64>
  // CHECK-DAG: %[[UNKNOWN:.*]] = mlc.shape_of
  %1 = mlc.shape_of %d : tensor<?x3xf32> -> tensor<2xi64>
  // CHECK-DAG: %[[FLAT:.*]] = mlc.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %c = mlc.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  %2 = mlc.reshape %c [4] : tensor<2x2xi32> -> tensor<4xi32>
  // CHECK-DAG: %[[SPLAT:.*]] = mlc.constant dense<7.000000e+00> : tensor<3x2xf32>
  %s = mlc.constant dense<7.0> : tensor<2x3xf32>
  %3 = mlc.transpose %s {permutation = array<i64: 1, 0>} : tensor<2x3xf32> -> tensor<3x2xf32>
  // CHECK: return %[[SHAPE]], %[[UNKNOWN]], %[[FLAT]], %[[SPLAT]]
  return %0, %1, %2, %3 : tensor<2xi64>, tensor<2xi64>, tensor<4xi32>, tensor<3x2xf32>
}

// -----

// Constants of strings fold to nothing else.
// CHECK-LABEL: func.func @strings
func.func @strings() -> tensor<2x1x!mlc.str> {
  // CHECK: mlc.constant dense<["a", "b"]> : tensor<2x!mlc.str>
  %0 = mlc.constant dense<["a", "b"]> : tensor<2x!mlc.str>
  // CHECK: mlc.reshape
  %1 = mlc.reshape %0 [2, 1] : tensor<2x!mlc.str> -> tensor<2x1x!mlc.str>
  return %1 : tensor<2x1x!mlc.str>
}
