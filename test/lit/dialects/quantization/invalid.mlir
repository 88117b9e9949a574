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

// -----

func.func @invalid(%x: tensor<3x4x64x4xi8>) {
  // expected-error @+1 {{'mlc.unpack' op codes of 3 bits; there are codes of 2, 4 and 8}}
  %0 = mlc.unpack %x {bits = 3 : i64} : tensor<3x4x64x4xi8> -> tensor<3x40x64xi8>
  return
}

// -----

func.func @invalid(%x: tensor<3x4x64xi8>) {
  // expected-error @+1 {{'mlc.unpack' op input of shape 3x4x64; words are [..., words, columns, 4]}}
  %0 = mlc.unpack %x {bits = 4 : i64} : tensor<3x4x64xi8> -> tensor<3x32xi8>
  return
}

// -----

func.func @invalid(%x: tensor<3x4x64x4xi32>) {
  // expected-error @+1 {{'mlc.unpack' op words of other elements than bytes}}
  %0 = mlc.unpack %x {bits = 4 : i64} : tensor<3x4x64x4xi32> -> tensor<3x32x64xi32>
  return
}
