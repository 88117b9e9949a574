// RUN: mlc-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.reduce' op axis 2 is out of range for shape 3x4}}
  %0 = mlc.reduce sum %x {axes = array<i64: 2>} : tensor<3x4xf32> -> tensor<3xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.reduce' op axis 1 is listed twice}}
  %0 = mlc.reduce sum %x {axes = array<i64: 1, 1>} : tensor<3x4xf32> -> tensor<3xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{where its operands give}}
  %0 = mlc.reduce sum %x {axes = array<i64: 0>} : tensor<3x4xf32> -> tensor<3xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.arg_reduce' op axis -1 is out of range for shape 3x4}}
  %0 = mlc.arg_reduce max %x {axis = -1 : i64} : tensor<3x4xf32> -> tensor<3xi64>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.scan' op axis 5 is out of range for rank 2}}
  %0 = mlc.scan sum %x {axis = 5 : i64} : tensor<3x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<f32>) {
  // expected-error @+1 {{'mlc.statistic' op axis 0 is out of range for shape []}}
  %0 = mlc.statistic mean %x {axes = array<i64: 0>} : tensor<f32> -> tensor<f32>
  return
}

// -----

func.func @invalid(%x: tensor<9x4xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{'mlc.scan' op needs a positive part where lines fall into parts}}
  %0 = mlc.scan sum %x before(%b : tensor<3xf32>) {axis = 0 : i64} : tensor<9x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<9x4xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{'mlc.scan' op needs input and before of one rank, not 9x4 and 3}}
  %0 = mlc.scan sum %x before(%b : tensor<3xf32>) {axis = 0 : i64, part = 3 : i64} : tensor<9x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<9x4xf32>, %b: tensor<4x4xf32>) {
  // expected-error @+1 {{'mlc.scan' op has 3 parts of 4 elements, and before of 9x4 and 4x4 4}}
  %0 = mlc.scan sum %x before(%b : tensor<4x4xf32>) {axis = 0 : i64, part = 4 : i64} : tensor<9x4xf32>
  return
}
