// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-winograd)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-winograd{arithmetic=10000})' | FileCheck %s --check-prefix=FAST
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-winograd{tile=2})' | FileCheck %s --check-prefix=TWO
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-winograd,mlc-lower-to-linalg,mlc-hoist-weights{limit=1000000000},canonicalize,cse)' | FileCheck %s --check-prefix=LOWERED

// CHECK-LABEL: func.func @large
// CHECK: mlc.conv {{.*}} mlc.winograd = 4 : i64
// TWO-LABEL: func.func @large
// TWO: mlc.conv {{.*}} mlc.winograd = 2 : i64
// Where multiplications cost next to nothing, what the transforms move is not worth it.
// FAST-LABEL: func.func @large
// FAST-NOT: mlc.winograd
// FAST: return
// Rows and columns of the input, the products, rows and columns of the results: the filter is a recipe.
// LOWERED-LABEL: func.func @large
// LOWERED: tensor.empty() : tensor<1x58x56x64xf32>
// LOWERED: {mlc.contraction}
// LOWERED: tensor.empty() : tensor<6x1x14x58x64xf32>
// LOWERED: {mlc.contraction}
// LOWERED-NOT: mlc.matmul
// LOWERED: [[U:%.+]] = mlc.weight "w#{{.*}}" : tensor<6x6x64x64xf32>
// LOWERED: ins(%{{.+}}, [[U]] : tensor<6x6x1x14x14x64xf32>, tensor<6x6x64x64xf32>) {{.*}}{mlc.contraction}
// LOWERED: {mlc.contraction}
// LOWERED: {mlc.contraction}
// LOWERED: tensor.collapse_shape {{.*}} tensor<1x14x4x14x4x64xf32> into tensor<1x56x56x64xf32>
func.func @large(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32> {
  %w = mlc.weight "w" : tensor<3x3x64x64xf32>
  %0 = mlc.conv %x, %w {layout = "nhwc", strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : tensor<1x56x56x64xf32>, tensor<3x3x64x64xf32> -> tensor<1x56x56x64xf32>
  return %0 : tensor<1x56x56x64xf32>
}

// Few channels: the transforms take longer than they save.
// CHECK-LABEL: func.func @few_channels
// CHECK-NOT: mlc.winograd
func.func @few_channels(%x: tensor<1x56x56x4xf32>) -> tensor<1x56x56x4xf32> {
  %w = mlc.weight "w" : tensor<3x3x4x4xf32>
  %0 = mlc.conv %x, %w {layout = "nhwc", strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : tensor<1x56x56x4xf32>, tensor<3x3x4x4xf32> -> tensor<1x56x56x4xf32>
  return %0 : tensor<1x56x56x4xf32>
}

// Strides, groups, a filter that is computed, channels that are not last, and unknown extents.
// CHECK-LABEL: func.func @strided
// CHECK-NOT: mlc.winograd
func.func @strided(%x: tensor<1x56x56x64xf32>) -> tensor<1x28x28x64xf32> {
  %w = mlc.weight "w" : tensor<3x3x64x64xf32>
  %0 = mlc.conv %x, %w {layout = "nhwc", strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : tensor<1x56x56x64xf32>, tensor<3x3x64x64xf32> -> tensor<1x28x28x64xf32>
  return %0 : tensor<1x28x28x64xf32>
}
// CHECK-LABEL: func.func @grouped
// CHECK-NOT: mlc.winograd
func.func @grouped(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32> {
  %w = mlc.weight "w" : tensor<3x3x32x64xf32>
  %0 = mlc.conv %x, %w {layout = "nhwc", groups = 2 : i64, strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : tensor<1x56x56x64xf32>, tensor<3x3x32x64xf32> -> tensor<1x56x56x64xf32>
  return %0 : tensor<1x56x56x64xf32>
}
// CHECK-LABEL: func.func @computed_filter
// CHECK-NOT: mlc.winograd
func.func @computed_filter(%x: tensor<1x56x56x64xf32>, %w: tensor<3x3x64x64xf32>) -> tensor<1x56x56x64xf32> {
  %0 = mlc.conv %x, %w {layout = "nhwc", strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : tensor<1x56x56x64xf32>, tensor<3x3x64x64xf32> -> tensor<1x56x56x64xf32>
  return %0 : tensor<1x56x56x64xf32>
}
// CHECK-LABEL: func.func @channels_first
// CHECK-NOT: mlc.winograd
func.func @channels_first(%x: tensor<1x64x56x56xf32>) -> tensor<1x64x56x56xf32> {
  %w = mlc.weight "w" : tensor<64x64x3x3xf32>
  %0 = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : tensor<1x64x56x56xf32>, tensor<64x64x3x3xf32> -> tensor<1x64x56x56xf32>
  return %0 : tensor<1x64x56x56xf32>
}
// CHECK-LABEL: func.func @unknown_batch
// CHECK-NOT: mlc.winograd
func.func @unknown_batch(%x: tensor<?x56x56x64xf32>) -> tensor<?x56x56x64xf32> {
  %w = mlc.weight "w" : tensor<3x3x64x64xf32>
  %0 = mlc.conv %x, %w {layout = "nhwc", strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : tensor<?x56x56x64xf32>, tensor<3x3x64x64xf32> -> tensor<?x56x56x64xf32>
  return %0 : tensor<?x56x56x64xf32>
}
