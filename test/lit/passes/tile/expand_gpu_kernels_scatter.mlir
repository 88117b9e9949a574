// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-expand-gpu-kernels,canonicalize,cse)' | FileCheck %s

// A thread takes the updates of one element of all slices, in order.
// CHECK: module @ordered
// CHECK: scf.for %[[ITEM:.*]] = %{{.*}} to %{{.*}} step %c1
// CHECK: scf.for %[[N:.*]] = %c0 to %c70 step %c1
// CHECK: memref.load %{{.*}}[%[[N]]] {{.*}}: memref<70xi64>
// CHECK: scf.if
// CHECK: memref.load %{{.*}} : memref<280xf32>
// CHECK: memref.load %{{.*}} : memref<360xf32>
// CHECK: arith.addf
// CHECK: memref.store %{{.*}} : memref<360xf32>
// CHECK: } else {
// CHECK: memref.store %{{.*}} : memref<2xi64>
// CHECK: func.func @ordered_grid
// CHECK: arith.constant 4 : index
module {
module @ordered attributes {mlc.inout = array<i64: 0>, mlc.kernel, mlc.schedule = [{atomic = 0 : i64, template = "scatter", threads = 256 : i64}]} {
  func.func @ordered(%i: tensor<70x1xi64>, %u: tensor<70x4xf32>, %o: tensor<90x4xf32>) -> tensor<90x4xf32> {
    %r = mlc.scatter_nd %o, %i, %u {reduction = "add"} : tensor<90x4xf32>, tensor<70x1xi64>, tensor<70x4xf32> -> tensor<90x4xf32>
    return %r : tensor<90x4xf32>
  }
}
}

// -----

// Where the order does not matter, a thread has one update.
// CHECK: module @largest
// CHECK: scf.if
// CHECK: memref.atomic_rmw maxs %{{.*}} : (i32, memref<360xi32>) -> i32
// CHECK: func.func @largest_grid
// CHECK: arith.constant 280 : index
module {
module @largest attributes {mlc.inout = array<i64: 0>, mlc.kernel, mlc.schedule = [{atomic = 1 : i64, template = "scatter", threads = 256 : i64}]} {
  func.func @largest(%i: tensor<70x4xi64>, %u: tensor<70x4xi32>, %o: tensor<90x4xi32>) -> tensor<90x4xi32> {
    %r = mlc.scatter_elements %o, %i, %u {axis = 0 : i64, reduction = "max"} : tensor<90x4xi32>, tensor<70x4xi64>, tensor<70x4xi32> -> tensor<90x4xi32>
    return %r : tensor<90x4xi32>
  }
}
}
