// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-drop-signs,canonicalize,cse)' | FileCheck %s

// All who read the codes see them without a sign: a product that wants that, a residual sum, maxima of windows.
// CHECK-LABEL: func.func @dropped
// CHECK-DAG: %[[Z:.*]] = mlc.constant dense<123> : tensor<i8>
// CHECK-DAG: %[[M:.*]] = mlc.constant dense<-128> : tensor<i8>
// CHECK: %[[Q:.*]] = mlc.quantize %{{.*}}, %{{.*}} zero_point(%[[Z]] : tensor<i8>) {unsigned}
// CHECK: %[[P:.*]] = mlc.pool max %[[Q]] {{{.*}}unsigned
// CHECK: mlc.dequantize %[[P]], %{{.*}} zero_point(%[[Z]] : tensor<i8>) {unsigned}
// CHECK: mlc.dequantize %[[Q]], %{{.*}} zero_point(%[[Z]] : tensor<i8>) {unsigned}
// CHECK: %[[R:.*]] = mlc.quantize %{{.*}}, %{{.*}} zero_point(%[[M]] : tensor<i8>) {unsigned}
// CHECK: %[[V:.*]] = mlc.reshape %[[R]]
// CHECK: mlc.dequantize %[[V]], %{{.*}} zero_point(%[[M]] : tensor<i8>) {unsigned}
func.func @dropped(%x: tensor<1x4x8x8xi8>) -> (tensor<1x4x6x6xf32>, tensor<1x4x8x8xf32>, tensor<4x4xf32>) {
  %s = mlc.constant dense<0.3> : tensor<f32>
  %z = mlc.constant dense<-5> : tensor<i8>
  %f = mlc.weight "f" : tensor<4x4x3x3xi8>
  %d = mlc.dequantize %f, %s : tensor<4x4x3x3xi8>, tensor<f32> -> tensor<4x4x3x3xf32>
  %0 = mlc.dequantize %x, %s {unsigned} : tensor<1x4x8x8xi8>, tensor<f32> -> tensor<1x4x8x8xf32>
  %1 = mlc.activation gelu %0 : tensor<1x4x8x8xf32>
  %2 = mlc.quantize %1, %s zero_point(%z : tensor<i8>) : tensor<1x4x8x8xf32>, tensor<f32> -> tensor<1x4x8x8xi8>
  %3 = mlc.pool max %2 {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>,
    dilations = array<i64: 1, 1>} : tensor<1x4x8x8xi8> -> tensor<1x4x8x8xi8>
  %4 = mlc.dequantize %3, %s zero_point(%z : tensor<i8>) : tensor<1x4x8x8xi8>, tensor<f32> -> tensor<1x4x8x8xf32>
  %5 = mlc.dequantize %2, %s zero_point(%z : tensor<i8>) : tensor<1x4x8x8xi8>, tensor<f32> -> tensor<1x4x8x8xf32>
  %6 = mlc.conv %5, %d {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>,
    mlc.integers} : tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x6x6xf32>
  %7 = mlc.quantize %5, %s : tensor<1x4x8x8xf32>, tensor<f32> -> tensor<1x4x8x8xi8>
  %8 = mlc.reshape %7 [4, 64] : tensor<1x4x8x8xi8> -> tensor<4x64xi8>
  %9 = mlc.dequantize %8, %s : tensor<4x64xi8>, tensor<f32> -> tensor<4x64xf32>
  %w = mlc.weight "w" : tensor<64x4xi8>
  %v = mlc.dequantize %w, %s : tensor<64x4xi8>, tensor<f32> -> tensor<64x4xf32>
  %10 = mlc.matmul %9, %v {mlc.integers} : tensor<4x64xf32>, tensor<64x4xf32> -> tensor<4x4xf32>
  return %6, %4, %10 : tensor<1x4x6x6xf32>, tensor<1x4x8x8xf32>, tensor<4x4xf32>
}

// Signs stay: instructions take them; they are not used; what is quantized may be NaN; the codes are a result; no
// contraction reads them; a scale that is computed may be NaN.
// CHECK-LABEL: func.func @kept
// CHECK-NOT: {unsigned}
func.func @kept(%x: tensor<4x8xi8>, %y: tensor<4x8xf32>, %t: tensor<f32>) -> (tensor<4x8xf32>, tensor<4x8xf32>,
    tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xi8>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %s = mlc.constant dense<0.3> : tensor<f32>
  %z = mlc.constant dense<-5> : tensor<i8>
  %w = mlc.weight "w" : tensor<8x8xi8>
  %v = mlc.dequantize %w, %s : tensor<8x8xi8>, tensor<f32> -> tensor<8x8xf32>
  %0 = mlc.dequantize %x, %s : tensor<4x8xi8>, tensor<f32> -> tensor<4x8xf32>
  %a = mlc.activation gelu %0 : tensor<4x8xf32>
  %1 = mlc.quantize %a, %s zero_point(%z : tensor<i8>) : tensor<4x8xf32>, tensor<f32> -> tensor<4x8xi8>
  %2 = mlc.dequantize %1, %s zero_point(%z : tensor<i8>) : tensor<4x8xi8>, tensor<f32> -> tensor<4x8xf32>
  %own = mlc.matmul %2, %v {mlc.integers, mlc.own_signs} : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %b = mlc.activation relu %0 : tensor<4x8xf32>
  %3 = mlc.quantize %b, %s : tensor<4x8xf32>, tensor<f32> -> tensor<4x8xi8>
  %4 = mlc.dequantize %3, %s : tensor<4x8xi8>, tensor<f32> -> tensor<4x8xf32>
  %never = mlc.matmul %4, %v {mlc.integers, mlc.never_negative} : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %5 = mlc.quantize %y, %s : tensor<4x8xf32>, tensor<f32> -> tensor<4x8xi8>
  %6 = mlc.dequantize %5, %s : tensor<4x8xi8>, tensor<f32> -> tensor<4x8xf32>
  %nan = mlc.matmul %6, %v {mlc.integers} : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %c = mlc.unary tanh %0 : tensor<4x8xf32>
  %7 = mlc.quantize %c, %s : tensor<4x8xf32>, tensor<f32> -> tensor<4x8xi8>
  %8 = mlc.dequantize %7, %s : tensor<4x8xi8>, tensor<f32> -> tensor<4x8xf32>
  %result = mlc.matmul %8, %v {mlc.integers} : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %d = mlc.unary erf %0 : tensor<4x8xf32>
  %9 = mlc.quantize %d, %s : tensor<4x8xf32>, tensor<f32> -> tensor<4x8xi8>
  %none = mlc.dequantize %9, %s : tensor<4x8xi8>, tensor<f32> -> tensor<4x8xf32>
  %10 = mlc.dequantize %x, %t : tensor<4x8xi8>, tensor<f32> -> tensor<4x8xf32>
  %11 = mlc.quantize %10, %s zero_point(%z : tensor<i8>) : tensor<4x8xf32>, tensor<f32> -> tensor<4x8xi8>
  %12 = mlc.dequantize %11, %s zero_point(%z : tensor<i8>) : tensor<4x8xi8>, tensor<f32> -> tensor<4x8xf32>
  %scale = mlc.matmul %12, %v {mlc.integers} : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  return %own, %never, %nan, %result, %7, %none, %scale : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>,
    tensor<4x8xf32>, tensor<4x8xi8>, tensor<4x8xf32>, tensor<4x8xf32>
}
