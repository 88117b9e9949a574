// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-cancel-quantization,canonicalize,cse)' | FileCheck %s

// Movements of the integers are left.
// CHECK-LABEL: func.func @moved
// CHECK-NEXT: %[[R:.*]] = mlc.reshape %arg0 [4, 2, 3] : tensor<8x3xi8> -> tensor<4x2x3xi8>
// CHECK-NEXT: %[[T:.*]] = mlc.transpose %[[R]] {permutation = array<i64: 2, 0, 1>} : tensor<4x2x3xi8> -> tensor<3x4x2xi8>
// CHECK-NEXT: return %[[T]]
func.func @moved(%q: tensor<8x3xi8>) -> tensor<3x4x2xi8> {
  %s = mlc.constant dense<0.3> : tensor<f32>
  %z = mlc.constant dense<7> : tensor<i8>
  %0 = mlc.dequantize %q, %s zero_point(%z : tensor<i8>) : tensor<8x3xi8>, tensor<f32> -> tensor<8x3xf32>
  %1 = mlc.reshape %0 [4, 2, 3] : tensor<8x3xf32> -> tensor<4x2x3xf32>
  %2 = mlc.quantize %1, %s zero_point(%z : tensor<i8>) : tensor<4x2x3xf32>, tensor<f32> -> tensor<4x2x3xi8>
  %3 = mlc.dequantize %2, %s zero_point(%z : tensor<i8>) : tensor<4x2x3xi8>, tensor<f32> -> tensor<4x2x3xf32>
  %4 = mlc.transpose %3 {permutation = array<i64: 2, 0, 1>} : tensor<4x2x3xf32> -> tensor<3x4x2xf32>
  %5 = mlc.quantize %4, %s zero_point(%z : tensor<i8>) : tensor<3x4x2xf32>, tensor<f32> -> tensor<3x4x2xi8>
  return %5 : tensor<3x4x2xi8>
}

// Another scale, zero point or sign means other integers: the quantization comes first all the same.
// CHECK-LABEL: func.func @others
// CHECK: mlc.dequantize %arg0
// CHECK: %[[A:.*]] = mlc.quantize {{.*}} : tensor<8x3xf32>
// CHECK: mlc.transpose %[[A]] {permutation = array<i64: 1, 0>} : tensor<8x3xi8> -> tensor<3x8xi8>
// CHECK: mlc.quantize {{.*}} : tensor<8x3xf32>
// CHECK: mlc.quantize {{.*}} {unsigned} : tensor<8x3xf32>
func.func @others(%q: tensor<8x3xi8>) -> (tensor<3x8xi8>, tensor<8x3xi8>, tensor<8x3xi8>) {
  %s = mlc.constant dense<0.3> : tensor<f32>
  %t = mlc.constant dense<0.4> : tensor<f32>
  %z = mlc.constant dense<7> : tensor<i8>
  %0 = mlc.dequantize %q, %s zero_point(%z : tensor<i8>) : tensor<8x3xi8>, tensor<f32> -> tensor<8x3xf32>
  %1 = mlc.transpose %0 {permutation = array<i64: 1, 0>} : tensor<8x3xf32> -> tensor<3x8xf32>
  %2 = mlc.quantize %1, %t zero_point(%z : tensor<i8>) : tensor<3x8xf32>, tensor<f32> -> tensor<3x8xi8>
  %3 = mlc.quantize %0, %s : tensor<8x3xf32>, tensor<f32> -> tensor<8x3xi8>
  %4 = mlc.quantize %0, %s zero_point(%z : tensor<i8>) {unsigned} : tensor<8x3xf32>, tensor<f32> -> tensor<8x3xi8>
  return %2, %3, %4 : tensor<3x8xi8>, tensor<8x3xi8>, tensor<8x3xi8>
}

// Sizes that only a run knows, and a function of the numbers: both reshapes go away.
// CHECK-LABEL: func.func @function
// CHECK-NOT: mlc.reshape
// CHECK: %[[D:.*]] = mlc.dequantize %arg0, {{.*}} : tensor<?x12xi8>, tensor<f32> -> tensor<?x12xf32>
// CHECK: %[[M:.*]] = mlc.binary mul %[[D]], %{{.*}} : tensor<?x12xf32>, tensor<f32> -> tensor<?x12xf32>
// CHECK: %[[E:.*]] = mlc.unary erf %[[M]] : tensor<?x12xf32>
// CHECK: %[[P:.*]] = mlc.binary mul %[[D]], %[[E]] : tensor<?x12xf32>
// CHECK: %[[Q:.*]] = mlc.quantize %[[P]], {{.*}} : tensor<?x12xf32>, tensor<f32> -> tensor<?x12xi8>
// CHECK-NEXT: return %[[Q]]
func.func @function(%q: tensor<?x12xi8>) -> tensor<?x12xi8> {
  %s = mlc.constant dense<0.3> : tensor<f32>
  %t = mlc.constant dense<0.4> : tensor<f32>
  %h = mlc.constant dense<0.7> : tensor<f32>
  %i = arith.constant 0 : index
  %n = tensor.dim %q, %i : tensor<?x12xi8>
  %0 = mlc.reshape %q [1, %n, 12] : tensor<?x12xi8> -> tensor<1x?x12xi8>
  %1 = mlc.dequantize %0, %s : tensor<1x?x12xi8>, tensor<f32> -> tensor<1x?x12xf32>
  %2 = mlc.binary mul %1, %h : tensor<1x?x12xf32>, tensor<f32> -> tensor<1x?x12xf32>
  %3 = mlc.unary erf %2 : tensor<1x?x12xf32>
  %4 = mlc.binary mul %1, %3 : tensor<1x?x12xf32>
  %5 = mlc.reshape %4 [%n, 12] : tensor<1x?x12xf32> -> tensor<?x12xf32>
  %6 = mlc.quantize %5, %t : tensor<?x12xf32>, tensor<f32> -> tensor<?x12xi8>
  return %6 : tensor<?x12xi8>
}

// Somebody else reads the function; something else is read; a scale for each column; one beyond the range of f32.
// CHECK-LABEL: func.func @kept
// CHECK: mlc.reshape %arg0 [2, 24] : tensor<4x12xi8> -> tensor<2x24xi8>
// CHECK: mlc.unary erf %{{.*}} : tensor<2x24xf32>
// CHECK: mlc.quantize %{{.*}} : tensor<2x24xf32>, tensor<f32> -> tensor<2x24xi8>
// CHECK: mlc.binary add %{{.*}}, %arg1 : tensor<2x24xf32>
// CHECK: mlc.quantize %{{.*}} : tensor<2x24xf32>, tensor<f32> -> tensor<2x24xi8>
// CHECK: mlc.quantize %{{.*}} {axis = 1 : i64} : tensor<4x12xf32>, tensor<12xf32> -> tensor<4x12xi8>
// CHECK: mlc.quantize %{{.*}} : tensor<4x12xf32>, tensor<f32> -> tensor<4x12xi8>
func.func @kept(%q: tensor<4x12xi8>, %x: tensor<2x24xf32>)
    -> (tensor<2x24xi8>, tensor<2x24xf32>, tensor<6x8xi8>, tensor<4x12xi8>, tensor<4x12xi8>) {
  %s = mlc.constant dense<0.3> : tensor<f32>
  %c = mlc.constant dense<0.3> : tensor<12xf32>
  %l = mlc.constant dense<3.0e38> : tensor<f32>
  %0 = mlc.reshape %q [2, 24] : tensor<4x12xi8> -> tensor<2x24xi8>
  %1 = mlc.dequantize %0, %s : tensor<2x24xi8>, tensor<f32> -> tensor<2x24xf32>
  %2 = mlc.unary erf %1 : tensor<2x24xf32>
  %3 = mlc.quantize %2, %s : tensor<2x24xf32>, tensor<f32> -> tensor<2x24xi8>
  %4 = mlc.dequantize %q, %s : tensor<4x12xi8>, tensor<f32> -> tensor<4x12xf32>
  %5 = mlc.reshape %q [2, 24] : tensor<4x12xi8> -> tensor<2x24xi8>
  %6 = mlc.dequantize %5, %s {unsigned} : tensor<2x24xi8>, tensor<f32> -> tensor<2x24xf32>
  %7 = mlc.binary add %6, %x : tensor<2x24xf32>
  %8 = mlc.reshape %7 [6, 8] : tensor<2x24xf32> -> tensor<6x8xf32>
  %9 = mlc.quantize %8, %s : tensor<6x8xf32>, tensor<f32> -> tensor<6x8xi8>
  %10 = mlc.dequantize %q, %c {axis = 1 : i64} : tensor<4x12xi8>, tensor<12xf32> -> tensor<4x12xf32>
  %11 = mlc.quantize %10, %c {axis = 1 : i64} : tensor<4x12xf32>, tensor<12xf32> -> tensor<4x12xi8>
  %12 = mlc.dequantize %q, %l : tensor<4x12xi8>, tensor<f32> -> tensor<4x12xf32>
  %13 = mlc.quantize %12, %l : tensor<4x12xf32>, tensor<f32> -> tensor<4x12xi8>
  return %3, %2, %9, %11, %13 : tensor<2x24xi8>, tensor<2x24xf32>, tensor<6x8xi8>, tensor<4x12xi8>, tensor<4x12xi8>
}

// The largest of the numbers is that of the largest of the integers, with their sign; means are of numbers.
// CHECK-LABEL: func.func @pools
// CHECK-NEXT: %[[S:.*]] = mlc.constant
// CHECK-NEXT: mlc.pool max %arg0 {{{.*}}unsigned} : tensor<1x3x8x8xi8> -> tensor<1x3x4x4xi8>
// CHECK-NEXT: %[[D:.*]] = mlc.dequantize %arg0, %[[S]]
// CHECK-NEXT: mlc.pool avg %[[D]]
func.func @pools(%q: tensor<1x3x8x8xi8>) -> (tensor<1x3x4x4xi8>, tensor<1x3x4x4xi8>) {
  %s = mlc.constant dense<0.3> : tensor<f32>
  %0 = mlc.dequantize %q, %s {unsigned} : tensor<1x3x8x8xi8>, tensor<f32> -> tensor<1x3x8x8xf32>
  %1 = mlc.pool max %0 {dilations = array<i64: 1, 1>, kernel = array<i64: 3, 3>, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : tensor<1x3x8x8xf32> -> tensor<1x3x4x4xf32>
  %2 = mlc.quantize %1, %s {unsigned} : tensor<1x3x4x4xf32>, tensor<f32> -> tensor<1x3x4x4xi8>
  %3 = mlc.dequantize %q, %s : tensor<1x3x8x8xi8>, tensor<f32> -> tensor<1x3x8x8xf32>
  %4 = mlc.pool avg %3 {dilations = array<i64: 1, 1>, kernel = array<i64: 3, 3>, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : tensor<1x3x8x8xf32> -> tensor<1x3x4x4xf32>
  %5 = mlc.quantize %4, %s : tensor<1x3x4x4xf32>, tensor<f32> -> tensor<1x3x4x4xi8>
  return %2, %5 : tensor<1x3x4x4xi8>, tensor<1x3x4x4xi8>
}

// What is computed once in front of a loop stays there.
// CHECK-LABEL: func.func @loop
// CHECK: %[[R:.*]] = mlc.reshape %arg0 [2, 24]
// CHECK: mlc.unary erf %{{.*}} : tensor<2x24xf32>
// CHECK: scf.for
// CHECK: mlc.quantize %{{.*}} : tensor<2x24xf32>, tensor<f32> -> tensor<2x24xi8>
func.func @loop(%q: tensor<4x12xi8>, %o: tensor<2x24xi8>, %n: index) -> tensor<2x24xi8> {
  %s = mlc.constant dense<0.3> : tensor<f32>
  %i = arith.constant 0 : index
  %j = arith.constant 1 : index
  %0 = mlc.reshape %q [2, 24] : tensor<4x12xi8> -> tensor<2x24xi8>
  %1 = mlc.dequantize %0, %s : tensor<2x24xi8>, tensor<f32> -> tensor<2x24xf32>
  %2 = mlc.unary erf %1 : tensor<2x24xf32>
  %r = scf.for %k = %i to %n step %j iter_args(%a = %o) -> tensor<2x24xi8> {
    %3 = mlc.quantize %2, %s : tensor<2x24xf32>, tensor<f32> -> tensor<2x24xi8>
    %4 = mlc.binary add %3, %a : tensor<2x24xi8>
    scf.yield %4 : tensor<2x24xi8>
  }
  return %r : tensor<2x24xi8>
}
