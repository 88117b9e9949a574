// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-fold-batch-norm,mlc-hoist-weights,canonicalize,cse)' | FileCheck %s

// CHECK-LABEL: func.func @conv_batch_norm
// CHECK-DAG: %[[W:.*]] = mlc.weight "w#{{.*}}" : tensor<4x3x3x3xf32>
// CHECK-DAG: %[[B:.*]] = mlc.weight "{{.*}}#{{.*}}" : tensor<4xf32>
// CHECK: %[[R:.*]] = mlc.conv %{{.*}}, %[[W]] bias(%[[B]] : tensor<4xf32>)
// CHECK-NEXT: return %[[R]]
func.func @conv_batch_norm(%x: tensor<?x3x8x8xf32>) -> tensor<?x4x6x6xf32> {
  %w = mlc.weight "w" : tensor<4x3x3x3xf32>
  %s = mlc.weight "s" : tensor<4xf32>
  %b = mlc.weight "b" : tensor<4xf32>
  %m = mlc.weight "m" : tensor<4xf32>
  %v = mlc.weight "v" : tensor<4xf32>
  %0 = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>}
    : tensor<?x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<?x4x6x6xf32>
  %1 = mlc.batch_norm %0, %s, %b, %m, %v {epsilon = 1.0e-5 : f64}
    : tensor<?x4x6x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<?x4x6x6xf32>
  return %1 : tensor<?x4x6x6xf32>
}

// CHECK-LABEL: func.func @arithmetic
// CHECK: mlc.conv_transpose %{{.*}}, %{{.*}} bias(
// CHECK-NEXT: return
func.func @arithmetic(%x: tensor<1x4x5xf16>) -> tensor<1x6x7xf16> {
  %w = mlc.weight "w" : tensor<4x3x3xf16>
  %s = mlc.weight "s" : tensor<1x6x1xf16>
  %two = mlc.constant dense<2.0> : tensor<f16>
  %0 = mlc.conv_transpose %x, %w {strides = array<i64: 1>, padding = array<i64: 0, 0>, dilations = array<i64: 1>,
    groups = 2 : i64, output_padding = array<i64: 0>} : tensor<1x4x5xf16>, tensor<4x3x3xf16> -> tensor<1x6x7xf16>
  %1 = mlc.binary div %0, %s : tensor<1x6x7xf16>, tensor<1x6x1xf16> -> tensor<1x6x7xf16>
  %2 = mlc.binary add %two, %1 : tensor<f16>, tensor<1x6x7xf16> -> tensor<1x6x7xf16>
  %3 = mlc.binary sub %2, %s : tensor<1x6x7xf16>, tensor<1x6x1xf16> -> tensor<1x6x7xf16>
  return %3 : tensor<1x6x7xf16>
}

// Two users of the convolution; a weight that is not per channel; a batch norm without a convolution.
// CHECK-LABEL: func.func @stays
// CHECK: %[[C:.*]] = mlc.conv
// CHECK-DAG: mlc.binary mul %[[C]]
// CHECK-DAG: mlc.binary mul %{{.*}} : tensor<1x2x4xf32>, tensor<2x1xf32> -> tensor<1x2x4xf32>
// CHECK-DAG: mlc.binary add %{{.*}} : tensor<1x2x4xf32>, tensor<2x1xf32> -> tensor<1x2x4xf32>
// CHECK-NOT: batch_norm
func.func @stays(%x: tensor<1x2x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) {
  %w = mlc.weight "w" : tensor<2x2x1xf32>
  %s = mlc.weight "s" : tensor<2x1xf32>
  %p = mlc.weight "p" : tensor<2x4xf32>
  %v = mlc.weight "v" : tensor<2xf32>
  %0 = mlc.conv %x, %w {strides = array<i64: 1>, padding = array<i64: 0, 0>, dilations = array<i64: 1>}
    : tensor<1x2x4xf32>, tensor<2x2x1xf32> -> tensor<1x2x4xf32>
  %1 = mlc.binary mul %0, %s : tensor<1x2x4xf32>, tensor<2x1xf32> -> tensor<1x2x4xf32>
  %2 = mlc.binary add %0, %p : tensor<1x2x4xf32>, tensor<2x4xf32> -> tensor<1x2x4xf32>
  %3 = mlc.batch_norm %x, %v, %v, %v, %v {epsilon = 1.0e-3 : f64}
    : tensor<1x2x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32> -> tensor<1x2x4xf32>
  return %1, %2, %3 : tensor<1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>
}
