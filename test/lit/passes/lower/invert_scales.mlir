// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose,mlc-fold-constants,mlc-lower-to-linalg,canonicalize,cse,mlc-invert-scales,cse)' --split-input-file | FileCheck %s

// One over the float next to 0.02 is a little more than 50: both parts have one sign, so that infinities stay.
// CHECK-LABEL: func.func @bytes
// CHECK-DAG: %[[HIGH:.*]] = arith.constant 5.000000e+01 : f32
// CHECK-DAG: %[[LOW:.*]] = arith.constant 1.11758709E-6 : f32
// CHECK: ^bb0(%[[X:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[SMALL:.*]] = arith.mulf %[[X]], %[[LOW]] : f32
// CHECK-NEXT: %[[Q:.*]] = math.fma %[[X]], %[[HIGH]], %[[SMALL]] : f32
// CHECK-NEXT: linalg.yield %[[Q]]
// CHECK: math.roundeven
// CHECK-NOT: arith.divf
func.func @bytes(%x: tensor<8xf32>) -> tensor<8xi8> {
  %s = mlc.constant dense<0.02> : tensor<f32>
  %z = mlc.constant dense<-5> : tensor<i8>
  %0 = mlc.quantize %x, %s zero_point(%z : tensor<i8>) : tensor<8xf32>, tensor<f32> -> tensor<8xi8>
  return %0 : tensor<8xi8>
}

// -----

// A power of two is inverted as others are, so that kernels stay alike.
// CHECK-LABEL: func.func @power
// CHECK-DAG: arith.constant 7.99999952 : f32
// CHECK: math.fma
func.func @power(%x: tensor<8xf32>) -> tensor<8xi8> {
  %s = mlc.constant dense<0.125> : tensor<f32>
  %0 = mlc.quantize %x, %s {unsigned} : tensor<8xf32>, tensor<f32> -> tensor<8xi8>
  return %0 : tensor<8xi8>
}

// -----

// Codes of 16 bits, scales that only a run knows or of which there are several, and those at the ends of the floats.
// CHECK-LABEL: func.func @kept
// CHECK-COUNT-4: arith.divf
// CHECK-NOT: math.fma
func.func @kept(%x: tensor<8xf32>, %t: tensor<f32>) -> (tensor<8xi16>, tensor<8xi8>, tensor<8xi8>, tensor<8xi8>) {
  %s = mlc.constant dense<0.02> : tensor<f32>
  %u = mlc.constant dense<[0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09]> : tensor<8xf32>
  %v = mlc.constant dense<1.0e-30> : tensor<f32>
  %0 = mlc.quantize %x, %s : tensor<8xf32>, tensor<f32> -> tensor<8xi16>
  %1 = mlc.quantize %x, %t : tensor<8xf32>, tensor<f32> -> tensor<8xi8>
  %2 = mlc.quantize %x, %u {axis = 0 : i64} : tensor<8xf32>, tensor<8xf32> -> tensor<8xi8>
  %3 = mlc.quantize %x, %v : tensor<8xf32>, tensor<f32> -> tensor<8xi8>
  return %0, %1, %2, %3 : tensor<8xi16>, tensor<8xi8>, tensor<8xi8>, tensor<8xi8>
}

// -----

// A quotient that is read as a number, too, stays one.
// CHECK-LABEL: func.func @number
// CHECK: arith.divf
// CHECK-NOT: math.fma
func.func @number(%x: tensor<8xf32>) -> (tensor<8xi8>, tensor<8xf32>) {
  %s = mlc.constant dense<0.02> : tensor<f32>
  %one = mlc.constant dense<1.0> : tensor<f32>
  %0 = mlc.binary div %x, %s : tensor<8xf32>, tensor<f32> -> tensor<8xf32>
  %1 = mlc.quantize %0, %one : tensor<8xf32>, tensor<f32> -> tensor<8xi8>
  return %1, %0 : tensor<8xi8>, tensor<8xf32>
}
