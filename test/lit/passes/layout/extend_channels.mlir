// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-pad-channels,mlc-extend-channels)' | FileCheck %s

// 18 filters become 24, for the convolution that reads them too; what is added behind reads a slice.
// CHECK-LABEL: func.func @chain
// CHECK: [[W:%.+]] = mlc.pad constant %arg1 low [0, 0, 0, 0] high [0, 0, 0, 6] : tensor<3x3x16x18xbf16> -> tensor<3x3x16x24xbf16>
// CHECK: [[B:%.+]] = mlc.pad constant %arg2 low [0] high [6]
// CHECK: [[C:%.+]] = mlc.conv %arg0, [[W]] bias([[B]] : tensor<24xf32>) {{.*}} -> tensor<1x9x9x24xf32>
// CHECK: [[R:%.+]] = mlc.binary max [[C]], %{{.+}} : tensor<1x9x9x24xf32>, tensor<f32> -> tensor<1x9x9x24xf32>
// CHECK: mlc.slice [[R]] [0, 0, 0, 0] [1, 9, 9, 18]
// CHECK: [[N:%.+]] = mlc.cast [[R]] : tensor<1x9x9x24xf32> -> tensor<1x9x9x24xbf16>
// CHECK-NOT: mlc.pad constant [[N]]
// CHECK: mlc.conv [[N]], %{{.+}} : tensor<1x9x9x24xbf16>, tensor<3x3x24x16xbf16>
func.func @chain(%x: tensor<1x9x9x16xbf16>, %w: tensor<3x3x16x18xbf16>, %b: tensor<18xf32>, %v: tensor<3x3x18x16xbf16>,
                 %y: tensor<1x9x9x18xf32>) -> (tensor<1x9x9x16xf32>, tensor<1x9x9x18xf32>) {
  %zero = mlc.constant dense<0.0> : tensor<f32>
  %c = mlc.conv %x, %w bias(%b : tensor<18xf32>) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc", widen} : tensor<1x9x9x16xbf16>, tensor<3x3x16x18xbf16> -> tensor<1x9x9x18xf32>
  %r = mlc.binary max %c, %zero : tensor<1x9x9x18xf32>, tensor<f32> -> tensor<1x9x9x18xf32>
  %n = mlc.cast %r : tensor<1x9x9x18xf32> -> tensor<1x9x9x18xbf16>
  %d = mlc.conv %n, %v {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc", widen} : tensor<1x9x9x18xbf16>, tensor<3x3x18x16xbf16> -> tensor<1x9x9x16xf32>
  %s = mlc.binary add %r, %y : tensor<1x9x9x18xf32>
  return %d, %s : tensor<1x9x9x16xf32>, tensor<1x9x9x18xf32>
}

// A slice of a slice is one of what it was taken from.
// CHECK-LABEL: func.func @parts
// CHECK: [[C:%.+]] = mlc.conv {{.*}} -> tensor<1x9x9x24xf32>
// CHECK: mlc.slice [[C]] [0, 0, 0, 8] [1, 9, 9, 8] [1, 1, 1, 1] : tensor<1x9x9x24xf32> -> tensor<1x9x9x8xf32>
func.func @parts(%x: tensor<1x9x9x16xbf16>, %w: tensor<3x3x16x18xbf16>) -> tensor<1x9x9x8xf32> {
  %c = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc", widen} : tensor<1x9x9x16xbf16>, tensor<3x3x16x18xbf16> -> tensor<1x9x9x18xf32>
  %s = mlc.slice %c [0, 0, 0, 8] [1, 9, 9, 8] [1, 1, 1, 1] : tensor<1x9x9x18xf32> -> tensor<1x9x9x8xf32>
  return %s : tensor<1x9x9x8xf32>
}

// The exponential of zero is one: channels of ones are not what a padding with zeros gives.
// CHECK-LABEL: func.func @ones
// CHECK: [[E:%.+]] = mlc.unary exp %{{.+}} : tensor<1x9x9x24xbf16>
// CHECK: [[S:%.+]] = mlc.slice [[E]]
// CHECK: mlc.pad constant [[S]]
func.func @ones(%x: tensor<1x9x9x16xbf16>, %w: tensor<3x3x16x18xbf16>, %v: tensor<3x3x18x16xbf16>) -> tensor<1x9x9x16xf32> {
  %c = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc"} : tensor<1x9x9x16xbf16>, tensor<3x3x16x18xbf16> -> tensor<1x9x9x18xbf16>
  %e = mlc.unary exp %c : tensor<1x9x9x18xbf16>
  %d = mlc.conv %e, %v {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc", widen} : tensor<1x9x9x18xbf16>, tensor<3x3x18x16xbf16> -> tensor<1x9x9x16xf32>
  return %d : tensor<1x9x9x16xf32>
}

// Few filters of many products become eight; those of few products, a single one, and f32, which is not for tensor cores
// here, stay.
// CHECK-LABEL: func.func @few
// CHECK: [[Y:%.+]] = mlc.conv {{.*}} -> tensor<1x9x9x8xf32>
// CHECK: mlc.slice [[Y]] [0, 0, 0, 0] [1, 9, 9, 3]
// CHECK: mlc.conv {{.*}} -> tensor<1x9x9x3xf32>
// CHECK: mlc.conv {{.*}} -> tensor<1x9x9x1xf32>
// CHECK: mlc.conv {{.*}} -> tensor<1x9x9x18xf32>
func.func @few(%x: tensor<1x9x9x16xbf16>, %w: tensor<3x3x16x3xbf16>, %f: tensor<1x1x16x3xbf16>, %o: tensor<3x3x16x1xbf16>, %y: tensor<1x9x9x16xf32>, %v: tensor<3x3x16x18xf32>)
    -> (tensor<1x9x9x3xf32>, tensor<1x9x9x3xf32>, tensor<1x9x9x1xf32>, tensor<1x9x9x18xf32>) {
  %c = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc", widen} : tensor<1x9x9x16xbf16>, tensor<3x3x16x3xbf16> -> tensor<1x9x9x3xf32>
  %d = mlc.conv %x, %f {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, layout = "nhwc", widen} : tensor<1x9x9x16xbf16>, tensor<1x1x16x3xbf16> -> tensor<1x9x9x3xf32>
  %g = mlc.conv %x, %o {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc", widen} : tensor<1x9x9x16xbf16>, tensor<3x3x16x1xbf16> -> tensor<1x9x9x1xf32>
  %e = mlc.conv %y, %v {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc"} : tensor<1x9x9x16xf32>, tensor<3x3x16x18xf32> -> tensor<1x9x9x18xf32>
  return %c, %d, %g, %e : tensor<1x9x9x3xf32>, tensor<1x9x9x3xf32>, tensor<1x9x9x1xf32>, tensor<1x9x9x18xf32>
}
