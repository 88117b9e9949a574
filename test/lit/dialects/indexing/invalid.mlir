// RUN: mlc-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%x: tensor<3x4xf32>, %i: tensor<2xi64>) {
  // expected-error @+1 {{'mlc.gather' op axis 2 is out of range for rank 2}}
  %0 = mlc.gather %x, %i {axis = 2 : i64} : tensor<3x4xf32>, tensor<2xi64> -> tensor<3x2xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %i: tensor<2xf32>) {
  // expected-error @+1 {{must be ranked tensor of i32 or i64, but got 'tensor<2xf32>'}}
  %0 = mlc.gather %x, %i {axis = 1 : i64} : tensor<3x4xf32>, tensor<2xf32> -> tensor<3x2xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %i: tensor<2xi64>) {
  // expected-error @+1 {{'mlc.gather_elements' op needs input and indices of one rank, not 3x4 and 2}}
  %0 = mlc.gather_elements %x, %i {axis = 1 : i64} : tensor<3x4xf32>, tensor<2xi64> -> tensor<2xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %i: tensor<2x?xi64>) {
  // expected-error @+1 {{'mlc.gather_nd' op needs a static last extent of indices, given the shapes of input 3x4 and indices 2x?}}
  %0 = mlc.gather_nd %x, %i : tensor<3x4xf32>, tensor<2x?xi64> -> tensor<2xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %i: tensor<2x3xi64>) {
  // expected-error @+1 {{'mlc.gather_nd' op has coordinates longer than the rank, given the shapes of input 3x4 and indices 2x3}}
  %0 = mlc.gather_nd %x, %i : tensor<3x4xf32>, tensor<2x3xi64> -> tensor<2xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %i: tensor<2x1xi64>, %u: tensor<2x2xf32>) {
  // expected-error @+1 {{'mlc.scatter_elements' op extents of indices and updates in 3x4, 2x1 and 2x2 differ: 1 and 2}}
  %0 = mlc.scatter_elements %x, %i, %u {axis = 0 : i64} : tensor<3x4xf32>, tensor<2x1xi64>, tensor<2x2xf32> -> tensor<3x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %u: tensor<3x2xf32>, %i: tensor<3xi64>) {
  // expected-error @+1 {{'mlc.insert' op cannot insert along the batch, dimension 0}}
  %0 = mlc.insert %x, %u, %i {axis = 0 : i64} : tensor<3x4xf32>, tensor<3x2xf32>, tensor<3xi64> -> tensor<3x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %u: tensor<2x2xf32>, %i: tensor<3xi64>) {
  // expected-error @+1 {{'mlc.insert' op extents of input 3x4, update 2x2 and starts 3 differ: 3 and 2}}
  %0 = mlc.insert %x, %u, %i {axis = 1 : i64} : tensor<3x4xf32>, tensor<2x2xf32>, tensor<3xi64> -> tensor<3x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %u: tensor<3x2xf32>, %i: tensor<3x1xi64>) {
  // expected-error @+1 {{'mlc.insert' op needs an update of the input's rank, two or more, and a start for each entry of the batch, given the shapes of input 3x4, update 3x2 and starts 3x1}}
  %0 = mlc.insert %x, %u, %i {axis = 1 : i64} : tensor<3x4xf32>, tensor<3x2xf32>, tensor<3x1xi64> -> tensor<3x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %u: tensor<3x2xf16>, %i: tensor<3xi64>) {
  // expected-error @+1 {{'mlc.insert' op needs an update of the input's element type}}
  %0 = mlc.insert %x, %u, %i {axis = 1 : i64} : tensor<3x4xf32>, tensor<3x2xf16>, tensor<3xi64> -> tensor<3x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %i: tensor<2x1xi64>, %u: tensor<2x3xf32>) {
  // expected-error @+1 {{'mlc.scatter_nd' op extents of updates of input 3x4, indices 2x1 and updates 2x3 differ: 4 and 3}}
  %0 = mlc.scatter_nd %x, %i, %u : tensor<3x4xf32>, tensor<2x1xi64>, tensor<2x3xf32> -> tensor<3x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{where its operands give}}
  %0 = mlc.nonzero %x : tensor<3x4xf32> -> tensor<3x?xi64>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %k: index) {
  // expected-error @+1 {{'mlc.topk' op axis 2 is out of range for rank 2}}
  %v, %i = mlc.topk %x, %k {axis = 2 : i64} : tensor<3x4xf32> -> tensor<3x?xf32>, tensor<3x?xi64>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.sort' op axis 2 is out of range for rank 2}}
  %v, %i = mlc.sort %x {axis = 2 : i64} : tensor<3x4xf32> -> tensor<3x4xf32>, tensor<3x4xi64>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.unique' op input must have rank 1, but its shape is 3x4}}
  %a, %b, %c, %d = mlc.unique %x : tensor<3x4xf32> -> tensor<?xf32>, tensor<?xi64>, tensor<12xi64>, tensor<?xi64>
  return
}

// -----

func.func @invalid(%i: tensor<3xi64>, %d: index, %v: tensor<3xf32>) {
  // expected-error @+1 {{'mlc.one_hot' op values must have the shape 2, not 3}}
  %0 = mlc.one_hot %i, %d, %v {axis = 1 : i64} : tensor<3xi64>, tensor<3xf32> -> tensor<3x?xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3xf32>, %k: index) {
  // expected-error @+1 {{'mlc.trilu' op needs an input of rank 2 or more, not 3}}
  %0 = mlc.trilu %x, %k : tensor<3xf32>
  return
}

// -----

func.func @invalid(%x: tensor<9xf32>) {
  %k = arith.constant 2 : index
  // expected-error @+1 {{'mlc.topk' op k = 2 is more than the last part of 4 of 9 elements has}}
  %0, %1 = mlc.topk %x, %k {axis = 0 : i64, part = 4 : i64} : tensor<9xf32> -> tensor<6xf32>, tensor<6xi64>
  return
}

// -----

func.func @invalid(%x: tensor<9xf32>, %k: index) {
  // expected-error @+1 {{'mlc.topk' op needs a positive part, and an extent and a k that are known, where lines fall into parts}}
  %0, %1 = mlc.topk %x, %k {axis = 0 : i64, part = 4 : i64} : tensor<9xf32> -> tensor<6xf32>, tensor<6xi64>
  return
}
