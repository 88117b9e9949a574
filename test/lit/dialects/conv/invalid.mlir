// RUN: mlc-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%x: tensor<1x3x8x8xf32>, %w: tensor<6x4x3x3xf32>) {
  // expected-error @+1 {{'mlc.conv' op input channels of input 1x3x8x8 and filter 6x4x3x3 differ: 3 and 4}}
  %0 = mlc.conv %x, %w {dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x3x8x8xf32>, tensor<6x4x3x3xf32> -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @invalid(%x: tensor<1x3x8x8xf32>, %w: tensor<6x3x3xf32>) {
  // expected-error @+1 {{'mlc.conv' op needs input and filter of one rank from 3 to 5, not 1x3x8x8 and 6x3x3}}
  %0 = mlc.conv %x, %w {dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x3x8x8xf32>, tensor<6x3x3xf32> -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @invalid(%x: tensor<1x4x8x8xf32>, %w: tensor<5x2x3x3xf32>) {
  // expected-error @+1 {{'mlc.conv' op groups 2 do not divide the output channels 5}}
  %0 = mlc.conv %x, %w {groups = 2 : i64, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x4x8x8xf32>, tensor<5x2x3x3xf32> -> tensor<1x5x6x6xf32>
  return
}

// -----

func.func @invalid(%x: tensor<1x3x8x8xf32>, %w: tensor<6x3x3x3xf32>) {
  // expected-error @+1 {{'mlc.conv' op needs 2 strides and dilations and 4 paddings, not 1, 2 and 4}}
  %0 = mlc.conv %x, %w {dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1>} : tensor<1x3x8x8xf32>, tensor<6x3x3x3xf32> -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @invalid(%x: tensor<1x3x8x8xf32>, %w: tensor<6x3x3x3xf32>) {
  // expected-error @+1 {{'mlc.conv' op strides and dilations must be positive}}
  %0 = mlc.conv %x, %w {dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 0>} : tensor<1x3x8x8xf32>, tensor<6x3x3x3xf32> -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @invalid(%x: tensor<1x3x8x8xf32>, %w: tensor<6x3x3x3xf32>, %b: tensor<5xf32>) {
  // expected-error @+1 {{'mlc.conv' op bias and output channels differ: 5 and 6}}
  %0 = mlc.conv %x, %w bias(%b : tensor<5xf32>) {dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x3x8x8xf32>, tensor<6x3x3x3xf32> -> tensor<1x6x6x6xf32>
  return
}

// -----

func.func @invalid(%x: tensor<1x3x2x2xf32>, %w: tensor<6x3x5x5xf32>) {
  // expected-error @+1 {{'mlc.conv' op the result shape 1x6x-2x-2 has a negative extent}}
  %0 = mlc.conv %x, %w {dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x3x2x2xf32>, tensor<6x3x5x5xf32> -> tensor<1x6x0x0xf32>
  return
}

// -----

func.func @invalid(%x: tensor<1x3x8x8xf32>, %w: tensor<3x5x3x3xf32>) {
  // expected-error @+1 {{'mlc.conv_transpose' op needs 2 entries of output_padding, not 0}}
  %0 = mlc.conv_transpose %x, %w {output_padding = array<i64>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x3x8x8xf32>, tensor<3x5x3x3xf32> -> tensor<1x5x10x10xf32>
  return
}

// -----

func.func @invalid(%x: tensor<1x3x8x8xf32>, %w: tensor<4x5x3x3xf32>) {
  // expected-error @+1 {{'mlc.conv_transpose' op input channels of input 1x3x8x8 and filter 4x5x3x3 differ: 3 and 4}}
  %0 = mlc.conv_transpose %x, %w {output_padding = array<i64: 0, 0>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x3x8x8xf32>, tensor<4x5x3x3xf32> -> tensor<1x5x10x10xf32>
  return
}

// -----

func.func @two_types(%x: tensor<1x3x8x8xf32>, %w: tensor<6x3x3x3xf16>) {
  // expected-error @+1 {{'mlc.conv' op needs operands of one element type, not f32 and f16}}
  %0 = mlc.conv %x, %w {dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x3x8x8xf32>, tensor<6x3x3x3xf16> -> tensor<1x6x6x6xf32>
  return
}
