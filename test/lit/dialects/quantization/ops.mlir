// Quantization: what is printed parses to the same, in both forms.
// RUN: mlc-opt %s | mlc-opt | FileCheck %s
// RUN: mlc-opt %s --mlir-print-op-generic | mlc-opt | FileCheck %s

// CHECK-LABEL: func.func @quantization
func.func @quantization(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %i: tensor<?x4xi32>, %b: tensor<?x4xi1>, %s: tensor<f32>, %l: tensor<i64>, %n: index) {
  // CHECK: mlc.weight "s" : tensor<4xf32>
  %sc = mlc.weight "s" : tensor<4xf32>
  // CHECK: mlc.weight "z" : tensor<4xi8>
  %zp = mlc.weight "z" : tensor<4xi8>
  // CHECK: mlc.constant dense<3> : tensor<i8>
  %z0 = mlc.constant dense<3> : tensor<i8>
  // CHECK: mlc.quantize %{{.*}}, %{{.*}} zero_point(%{{.*}} : tensor<i8>) {unsigned} : tensor<?x4xf32>, tensor<f32> -> tensor<?x4xi8>
  %q = mlc.quantize %x, %s zero_point(%z0 : tensor<i8>) {unsigned} : tensor<?x4xf32>, tensor<f32> -> tensor<?x4xi8>
  // CHECK: mlc.quantize %{{.*}}, %{{.*}} {axis = 1 : i64} : tensor<?x4xf32>, tensor<4xf32> -> tensor<?x4xi8>
  %0 = mlc.quantize %x, %sc {axis = 1 : i64} : tensor<?x4xf32>, tensor<4xf32> -> tensor<?x4xi8>
  // CHECK: mlc.dequantize %{{.*}}, %{{.*}} zero_point(%{{.*}} : tensor<4xi8>) {axis = 1 : i64} : tensor<?x4xi8>, tensor<4xf32> -> tensor<?x4xf32>
  %1 = mlc.dequantize %q, %sc zero_point(%zp : tensor<4xi8>) {axis = 1 : i64} : tensor<?x4xi8>, tensor<4xf32> -> tensor<?x4xf32>
  // CHECK: mlc.dequantize %{{.*}}, %{{.*}} zero_point(%{{.*}} : tensor<i8>) {axis = 1 : i64} : tensor<?x4xi8>, tensor<4xf32> -> tensor<?x4xf32>
  %mixed = mlc.dequantize %q, %sc zero_point(%z0 : tensor<i8>) {axis = 1 : i64} : tensor<?x4xi8>, tensor<4xf32> -> tensor<?x4xf32>
  // CHECK: mlc.weight "bs" : tensor<2x2xf32>
  %blocks = mlc.weight "bs" : tensor<2x2xf32>
  // CHECK: mlc.weight "w" : tensor<2x8xi4>
  %w = mlc.weight "w" : tensor<2x8xi4>
  // CHECK: mlc.dequantize %{{.*}}, %{{.*}} {axis = 1 : i64, block_size = 4 : i64} : tensor<2x8xi4>, tensor<2x2xf32> -> tensor<2x8xf32>
  %2 = mlc.dequantize %w, %blocks {axis = 1 : i64, block_size = 4 : i64} : tensor<2x8xi4>, tensor<2x2xf32> -> tensor<2x8xf32>
  // CHECK: mlc.dequantize %{{.*}}, %{{.*}} {bits = 3 : i64} : tensor<?x4xi8>, tensor<f32> -> tensor<?x4xf32>
  %few = mlc.dequantize %q, %s {bits = 3 : i64} : tensor<?x4xi8>, tensor<f32> -> tensor<?x4xf32>
  // CHECK: mlc.weight "words" : tensor<3x16x64x4xi8>
  %words = mlc.weight "words" : tensor<3x16x64x4xi8>
  // CHECK: mlc.unpack %{{.*}} {bits = 4 : i64} : tensor<3x16x64x4xi8> -> tensor<3x128x64xi8>
  %codes = mlc.unpack %words {bits = 4 : i64} : tensor<3x16x64x4xi8> -> tensor<3x128x64xi8>
  return
}
