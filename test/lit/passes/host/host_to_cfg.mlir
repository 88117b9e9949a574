// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-host-to-cfg)' | FileCheck %s

// Loops of the host become blocks; those of a kernel stay.
// CHECK-LABEL: module @mlc_host
// CHECK: cf.cond_br
// CHECK-NOT: scf.for
module @mlc_host attributes {mlc.host} {
  func.func @forward(%x: memref<4xf32>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      mlc.launch @k0(%x) outs(%x) : (memref<4xf32>) outs(memref<4xf32>)
    }
    return
  }
}
// CHECK-LABEL: module @k0
// CHECK: scf.for
module @k0 attributes {mlc.kernel} {
  func.func @k0(%x: memref<f32>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c = arith.constant 1.0 : f32
    scf.for %i = %c0 to %n step %c1 {
      memref.store %c, %x[] : memref<f32>
    }
    return
  }
}
