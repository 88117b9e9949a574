// RUN: mlc-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%x: tensor<3x4xf32>, %s: tensor<3xf32>) {
  // expected-error @+1 {{'mlc.quantize' op scales and axis extents of 3 and 3x4 differ: 3 and 4}}
  %0 = mlc.quantize %x, %s {axis = 1 : i64} : tensor<3x4xf32>, tensor<3xf32> -> tensor<3x4xi8>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %s: tensor<f32>, %z: tensor<4xi8>) {
  // expected-error @+1 {{'mlc.quantize' op scale [] and zero_point 4 differ}}
  %0 = mlc.quantize %x, %s zero_point(%z : tensor<4xi8>) {axis = 1 : i64} : tensor<3x4xf32>, tensor<f32> -> tensor<3x4xi8>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xi8>, %s: tensor<4xf32>) {
  // expected-error @+1 {{'mlc.dequantize' op axis 2 is out of range for shape 3x4}}
  %0 = mlc.dequantize %x, %s {axis = 2 : i64} : tensor<3x4xi8>, tensor<4xf32> -> tensor<3x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xi8>, %s: tensor<4xf32>) {
  // expected-error @+1 {{'mlc.dequantize' op blocks need a scale of the input's rank, not 4 for 3x4}}
  %0 = mlc.dequantize %x, %s {axis = 1 : i64, block_size = 2 : i64} : tensor<3x4xi8>, tensor<4xf32> -> tensor<3x4xf32>
  return
}
