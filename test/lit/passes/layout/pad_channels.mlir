// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-pad-channels)' | FileCheck %s

// 30 channels of two bytes become 32.
// CHECK-LABEL: func.func @thirty
// CHECK: [[X:%.+]] = mlc.pad constant %arg0 low [0, 0, 0, 0] high [0, 0, 0, 2]
// CHECK: [[W:%.+]] = mlc.pad constant %arg1 low [0, 0, 0, 0] high [0, 0, 2, 0]
// CHECK: mlc.conv [[X]], [[W]]
func.func @thirty(%x: tensor<1x9x9x30xbf16>, %w: tensor<3x3x30x16xbf16>) -> tensor<1x9x9x16xf32> {
  %r = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc", widen} : tensor<1x9x9x30xbf16>, tensor<3x3x30x16xbf16> -> tensor<1x9x9x16xf32>
  return %r : tensor<1x9x9x16xf32>
}

// CHECK-LABEL: func.func @whole
// CHECK-NOT: mlc.pad
// CHECK: mlc.conv %arg0, %arg1
func.func @whole(%x: tensor<1x9x9x24xbf16>, %w: tensor<3x3x24x16xbf16>) -> tensor<1x9x9x16xf32> {
  %r = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc", widen} : tensor<1x9x9x24xbf16>, tensor<3x3x24x16xbf16> -> tensor<1x9x9x16xf32>
  return %r : tensor<1x9x9x16xf32>
}
