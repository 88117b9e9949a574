// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-fusion,mlc-outline-kernels)' | FileCheck %s

// What the loop carries is the destination; no input of the kernel has its old contents.
// CHECK-LABEL: func.func @step
// CHECK: iter_args(%[[Y:.*]] = %{{.*}})
// CHECK: mlc.launch @[[K:.*]](%{{.*}}, %{{.*}}) outs(%[[Y]]) {mlc.inout = array<i64: 0>, mlc.overwrite}
// CHECK: module @[[K]] attributes {mlc.inout = array<i64: 0>, mlc.kernel}
// CHECK-NEXT: func.func @[[K]](%[[I:.*]]: tensor<1x1xi64>, %[[U:.*]]: tensor<1x3xf32>, %[[O:.*]]: tensor<5x3xf32>)
// CHECK-NEXT: mlc.scatter_nd %[[O]], %[[I]], %[[U]]
func.func @step(%x: tensor<5x3xf32>, %p: tensor<1x1xi64>, %u: tensor<1x3xf32>) -> tensor<5x3xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%y = %x) -> (tensor<5x3xf32>) {
    %n = mlc.scatter_nd %y, %p, %u : tensor<5x3xf32>, tensor<1x1xi64>, tensor<1x3xf32> -> tensor<5x3xf32>
    scf.yield %n : tensor<5x3xf32>
  }
  return %r : tensor<5x3xf32>
}
