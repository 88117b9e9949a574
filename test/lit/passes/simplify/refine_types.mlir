// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-refine-types,canonicalize)' | FileCheck %s

// CHECK-LABEL: func.func @chain
// CHECK-SAME: -> tensor<4x8xf32>
// CHECK: mlc.broadcast %{{.*}} [4, 8] : tensor<1x8xf32> -> tensor<4x8xf32>
// CHECK-NEXT: mlc.unary exp %{{.*}} : tensor<4x8xf32>
// CHECK-NEXT: return %{{.*}} : tensor<4x8xf32>
func.func @chain(%x: tensor<1x8xf32>) -> tensor<?x8xf32> {
  %n = arith.constant 4 : index
  %0 = mlc.broadcast %x [%n, 8] : tensor<1x8xf32> -> tensor<?x8xf32>
  %1 = mlc.unary exp %0 : tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// Extents that come from a computation which is constant after all: (b * 6) / b.
// CHECK-LABEL: func.func @cancels
// CHECK-SAME: -> tensor<?x6xf32>
func.func @cancels(%x: tensor<?x2x3xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c6 = arith.constant 6 : index
  %b = tensor.dim %x, %c0 : tensor<?x2x3xf32>
  %all = arith.muli %b, %c6 : index
  %n = arith.divui %all, %b : index
  %0 = mlc.reshape %x [%b, %n] : tensor<?x2x3xf32> -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// Both branches and every iteration agree.
// CHECK-LABEL: func.func @control_flow
// CHECK-SAME: -> (tensor<4xf32>, tensor<4xf32>)
// CHECK: scf.if %{{.*}} -> (tensor<4xf32>)
// CHECK: scf.for {{.*}} -> (tensor<4xf32>)
func.func @control_flow(%c: i1, %x: tensor<1xf32>, %k: index) -> (tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 4 : index
  %0 = mlc.broadcast %x [%n] : tensor<1xf32> -> tensor<?xf32>
  %1 = scf.if %c -> (tensor<?xf32>) {
    %y = mlc.unary exp %0 : tensor<?xf32>
    scf.yield %y : tensor<?xf32>
  } else {
    scf.yield %0 : tensor<?xf32>
  }
  %2 = scf.for %i = %c0 to %k step %c1 iter_args(%h = %0) -> (tensor<?xf32>) {
    %y = mlc.unary exp %h : tensor<?xf32>
    scf.yield %y : tensor<?xf32>
  }
  return %1, %2 : tensor<?xf32>, tensor<?xf32>
}

// Sequences keep their element type.
// CHECK-LABEL: func.func @sequence
// CHECK: tensor.cast %{{.*}} : tensor<4xf32> to tensor<?xf32>
// CHECK: mlc.optional_some %{{.*}} : tensor<?xf32>
func.func @sequence(%x: tensor<1xf32>) -> !mlc.optional<tensor<?xf32>> {
  %n = arith.constant 4 : index
  %0 = mlc.broadcast %x [%n] : tensor<1xf32> -> tensor<?xf32>
  %1 = mlc.optional_some %0 : tensor<?xf32>
  return %1 : !mlc.optional<tensor<?xf32>>
}
