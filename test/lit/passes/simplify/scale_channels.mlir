// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-scale-channels)' | FileCheck %s

// CHECK-LABEL: func.func @scale
// CHECK-SAME: (%[[X:.*]]: tensor<?x6x5x7xf32>, %[[W:.*]]: tensor<6x1x1x1xf32>, %[[B:.*]]: tensor<6xf32>)
// CHECK-NOT: mlc.conv
// CHECK: %[[V:.*]] = mlc.reshape %[[W]] [1, 6, 1, 1]
// CHECK: %[[M:.*]] = mlc.binary mul %[[X]], %[[V]]
// CHECK: %[[Y:.*]] = mlc.binary add %[[M]],
// CHECK: return %[[Y]]
func.func @scale(%x: tensor<?x6x5x7xf32>, %w: tensor<6x1x1x1xf32>, %b: tensor<6xf32>) -> tensor<?x6x5x7xf32> {
  %y = mlc.conv %x, %w bias(%b : tensor<6xf32>) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 6 : i64} : tensor<?x6x5x7xf32>, tensor<6x1x1x1xf32> -> tensor<?x6x5x7xf32>
  return %y : tensor<?x6x5x7xf32>
}

// Strides, padding, taps, channels that are summed: convolutions.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-4: mlc.conv
// CHECK: return
func.func @others(%x: tensor<1x6x5x7xf32>, %w: tensor<6x1x1x1xf32>, %v: tensor<6x1x1x3xf32>, %u: tensor<6x2x1x1xf32>) -> (tensor<1x6x3x4xf32>, tensor<1x6x7x7xf32>, tensor<1x6x5x5xf32>, tensor<1x6x5x7xf32>) {
  %a = mlc.conv %x, %w {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 6 : i64} : tensor<1x6x5x7xf32>, tensor<6x1x1x1xf32> -> tensor<1x6x3x4xf32>
  %b = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 0, 1, 0>, dilations = array<i64: 1, 1>, groups = 6 : i64} : tensor<1x6x5x7xf32>, tensor<6x1x1x1xf32> -> tensor<1x6x7x7xf32>
  %c = mlc.conv %x, %v {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 6 : i64} : tensor<1x6x5x7xf32>, tensor<6x1x1x3xf32> -> tensor<1x6x5x5xf32>
  %d = mlc.conv %x, %u {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 3 : i64} : tensor<1x6x5x7xf32>, tensor<6x2x1x1xf32> -> tensor<1x6x5x7xf32>
  return %a, %b, %c, %d : tensor<1x6x3x4xf32>, tensor<1x6x7x7xf32>, tensor<1x6x5x5xf32>, tensor<1x6x5x7xf32>
}
