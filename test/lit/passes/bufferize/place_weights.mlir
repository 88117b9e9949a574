// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-place-weights)' --split-input-file | FileCheck %s

// Offsets are multiples of 64, in the order of first use; kernels have no weights of their own.
// CHECK: module attributes {mlc.weight_bytes = 192 : i64
// CHECK-SAME: {name = "b", offset = 0 : i64, size = 12 : i64}
// CHECK-SAME: {name = "a", offset = 64 : i64, size = 70 : i64}
// CHECK-LABEL: func.func @two_entries_share
func.func @two_entries_share() -> (tensor<3xf32>, tensor<35xbf16>, tensor<3xf32>) {
  // CHECK: mlc.weight "b" {mlc.offset = 0 : i64}
  %b = mlc.weight "b" : tensor<3xf32>
  // CHECK: mlc.weight "a" {mlc.offset = 64 : i64}
  %a = mlc.weight "a" : tensor<35xbf16>
  %again = mlc.weight "b" : tensor<3xf32>
  return %b, %a, %again : tensor<3xf32>, tensor<35xbf16>, tensor<3xf32>
}
// CHECK-LABEL: func.func @second
func.func @second() -> tensor<3xf32> {
  // CHECK: mlc.weight "b" {mlc.offset = 0 : i64}
  %b = mlc.weight "b" : tensor<3xf32>
  return %b : tensor<3xf32>
}

// -----

// The weights of a stack begin with lines: where they are no multiples of one, zeros are between them.
// CHECK: module attributes {mlc.recipes = {"short#[[PADDED:[0-9a-f]+]]" = {result = array<i64: 2, 0>, stack = 3 : i64
// CHECK-SAME: static_high = array<i64: 22>
// CHECK-SAME: op = "mlc.pad"
// CHECK-SAME: mlc.weight_bytes = 448 : i64
// CHECK-SAME: {name = "even", offset = 0 : i64, size = 256 : i64}, {name = "short#[[PADDED]]", offset = 256 : i64, size = 192 : i64}
// CHECK-LABEL: func.func @stacks
func.func @stacks(%i: index) -> (tensor<16xf32>, tensor<5x2xbf16>, tensor<2x16xf32>) {
  // CHECK: mlc.weight "even"[%{{.*}} of 4] {mlc.offset = 0 : i64, mlc.stride = 64 : i64} : tensor<16xf32>
  %0 = mlc.weight "even"[%i of 4] : tensor<16xf32>
  // CHECK: mlc.weight "short#[[PADDED]]"[%{{.*}} of 3] {mlc.offset = 256 : i64, mlc.stride = 64 : i64} : tensor<5x2xbf16>
  %1 = mlc.weight "short"[%i of 3] : tensor<5x2xbf16>
  // CHECK: mlc.weight "even"[%{{.*}} of 2] {mlc.offset = 0 : i64, mlc.stride = 128 : i64} : tensor<2x16xf32>
  %2 = mlc.weight "even"[%i of 2] : tensor<2x16xf32>
  return %0, %1, %2 : tensor<16xf32>, tensor<5x2xbf16>, tensor<2x16xf32>
}
