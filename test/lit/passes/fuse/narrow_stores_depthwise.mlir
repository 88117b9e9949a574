// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views,mlc-plan-fusion,mlc-narrow-stores{depthwise=393216},mlc-outline-kernels)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views,mlc-plan-fusion,mlc-narrow-stores{fewest=16384},mlc-outline-kernels)' | FileCheck %s --check-prefix=NONE

// A depthwise convolution reads a large tensor rounded, where that is asked for.
// CHECK-LABEL: func.func @window
// CHECK: mlc.launch {{.*}} -> tensor<12544x96xbf16>
// NONE-LABEL: func.func @window
// NONE: mlc.launch {{.*}} -> tensor<12544x96xf32>
func.func @window(%x: tensor<12544x16xbf16>, %w: tensor<16x96xbf16>, %f: tensor<3x3x1x96xf32>) -> tensor<1x112x112x96xf32> {
  %a = mlc.matmul %x, %w {widen} : tensor<12544x16xbf16>, tensor<16x96xbf16> -> tensor<12544x96xf32>
  %zero = mlc.constant dense<0.0> : tensor<f32>
  %r = mlc.binary max %a, %zero : tensor<12544x96xf32>, tensor<f32> -> tensor<12544x96xf32>
  %v = mlc.reshape %r [1, 112, 112, 96] : tensor<12544x96xf32> -> tensor<1x112x112x96xf32>
  %y = mlc.conv %v, %f {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 96 : i64, layout = "nhwc"} : tensor<1x112x112x96xf32>, tensor<3x3x1x96xf32> -> tensor<1x112x112x96xf32>
  return %y : tensor<1x112x112x96xf32>
}

// A tensor that is near is not rounded,
// CHECK-LABEL: func.func @small
// CHECK: mlc.launch {{.*}} -> tensor<784x96xf32>
// NONE-LABEL: func.func @small
// NONE: mlc.launch {{.*}} -> tensor<784x96xf32>
func.func @small(%x: tensor<784x16xbf16>, %w: tensor<16x96xbf16>, %f: tensor<3x3x1x96xf32>) -> tensor<1x28x28x96xf32> {
  %a = mlc.matmul %x, %w {widen} : tensor<784x16xbf16>, tensor<16x96xbf16> -> tensor<784x96xf32>
  %zero = mlc.constant dense<0.0> : tensor<f32>
  %r = mlc.binary max %a, %zero : tensor<784x96xf32>, tensor<f32> -> tensor<784x96xf32>
  %v = mlc.reshape %r [1, 28, 28, 96] : tensor<784x96xf32> -> tensor<1x28x28x96xf32>
  %y = mlc.conv %v, %f {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 96 : i64, layout = "nhwc"} : tensor<1x28x28x96xf32>, tensor<3x3x1x96xf32> -> tensor<1x28x28x96xf32>
  return %y : tensor<1x28x28x96xf32>
}

// nor one behind quotients, unless it is larger,
// CHECK-LABEL: func.func @quotient
// CHECK: mlc.launch {{.*}} -> tensor<12544x96xf32>
// NONE-LABEL: func.func @quotient
// NONE: mlc.launch {{.*}} -> tensor<12544x96xf32>
func.func @quotient(%x: tensor<12544x16xbf16>, %w: tensor<16x96xbf16>, %f: tensor<3x3x1x96xf32>) -> tensor<1x112x112x96xf32> {
  %a = mlc.matmul %x, %w {widen} : tensor<12544x16xbf16>, tensor<16x96xbf16> -> tensor<12544x96xf32>
  %r = mlc.unary sigmoid %a : tensor<12544x96xf32>
  %v = mlc.reshape %r [1, 112, 112, 96] : tensor<12544x96xf32> -> tensor<1x112x112x96xf32>
  %y = mlc.conv %v, %f {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 96 : i64, layout = "nhwc"} : tensor<1x112x112x96xf32>, tensor<3x3x1x96xf32> -> tensor<1x112x112x96xf32>
  return %y : tensor<1x112x112x96xf32>
}

// CHECK-LABEL: func.func @large_quotient
// CHECK: mlc.launch {{.*}} -> tensor<50176x96xbf16>
// NONE-LABEL: func.func @large_quotient
// NONE: mlc.launch {{.*}} -> tensor<50176x96xf32>
func.func @large_quotient(%x: tensor<50176x16xbf16>, %w: tensor<16x96xbf16>, %f: tensor<3x3x1x96xf32>) -> tensor<4x112x112x96xf32> {
  %a = mlc.matmul %x, %w {widen} : tensor<50176x16xbf16>, tensor<16x96xbf16> -> tensor<50176x96xf32>
  %r = mlc.unary sigmoid %a : tensor<50176x96xf32>
  %v = mlc.reshape %r [4, 112, 112, 96] : tensor<50176x96xf32> -> tensor<4x112x112x96xf32>
  %y = mlc.conv %v, %f {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 96 : i64, layout = "nhwc"} : tensor<4x112x112x96xf32>, tensor<3x3x1x96xf32> -> tensor<4x112x112x96xf32>
  return %y : tensor<4x112x112x96xf32>
}

// nor what is widened for 25 taps, or where vectors are not whole.
// CHECK-LABEL: func.func @many_taps
// CHECK: mlc.launch {{.*}} -> tensor<12544x96xf32>
// NONE-LABEL: func.func @many_taps
// NONE: mlc.launch {{.*}} -> tensor<12544x96xf32>
func.func @many_taps(%x: tensor<12544x16xbf16>, %w: tensor<16x96xbf16>, %f: tensor<5x5x1x96xf32>) -> tensor<1x112x112x96xf32> {
  %a = mlc.matmul %x, %w {widen} : tensor<12544x16xbf16>, tensor<16x96xbf16> -> tensor<12544x96xf32>
  %zero = mlc.constant dense<0.0> : tensor<f32>
  %r = mlc.binary max %a, %zero : tensor<12544x96xf32>, tensor<f32> -> tensor<12544x96xf32>
  %v = mlc.reshape %r [1, 112, 112, 96] : tensor<12544x96xf32> -> tensor<1x112x112x96xf32>
  %y = mlc.conv %v, %f {strides = array<i64: 1, 1>, padding = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>, groups = 96 : i64, layout = "nhwc"} : tensor<1x112x112x96xf32>, tensor<5x5x1x96xf32> -> tensor<1x112x112x96xf32>
  return %y : tensor<1x112x112x96xf32>
}

// CHECK-LABEL: func.func @part_of_a_vector
// CHECK: mlc.launch {{.*}} -> tensor<12544x40xf32>
// NONE-LABEL: func.func @part_of_a_vector
// NONE: mlc.launch {{.*}} -> tensor<12544x40xf32>
func.func @part_of_a_vector(%x: tensor<12544x16xbf16>, %w: tensor<16x40xbf16>, %f: tensor<3x3x1x40xf32>) -> tensor<1x112x112x40xf32> {
  %a = mlc.matmul %x, %w {widen} : tensor<12544x16xbf16>, tensor<16x40xbf16> -> tensor<12544x40xf32>
  %zero = mlc.constant dense<0.0> : tensor<f32>
  %r = mlc.binary max %a, %zero : tensor<12544x40xf32>, tensor<f32> -> tensor<12544x40xf32>
  %v = mlc.reshape %r [1, 112, 112, 40] : tensor<12544x40xf32> -> tensor<1x112x112x40xf32>
  %y = mlc.conv %v, %f {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 40 : i64, layout = "nhwc"} : tensor<1x112x112x40xf32>, tensor<3x3x1x40xf32> -> tensor<1x112x112x40xf32>
  return %y : tensor<1x112x112x40xf32>
}
