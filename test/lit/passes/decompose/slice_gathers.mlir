// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-slice-gathers,canonicalize)' | FileCheck %s

// The last place but one.
// CHECK-LABEL: func.func @one
// CHECK: %[[S:.*]] = mlc.slice %arg0 [1, 0, 0] [1, 4, 5] [1, 1, 1] : tensor<3x4x5xf32> -> tensor<1x4x5xf32>
// CHECK: mlc.reshape %[[S]] [4, 5]
func.func @one(%x: tensor<3x4x5xf32>) -> tensor<4x5xf32> {
  %i = mlc.constant dense<-2> : tensor<i64>
  %r = mlc.gather %x, %i {axis = 0 : i64} : tensor<3x4x5xf32>, tensor<i64> -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}

// Outside of the tensor: an error when it runs. Two places are no slice.
// CHECK-LABEL: func.func @others
// CHECK: mlc.gather
// CHECK: mlc.gather
func.func @others(%x: tensor<3x4x5xf32>) -> (tensor<4x5xf32>, tensor<2x4x5xf32>) {
  %i = mlc.constant dense<3> : tensor<i64>
  %j = mlc.constant dense<[0, 2]> : tensor<2xi64>
  %r = mlc.gather %x, %i {axis = 0 : i64} : tensor<3x4x5xf32>, tensor<i64> -> tensor<4x5xf32>
  %s = mlc.gather %x, %j {axis = 0 : i64} : tensor<3x4x5xf32>, tensor<2xi64> -> tensor<2x4x5xf32>
  return %r, %s : tensor<4x5xf32>, tensor<2x4x5xf32>
}
