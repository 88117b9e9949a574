// Convolutions: what is printed parses to the same, in both forms.
// RUN: mlc-opt %s | mlc-opt | FileCheck %s
// RUN: mlc-opt %s --mlir-print-op-generic | mlc-opt | FileCheck %s

// CHECK-LABEL: func.func @conv
func.func @conv(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %i: tensor<?x4xi32>, %b: tensor<?x4xi1>, %s: tensor<f32>, %l: tensor<i64>, %n: index) {
  // CHECK: mlc.weight "x" : tensor<1x3x8x8xf32>
  %img = mlc.weight "x" : tensor<1x3x8x8xf32>
  // CHECK: mlc.weight "w" : tensor<6x3x3x3xf32>
  %w = mlc.weight "w" : tensor<6x3x3x3xf32>
  // CHECK: mlc.weight "b" : tensor<6xf32>
  %bias = mlc.weight "b" : tensor<6xf32>
  // CHECK: mlc.conv %{{.*}}, %{{.*}} {dilations = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : tensor<1x3x8x8xf32>, tensor<6x3x3x3xf32> -> tensor<1x6x4x4xf32>
  %0 = mlc.conv %img, %w {dilations = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : tensor<1x3x8x8xf32>, tensor<6x3x3x3xf32> -> tensor<1x6x4x4xf32>
  // CHECK: mlc.conv %{{.*}}, %{{.*}} bias(%{{.*}} : tensor<6xf32>) {dilations = array<i64: 2, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x3x8x8xf32>, tensor<6x3x3x3xf32> -> tensor<1x6x4x6xf32>
  %1 = mlc.conv %img, %w bias(%bias : tensor<6xf32>) {dilations = array<i64: 2, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x3x8x8xf32>, tensor<6x3x3x3xf32> -> tensor<1x6x4x6xf32>
  // CHECK: mlc.weight "xl" : tensor<1x8x4xi8>
  %nhwc = mlc.weight "xl" : tensor<1x8x4xi8>
  // CHECK: mlc.weight "wl" : tensor<3x2x6xi8>
  %wl = mlc.weight "wl" : tensor<3x2x6xi8>
  // CHECK: mlc.conv %{{.*}}, %{{.*}} {dilations = array<i64: 1>, groups = 2 : i64, layout = "nhwc", padding = array<i64: 0, 0>, strides = array<i64: 1>} : tensor<1x8x4xi8>, tensor<3x2x6xi8> -> tensor<1x6x6xi32>
  %2 = mlc.conv %nhwc, %wl {dilations = array<i64: 1>, groups = 2 : i64, layout = "nhwc", padding = array<i64: 0, 0>, strides = array<i64: 1>} : tensor<1x8x4xi8>, tensor<3x2x6xi8> -> tensor<1x6x6xi32>
  // CHECK: mlc.weight "wt" : tensor<3x5x3x3xf32>
  %wt = mlc.weight "wt" : tensor<3x5x3x3xf32>
  // CHECK: mlc.conv_transpose %{{.*}}, %{{.*}} {dilations = array<i64: 1, 1>, output_padding = array<i64: 1, 0>, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : tensor<1x3x8x8xf32>, tensor<3x5x3x3xf32> -> tensor<1x5x16x15xf32>
  %3 = mlc.conv_transpose %img, %wt {dilations = array<i64: 1, 1>, output_padding = array<i64: 1, 0>, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : tensor<1x3x8x8xf32>, tensor<3x5x3x3xf32> -> tensor<1x5x16x15xf32>
  return
}

// CHECK-LABEL: func.func @integers
func.func @integers(%x: tensor<1x3x8x8xi8>, %w: tensor<6x3x1x1xi8>) {
  // CHECK: mlc.conv %{{.*}}, %{{.*}} {dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, unsigned_filter, unsigned_input} : tensor<1x3x8x8xi8>, tensor<6x3x1x1xi8> -> tensor<1x6x8x8xi32>
  %0 = mlc.conv %x, %w {dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, unsigned_filter, unsigned_input} : tensor<1x3x8x8xi8>, tensor<6x3x1x1xi8> -> tensor<1x6x8x8xi32>
  return
}
