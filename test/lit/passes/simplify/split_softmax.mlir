// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-split-softmax,canonicalize,cse)' | FileCheck %s

// CHECK-LABEL: func.func @sink
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x64xf32>, %[[S:.*]]: tensor<2x8x1xf32>)
// CHECK: %[[LARGEST:.*]] = mlc.reduce max %[[X]] {axes = array<i64: 2>, keepdims = true}
// CHECK: %[[TOP:.*]] = mlc.binary max %[[LARGEST]], %[[S]]
// CHECK: %[[D:.*]] = mlc.binary sub %[[X]], %[[TOP]]
// CHECK: %[[P:.*]] = mlc.unary exp %[[D]]
// CHECK: %[[SUM:.*]] = mlc.reduce sum %[[P]] {axes = array<i64: 2>, keepdims = true}
// CHECK: %[[E:.*]] = mlc.binary sub %[[S]], %[[TOP]]
// CHECK: %[[MORE:.*]] = mlc.unary exp %[[E]]
// CHECK: %[[TOTAL:.*]] = mlc.binary add %[[SUM]], %[[MORE]]
// CHECK: %[[Y:.*]] = mlc.binary div %[[P]], %[[TOTAL]]
// CHECK: return %[[Y]]
func.func @sink(%x: tensor<2x8x64xf32>, %s: tensor<2x8x1xf32>) -> tensor<2x8x64xf32> {
  %c = mlc.concat %x, %s {axis = 2 : i64} : tensor<2x8x64xf32>, tensor<2x8x1xf32> -> tensor<2x8x65xf32>
  %p = mlc.softmax %c {axis = 2 : i64} : tensor<2x8x65xf32>
  %y = mlc.slice %p [0, 0, 0] [2, 8, 64] [1, 1, 1] : tensor<2x8x65xf32> -> tensor<2x8x64xf32>
  return %y : tensor<2x8x64xf32>
}

// -----

// In front, of halves, behind a shift by the largest, any extents.
// CHECK-LABEL: func.func @in_front
// CHECK-SAME: (%[[X:.*]]: tensor<?x?xf16>, %[[S:.*]]: tensor<?x1xf16>)
// CHECK: %[[W:.*]] = mlc.cast %[[X]] : tensor<?x?xf16> -> tensor<?x?xf32>
// CHECK: mlc.reduce max %[[W]]
// CHECK: %[[Y:.*]] = mlc.binary div
// CHECK: mlc.cast %[[Y]] : tensor<?x?xf32> -> tensor<?x?xf16>
// CHECK-NOT: mlc.softmax
func.func @in_front(%x: tensor<?x?xf16>, %s: tensor<?x1xf16>) -> tensor<?x?xf16> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c0 : tensor<?x?xf16>
  %m = tensor.dim %x, %c1 : tensor<?x?xf16>
  %c = mlc.concat %s, %x {axis = 1 : i64} : tensor<?x1xf16>, tensor<?x?xf16> -> tensor<?x?xf16>
  %top = mlc.reduce max %c {axes = array<i64: 1>, keepdims = true} : tensor<?x?xf16> -> tensor<?x1xf16>
  %d = mlc.binary sub %c, %top : tensor<?x?xf16>, tensor<?x1xf16> -> tensor<?x?xf16>
  %p = mlc.softmax %d {axis = 1 : i64} : tensor<?x?xf16>
  %y = mlc.slice %p [0, 1] [%n, %m] [1, 1] : tensor<?x?xf16> -> tensor<?x?xf16>
  return %y : tensor<?x?xf16>
}

// -----

// Two columns are left out, the column is wanted, another dimension, a logarithm, a part of the columns.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-4: mlc.softmax
func.func @others(%x: tensor<8x64xf32>, %t: tensor<8x2xf32>, %s: tensor<8x1xf32>)
    -> (tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x65xf32>, tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x63xf32>) {
  %c0 = mlc.concat %x, %t {axis = 1 : i64} : tensor<8x64xf32>, tensor<8x2xf32> -> tensor<8x66xf32>
  %p0 = mlc.softmax %c0 {axis = 1 : i64} : tensor<8x66xf32>
  %y0 = mlc.slice %p0 [0, 0] [8, 64] [1, 1] : tensor<8x66xf32> -> tensor<8x64xf32>
  %c = mlc.concat %x, %s {axis = 1 : i64} : tensor<8x64xf32>, tensor<8x1xf32> -> tensor<8x65xf32>
  %p1 = mlc.softmax %c {axis = 1 : i64} : tensor<8x65xf32>
  %y1 = mlc.slice %p1 [0, 0] [8, 64] [1, 1] : tensor<8x65xf32> -> tensor<8x64xf32>
  %p2 = mlc.softmax %c {axis = 0 : i64} : tensor<8x65xf32>
  %y2 = mlc.slice %p2 [0, 0] [8, 64] [1, 1] : tensor<8x65xf32> -> tensor<8x64xf32>
  %p3 = mlc.softmax %c {axis = 1 : i64, log = true} : tensor<8x65xf32>
  %y3 = mlc.slice %p3 [0, 0] [8, 64] [1, 1] : tensor<8x65xf32> -> tensor<8x64xf32>
  %d = mlc.unary neg %c : tensor<8x65xf32>
  %p4 = mlc.softmax %c {axis = 1 : i64} : tensor<8x65xf32>
  %y4 = mlc.slice %p4 [0, 1] [8, 63] [1, 1] : tensor<8x65xf32> -> tensor<8x63xf32>
  return %y0, %y1, %p1, %y2, %y3, %y4 : tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x65xf32>, tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x63xf32>
}
