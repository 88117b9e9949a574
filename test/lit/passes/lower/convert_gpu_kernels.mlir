// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-convert-gpu-kernels)' | FileCheck %s

// CHECK: module @k0
// CHECK: llvm.func @k0(%{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: i64)
// CHECK: llvm.store
module @k0 attributes {mlc.kernel, mlc.placement = "device"} {
  func.func @k0(%t: memref<f32> {llvm.noalias}, %n: index) {
    %c = arith.constant 1.0 : f32
    memref.store %c, %t[] : memref<f32>
    return
  }
}

// Code generation converts what runs on the host.
// CHECK: module @k1
// CHECK: func.func @k1(%{{.*}}: memref<f32>)
// CHECK: memref.store
module @k1 attributes {mlc.kernel, mlc.placement = "host"} {
  func.func @k1(%t: memref<f32>) {
    %c = arith.constant 1.0 : f32
    memref.store %c, %t[] : memref<f32>
    return
  }
}
