// Pooling: what is printed parses to the same, in both forms.
// RUN: mlc-opt %s | mlc-opt | FileCheck %s
// RUN: mlc-opt %s --mlir-print-op-generic | mlc-opt | FileCheck %s

// CHECK-LABEL: func.func @pool
func.func @pool(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %i: tensor<?x4xi32>, %b: tensor<?x4xi1>, %s: tensor<f32>, %l: tensor<i64>, %n: index) {
  // CHECK: mlc.weight "x" : tensor<1x3x8x8xf32>
  %img = mlc.weight "x" : tensor<1x3x8x8xf32>
  // CHECK: mlc.weight "y" : tensor<1x8x3xf32>
  %last = mlc.weight "y" : tensor<1x8x3xf32>
  // CHECK: mlc.pool max %{{.*}} {dilations = array<i64: 1, 1>, kernel = array<i64: 3, 3>, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : tensor<1x3x8x8xf32> -> tensor<1x3x4x4xf32>
  %0 = mlc.pool max %img {dilations = array<i64: 1, 1>, kernel = array<i64: 3, 3>, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : tensor<1x3x8x8xf32> -> tensor<1x3x4x4xf32>
  // CHECK: mlc.pool avg %{{.*}} {ceil_extra = array<i64: 1, 1>, count_include_pad = true, dilations = array<i64: 1, 1>, kernel = array<i64: 3, 3>, padding = array<i64: 0, 0, 1, 1>, strides = array<i64: 2, 2>} : tensor<1x3x8x8xf32> -> tensor<1x3x4x4xf32>
  %1 = mlc.pool avg %img {ceil_extra = array<i64: 1, 1>, count_include_pad = true, dilations = array<i64: 1, 1>, kernel = array<i64: 3, 3>, padding = array<i64: 0, 0, 1, 1>, strides = array<i64: 2, 2>} : tensor<1x3x8x8xf32> -> tensor<1x3x4x4xf32>
  // CHECK: mlc.pool sum %{{.*}} {dilations = array<i64: 2>, kernel = array<i64: 3>, layout = "nhwc", padding = array<i64: 0, 0>, strides = array<i64: 1>} : tensor<1x8x3xf32> -> tensor<1x4x3xf32>
  %2 = mlc.pool sum %last {dilations = array<i64: 2>, kernel = array<i64: 3>, layout = "nhwc", padding = array<i64: 0, 0>, strides = array<i64: 1>} : tensor<1x8x3xf32> -> tensor<1x4x3xf32>
  // CHECK: mlc.pool_indices %{{.*}} {column_major = true, dilations = array<i64: 1, 1>, kernel = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>} : tensor<1x3x8x8xf32> -> tensor<1x3x4x4xf32>, tensor<1x3x4x4xi64>
  %values_3, %indices_3 = mlc.pool_indices %img {column_major = true, dilations = array<i64: 1, 1>, kernel = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>} : tensor<1x3x8x8xf32> -> tensor<1x3x4x4xf32>, tensor<1x3x4x4xi64>
  return
}
