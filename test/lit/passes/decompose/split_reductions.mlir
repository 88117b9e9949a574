// RUN: mlc-opt %s --mlc-split-reductions | FileCheck %s
// RUN: mlc-opt %s --mlc-split-reductions=shortest=200000 | FileCheck %s --check-prefix=CLUSTERS

// CHECK-LABEL: func.func @total
// CHECK: %[[A:.*]] = mlc.reshape %{{.*}} [1, 1024, 65536]
// CHECK: %[[B:.*]] = mlc.reduce {{.*}}%[[A]]{{.*}} -> tensor<1x1024xf32>
// CHECK: %[[C:.*]] = mlc.reduce {{.*}}%[[B]]{{.*}} -> tensor<1xf32>
// CHECK: %[[D:.*]] = mlc.reshape %[[C]] []
// CHECK: return %[[D]] : tensor<f32>
func.func @total(%x: tensor<16384x4096xf32>) -> tensor<f32> {
  %0 = mlc.reduce max %x {axes = array<i64: 0, 1>, keepdims = false} : tensor<16384x4096xf32> -> tensor<f32>
  return %0 : tensor<f32>
}

// Narrow sums are rounded once, and each of three results has parts of its own.
// CHECK-LABEL: func.func @narrow
// What the blocks of a cluster hold is one reduction where there are clusters.
// CLUSTERS-LABEL: func.func @total
// CLUSTERS-COUNT-2: mlc.reduce
// CLUSTERS-LABEL: func.func @narrow
// CLUSTERS: mlc.reduce sum %{{.*}} -> tensor<3x1x1xbf16>
// CLUSTERS-NEXT: return
// CHECK: %[[W:.*]] = mlc.cast %{{.*}} -> tensor<3x100x1000xf32>
// CHECK: %[[A:.*]] = mlc.reshape %[[W]] [3, 250, 400]
// CHECK: %[[B:.*]] = mlc.reduce {{.*}}%[[A]]{{.*}} -> tensor<3x250xf32>
// CHECK: %[[C:.*]] = mlc.reduce {{.*}}%[[B]]{{.*}} -> tensor<3xf32>
// CHECK: %[[D:.*]] = mlc.reshape %[[C]] [3, 1, 1]
// CHECK: %[[E:.*]] = mlc.cast %[[D]] : tensor<3x1x1xf32> -> tensor<3x1x1xbf16>
// CHECK: return %[[E]]
func.func @narrow(%x: tensor<3x100x1000xbf16>) -> tensor<3x1x1xbf16> {
  %0 = mlc.reduce sum %x {axes = array<i64: 1, 2>, keepdims = true} : tensor<3x100x1000xbf16> -> tensor<3x1x1xbf16>
  return %0 : tensor<3x1x1xbf16>
}

// Many results, short rows, columns and unknown extents stay as they are.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-4: mlc.reduce
// CHECK-NOT: mlc.reduce
func.func @others(%a: tensor<4096x65536xf32>, %b: tensor<2x1000xf32>, %c: tensor<65536x2xf32>, %d: tensor<?x65536xf32>)
    -> (tensor<4096xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>) {
  %0 = mlc.reduce sum %a {axes = array<i64: 1>, keepdims = false} : tensor<4096x65536xf32> -> tensor<4096xf32>
  %1 = mlc.reduce sum %b {axes = array<i64: 1>, keepdims = false} : tensor<2x1000xf32> -> tensor<2xf32>
  %2 = mlc.reduce sum %c {axes = array<i64: 0>, keepdims = false} : tensor<65536x2xf32> -> tensor<2xf32>
  %3 = mlc.reduce sum %d {axes = array<i64: 0, 1>, keepdims = false} : tensor<?x65536xf32> -> tensor<f32>
  return %0, %1, %2, %3 : tensor<4096xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>
}

// Where extreme values are: first in each part, then among the parts' values, read at those positions.
// CHECK-LABEL: func.func @position
// CHECK: %[[A:.*]] = mlc.reshape %[[X:.*]] [2, 500, 800]
// CHECK: %[[B:.*]] = mlc.arg_reduce min %[[A]] {axis = 2 : i64, select_last = true} {{.*}} -> tensor<2x500xi64>
// CHECK: mlc.iota [2, 500] {axis = 1 : i64}
// CHECK: %[[P:.*]] = mlc.binary add %[[B]]
// CHECK: %[[F:.*]] = mlc.reshape %[[X]] [800000]
// CHECK: %[[V:.*]] = mlc.gather %[[F]]
// CHECK: %[[C:.*]] = mlc.arg_reduce min %[[V]] {axis = 1 : i64, select_last = true} {{.*}} -> tensor<2xi64>
// CHECK: %[[Q:.*]] = mlc.reshape %[[P]] [1000]
// CHECK: mlc.gather %[[Q]]
// CHECK: mlc.reshape %{{.*}} [2, 1] : tensor<2xi64> -> tensor<2x1xi64>
func.func @position(%x: tensor<2x400000xf32>) -> tensor<2x1xi64> {
  %0 = mlc.arg_reduce min %x {axis = 1 : i64, keepdims = true, select_last = true} : tensor<2x400000xf32> -> tensor<2x1xi64>
  return %0 : tensor<2x1xi64>
}

// Not across memory.
// CHECK-LABEL: func.func @across
// CHECK-NEXT: mlc.arg_reduce
// CHECK-NEXT: return
func.func @across(%x: tensor<400000x2xf32>) -> tensor<2xi64> {
  %0 = mlc.arg_reduce max %x {axis = 0 : i64} : tensor<400000x2xf32> -> tensor<2xi64>
  return %0 : tensor<2xi64>
}
