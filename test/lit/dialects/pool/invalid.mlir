// RUN: mlc-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%x: tensor<1x3x8x8xf32>) {
  // expected-error @+1 {{'mlc.pool' op needs 2 entries of kernel and ceil_extra, not 1 and 0}}
  %0 = mlc.pool max %x {kernel = array<i64: 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x3x8x8xf32> -> tensor<1x3x7x7xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x8xf32>) {
  // expected-error @+1 {{'mlc.pool' op needs an input of rank 3 or more, not 3x8}}
  %0 = mlc.pool max %x {kernel = array<i64: 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<3x8xf32> -> tensor<3x7xf32>
  return
}

// -----

func.func @invalid(%x: tensor<1x3x8x8xf32>) {
  // expected-error @+1 {{where its operands give}}
  %values, %indices = mlc.pool_indices %x {kernel = array<i64: 2, 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x3x8x8xf32> -> tensor<1x3x7x7xf32>, tensor<1x3x8x7xi64>
  return
}
