// RUN: mlc-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.reshape' op changes the number of elements from 12 ('tensor<3x4xf32>') to 10 ('tensor<10xf32>')}}
  %0 = mlc.reshape %x [10] : tensor<3x4xf32> -> tensor<10xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{where its operands give}}
  %0 = mlc.reshape %x [12] : tensor<3x4xf32> -> tensor<2x6xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %n: index) {
  // expected-error @+1 {{'mlc.reshape' op static_sizes has 0 dynamic entries, but sizes has 1 operands}}
  %0 = "mlc.reshape"(%x, %n) {static_sizes = array<i64: 12>} : (tensor<3x4xf32>, index) -> tensor<12xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.transpose' op permutation [0, 0] does not permute the dimensions of 3x4}}
  %0 = mlc.transpose %x {permutation = array<i64: 0, 0>} : tensor<3x4xf32> -> tensor<3x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.broadcast' op shape 3x4 does not broadcast to 2x4}}
  %0 = mlc.broadcast %x [2, 4] : tensor<3x4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.broadcast' op shape 3x4 does not broadcast to 4}}
  %0 = mlc.broadcast %x [4] : tensor<3x4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %y: tensor<3x5xf32>) {
  // expected-error @+1 {{'mlc.concat' op extents of dimension 1 of 3x4 and 3x5 differ: 4 and 5}}
  %0 = mlc.concat %x, %y {axis = 0 : i64} : tensor<3x4xf32>, tensor<3x5xf32> -> tensor<6x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %y: tensor<3xf32>) {
  // expected-error @+1 {{'mlc.concat' op needs operands of one rank and element type, not 3x4 and 3}}
  %0 = mlc.concat %x, %y {axis = 0 : i64} : tensor<3x4xf32>, tensor<3xf32> -> tensor<6x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.slice' op dimension 1 reads positions 2 to 4 of 4}}
  %0 = mlc.slice %x [0, 2] [3, 3] [1, 1] : tensor<3x4xf32> -> tensor<3x3xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.slice' op dimension 1 reads positions 3 to -1 of 4}}
  %0 = mlc.slice %x [0, 3] [3, 3] [1, -2] : tensor<3x4xf32> -> tensor<3x3xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.slice' op the stride of dimension 0 is 0}}
  %0 = mlc.slice %x [0, 0] [1, 1] [0, 1] : tensor<3x4xf32> -> tensor<1x1xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.slice' op needs an offset, a size and a stride for each of 2 dimensions, not 1, 1 and 1}}
  %0 = mlc.slice %x [0] [1] [1] : tensor<3x4xf32> -> tensor<1xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.pad' op needs low and high padding for each of 2 dimensions, not 1 and 2}}
  %0 = mlc.pad edge %x low [0] high [0, 1] : tensor<3x4xf32> -> tensor<3x5xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %v: tensor<f32>) {
  // expected-error @+1 {{'mlc.pad' op takes a value in mode constant only, not edge}}
  %0 = mlc.pad edge %x low [0, 0] high [0, 1] value(%v : tensor<f32>) : tensor<3x4xf32> -> tensor<3x5xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.pad' op the result shape 3x-1 has a negative extent}}
  %0 = mlc.pad constant %x low [0, -3] high [0, -2] : tensor<3x4xf32> -> tensor<3x0xf32>
  return
}

// -----

func.func @invalid() {
  // expected-error @+1 {{'mlc.iota' op has a result of type 'tensor<4xi64>' where its operands give 'tensor<3xi64>'}}
  %0 = mlc.iota [3] {axis = 0 : i64} : tensor<4xi64>
  return
}

// -----

func.func @invalid() {
  // expected-error @+1 {{'mlc.iota' op axis 1 is out of range for rank 1}}
  %0 = mlc.iota [3] {axis = 1 : i64} : tensor<3xi64>
  return
}

// -----

func.func @invalid(%x: tensor<2x3xf32>) -> tensor<3xi64> {
  // expected-error @+1 {{'mlc.shape_of' op has a result of type 'tensor<3xi64>' where its operands give 'tensor<2xi64>'}}
  %0 = "mlc.shape_of"(%x) : (tensor<2x3xf32>) -> tensor<3xi64>
  return %0 : tensor<3xi64>
}

// -----

func.func @count_without_index() -> tensor<4xf32> {
  // expected-error @+1 {{has an index or a count of weights, but not both}}
  %0 = "mlc.weight"() {name = "w", count = 4} : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @of_none(%i: index) -> tensor<4xf32> {
  // expected-error @+1 {{is one of 0 weights}}
  %0 = mlc.weight "w"[%i of 0] : tensor<4xf32>
  return %0 : tensor<4xf32>
}
