// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-fold-requantization,canonicalize,cse)' | FileCheck %s

// The division becomes part of the factor, the bias and the scale of the other summand.
// CHECK-LABEL: func.func @residual
// CHECK-DAG: %[[ONE:.*]] = mlc.constant dense<1.000000e+00> : tensor<f32>
// CHECK-DAG: %[[R:.*]] = mlc.binary div %[[ONE]], %{{.*}} : tensor<f32>
// CHECK-DAG: %[[M:.*]] = mlc.binary mul %{{.*}}, %[[R]] : tensor<16xf32>
// CHECK: %[[S:.*]] = mlc.binary mul %{{.*}}, %[[M]] : tensor<4x16xf32>
// CHECK: %[[O:.*]] = mlc.dequantize %arg1, %{{.*}} {unsigned}
// CHECK: %[[A:.*]] = mlc.binary add %[[S]], %[[O]]
// CHECK: %[[L:.*]] = mlc.activation relu %[[A]]
// CHECK: mlc.quantize %[[L]], %[[ONE]] {unsigned}
func.func @residual(%p: tensor<4x16xi32>, %y: tensor<4x16xi8>) -> tensor<4x16xi8> {
  %m = mlc.weight "m" : tensor<16xf32>
  %s = mlc.constant dense<0.5> : tensor<f32>
  %t = mlc.constant dense<0.3> : tensor<f32>
  %0 = mlc.cast %p : tensor<4x16xi32> -> tensor<4x16xf32>
  %1 = mlc.binary mul %0, %m : tensor<4x16xf32>, tensor<16xf32> -> tensor<4x16xf32>
  %2 = mlc.dequantize %y, %t {unsigned} : tensor<4x16xi8>, tensor<f32> -> tensor<4x16xf32>
  %3 = mlc.binary add %1, %2 : tensor<4x16xf32>
  %4 = mlc.activation relu %3 : tensor<4x16xf32>
  %5 = mlc.quantize %4, %s {unsigned} : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xi8>
  return %5 : tensor<4x16xi8>
}

// What was never an integer is divided.
// CHECK-LABEL: func.func @float
// CHECK: mlc.quantize %arg0, %{{.*}} : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xi8>
func.func @float(%x: tensor<4x16xf32>) -> tensor<4x16xi8> {
  %s = mlc.constant dense<0.5> : tensor<f32>
  %0 = mlc.quantize %x, %s : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xi8>
  return %0 : tensor<4x16xi8>
}
