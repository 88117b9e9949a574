// The host program: what is printed parses to the same, in both forms.
// RUN: mlc-opt %s | mlc-opt | FileCheck %s
// RUN: mlc-opt %s --mlir-print-op-generic | mlc-opt | FileCheck %s

// CHECK-LABEL: func.func @kernel
func.func @kernel(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %i: tensor<?x4xi32>, %b: tensor<?x4xi1>, %s: tensor<f32>, %l: tensor<i64>, %n: index) {
  // CHECK: mlc.launch @k0(%{{.*}}, %{{.*}}) outs(%{{.*}}) : (tensor<?x4xf32>, index) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  %r = mlc.launch @k0(%x, %n) outs(%y) : (tensor<?x4xf32>, index) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: mlc.buffer arena offset[%{{.*}}] (%{{.*}}) : memref<?x4xf32>
  %m = mlc.buffer arena offset[%n] (%n) : memref<?x4xf32>
  // CHECK: mlc.buffer output (%{{.*}}) {number = 0 : i64} : memref<?x4xf32>
  %o = mlc.buffer output (%n) {number = 0 : i64} : memref<?x4xf32>
  // CHECK: mlc.buffer weights {static_offset = 4096 : i64} : memref<32x64xf32>
  %w = mlc.buffer weights {static_offset = 4096 : i64} : memref<32x64xf32>
  // CHECK: mlc.buffer pool (%{{.*}}) : memref<?xi64>
  %p = mlc.buffer pool (%n) : memref<?xi64>
  // CHECK: mlc.launch @k1(%{{.*}}, %{{.*}}) outs(%{{.*}}) {mlc.inout = array<i64: 0>} : (memref<?x4xf32>, memref<32x64xf32>) outs(memref<?x4xf32>)
  mlc.launch @k1(%m, %w) outs(%o) {mlc.inout = array<i64: 0>} : (memref<?x4xf32>, memref<32x64xf32>) outs(memref<?x4xf32>)
  // CHECK: mlc.launch @k2() outs(%{{.*}}) : () outs(memref<?xi64>)
  mlc.launch @k2() outs(%p) : () outs(memref<?xi64>)
  return
}
