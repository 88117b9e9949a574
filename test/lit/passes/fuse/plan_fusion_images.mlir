// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose{none=true},mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views,mlc-plan-fusion,mlc-outline-kernels)' | FileCheck %s

// Images of any size: what a padding tests is the size that its source was made with, which is seen outside; inside of
// the kernel it is the extent of that argument.
// CHECK-LABEL: func.func @behind
// CHECK: %[[A:.*]] = mlc.launch @k0(
// CHECK: mlc.launch @k1(%[[A]], %arg2,
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @behind(%x: tensor<?x?x?x8xf32>, %v: tensor<1x1x8x16xf32>, %w: tensor<3x3x16x32xf32>) -> tensor<?x?x?x32xf32> {
  %a = mlc.conv %x, %v {layout = "nhwc", strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : tensor<?x?x?x8xf32>, tensor<1x1x8x16xf32> -> tensor<?x?x?x16xf32>
  %b = mlc.conv %a, %w {layout = "nhwc", strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : tensor<?x?x?x16xf32>, tensor<3x3x16x32xf32> -> tensor<?x?x?x32xf32>
  return %b : tensor<?x?x?x32xf32>
}

// An image that comes with channels first is padded where it lies, and the convolution reads it so.
// CHECK-LABEL: func.func @first
// CHECK: mlc.launch @k2(%arg0, %arg1,
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @first(%x: tensor<?x3x?x?xf32>, %w: tensor<3x3x3x32xf32>) -> tensor<?x?x?x32xf32> {
  %t = mlc.transpose %x {permutation = array<i64: 0, 2, 3, 1>} : tensor<?x3x?x?xf32> -> tensor<?x?x?x3xf32>
  %b = mlc.conv %t, %w {layout = "nhwc", strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : tensor<?x?x?x3xf32>, tensor<3x3x3x32xf32> -> tensor<?x?x?x32xf32>
  return %b : tensor<?x?x?x32xf32>
}

// Groups of channels are split off what is padded: its size is that of the split.
// CHECK-LABEL: func.func @groups
// CHECK: mlc.launch @k3(
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @groups(%x: tensor<?x?x?x32xf32>, %w: tensor<3x3x8x32xf32>) -> tensor<?x?x?x32xf32> {
  %b = mlc.conv %x, %w {layout = "nhwc", groups = 4, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : tensor<?x?x?x32xf32>, tensor<3x3x8x32xf32> -> tensor<?x?x?x32xf32>
  return %b : tensor<?x?x?x32xf32>
}

// CHECK: module @k1
// CHECK-NEXT: func.func @k1(%[[S:[^:]*]]: tensor<?x?x?x16xf32>,
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[W:.*]] = tensor.dim %[[S]], %[[TWO]]
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[H:.*]] = tensor.dim %[[S]], %[[ONE]]
// CHECK: arith.cmpi ult, %{{.*}}, %[[H]]
// CHECK: arith.cmpi ult, %{{.*}}, %[[W]]
// CHECK: tensor.extract %[[S]]
// CHECK: linalg.generic {{.*}}mlc.contraction
// CHECK: module @k2
// CHECK: tensor.dim %arg0, %{{.*}} : tensor<?x3x?x?xf32>
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<?x3x?x?xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %arg1 : tensor<?x3x?x?xf32>, {{.*}}mlc.contraction
