// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-add-gpu-entries)' | FileCheck %s

// A thread whose item does not exist leaves.
// CHECK: module @alone
// CHECK: func.func @alone(%[[T:.*]]: memref<f32> {llvm.noalias}, %[[D:.*]]: index, %[[ERR:.*]]: memref<2xi64>, %[[ITEMS:.*]]: index) {
// CHECK: nvvm.read.ptx.sreg.ctaid.x
// CHECK: nvvm.read.ptx.sreg.tid.x
// CHECK: %[[I:.*]] = arith.addi
// CHECK: %[[IN:.*]] = arith.cmpi slt, %[[I]], %[[ITEMS]]
// CHECK: scf.if %[[IN]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[I]], %{{.*}} overflow<nsw>
// CHECK: func.call @alone_item(%[[T]], %[[D]], %[[ERR]], %[[I]], %[[NEXT]])
// CHECK: func.func private @alone_item(
// CHECK: func.func @alone_grid(
module @alone attributes {mlc.kernel, mlc.schedule = [{template = "elementwise", threads = 256 : i64}]} {
  func.func @alone(%t: memref<f32> {llvm.noalias}, %d: index, %error: memref<2xi64>, %begin: index, %end: index) {
    return
  }
  func.func @alone_grid(%d: index) -> index {
    return %d : index
  }
}

// Threads that shuffle stay: they repeat the last item.
// CHECK: module @shared
// CHECK: %[[PER:.*]] = arith.constant 32 : index
// CHECK: %[[GROUP:.*]] = arith.constant 4 : index
// CHECK: arith.divui %{{.*}}, %[[GROUP]]
// CHECK: arith.muli %{{.*}}, %[[PER]]
// CHECK-NOT: scf.if
// CHECK: %[[J:.*]] = arith.minsi
// CHECK: call @shared_item(%{{.*}}, %{{.*}}, %[[J]], %{{.*}})
module @shared attributes {mlc.kernel, mlc.schedule = [{group = 4 : i64, template = "rows", threads = 128 : i64}]} {
  func.func @shared(%t: memref<f32>, %error: memref<2xi64>, %begin: index, %end: index) {
    return
  }
}

// CHECK: module @block
// CHECK: %[[BLOCK:.*]] = nvvm.read.ptx.sreg.ctaid.x
// CHECK: %[[ITEM:.*]] = arith.index_castui %[[BLOCK]]
// CHECK: call @block_item(%{{.*}}, %{{.*}}, %[[ITEM]], %{{.*}})
module @block attributes {mlc.kernel, mlc.schedule = [{group = 128 : i64, template = "rows", threads = 128 : i64}]} {
  func.func @block(%t: memref<f32>, %error: memref<2xi64>, %begin: index, %end: index) {
    return
  }
}

// Tensor maps stay behind everything else.
// CHECK: module @mapped
// CHECK: func.func @mapped(%[[T2:.*]]: memref<f32>, %[[ERR2:.*]]: memref<2xi64>, %{{.*}}: index, %[[MAP:.*]]: !llvm.ptr) {
// CHECK: call @mapped_item(%[[T2]], %[[ERR2]], %{{.*}}, %{{.*}}, %[[MAP]])
module @mapped attributes {mlc.kernel, mlc.schedule = [{group = 128 : i64, template = "hopper_contraction", threads = 128 : i64}], mlc.tensor_maps = [{}]} {
  func.func @mapped(%t: memref<f32>, %error: memref<2xi64>, %begin: index, %end: index, %map: !llvm.ptr) {
    return
  }
}
