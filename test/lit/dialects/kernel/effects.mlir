// RUN: mlc-opt %s --canonicalize --cse | FileCheck %s

// On tensors a launch is a function of its operands: unused ones go, equal ones are one.
// CHECK-LABEL: func.func @tensors
func.func @tensors(%x: tensor<4xf32>, %o: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-COUNT-1: mlc.launch
  // CHECK-NOT: mlc.launch
  %0 = mlc.launch @k(%x) outs(%o) : (tensor<4xf32>) outs(tensor<4xf32>) -> tensor<4xf32>
  %1 = mlc.launch @k(%x) outs(%o) : (tensor<4xf32>) outs(tensor<4xf32>) -> tensor<4xf32>
  %2 = mlc.launch @other(%x) outs(%o) : (tensor<4xf32>) outs(tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// On memrefs it writes.
// CHECK-LABEL: func.func @memrefs
func.func @memrefs(%x: memref<4xf32>, %o: memref<4xf32>) {
  // CHECK-COUNT-2: mlc.launch @k
  mlc.launch @k(%x) outs(%o) : (memref<4xf32>) outs(memref<4xf32>)
  mlc.launch @k(%x) outs(%o) : (memref<4xf32>) outs(memref<4xf32>)
  return
}

// A buffer that nothing uses is no buffer; two buffers are never one.
// CHECK-LABEL: func.func @buffers
func.func @buffers(%n: index) -> (memref<?xf32>, memref<?xf32>) {
  // CHECK-COUNT-2: mlc.buffer pool
  // CHECK-NOT: mlc.buffer
  %0 = mlc.buffer pool(%n) : memref<?xf32>
  %1 = mlc.buffer pool(%n) : memref<?xf32>
  %2 = mlc.buffer pool(%n) : memref<?xf32>
  return %0, %1 : memref<?xf32>, memref<?xf32>
}
