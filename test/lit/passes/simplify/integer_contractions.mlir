// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-integer-contractions,canonicalize,cse)' | FileCheck %s

// The zero point on the left is paid for by the sums of the columns, which are weights.
// CHECK-LABEL: func.func @product
// CHECK: %[[P:.*]] = mlc.matmul %arg0, %[[W:.*]] {unsigned_lhs} : tensor<4x8xi8>, tensor<8x16xi8> -> tensor<4x16xi32>
// CHECK: %[[C:.*]] = mlc.cast %[[W]] : tensor<8x16xi8> -> tensor<8x16xi32>
// CHECK: %[[S:.*]] = mlc.reduce sum %[[C]] {axes = array<i64: 0>, keepdims = true}
// CHECK: %[[Z:.*]] = mlc.binary mul %[[S]], %{{.*}} : tensor<1x16xi32>
// CHECK: %[[D:.*]] = mlc.binary sub %[[P]], %[[Z]]
// CHECK: %[[F:.*]] = mlc.cast %[[D]] : tensor<4x16xi32> -> tensor<4x16xf32>
// CHECK: mlc.binary mul %[[F]], %{{.*}} : tensor<4x16xf32>, tensor<1x16xf32>
func.func @product(%x: tensor<4x8xi8>, %s: tensor<f32>) -> tensor<4x16xf32> {
  %w = mlc.weight "w" : tensor<8x16xi8>
  %t = mlc.weight "t" : tensor<16xf32>
  %z = mlc.constant dense<200> : tensor<i8>
  %a = mlc.dequantize %x, %s zero_point(%z : tensor<i8>) {unsigned} : tensor<4x8xi8>, tensor<f32> -> tensor<4x8xf32>
  %b = mlc.dequantize %w, %t {axis = 1 : i64} : tensor<8x16xi8>, tensor<16xf32> -> tensor<8x16xf32>
  %0 = mlc.matmul %a, %b {mlc.integers} : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

// Operands of other signs have their highest bits turned over.
// CHECK-LABEL: func.func @signs
// CHECK-DAG: %[[FLIP:.*]] = mlc.constant dense<-128> : tensor<i8>
// CHECK-DAG: %[[X:.*]] = mlc.binary xor %arg0, %[[FLIP]]
// CHECK-DAG: %[[W:.*]] = mlc.binary xor %{{.*}}, %[[FLIP]]
// CHECK: mlc.matmul %[[X]], %[[W]] {unsigned_lhs}
func.func @signs(%x: tensor<4x8xi8>) -> tensor<4x16xi32> {
  %w = mlc.weight "w" : tensor<8x16xi8>
  %p = mlc.cast %x : tensor<4x8xi8> -> tensor<4x8xi32>
  %q = mlc.cast %w {unsigned_in} : tensor<8x16xi8> -> tensor<8x16xi32>
  %0 = mlc.matmul %p, %q {mlc.integers} : tensor<4x8xi32>, tensor<8x16xi32> -> tensor<4x16xi32>
  return %0 : tensor<4x16xi32>
}

// Instructions that take all signs take operands as they are, except a weight whose zero point is the one of the other sign.
// CHECK-LABEL: func.func @own_signs
// CHECK-DAG: %[[FLIP:.*]] = mlc.constant dense<-128> : tensor<i8>
// CHECK-DAG: %[[W:.*]] = mlc.weight "w"
// CHECK: mlc.matmul %arg0, %[[W]] {unsigned_rhs} : tensor<4x8xi8>, tensor<8x16xi8> -> tensor<4x16xi32>
// CHECK: %[[V:.*]] = mlc.binary xor %[[W]], %[[FLIP]]
// CHECK: %[[P:.*]] = mlc.matmul %arg0, %[[V]] : tensor<4x8xi8>, tensor<8x16xi8> -> tensor<4x16xi32>
// CHECK: return %{{.*}}, %[[P]]
func.func @own_signs(%x: tensor<4x8xi8>) -> (tensor<4x16xi32>, tensor<4x16xi32>) {
  %w = mlc.weight "w" : tensor<8x16xi8>
  %p = mlc.cast %x : tensor<4x8xi8> -> tensor<4x8xi32>
  %q = mlc.cast %w {unsigned_in} : tensor<8x16xi8> -> tensor<8x16xi32>
  %z = mlc.constant dense<128> : tensor<i32>
  %r = mlc.binary sub %q, %z : tensor<8x16xi32>, tensor<i32> -> tensor<8x16xi32>
  %0 = mlc.matmul %p, %q {mlc.integers, mlc.own_signs} : tensor<4x8xi32>, tensor<8x16xi32> -> tensor<4x16xi32>
  %1 = mlc.matmul %p, %r {mlc.integers, mlc.own_signs} : tensor<4x8xi32>, tensor<8x16xi32> -> tensor<4x16xi32>
  return %0, %1 : tensor<4x16xi32>, tensor<4x16xi32>
}

// Padding stands for the zero point: without one it stays with the convolution.
// CHECK-LABEL: func.func @padding
// CHECK: %[[PAD:.*]] = mlc.pad constant %arg0
// CHECK: mlc.conv %[[PAD]], %{{.*}} {{{.*}}padding = array<i64: 0, 0, 0, 0>{{.*}}unsigned_input}
// CHECK: mlc.conv %arg0, %{{.*}} {{{.*}}padding = array<i64: 1, 1, 1, 1>{{.*}}unsigned_input}
func.func @padding(%x: tensor<1x3x8x8xi8>, %s: tensor<f32>) -> (tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>) {
  %f = mlc.weight "f" : tensor<4x3x3x3xi8>
  %z = mlc.constant dense<7> : tensor<i8>
  %a = mlc.dequantize %x, %s zero_point(%z : tensor<i8>) {unsigned} : tensor<1x3x8x8xi8>, tensor<f32> -> tensor<1x3x8x8xf32>
  %b = mlc.dequantize %x, %s {unsigned} : tensor<1x3x8x8xi8>, tensor<f32> -> tensor<1x3x8x8xf32>
  %d = mlc.dequantize %f, %s : tensor<4x3x3x3xi8>, tensor<f32> -> tensor<4x3x3x3xf32>
  %0 = mlc.conv %a, %d {mlc.integers, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>}
    : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x8x8xf32>
  %1 = mlc.conv %b, %d {mlc.integers, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>}
    : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x8x8xf32>
  return %0, %1 : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>
}

// A sign that is not used is none: no highest bits are turned over, and padding stays with the convolution.
// CHECK-LABEL: func.func @never_negative
// CHECK-NOT: mlc.pad
// CHECK: mlc.conv %arg0, %{{.*}} {{{.*}}mlc.never_negative, padding = array<i64: 1, 1, 1, 1>{{.*}}unsigned_input}
func.func @never_negative(%x: tensor<1x3x8x8xi8>, %s: tensor<f32>) -> tensor<1x4x8x8xf32> {
  %f = mlc.weight "f" : tensor<4x3x3x3xi8>
  %a = mlc.dequantize %x, %s : tensor<1x3x8x8xi8>, tensor<f32> -> tensor<1x3x8x8xf32>
  %d = mlc.dequantize %f, %s : tensor<4x3x3x3xi8>, tensor<f32> -> tensor<4x3x3x3xf32>
  %0 = mlc.conv %a, %d {mlc.integers, mlc.never_negative, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>}
    : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x8x8xf32>
  return %0 : tensor<1x4x8x8xf32>
}
