// RUN: mlc-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%x: tensor<2x3xf32>, %y: tensor<4x5xf32>) {
  // expected-error @+1 {{'mlc.matmul' op contraction extents of 2x3 and 4x5 differ: 3 and 4}}
  %0 = mlc.matmul %x, %y : tensor<2x3xf32>, tensor<4x5xf32> -> tensor<2x5xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3xf32>) {
  // expected-error @+1 {{'mlc.matmul' op needs operands of rank 2 or more, not 3 and 3}}
  %0 = mlc.matmul %x, %x : tensor<3xf32>, tensor<3xf32> -> tensor<f32>
  return
}

// -----

func.func @invalid(%x: tensor<2x3x3xf32>, %y: tensor<4x3x3xf32>) {
  // expected-error @+1 {{'mlc.matmul' op shapes 2 and 4 do not broadcast}}
  %0 = mlc.matmul %x, %y : tensor<2x3x3xf32>, tensor<4x3x3xf32> -> tensor<2x3x3xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x3xf32>, %y: tensor<3x3xf16>) {
  // expected-error @+1 {{'mlc.matmul' op needs operands of one element type, not f32 and f16}}
  %0 = mlc.matmul %x, %y : tensor<3x3xf32>, tensor<3x3xf16> -> tensor<3x3xf32>
  return
}

// -----

func.func @invalid(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'mlc.einsum' op equation 'ij,jk->ik' has 2 terms for 1 operands}}
  %0 = mlc.einsum "ij,jk->ik"(%x) : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @invalid(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'mlc.einsum' op term 'ijk' does not fit the shape 2x3}}
  %0 = mlc.einsum "ijk->i"(%x) : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @invalid(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'mlc.einsum' op equation 'ij->k' has the unknown output label 'k'}}
  %0 = mlc.einsum "ij->k"(%x) : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @invalid(%x: tensor<2x3xf32>, %y: tensor<4x5xf32>) {
  // expected-error @+1 {{'mlc.einsum' op extents of 'j' in the operand of shape 4x5 and one before differ}}
  %0 = mlc.einsum "ij,jk->ik"(%x, %y) : tensor<2x3xf32>, tensor<4x5xf32> -> tensor<2x5xf32>
  return
}

// -----

func.func @narrow_result(%x: tensor<2x3xbf16>, %y: tensor<3x5xbf16>) {
  // expected-error @+1 {{'mlc.matmul' op has a result of type 'tensor<2x5xbf16>' where its operands give 'tensor<2x5xf32>'}}
  %0 = mlc.matmul %x, %y {widen} : tensor<2x3xbf16>, tensor<3x5xbf16> -> tensor<2x5xbf16>
  return
}

// -----

func.func @two_types(%x: tensor<2x3xf32>, %y: tensor<3x5xf16>) {
  // expected-error @+1 {{'mlc.matmul' op needs operands of one element type, not f32 and f16}}
  %0 = mlc.matmul %x, %y : tensor<2x3xf32>, tensor<3x5xf16> -> tensor<2x5xf32>
  return
}

// -----

func.func @narrow_on_the_left(%x: tensor<2x3xf16>, %y: tensor<3x5xf32>) {
  // expected-error @+1 {{'mlc.matmul' op needs operands of one element type, not f16 and f32}}
  %0 = mlc.matmul %x, %y {widen} : tensor<2x3xf16>, tensor<3x5xf32> -> tensor<2x5xf32>
  return
}
