// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-unfold-windows)' | FileCheck %s

// Lines of three pixels with eight channels each, the padding at their ends included.
// CHECK-LABEL: func.func @three
// CHECK: [[X:%.+]] = mlc.pad constant %arg0 low [0, 0, 1, 0] high [0, 0, 1, 5]
// CHECK: [[W:%.+]] = mlc.pad constant %arg1 low [0, 0, 0, 0] high [0, 0, 5, 0]
// CHECK: [[G:%.+]] = mlc.gather [[X]], %{{.+}} {axis = 2 : i64, mlc.in_range}
// CHECK: [[L:%.+]] = mlc.reshape [[G]] [1, 9, 9, 24]
// CHECK: [[F:%.+]] = mlc.reshape [[W]] [3, 1, 24, 16]
// CHECK: mlc.conv [[L]], [[F]] {dilations = array<i64: 1, 1>, {{.*}}padding = array<i64: 1, 0, 1, 0>, strides = array<i64: 1, 1>
func.func @three(%x: tensor<1x9x9x3xbf16>, %w: tensor<3x3x3x16xbf16>) -> tensor<1x9x9x16xf32> {
  %r = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc", widen} : tensor<1x9x9x3xbf16>, tensor<3x3x3x16xbf16> -> tensor<1x9x9x16xf32>
  return %r : tensor<1x9x9x16xf32>
}

// Lines of more than 128 bytes.
// CHECK-LABEL: func.func @many
// CHECK-NOT: mlc.gather
// CHECK: mlc.conv %arg0, %arg1
func.func @many(%x: tensor<1x9x9x24xbf16>, %w: tensor<3x3x24x16xbf16>) -> tensor<1x9x9x16xf32> {
  %r = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc", widen} : tensor<1x9x9x24xbf16>, tensor<3x3x24x16xbf16> -> tensor<1x9x9x16xf32>
  return %r : tensor<1x9x9x16xf32>
}
