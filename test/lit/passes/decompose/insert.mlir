// Each element is the input's or, where there is one, the update's.
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose{claims=insert})' | FileCheck %s --check-prefix=CLAIMED

// CHECK-LABEL: func.func @insert
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8x4xf32>, %[[U:.*]]: tensor<2x3x2x4xf32>, %[[N:.*]]: tensor<2xi64>)
// CHECK-DAG: %[[PLACES:.*]] = mlc.iota {{.*}} : tensor<1x8xi64>
// CHECK-DAG: %[[STARTS:.*]] = mlc.reshape %[[N]] {{.*}} -> tensor<2x1xi64>
// CHECK: %[[BEHIND:.*]] = mlc.binary sub %[[PLACES]], %[[STARTS]]
// CHECK-DAG: mlc.compare ge %[[BEHIND]]
// CHECK-DAG: mlc.compare le %[[BEHIND]]
// CHECK: mlc.gather_nd {{.*}} {batch_dims = 1 : i64, mlc.in_range} : tensor<2x2x3x4xf32>, tensor<2x8x1xi64> -> tensor<2x8x3x4xf32>
// CHECK: mlc.select %{{.*}}, %{{.*}}, %[[X]] : tensor<2x1x8x1xi1>
// CLAIMED: mlc.insert
func.func @insert(%x: tensor<2x3x8x4xf32>, %u: tensor<2x3x2x4xf32>, %n: tensor<2xi64>) -> tensor<2x3x8x4xf32> {
  %0 = mlc.insert %x, %u, %n {axis = 2 : i64} : tensor<2x3x8x4xf32>, tensor<2x3x2x4xf32>, tensor<2xi64> -> tensor<2x3x8x4xf32>
  return %0 : tensor<2x3x8x4xf32>
}

// One element each needs no search.
// CHECK-LABEL: func.func @one
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8x4xf32>, %[[U:.*]]: tensor<2x3x1x4xf32>, %[[N:.*]]: tensor<2xi64>)
// CHECK-NOT: gather
// CHECK: %[[AT:.*]] = mlc.compare eq
// CHECK-NOT: gather
// CHECK: mlc.select %{{.*}}, %[[U]], %[[X]] : tensor<2x1x8x1xi1>
func.func @one(%x: tensor<2x3x8x4xf32>, %u: tensor<2x3x1x4xf32>, %n: tensor<2xi64>) -> tensor<2x3x8x4xf32> {
  %0 = mlc.insert %x, %u, %n {axis = 2 : i64} : tensor<2x3x8x4xf32>, tensor<2x3x1x4xf32>, tensor<2xi64> -> tensor<2x3x8x4xf32>
  return %0 : tensor<2x3x8x4xf32>
}
