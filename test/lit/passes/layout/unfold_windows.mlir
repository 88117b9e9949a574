// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-unfold-windows)' | FileCheck %s

// Windows that are one pixel apart share pixels of eight channels; the padding at the ends of lines is stored.
// CHECK-LABEL: func.func @three
// CHECK: [[X:%.+]] = mlc.pad constant %arg0 low [0, 0, 1, 0] high [0, 0, 1, 5]
// CHECK: [[P:%.+]] = mlc.reshape [[X]] [1, 9, 11, 8]
// CHECK: [[W:%.+]] = mlc.pad constant %arg1 low [0, 0, 0, 0] high [0, 0, 5, 0]
// CHECK: [[F:%.+]] = mlc.reshape [[W]] [3, 3, 8, 16]
// CHECK: mlc.conv [[P]], [[F]] {dilations = array<i64: 1, 1>, {{.*}}padding = array<i64: 1, 0, 1, 0>, strides = array<i64: 1, 1>
func.func @three(%x: tensor<1x9x9x3xbf16>, %w: tensor<3x3x3x16xbf16>) -> tensor<1x9x9x16xf32> {
  %r = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc", widen} : tensor<1x9x9x3xbf16>, tensor<3x3x3x16xbf16> -> tensor<1x9x9x16xf32>
  return %r : tensor<1x9x9x16xf32>
}

// Windows that are two pixels apart along both dimensions share squares of four pixels of four channels, cut out of the
// image as it was: seven taps are four squares, of which the first one begins a pixel before the window.
// CHECK-LABEL: func.func @seven
// CHECK: [[S:%.+]] = mlc.reshape %arg0 [1, 3, 7, 2, 7, 2]
// CHECK: [[X:%.+]] = mlc.pad constant [[S]] low [0, 0, 0, 0, 2, 0] high [0, 1, 0, 0, 1, 0] : tensor<1x3x7x2x7x2xf32> -> tensor<1x4x7x2x10x2xf32>
// CHECK: [[T:%.+]] = mlc.transpose [[X]] {permutation = array<i64: 0, 2, 4, 3, 5, 1>}
// CHECK: [[C:%.+]] = mlc.cast [[T]] : tensor<1x7x10x2x2x4xf32> -> tensor<1x7x10x2x2x4xbf16>
// CHECK: [[P:%.+]] = mlc.reshape [[C]] [1, 7, 10, 16]
// CHECK: [[W:%.+]] = mlc.pad constant %arg1 low [1, 1, 0, 0] high [0, 0, 1, 0]
// CHECK: [[F:%.+]] = mlc.reshape [[W]] [4, 2, 4, 2, 4, 16]
// CHECK: [[G:%.+]] = mlc.transpose [[F]] {permutation = array<i64: 0, 2, 1, 3, 4, 5>}
// CHECK: [[Q:%.+]] = mlc.reshape [[G]] [4, 4, 16, 16]
// CHECK: mlc.conv [[P]], [[Q]] {{.*}}padding = array<i64: 2, 0, 1, 0>, strides = array<i64: 1, 1>
func.func @seven(%x: tensor<1x3x14x14xf32>, %w: tensor<7x7x3x16xbf16>) -> tensor<1x7x7x16xf32> {
  %n = mlc.cast %x : tensor<1x3x14x14xf32> -> tensor<1x3x14x14xbf16>
  %t = mlc.transpose %n {mlc.relayout, permutation = array<i64: 0, 2, 3, 1>} : tensor<1x3x14x14xbf16> -> tensor<1x14x14x3xbf16>
  %r = mlc.conv %t, %w {strides = array<i64: 2, 2>, padding = array<i64: 3, 3, 3, 3>, dilations = array<i64: 1, 1>, layout = "nhwc", widen} : tensor<1x14x14x3xbf16>, tensor<7x7x3x16xbf16> -> tensor<1x7x7x16xf32>
  return %r : tensor<1x7x7x16xf32>
}

// Of an image that is not cut into whole squares, pixels of lines alone.
// CHECK-LABEL: func.func @odd
// CHECK: [[X:%.+]] = mlc.pad constant %arg0 low [0, 0, 0, 3] high [0, 1, 0, 3] : tensor<1x3x13x14xf32> -> tensor<1x4x13x20xf32>
// CHECK: [[T:%.+]] = mlc.transpose [[X]] {permutation = array<i64: 0, 2, 3, 1>}
// CHECK: [[C:%.+]] = mlc.cast [[T]] : tensor<1x13x20x4xf32> -> tensor<1x13x20x4xbf16>
// CHECK: [[P:%.+]] = mlc.reshape [[C]] [1, 13, 10, 8]
// CHECK: [[W:%.+]] = mlc.pad constant %arg1 low [0, 0, 0, 0] high [0, 1, 1, 0]
// CHECK: [[F:%.+]] = mlc.reshape [[W]] [7, 4, 8, 16]
// CHECK: mlc.conv [[P]], [[F]] {{.*}}padding = array<i64: 3, 0, 3, 0>, strides = array<i64: 2, 1>
func.func @odd(%x: tensor<1x3x13x14xf32>, %w: tensor<7x7x3x16xbf16>) -> tensor<1x7x7x16xf32> {
  %n = mlc.cast %x : tensor<1x3x13x14xf32> -> tensor<1x3x13x14xbf16>
  %t = mlc.transpose %n {mlc.relayout, permutation = array<i64: 0, 2, 3, 1>} : tensor<1x3x13x14xbf16> -> tensor<1x13x14x3xbf16>
  %r = mlc.conv %t, %w {strides = array<i64: 2, 2>, padding = array<i64: 3, 3, 3, 3>, dilations = array<i64: 1, 1>, layout = "nhwc", widen} : tensor<1x13x14x3xbf16>, tensor<7x7x3x16xbf16> -> tensor<1x7x7x16xf32>
  return %r : tensor<1x7x7x16xf32>
}

// Lines of three pixels with eight channels each, two apart, the padding at their ends included.
// CHECK-LABEL: func.func @dilated
// CHECK: [[X:%.+]] = mlc.pad constant %arg0 low [0, 0, 2, 0] high [0, 0, 2, 5]
// CHECK: [[W:%.+]] = mlc.pad constant %arg1 low [0, 0, 0, 0] high [0, 0, 5, 0]
// CHECK: [[G:%.+]] = mlc.gather [[X]], %{{.+}} {axis = 2 : i64, mlc.in_range}
// CHECK: [[L:%.+]] = mlc.reshape [[G]] [1, 9, 9, 24]
// CHECK: [[F:%.+]] = mlc.reshape [[W]] [3, 1, 24, 16]
// CHECK: mlc.conv [[L]], [[F]] {dilations = array<i64: 2, 1>, {{.*}}padding = array<i64: 2, 0, 2, 0>, strides = array<i64: 1, 1>
func.func @dilated(%x: tensor<1x9x9x3xbf16>, %w: tensor<3x3x3x16xbf16>) -> tensor<1x9x9x16xf32> {
  %r = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 2, 2, 2, 2>, dilations = array<i64: 2, 2>, layout = "nhwc", widen} : tensor<1x9x9x3xbf16>, tensor<3x3x3x16xbf16> -> tensor<1x9x9x16xf32>
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

// Patches are cut out of the image as it was, channel by channel, and rounded on the way.
// CHECK-LABEL: func.func @patches
// CHECK: [[W:%.+]] = mlc.transpose %arg1 {permutation = array<i64: 2, 0, 1, 3>} : tensor<4x4x3x16xbf16> -> tensor<3x4x4x16xbf16>
// CHECK: [[X:%.+]] = mlc.reshape %arg0 [1, 3, 2, 4, 3, 4] : tensor<1x3x8x12xf32>
// CHECK: [[T:%.+]] = mlc.transpose [[X]] {permutation = array<i64: 0, 2, 4, 1, 3, 5>}
// CHECK: [[C:%.+]] = mlc.cast [[T]] : tensor<1x2x3x3x4x4xf32> -> tensor<1x2x3x3x4x4xbf16>
// CHECK: [[P:%.+]] = mlc.reshape [[C]] [1, 2, 3, 48]
// CHECK: [[F:%.+]] = mlc.reshape [[W]] [1, 1, 48, 16]
// CHECK: mlc.conv [[P]], [[F]] {{.*}}strides = array<i64: 1, 1>
func.func @patches(%x: tensor<1x3x8x12xf32>, %w: tensor<4x4x3x16xbf16>) -> tensor<1x2x3x16xf32> {
  %n = mlc.cast %x : tensor<1x3x8x12xf32> -> tensor<1x3x8x12xbf16>
  %t = mlc.transpose %n {mlc.relayout, permutation = array<i64: 0, 2, 3, 1>} : tensor<1x3x8x12xbf16> -> tensor<1x8x12x3xbf16>
  %r = mlc.conv %t, %w {strides = array<i64: 4, 4>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, layout = "nhwc", widen} : tensor<1x8x12x3xbf16>, tensor<4x4x3x16xbf16> -> tensor<1x2x3x16xf32>
  return %r : tensor<1x2x3x16xf32>
}

// Where channels are last in the first place, pixel by pixel.
// CHECK-LABEL: func.func @patches_of_pixels
// CHECK: [[X:%.+]] = mlc.reshape %arg0 [1, 2, 4, 3, 4, 3]
// CHECK: mlc.transpose [[X]] {permutation = array<i64: 0, 1, 3, 2, 4, 5>}
// CHECK: mlc.reshape %arg1 [1, 1, 48, 16]
func.func @patches_of_pixels(%x: tensor<1x8x12x3xf32>, %w: tensor<4x4x3x16xf32>) -> tensor<1x2x3x16xf32> {
  %r = mlc.conv %x, %w {strides = array<i64: 4, 4>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, layout = "nhwc"} : tensor<1x8x12x3xf32>, tensor<4x4x3x16xf32> -> tensor<1x2x3x16xf32>
  return %r : tensor<1x2x3x16xf32>
}

// Borders around an image that is cut into patches are stored, and pixels that no patch has left out.
// CHECK-LABEL: func.func @patches_with_borders
// CHECK: [[S:%.+]] = mlc.slice %arg0 [0, 0, 0, 0] [2, 14, 15, 3]
// CHECK: [[P:%.+]] = mlc.pad constant [[S]] low [0, 1, 1, 0] high [0, 1, 0, 0] : tensor<2x14x15x3xbf16> -> tensor<2x16x16x3xbf16>
// CHECK: mlc.reshape [[P]] [2, 4, 4, 4, 4, 3]
// CHECK: mlc.conv {{.*}}padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>{{.*}} : tensor<2x4x4x48xbf16>, tensor<1x1x48x16xbf16>
func.func @patches_with_borders(%x: tensor<2x14x16x3xbf16>, %w: tensor<4x4x3x16xbf16>) -> tensor<2x4x4x16xbf16> {
  %0 = mlc.conv %x, %w {strides = array<i64: 4, 4>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc"} : tensor<2x14x16x3xbf16>, tensor<4x4x3x16xbf16> -> tensor<2x4x4x16xbf16>
  return %0 : tensor<2x4x4x16xbf16>
}

// Lines of windows that are further apart than the copy engine counts are copied with their windows.
// CHECK-LABEL: func.func @far_apart
// CHECK: mlc.gather {{.*}} -> tensor<1x48x106x1xbf16>
// CHECK: mlc.gather {{.*}} -> tensor<1x48x160x1xbf16>
// CHECK: mlc.conv {{.*}} : tensor<1x3x10x256xbf16>, tensor<1x1x256x16xbf16>
func.func @far_apart(%x: tensor<1x37x113x1xbf16>, %w: tensor<16x16x1x16xbf16>) -> tensor<1x3x10x16xbf16> {
  %0 = mlc.conv %x, %w {strides = array<i64: 10, 10>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, layout = "nhwc"} : tensor<1x37x113x1xbf16>, tensor<16x16x1x16xbf16> -> tensor<1x3x10x16xbf16>
  return %0 : tensor<1x3x10x16xbf16>
}
