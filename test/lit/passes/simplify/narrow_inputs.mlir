// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-check-shapes,mlc-narrow-inputs,mlc-refine-types,mlc-resolve-dims,canonicalize,cse,canonicalize)' | FileCheck %s

// An extent that has to be 4 is 4, in every input that calls it so; its range goes with its name.
// CHECK: module
// CHECK-NOT: c = array
// CHECK: func.func @one(%arg0: tensor<?x4xf32> {mlc.dims = ["n", ""]}, %arg1: tensor<4xf32> {mlc.name = "b"}) -> tensor<?x2xf32>
// CHECK-NOT: mlc.check
module attributes {mlc.dim_ranges = {c = array<i64: 1, 8, 1>, n = array<i64: 1, -1, 1>}} {
  func.func @one(%x: tensor<?x?xf32> {mlc.dims = ["n", "c"]}, %b: tensor<?xf32> {mlc.dims = ["c"], mlc.name = "b"})
      -> tensor<?x2xf32> {
    %w = mlc.constant dense<1.0> : tensor<4x2xf32>
    %0 = mlc.binary add %x, %b : tensor<?x?xf32>, tensor<?xf32> -> tensor<?x?xf32>
    %1 = mlc.matmul %0, %w : tensor<?x?xf32>, tensor<4x2xf32> -> tensor<?x2xf32>
    return %1 : tensor<?x2xf32>
  }
}

// -----

// A sum of extents with one unknown is solved: n + 3 = 8.
// CHECK-LABEL: func.func @sum(%arg0: tensor<2x5xf32>
// CHECK-NOT: mlc.check
func.func @sum(%x: tensor<2x?xf32> {mlc.dims = ["", "n"]}, %y: tensor<2x3xf32>) -> tensor<2x2xf32> {
  %w = mlc.constant dense<1.0> : tensor<8x2xf32>
  %0 = mlc.concat %x, %y {axis = 1 : i64} : tensor<2x?xf32>, tensor<2x3xf32> -> tensor<2x?xf32>
  %1 = mlc.matmul %0, %w : tensor<2x?xf32>, tensor<8x2xf32> -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

// -----

// Two that must be equal have one name, which the runtime checks.
// CHECK-LABEL: func.func @two
// CHECK-SAME: mlc.dims = ["n", "k"]
// CHECK-SAME: mlc.dims = ["k", "p"]
// CHECK-NOT: mlc.check
func.func @two(%x: tensor<?x?xf32> {mlc.dims = ["n", "k"]}, %y: tensor<?x?xf32> {mlc.dims = ["m", "p"]}) -> tensor<?x?xf32> {
  %0 = mlc.matmul %x, %y : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// Not where only a branch asks, not out of the range that was given, and not for a quotient: 2 * (n // 2) = 8.
// CHECK-LABEL: func.func @branch(%arg0: i1, %arg1: tensor<?x?xf32>
// CHECK: mlc.check
func.func @branch(%c: i1, %x: tensor<?x?xf32> {mlc.dims = ["n", "k"]}, %z: tensor<?x2xf32> {mlc.dims = ["n", ""]}) -> tensor<?x2xf32> {
  %w = mlc.constant dense<1.0> : tensor<4x2xf32>
  %0 = scf.if %c -> tensor<?x2xf32> {
    %1 = mlc.matmul %x, %w : tensor<?x?xf32>, tensor<4x2xf32> -> tensor<?x2xf32>
    scf.yield %1 : tensor<?x2xf32>
  } else {
    scf.yield %z : tensor<?x2xf32>
  }
  return %0 : tensor<?x2xf32>
}

// -----

// CHECK-LABEL: func.func @range(%arg0: tensor<?x?xf32>
// CHECK: mlc.check
module attributes {mlc.dim_ranges = {k = array<i64: 8, -1, 8>}} {
  func.func @range(%x: tensor<?x?xf32> {mlc.dims = ["n", "k"]}) -> tensor<?x2xf32> {
    %w = mlc.constant dense<1.0> : tensor<4x2xf32>
    %0 = mlc.matmul %x, %w : tensor<?x?xf32>, tensor<4x2xf32> -> tensor<?x2xf32>
    return %0 : tensor<?x2xf32>
  }
}

// -----

// CHECK-LABEL: func.func @quotient(%arg0: tensor<?xf32>
// CHECK: mlc.check
func.func @quotient(%x: tensor<?xf32> {mlc.dims = ["n"]}) -> tensor<2x2xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %w = mlc.constant dense<1.0> : tensor<4x2xf32>
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %half = arith.divui %n, %c2 : index
  %0 = mlc.reshape %x [2, %half] : tensor<?xf32> -> tensor<2x?xf32>
  %1 = mlc.matmul %0, %w : tensor<2x?xf32>, tensor<4x2xf32> -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}
