// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-expand-kernels)' | FileCheck %s

// Two rows of all four gates are sums in registers: in a step a panel's go along the state, four elements at a time.
// CHECK-LABEL: func.func @k0(
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<64xf32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<32xf32>
// CHECK: scf.for
// CHECK: scf.for %[[STEP:.*]] =
// What is read of the states on the stack and what is written take turns.
// CHECK: arith.remui %[[STEP]]
// CHECK-COUNT-8: vector.load %{{.*}} : memref<1152xf32>, vector<16xf32>
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK-COUNT-32: vector.fma
// CHECK: scf.yield
// CHECK-COUNT-3: call @sigmoid_16xf32
// CHECK: call @tanh_16xf32
// CHECK: call @tanh_16xf32
// CHECK: vector.store {{.*}} : memref<288xf32>, vector<16xf32>
// CHECK-LABEL: func.func @k0_grid
// CHECK: %[[ITEMS:.*]] = arith.constant 3
// CHECK: return %[[ITEMS]]
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{lanes = 16 : i64, panel = 16 : i64, rows = 2 : i64, template = "recurrence"}]} {
  func.func @k0(%x: tensor<3x6x64xf32>, %r: tensor<1x1x16x4x16xf32>, %o: tensor<3x6x1x16xf32>, %h: tensor<1x6x16xf32>, %c: tensor<1x6x16xf32>) -> (tensor<3x6x1x16xf32>, tensor<1x6x16xf32>, tensor<1x6x16xf32>) {
    %y, %y_h, %y_c = mlc.recurrence lstm %x, %r : tensor<3x6x64xf32>, tensor<1x1x16x4x16xf32> -> tensor<3x6x1x16xf32>, tensor<1x6x16xf32>, tensor<1x6x16xf32>
    return %y, %y_h, %y_c : tensor<3x6x1x16xf32>, tensor<1x6x16xf32>, tensor<1x6x16xf32>
  }
}
}
