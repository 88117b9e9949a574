// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-hoist-weights)' | FileCheck %s
// A second run changes nothing.
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-hoist-weights)' > %t.once
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-hoist-weights,mlc-hoist-weights)' | diff - %t.once

// CHECK: module attributes {mlc.recipes = {
// CHECK-SAME: "big#[[TAKE:[0-9a-f]+]]" = {result = array<i64: 1, 0>, steps = [
// CHECK-SAME: {attrs = {value = dense<[0, 2]> : tensor<2xi64>}, inputs = [], op = "mlc.constant", results = [tensor<2xi64>]},
// CHECK-SAME: inputs = ["big", array<i64: 0, 0>], op = "mlc.gather", results = [tensor<2x100xf32>]}]}
// CHECK-SAME: "e#{{[0-9a-f]+}}" = {result = array<i64: 1, 0>, stack = 4 : i64, steps = [
// CHECK-SAME: inputs = {{\[\[}}"e"]], op = "mlc.transpose"
// CHECK-SAME: inputs = [array<i64: 0, 0>, "scale"], op = "mlc.binary"
// CHECK-SAME: "w#[[NEG:[0-9a-f]+]]" =
// CHECK-SAME: {attrs = {permutation = array<i64: 1, 0>}, inputs = ["w"], op = "mlc.transpose", results = [tensor<32x8xf32>]}
// CHECK-SAME: attrs = {kind = "neg"}, inputs = [array<i64: 0, 0>], op = "mlc.unary"

// CHECK-LABEL: func.func @matmul
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>, %[[Y:.*]]: tensor<8x8xf32>)
// CHECK: %[[W:.*]] = mlc.weight "w" : tensor<8x32xf32>
// CHECK-NEXT: %[[T:.*]] = mlc.weight "w#[[NEG]]" : tensor<32x8xf32>
// CHECK-NEXT: %[[A:.*]] = mlc.matmul %[[X]], %[[W]]
// CHECK-NEXT: %[[B:.*]] = mlc.matmul %[[T]], %[[Y]]
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @matmul(%x: tensor<4x8xf32>, %y: tensor<8x8xf32>) -> (tensor<4x32xf32>, tensor<32x8xf32>) {
  %w = mlc.weight "w" : tensor<8x32xf32>
  %t = mlc.transpose %w {permutation = array<i64: 1, 0>} : tensor<8x32xf32> -> tensor<32x8xf32>
  %n = mlc.unary neg %t : tensor<32x8xf32>
  %0 = mlc.matmul %x, %w : tensor<4x8xf32>, tensor<8x32xf32> -> tensor<4x32xf32>
  %1 = mlc.matmul %n, %y : tensor<32x8xf32>, tensor<8x8xf32> -> tensor<32x8xf32>
  return %0, %1 : tensor<4x32xf32>, tensor<32x8xf32>
}

// CHECK-LABEL: func.func @take
// CHECK-NEXT: mlc.weight "big#[[TAKE]]" : tensor<2x100xf32>
// CHECK-NEXT: return
func.func @take() -> tensor<2x100xf32> {
  %w = mlc.weight "big" : tensor<300x100xf32>
  %i = mlc.constant dense<[0, 2]> : tensor<2xi64>
  %0 = mlc.gather %w, %i {axis = 0 : i64} : tensor<300x100xf32>, tensor<2xi64> -> tensor<2x100xf32>
  return %0 : tensor<2x100xf32>
}

// A broadcast costs nothing at run time, as a weight it costs memory.
// CHECK-LABEL: func.func @broadcast
// CHECK: mlc.weight "b" : tensor<8xf32>
// CHECK: mlc.broadcast
func.func @broadcast() -> tensor<1000x8xf32> {
  %w = mlc.weight "b" : tensor<8xf32>
  %0 = mlc.broadcast %w [1000, 8] : tensor<8xf32> -> tensor<1000x8xf32>
  return %0 : tensor<1000x8xf32>
}

// Far larger than what it comes from.
// CHECK-LABEL: func.func @mask
// CHECK: mlc.trilu
func.func @mask() -> tensor<2048x2048xf32> {
  %k = arith.constant 0 : index
  %one = mlc.constant dense<1.0> : tensor<f32>
  %0 = mlc.broadcast %one [2048, 2048] : tensor<f32> -> tensor<2048x2048xf32>
  %1 = mlc.trilu %0, %k : tensor<2048x2048xf32>
  return %1 : tensor<2048x2048xf32>
}

// CHECK-LABEL: func.func @random
// CHECK: mlc.random
func.func @random() -> tensor<2xf32> {
  %seed = mlc.constant dense<1> : tensor<i64>
  %0 = mlc.random uniform %seed [2] : tensor<i64> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// One of a stack: the recipe is that of each, and what comes from two of them stays.
// CHECK-LABEL: func.func @stack
// CHECK-SAME: (%[[I:.*]]: index, %[[J:.*]]: index)
// CHECK: %[[A:.*]] = mlc.weight "e#[[EACH:[0-9a-f]+]]"[%[[I]] of 4] : tensor<32x8xf32>
// CHECK: %[[B:.*]] = mlc.weight "e#[[EACH]]"[%[[J]] of 4] : tensor<32x8xf32>
// CHECK: %[[C:.*]] = mlc.binary add %[[A]], %[[B]]
// CHECK: return %[[C]]
func.func @stack(%i: index, %j: index) -> tensor<32x8xf32> {
  %scale = mlc.weight "scale" : tensor<8xf32>
  %e = mlc.weight "e"[%i of 4] : tensor<8x32xf32>
  %t = mlc.transpose %e {permutation = array<i64: 1, 0>} : tensor<8x32xf32> -> tensor<32x8xf32>
  %s = mlc.binary mul %t, %scale : tensor<32x8xf32>, tensor<8xf32> -> tensor<32x8xf32>
  %e1 = mlc.weight "e"[%j of 4] : tensor<8x32xf32>
  %t1 = mlc.transpose %e1 {permutation = array<i64: 1, 0>} : tensor<8x32xf32> -> tensor<32x8xf32>
  %s1 = mlc.binary mul %t1, %scale : tensor<32x8xf32>, tensor<8xf32> -> tensor<32x8xf32>
  %0 = mlc.binary add %s, %s1 : tensor<32x8xf32>
  return %0 : tensor<32x8xf32>
}

// Of stacks of different numbers there is no one recipe.
// CHECK-LABEL: func.func @two_stacks
// CHECK: %[[A:.*]] = mlc.weight "e"[%{{.*}} of 4]
// CHECK: %[[B:.*]] = mlc.weight "f"[%{{.*}} of 8]
// CHECK: mlc.binary add %[[A]], %[[B]]
func.func @two_stacks(%i: index) -> tensor<8x32xf32> {
  %e = mlc.weight "e" [%i of 4] : tensor<8x32xf32>
  %f = mlc.weight "f" [%i of 8] : tensor<8x32xf32>
  %0 = mlc.binary add %e, %f : tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}
