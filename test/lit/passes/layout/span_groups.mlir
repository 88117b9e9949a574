// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-span-groups)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-span-groups{lanes=8})' | FileCheck %s --check-prefix=EIGHT
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-span-groups,mlc-lower-to-linalg)' | FileCheck %s --check-prefix=LINALG

// Four groups of four filters fill a vector of sixteen lanes, two a vector of eight.
// CHECK-LABEL: func.func @fours
// CHECK: mlc.conv {{.*}}groups = 32 : i64, layout = "nhwc", mlc.joined
// EIGHT-LABEL: func.func @fours
// EIGHT: mlc.joined
// The filter's place says the group: no dimension is split.
// LINALG: affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, (d3 floordiv 4) * 4 + d6)>
// LINALG-LABEL: func.func @fours
// LINALG-NOT: tensor.expand_shape
// LINALG: linalg.generic {{.*}} outs({{.*}} : tensor<1x6x6x128xf32>)
func.func @fours(%x: tensor<1x8x8x128xf32>, %w: tensor<3x3x4x128xf32>) -> tensor<1x6x6x128xf32> {
  %r = mlc.conv %x, %w {dilations = array<i64: 1, 1>, groups = 32 : i64, layout = "nhwc", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x8x8x128xf32>, tensor<3x3x4x128xf32> -> tensor<1x6x6x128xf32>
  return %r : tensor<1x6x6x128xf32>
}

// Two filters of each channel: a depthwise convolution that doubles the channels.
// CHECK-LABEL: func.func @doubled
// CHECK: mlc.joined
func.func @doubled(%x: tensor<1x8x8x24xf32>, %w: tensor<3x3x1x48xf32>) -> tensor<1x6x6x48xf32> {
  %r = mlc.conv %x, %w {dilations = array<i64: 1, 1>, groups = 24 : i64, layout = "nhwc", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x8x8x24xf32>, tensor<3x3x1x48xf32> -> tensor<1x6x6x48xf32>
  return %r : tensor<1x6x6x48xf32>
}

// Half a vector of sixteen lanes is left as it is; so are depthwise convolutions, groups whose channels reach over a
// vector, those that do not divide it, and other types.
// CHECK-LABEL: func.func @others
// CHECK-NOT: mlc.joined
// CHECK: return
func.func @others(%x: tensor<1x8x8x64xf32>, %w: tensor<3x3x8x64xf32>, %d: tensor<3x3x1x64xf32>, %f: tensor<3x3x4x32xf32>, %y: tensor<1x8x8x6xf32>, %t: tensor<3x3x3x6xf32>, %h: tensor<1x8x8x64xbf16>, %hw: tensor<3x3x4x64xbf16>) -> (tensor<1x6x6x64xf32>, tensor<1x6x6x64xf32>, tensor<1x6x6x32xf32>, tensor<1x6x6x6xf32>, tensor<1x6x6x64xbf16>) {
  %0 = mlc.conv %x, %w {dilations = array<i64: 1, 1>, groups = 8 : i64, layout = "nhwc", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x8x8x64xf32>, tensor<3x3x8x64xf32> -> tensor<1x6x6x64xf32>
  %1 = mlc.conv %x, %d {dilations = array<i64: 1, 1>, groups = 64 : i64, layout = "nhwc", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x8x8x64xf32>, tensor<3x3x1x64xf32> -> tensor<1x6x6x64xf32>
  %2 = mlc.conv %x, %f {dilations = array<i64: 1, 1>, groups = 16 : i64, layout = "nhwc", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x8x8x64xf32>, tensor<3x3x4x32xf32> -> tensor<1x6x6x32xf32>
  %3 = mlc.conv %y, %t {dilations = array<i64: 1, 1>, groups = 2 : i64, layout = "nhwc", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x8x8x6xf32>, tensor<3x3x3x6xf32> -> tensor<1x6x6x6xf32>
  %4 = mlc.conv %h, %hw {dilations = array<i64: 1, 1>, groups = 16 : i64, layout = "nhwc", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x8x8x64xbf16>, tensor<3x3x4x64xbf16> -> tensor<1x6x6x64xbf16>
  return %0, %1, %2, %3, %4 : tensor<1x6x6x64xf32>, tensor<1x6x6x64xf32>, tensor<1x6x6x32xf32>, tensor<1x6x6x6xf32>, tensor<1x6x6x64xbf16>
}
