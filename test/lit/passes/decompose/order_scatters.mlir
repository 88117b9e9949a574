// RUN: mlc-opt %s --mlc-order-scatters | FileCheck %s

// The largest number of an update for each element; what no update has stays.
// CHECK-LABEL: func.func @elements
// CHECK-SAME: (%[[X:.*]]: tensor<9x20xf32>, %[[I:.*]]: tensor<500x18xi64>, %[[U:.*]]: tensor<500x18xf32>)
// CHECK: %[[A:.*]] = mlc.iota [9000] {axis = 0 : i64} : tensor<9000xi32>
// CHECK: %[[N:.*]] = mlc.reshape %[[A]] [500, 18]
// CHECK: %[[NONE:.*]] = mlc.broadcast %{{.*}} [9, 20] : tensor<i32> -> tensor<9x20xi32>
// CHECK: %[[L:.*]] = mlc.scatter_elements %[[NONE]], %[[I]], %[[N]] {axis = 0 : i64, reduction = "max"}
// CHECK: %[[F:.*]] = mlc.reshape %[[U]] [9000]
// CHECK: %[[P:.*]] = mlc.binary max %[[L]]
// CHECK: %[[V:.*]] = mlc.gather %[[F]], %[[P]] {axis = 0 : i64, mlc.in_range}
// CHECK: %[[IS:.*]] = mlc.compare ge %[[L]]
// CHECK: mlc.select %[[IS]], %[[V]], %[[X]]
func.func @elements(%x: tensor<9x20xf32>, %i: tensor<500x18xi64>, %u: tensor<500x18xf32>) -> tensor<9x20xf32> {
  %0 = mlc.scatter_elements %x, %i, %u {axis = 0 : i64, reduction = "none"}
      : tensor<9x20xf32>, tensor<500x18xi64>, tensor<500x18xf32> -> tensor<9x20xf32>
  return %0 : tensor<9x20xf32>
}

// A number for each slice; how many only a run knows.
// CHECK-LABEL: func.func @slices
// CHECK: mlc.iota [%{{.*}}] {axis = 0 : i64} : tensor<?xi64>
// CHECK: mlc.scatter_nd %{{.*}} {reduction = "max"} : tensor<30x17xi64>, tensor<?x2xi64>, tensor<?xi64> -> tensor<30x17xi64>
// CHECK: mlc.gather {{.*}} : tensor<?x8xf16>, tensor<30x17xi64> -> tensor<30x17x8xf16>
// CHECK: mlc.reshape %{{.*}} [30, 17, 1]
// CHECK: mlc.select
func.func @slices(%x: tensor<30x17x8xf16>, %i: tensor<?x2xi64>, %u: tensor<?x8xf16>) -> tensor<30x17x8xf16> {
  %0 = mlc.scatter_nd %x, %i, %u {reduction = "none"}
      : tensor<30x17x8xf16>, tensor<?x2xi64>, tensor<?x8xf16> -> tensor<30x17x8xf16>
  return %0 : tensor<30x17x8xf16>
}

// Few updates, sums, and what a loop carries stay.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: mlc.scatter
// CHECK-NOT: mlc.gather
func.func @others(%x: tensor<90x4xf32>, %i: tensor<3x1xi64>, %u: tensor<3x4xf32>, %j: tensor<500x4xi64>,
                  %v: tensor<500x4xf32>, %n: index) -> (tensor<90x4xf32>, tensor<90x4xf32>, tensor<90x4xf32>) {
  %0 = mlc.scatter_nd %x, %i, %u {reduction = "none"} : tensor<90x4xf32>, tensor<3x1xi64>, tensor<3x4xf32> -> tensor<90x4xf32>
  %1 = mlc.scatter_elements %x, %j, %v {axis = 0 : i64, reduction = "add"}
      : tensor<90x4xf32>, tensor<500x4xi64>, tensor<500x4xf32> -> tensor<90x4xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %2 = scf.for %k = %c0 to %n step %c1 iter_args(%y = %x) -> tensor<90x4xf32> {
    %3 = mlc.scatter_elements %y, %j, %v {axis = 0 : i64, reduction = "none"}
        : tensor<90x4xf32>, tensor<500x4xi64>, tensor<500x4xf32> -> tensor<90x4xf32>
    scf.yield %3 : tensor<90x4xf32>
  }
  return %0, %1, %2 : tensor<90x4xf32>, tensor<90x4xf32>, tensor<90x4xf32>
}
