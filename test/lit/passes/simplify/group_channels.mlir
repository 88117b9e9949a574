// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-group-channels)' | FileCheck %s

// What exporters write for ONNX: each channel of the reshaped tensor is a group of two.
// CHECK-LABEL: func.func @groups
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x5x7xf32>, %[[S:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>)
// CHECK: mlc.broadcast %{{.*}} [4, 2]
// CHECK: %[[SCALE:.*]] = mlc.reshape %{{.*}} [8]
// CHECK: %[[BIAS:.*]] = mlc.reshape %{{.*}} [8]
// CHECK: %[[Y:.*]] = mlc.group_norm %[[X]], %[[SCALE]], %[[BIAS]] {epsilon = {{.*}}, groups = 4 : i64} : tensor<2x8x5x7xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<2x8x5x7xf32>
// CHECK-NOT: mlc.reshape
// CHECK: return %[[Y]]
func.func @groups(%x: tensor<2x8x5x7xf32>, %s: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<2x8x5x7xf32> {
  %r = mlc.reshape %x [2, 4, 70] : tensor<2x8x5x7xf32> -> tensor<2x4x70xf32>
  %n = mlc.group_norm %r, %s, %b {epsilon = 1.0e-5 : f64, groups = 4 : i64} : tensor<2x4x70xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<2x4x70xf32>
  %y = mlc.reshape %n [2, 8, 5, 7] : tensor<2x4x70xf32> -> tensor<2x8x5x7xf32>
  return %y : tensor<2x8x5x7xf32>
}

// Samples and sizes of the run.
// CHECK-LABEL: func.func @any_size
// CHECK-SAME: (%[[X:.*]]: tensor<?x8x?x?xf32>
// CHECK: %[[Y:.*]] = mlc.group_norm %[[X]], {{.*}} {epsilon = {{.*}}, groups = 4 : i64} : tensor<?x8x?x?xf32>
// CHECK: return %[[Y]]
func.func @any_size(%x: tensor<?x8x?x?xf32>, %s: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<?x8x?x?xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %two = arith.constant 2 : index
  %d0 = tensor.dim %x, %c0 : tensor<?x8x?x?xf32>
  %d2 = tensor.dim %x, %c2 : tensor<?x8x?x?xf32>
  %d3 = tensor.dim %x, %c3 : tensor<?x8x?x?xf32>
  %m = arith.muli %d2, %d3 : index
  %l = arith.muli %m, %two : index
  %r = mlc.reshape %x [%d0, 4, %l] : tensor<?x8x?x?xf32> -> tensor<?x4x?xf32>
  %n = mlc.group_norm %r, %s, %b {epsilon = 1.0e-5 : f64, groups = 4 : i64} : tensor<?x4x?xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<?x4x?xf32>
  %y = mlc.reshape %n [%d0, 8, %d2, %d3] : tensor<?x4x?xf32> -> tensor<?x8x?x?xf32>
  return %y : tensor<?x8x?x?xf32>
}

// One normalization of another.
// CHECK-LABEL: func.func @twice
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x6xf32>
// CHECK: %[[N:.*]] = mlc.group_norm %[[X]], {{.*}} -> tensor<2x8x6xf32>
// CHECK: %[[Y:.*]] = mlc.group_norm %[[N]], {{.*}} -> tensor<2x8x6xf32>
// CHECK: return %[[Y]]
func.func @twice(%x: tensor<2x8x6xf32>, %s: tensor<4xf32>) -> tensor<2x8x6xf32> {
  %r = mlc.reshape %x [2, 4, 12] : tensor<2x8x6xf32> -> tensor<2x4x12xf32>
  %n = mlc.group_norm %r, %s, %s {epsilon = 1.0e-5 : f64, groups = 4 : i64} : tensor<2x4x12xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<2x4x12xf32>
  %y = mlc.reshape %n [2, 8, 6] : tensor<2x4x12xf32> -> tensor<2x8x6xf32>
  %q = mlc.reshape %y [2, 4, 12] : tensor<2x8x6xf32> -> tensor<2x4x12xf32>
  %m = mlc.group_norm %q, %s, %s {epsilon = 1.0e-5 : f64, groups = 4 : i64} : tensor<2x4x12xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<2x4x12xf32>
  %z = mlc.reshape %m [2, 8, 6] : tensor<2x4x12xf32> -> tensor<2x8x6xf32>
  return %z : tensor<2x8x6xf32>
}

// Samples that are joined, another shape behind it, a reader that wants the reshaped tensor, channels that are groups of
// several already, and channels cut in two: as they were.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-5: mlc.group_norm %{{.*}} : tensor<{{[0-9]+}}x{{[0-9]+}}x{{[0-9]+}}xf32>
// CHECK: return
func.func @others(%x: tensor<2x8x5x7xf32>, %s: tensor<4xf32>, %t: tensor<20xf32>) -> (tensor<2x8x5x7xf32>, tensor<2x8x7x5xf32>, tensor<2x4x70xf32>, tensor<2x8x5x7xf32>, tensor<2x8x5x7xf32>) {
  %r0 = mlc.reshape %x [4, 4, 35] : tensor<2x8x5x7xf32> -> tensor<4x4x35xf32>
  %n0 = mlc.group_norm %r0, %s, %s {epsilon = 1.0e-5 : f64, groups = 4 : i64} : tensor<4x4x35xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<4x4x35xf32>
  %y0 = mlc.reshape %n0 [2, 8, 5, 7] : tensor<4x4x35xf32> -> tensor<2x8x5x7xf32>
  %r1 = mlc.reshape %x [2, 4, 70] : tensor<2x8x5x7xf32> -> tensor<2x4x70xf32>
  %n1 = mlc.group_norm %r1, %s, %s {epsilon = 1.0e-5 : f64, groups = 4 : i64} : tensor<2x4x70xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<2x4x70xf32>
  %y1 = mlc.reshape %n1 [2, 8, 7, 5] : tensor<2x4x70xf32> -> tensor<2x8x7x5xf32>
  %n2 = mlc.group_norm %r1, %s, %s {epsilon = 1.0e-6 : f64, groups = 4 : i64} : tensor<2x4x70xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<2x4x70xf32>
  %n3 = mlc.group_norm %r1, %s, %s {epsilon = 1.0e-5 : f64, groups = 2 : i64} : tensor<2x4x70xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<2x4x70xf32>
  %y3 = mlc.reshape %n3 [2, 8, 5, 7] : tensor<2x4x70xf32> -> tensor<2x8x5x7xf32>
  %r4 = mlc.reshape %x [2, 20, 14] : tensor<2x8x5x7xf32> -> tensor<2x20x14xf32>
  %n4 = mlc.group_norm %r4, %t, %t {epsilon = 1.0e-5 : f64, groups = 20 : i64} : tensor<2x20x14xf32>, tensor<20xf32>, tensor<20xf32> -> tensor<2x20x14xf32>
  %y4 = mlc.reshape %n4 [2, 8, 5, 7] : tensor<2x20x14xf32> -> tensor<2x8x5x7xf32>
  return %y0, %y1, %n2, %y3, %y4 : tensor<2x8x5x7xf32>, tensor<2x8x7x5xf32>, tensor<2x4x70xf32>, tensor<2x8x5x7xf32>, tensor<2x8x5x7xf32>
}
