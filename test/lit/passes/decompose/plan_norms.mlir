// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-norms)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-norms{rows=40000})' | FileCheck %s --check-prefix=ROWS
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-norms,mlc-decompose{none=true})' | FileCheck %s --check-prefix=DONE

// A convolution in front of it, behind functions of its result.
// CHECK-LABEL: func.func @behind
// CHECK: mlc.group_norm {{.*}}groups = 32 : i64, mlc.by_channel}
// ROWS-LABEL: func.func @behind
// ROWS: mlc.group_norm {{.*}}groups = 32 : i64, mlc.in_rows}
// Sums over pixels alone, of the tensor and of squares; groups are made of what is left; nothing else has its size.
// DONE-LABEL: func.func @behind
// DONE-NOT: mlc.reshape {{.*}}x14x14x
// DONE: mlc.reduce sum %{{.*}} {axes = array<i64: 2, 3>} : tensor<1x64x14x14xf32> -> tensor<1x64xf32>
// DONE: mlc.reduce sum %{{.*}} {axes = array<i64: 2, 3>} : tensor<1x64x14x14xf32> -> tensor<1x64xf32>
// DONE: mlc.reduce sum %{{.*}} {axes = array<i64: 2>} : tensor<1x32x2xf32> -> tensor<1x32xf32>
// DONE: mlc.reduce sum %{{.*}} {axes = array<i64: 2>} : tensor<1x32x2xf32> -> tensor<1x32xf32>
// DONE: mlc.unary rsqrt %{{.*}} : tensor<1x32x1xf32>
// DONE: mlc.binary mul %{{.*}} : tensor<1x64x14x14xf32>, tensor<1x64x1x1xf32>
// DONE: mlc.binary add %{{.*}} : tensor<1x64x14x14xf32>, tensor<1x64x1x1xf32>
// DONE: return
func.func @behind(%x: tensor<1x3x14x14xf32>, %w: tensor<64x3x1x1xf32>, %s: tensor<64xf32>) -> tensor<1x64x14x14xf32> {
  %c = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : tensor<1x3x14x14xf32>, tensor<64x3x1x1xf32> -> tensor<1x64x14x14xf32>
  %t = mlc.unary tanh %c : tensor<1x64x14x14xf32>
  %n = mlc.group_norm %t, %s, %s {epsilon = 1.0e-5 : f64, groups = 32 : i64} : tensor<1x64x14x14xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<1x64x14x14xf32>
  return %n : tensor<1x64x14x14xf32>
}

// One behind it; few groups do not fill a chip as rows, nor are sizes of the run known to be small.
// CHECK-LABEL: func.func @front
// CHECK: mlc.group_norm {{.*}}mlc.by_channel}
// CHECK: mlc.group_norm {{.*}}mlc.by_channel}
// ROWS-LABEL: func.func @front
// ROWS: mlc.group_norm {{.*}}mlc.by_channel}
// ROWS: mlc.group_norm {{.*}}mlc.by_channel}
func.func @front(%x: tensor<1x64x5x7xf32>, %y: tensor<?x64x5x7xf32>, %w: tensor<8x64x1x1xf32>, %s: tensor<64xf32>) -> (tensor<1x8x5x7xf32>, tensor<?x8x5x7xf32>) {
  %n = mlc.group_norm %x, %s, %s {epsilon = 1.0e-5 : f64, groups = 1 : i64} : tensor<1x64x5x7xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<1x64x5x7xf32>
  %c = mlc.conv %n, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : tensor<1x64x5x7xf32>, tensor<8x64x1x1xf32> -> tensor<1x8x5x7xf32>
  %m = mlc.group_norm %y, %s, %s {epsilon = 1.0e-5 : f64, groups = 32 : i64} : tensor<?x64x5x7xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<?x64x5x7xf32>
  %d = mlc.conv %m, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64} : tensor<?x64x5x7xf32>, tensor<8x64x1x1xf32> -> tensor<?x8x5x7xf32>
  return %c, %d : tensor<1x8x5x7xf32>, tensor<?x8x5x7xf32>
}

// Elsewhere a group is a row of memory.
// CHECK-LABEL: func.func @alone
// CHECK-NOT: mlc.by_channel
// CHECK: return
func.func @alone(%x: tensor<2x64x5x7xf32>, %s: tensor<64xf32>, %p: tensor<7x7xf32>) -> tensor<2x64x5x7xf32> {
  %m = mlc.matmul %x, %p : tensor<2x64x5x7xf32>, tensor<7x7xf32> -> tensor<2x64x5x7xf32>
  %n = mlc.group_norm %m, %s, %s {epsilon = 1.0e-5 : f64, groups = 8 : i64} : tensor<2x64x5x7xf32>, tensor<64xf32>, tensor<64xf32> -> tensor<2x64x5x7xf32>
  return %n : tensor<2x64x5x7xf32>
}
