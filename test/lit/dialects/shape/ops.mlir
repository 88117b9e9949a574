// Constants and data movement: what is printed parses to the same, in both forms.
// RUN: mlc-opt %s | mlc-opt | FileCheck %s
// RUN: mlc-opt %s --mlir-print-op-generic | mlc-opt | FileCheck %s

// CHECK-LABEL: func.func @shape
func.func @shape(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %i: tensor<?x4xi32>, %b: tensor<?x4xi1>, %s: tensor<f32>, %l: tensor<i64>, %n: index) {
  // CHECK: mlc.constant dense<[1, 2]> : tensor<2xi64>
  %0 = mlc.constant dense<[1, 2]> : tensor<2xi64>
  // CHECK: mlc.weight "encoder/w0" : tensor<768x768xf32>
  %1 = mlc.weight "encoder/w0" : tensor<768x768xf32>
  // CHECK: mlc.weight "experts"[%{{.*}} of 8] : tensor<768x768xf32>
  %which = arith.constant 3 : index
  %one = mlc.weight "experts"[%which of 8] : tensor<768x768xf32>
  // CHECK: mlc.reshape %{{.*}} [%{{.*}}, 2, 2] : tensor<?x4xf32> -> tensor<?x2x2xf32>
  %2 = mlc.reshape %x [%n, 2, 2] : tensor<?x4xf32> -> tensor<?x2x2xf32>
  // CHECK: mlc.reshape %{{.*}} [] : tensor<f32> -> tensor<f32>
  %3 = mlc.reshape %s [] : tensor<f32> -> tensor<f32>
  // CHECK: mlc.transpose %{{.*}} {permutation = array<i64: 1, 0>} : tensor<?x4xf32> -> tensor<4x?xf32>
  %4 = mlc.transpose %x {permutation = array<i64: 1, 0>} : tensor<?x4xf32> -> tensor<4x?xf32>
  // CHECK: mlc.broadcast %{{.*}} [3, %{{.*}}, 4] : tensor<?x4xf32> -> tensor<3x?x4xf32>
  %5 = mlc.broadcast %x [3, %n, 4] : tensor<?x4xf32> -> tensor<3x?x4xf32>
  // CHECK: mlc.concat %{{.*}}, %{{.*}} {axis = 1 : i64} : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  %6 = mlc.concat %x, %y {axis = 1 : i64} : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x8xf32>
  // CHECK: mlc.slice %{{.*}} [0, %{{.*}}] [%{{.*}}, 2] [1, -1] : tensor<?x4xf32> -> tensor<?x2xf32>
  %7 = mlc.slice %x [0, %n] [%n, 2] [1, -1] : tensor<?x4xf32> -> tensor<?x2xf32>
  // CHECK: mlc.pad constant %{{.*}} low [0, 1] high [%{{.*}}, 0] value(%{{.*}} : tensor<f32>) : tensor<?x4xf32> -> tensor<?x5xf32>
  %8 = mlc.pad constant %x low [0, 1] high [%n, 0] value(%s : tensor<f32>) : tensor<?x4xf32> -> tensor<?x5xf32>
  // CHECK: mlc.pad reflect %{{.*}} low [0, -1] high [0, 2] : tensor<?x4xf32> -> tensor<?x5xf32>
  %9 = mlc.pad reflect %x low [0, -1] high [0, 2] : tensor<?x4xf32> -> tensor<?x5xf32>
  // CHECK: mlc.shape_of %{{.*}} : tensor<?x4xf32> -> tensor<2xi64>
  %10 = mlc.shape_of %x : tensor<?x4xf32> -> tensor<2xi64>
  // CHECK: mlc.iota [%{{.*}}, 4] {axis = 1 : i64} : tensor<?x4xi32>
  %11 = mlc.iota [%n, 4] {axis = 1 : i64} : tensor<?x4xi32>
  return
}
