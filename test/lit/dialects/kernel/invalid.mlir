// RUN: mlc-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%x: tensor<3xf32>, %m: memref<3xf32>) {
  // expected-error @+1 {{'mlc.launch' op needs destinations that are all tensors or all memrefs}}
  %0 = mlc.launch @k() outs(%x, %m) : () outs(tensor<3xf32>, memref<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3xf32>) {
  // expected-error @+1 {{'mlc.launch' op must have one result for each of 1 tensor destinations, with its type}}
  %0 = mlc.launch @k() outs(%x) : () outs(tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @invalid(%n: index) {
  // expected-error @+1 {{'mlc.buffer' op needs a size for each of 1 dynamic dimensions of 'memref<?x4xf32>', not 0}}
  %0 = mlc.buffer pool : memref<?x4xf32>
  return
}

// -----

func.func @invalid(%n: index) {
  // expected-error @+1 {{'mlc.buffer' op pool takes no offset}}
  %0 = mlc.buffer pool offset[%n] : memref<4xf32>
  return
}

// -----

func.func @invalid(%n: index) {
  // expected-error @+1 {{'mlc.buffer' op has a number exactly when it is an output}}
  %0 = mlc.buffer output : memref<4xf32>
  return
}

// -----

func.func @invalid(%n: index) {
  // expected-error @+1 {{'mlc.buffer' op has both an offset operand and a static_offset}}
  %0 = mlc.buffer arena offset[%n] {static_offset = 4 : i64} : memref<4xf32>
  return
}
