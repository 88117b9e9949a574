// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-sink-moves)' | FileCheck %s

// CHECK-LABEL: func.func @scaled
// CHECK: [[S:%.+]] = mlc.binary mul %arg0, %{{.+}} : tensor<1x8x64xf32>, tensor<1xf32>
// CHECK: [[C:%.+]] = mlc.cast [[S]] : tensor<1x8x64xf32> -> tensor<1x8x64xbf16>
// CHECK: [[R:%.+]] = mlc.reshape [[C]] [1, 8, 4, 16] : tensor<1x8x64xbf16> -> tensor<1x8x4x16xbf16>
// CHECK: [[T:%.+]] = mlc.transpose [[R]] {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x8x4x16xbf16> -> tensor<1x4x8x16xbf16>
// CHECK: return [[T]]
func.func @scaled(%x: tensor<1x8x64xf32>) -> tensor<1x4x8x16xbf16> {
  %c = mlc.constant dense<0.25> : tensor<1xf32>
  %r = mlc.reshape %x [1, 8, 4, 16] : tensor<1x8x64xf32> -> tensor<1x8x4x16xf32>
  %t = mlc.transpose %r {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x8x4x16xf32> -> tensor<1x4x8x16xf32>
  %s = mlc.binary mul %t, %c : tensor<1x4x8x16xf32>, tensor<1xf32> -> tensor<1x4x8x16xf32>
  %n = mlc.cast %s : tensor<1x4x8x16xf32> -> tensor<1x4x8x16xbf16>
  return %n : tensor<1x4x8x16xbf16>
}

// The transpose has another reader; the cast makes elements larger.
// CHECK-LABEL: func.func @stay
// CHECK: [[T:%.+]] = mlc.transpose %arg0
// CHECK: mlc.unary exp [[T]]
// CHECK: mlc.transpose %arg1
// CHECK: mlc.cast
func.func @stay(%x: tensor<4x8xf32>, %y: tensor<4x8xbf16>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %t = mlc.transpose %x {permutation = array<i64: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  %e = mlc.unary exp %t : tensor<8x4xf32>
  %u = mlc.transpose %y {permutation = array<i64: 1, 0>} : tensor<4x8xbf16> -> tensor<8x4xbf16>
  %w = mlc.cast %u : tensor<8x4xbf16> -> tensor<8x4xf32>
  return %t, %e, %w : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// A transpose comes before a reshape that joins dimensions of a product: the product may then write in its order. A
// reshape that splits a dimension, and one of what is no product, stay where they are.
// CHECK-LABEL: func.func @joined
// CHECK: [[M:%.+]] = mlc.matmul
// CHECK: [[C:%.+]] = mlc.cast [[M]]
// CHECK: [[T:%.+]] = mlc.transpose [[C]] {permutation = array<i64: 0, 3, 1, 2, 4>} : tensor<1x2x3x4x8xbf16> -> tensor<1x4x2x3x8xbf16>
// CHECK: [[R:%.+]] = mlc.reshape [[T]] [1, 4, 6, 8]
// CHECK: mlc.reshape %arg2 [1, 6, 4, 8]
// CHECK: mlc.transpose
func.func @joined(%x: tensor<1x2x3x4x16xbf16>, %w: tensor<1x2x1x16x8xbf16>, %y: tensor<1x2x3x4x8xbf16>) -> (tensor<1x4x6x8xbf16>, tensor<1x4x6x8xbf16>) {
  %m = mlc.matmul %x, %w {widen} : tensor<1x2x3x4x16xbf16>, tensor<1x2x1x16x8xbf16> -> tensor<1x2x3x4x8xf32>
  %c = mlc.cast %m : tensor<1x2x3x4x8xf32> -> tensor<1x2x3x4x8xbf16>
  %r = mlc.reshape %c [1, 6, 4, 8] : tensor<1x2x3x4x8xbf16> -> tensor<1x6x4x8xbf16>
  %t = mlc.transpose %r {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x6x4x8xbf16> -> tensor<1x4x6x8xbf16>
  %s = mlc.reshape %y [1, 6, 4, 8] : tensor<1x2x3x4x8xbf16> -> tensor<1x6x4x8xbf16>
  %u = mlc.transpose %s {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x6x4x8xbf16> -> tensor<1x4x6x8xbf16>
  return %t, %u : tensor<1x4x6x8xbf16>, tensor<1x4x6x8xbf16>
}

// So does one of extents that only a run knows.
// CHECK-LABEL: func.func @joined_at_run_time
// CHECK: [[M:%.+]] = mlc.matmul
// CHECK: [[T:%.+]] = mlc.transpose [[M]] {permutation = array<i64: 0, 3, 1, 2, 4>} : tensor<?x2x3x?x8xf32> -> tensor<?x?x2x3x8xf32>
// CHECK: mlc.reshape [[T]] [%{{.*}}, %{{.*}}, 6, 8] : tensor<?x?x2x3x8xf32> -> tensor<?x?x6x8xf32>
func.func @joined_at_run_time(%x: tensor<?x2x3x?x16xf32>, %w: tensor<?x2x1x16x8xf32>) -> tensor<?x?x6x8xf32> {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %m = mlc.matmul %x, %w : tensor<?x2x3x?x16xf32>, tensor<?x2x1x16x8xf32> -> tensor<?x2x3x?x8xf32>
  %b = tensor.dim %m, %c0 : tensor<?x2x3x?x8xf32>
  %n = tensor.dim %m, %c3 : tensor<?x2x3x?x8xf32>
  %r = mlc.reshape %m [%b, 6, %n, 8] : tensor<?x2x3x?x8xf32> -> tensor<?x6x?x8xf32>
  %t = mlc.transpose %r {permutation = array<i64: 0, 2, 1, 3>} : tensor<?x6x?x8xf32> -> tensor<?x?x6x8xf32>
  return %t : tensor<?x?x6x8xf32>
}

// Few rows of a matrix would lie together: the product is of all rows, in their order.
// CHECK-LABEL: func.func @rows
// CHECK: %[[M:.*]] = mlc.matmul %arg0, %{{.*}} : tensor<32x197x8xf32>, tensor<8x6xf32> -> tensor<32x197x6xf32>
// CHECK: %[[A:.*]] = mlc.binary add %[[M]], %{{.*}} : tensor<32x197x6xf32>, tensor<6xf32>
// CHECK: mlc.transpose %[[A]] {permutation = array<i64: 1, 0, 2>} : tensor<32x197x6xf32> -> tensor<197x32x6xf32>
func.func @rows(%x: tensor<32x197x8xf32>) -> tensor<197x32x6xf32> {
  %w = mlc.weight "w" : tensor<8x6xf32>
  %b = mlc.weight "b" : tensor<6xf32>
  %t = mlc.transpose %x {permutation = array<i64: 1, 0, 2>} : tensor<32x197x8xf32> -> tensor<197x32x8xf32>
  %m = mlc.matmul %t, %w : tensor<197x32x8xf32>, tensor<8x6xf32> -> tensor<197x32x6xf32>
  %r = mlc.binary add %m, %b : tensor<197x32x6xf32>, tensor<6xf32> -> tensor<197x32x6xf32>
  return %r : tensor<197x32x6xf32>
}

// Enough of them lie together as it is.
// CHECK-LABEL: func.func @many_rows
// CHECK: mlc.transpose
// CHECK: mlc.matmul
func.func @many_rows(%x: tensor<197x256x8xf32>) -> tensor<256x197x6xf32> {
  %w = mlc.weight "w" : tensor<8x6xf32>
  %t = mlc.transpose %x {permutation = array<i64: 1, 0, 2>} : tensor<197x256x8xf32> -> tensor<256x197x8xf32>
  %m = mlc.matmul %t, %w : tensor<256x197x8xf32>, tensor<8x6xf32> -> tensor<256x197x6xf32>
  return %m : tensor<256x197x6xf32>
}
