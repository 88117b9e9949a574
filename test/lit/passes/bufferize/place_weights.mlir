// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-place-weights)' | FileCheck %s

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
