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
