// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-isolate-host)' | FileCheck %s

// Functions and constants move into one module in front of the kernels.
// CHECK: module @mlc_host attributes {mlc.host} {
// CHECK-NEXT: memref.global "private" constant @c
// CHECK-NEXT: func.func @forward
// CHECK: module @k0 attributes {mlc.kernel} {
// CHECK-NEXT: func.func @k0
memref.global "private" constant @c : memref<2xf32> = dense<1.0>
func.func @forward(%x: memref<4xf32>) {
  return
}
module @k0 attributes {mlc.kernel} {
  func.func @k0() {
    return
  }
}
