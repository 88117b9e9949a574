// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-fold-positions,canonicalize,cse)' | FileCheck %s

// What transformers asks of a text: its positions, picked by their places, and whether they go on by one. Of the mask a
// causal one with a window is left.
// CHECK-LABEL: func.func @packed
// CHECK-NOT: gather_nd
// CHECK-NOT: scan
// CHECK-DAG: %[[WINDOW:.*]] = mlc.constant dense<16> : tensor<i64>
// CHECK-DAG: %[[ROW:.*]] = mlc.iota [1, 1, 80, 1] {axis = 2 : i64}
// CHECK-DAG: %[[KEY:.*]] = mlc.iota [1, 1, 1, 80] {axis = 3 : i64}
// CHECK: %[[FROM:.*]] = mlc.binary sub %[[ROW]], %[[WINDOW]]
// CHECK: %[[A:.*]] = mlc.compare gt %[[KEY]], %[[FROM]]
// CHECK: %[[B:.*]] = mlc.compare le %[[KEY]], %[[ROW]]
// CHECK: %[[BOTH:.*]] = mlc.binary and %[[A]], %[[B]]
// CHECK: return %[[BOTH]]
func.func @packed() -> tensor<1x1x80x80xi1> {
  %one = mlc.constant dense<1> : tensor<i64>
  %window = mlc.constant dense<16> : tensor<i64>
  %zero = mlc.constant dense<0> : tensor<i64>
  %true = mlc.constant dense<true> : tensor<i1>
  %i = mlc.iota [80] {axis = 0 : i64} : tensor<80xi64>
  %p = mlc.reshape %i [1, 80] : tensor<80xi64> -> tensor<1x80xi64>
  %first = mlc.slice %p [0, 0] [1, 1] [1, 1] : tensor<1x80xi64> -> tensor<1x1xi64>
  %front = mlc.binary sub %first, %one : tensor<1x1xi64>, tensor<i64> -> tensor<1x1xi64>
  %more = mlc.concat %front, %p {axis = 1 : i64} : tensor<1x1xi64>, tensor<1x80xi64> -> tensor<1x81xi64>
  %before = mlc.slice %more [0, 0] [1, 80] [1, 1] : tensor<1x81xi64> -> tensor<1x80xi64>
  %behind = mlc.slice %more [0, 1] [1, 80] [1, 1] : tensor<1x81xi64> -> tensor<1x80xi64>
  %step = mlc.binary sub %behind, %before : tensor<1x80xi64>
  %new = mlc.compare ne %step, %one : tensor<1x80xi64>, tensor<i64> -> tensor<1x80xi1>
  %number = mlc.cast %new : tensor<1x80xi1> -> tensor<1x80xi64>
  %text = mlc.scan sum %number {axis = 1 : i64} : tensor<1x80xi64>
  %z0 = mlc.broadcast %zero [1, 1, 80, 1, 1] : tensor<i64> -> tensor<1x1x80x1x1xi64>
  %i0 = mlc.reshape %i [1, 1, 80, 1, 1] : tensor<80xi64> -> tensor<1x1x80x1x1xi64>
  %at0 = mlc.concat %z0, %i0 {axis = 4 : i64} : tensor<1x1x80x1x1xi64>, tensor<1x1x80x1x1xi64> -> tensor<1x1x80x1x2xi64>
  %z1 = mlc.broadcast %zero [1, 1, 1, 80, 1] : tensor<i64> -> tensor<1x1x1x80x1xi64>
  %i1 = mlc.reshape %i [1, 1, 1, 80, 1] : tensor<80xi64> -> tensor<1x1x1x80x1xi64>
  %at1 = mlc.concat %z1, %i1 {axis = 4 : i64} : tensor<1x1x1x80x1xi64>, tensor<1x1x1x80x1xi64> -> tensor<1x1x1x80x2xi64>
  %row = mlc.gather_nd %p, %at0 : tensor<1x80xi64>, tensor<1x1x80x1x2xi64> -> tensor<1x1x80x1xi64>
  %key = mlc.gather_nd %p, %at1 : tensor<1x80xi64>, tensor<1x1x1x80x2xi64> -> tensor<1x1x1x80xi64>
  %from = mlc.binary sub %row, %window : tensor<1x1x80x1xi64>, tensor<i64> -> tensor<1x1x80x1xi64>
  %a = mlc.compare gt %key, %from : tensor<1x1x1x80xi64>, tensor<1x1x80x1xi64> -> tensor<1x1x80x80xi1>
  %a1 = mlc.binary and %a, %true : tensor<1x1x80x80xi1>, tensor<i1> -> tensor<1x1x80x80xi1>
  %b = mlc.compare le %key, %row : tensor<1x1x1x80xi64>, tensor<1x1x80x1xi64> -> tensor<1x1x80x80xi1>
  %ab = mlc.binary and %a1, %b : tensor<1x1x80x80xi1>
  %t0 = mlc.gather_nd %text, %at0 : tensor<1x80xi64>, tensor<1x1x80x1x2xi64> -> tensor<1x1x80x1xi64>
  %t1 = mlc.gather_nd %text, %at1 : tensor<1x80xi64>, tensor<1x1x1x80x2xi64> -> tensor<1x1x1x80xi64>
  %same = mlc.compare eq %t0, %t1 : tensor<1x1x80x1xi64>, tensor<1x1x1x80xi64> -> tensor<1x1x80x80xi1>
  %y = mlc.binary and %ab, %same : tensor<1x1x80x80xi1>
  return %y : tensor<1x1x80x80xi1>
}

// -----

// A mask of the run that is picked in its own order is a view of it, also of any extents.
// CHECK-LABEL: func.func @padding
// CHECK-SAME: (%[[M:.*]]: tensor<?x?xi1>)
// CHECK-NOT: gather_nd
// CHECK: %[[V:.*]] = mlc.reshape %[[M]] [%{{.*}}, 1, 1, %{{.*}}] : tensor<?x?xi1> -> tensor<?x1x1x?xi1>
// CHECK: return %[[V]]
func.func @padding(%m: tensor<?x?xi1>) -> tensor<?x1x1x?xi1> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %m, %c0 : tensor<?x?xi1>
  %s = tensor.dim %m, %c1 : tensor<?x?xi1>
  %i = mlc.iota [%n, 1, 1, %s, 1] {axis = 0 : i64} : tensor<?x1x1x?x1xi64>
  %j = mlc.iota [%n, 1, 1, %s, 1] {axis = 3 : i64} : tensor<?x1x1x?x1xi64>
  %at = mlc.concat %i, %j {axis = 4 : i64} : tensor<?x1x1x?x1xi64>, tensor<?x1x1x?x1xi64> -> tensor<?x1x1x?x2xi64>
  %y = mlc.gather_nd %m, %at : tensor<?x?xi1>, tensor<?x1x1x?x2xi64> -> tensor<?x1x1x?xi1>
  return %y : tensor<?x1x1x?xi1>
}

// -----

// Places that are not known to be in range are read as before: the run must say so.
// CHECK-LABEL: func.func @out_of_range
// CHECK: mlc.gather_nd
// CHECK: mlc.gather
func.func @out_of_range(%m: tensor<?x8xf32>) -> (tensor<4xf32>, tensor<4x8xf32>) {
  %zero = mlc.constant dense<0> : tensor<4x1xi64>
  %p = mlc.iota [4] {axis = 0 : i64} : tensor<4xi64>
  %i = mlc.iota [4, 1] {axis = 0 : i64} : tensor<4x1xi64>
  %at = mlc.concat %i, %zero {axis = 1 : i64} : tensor<4x1xi64>, tensor<4x1xi64> -> tensor<4x2xi64>
  %y = mlc.gather_nd %m, %at : tensor<?x8xf32>, tensor<4x2xi64> -> tensor<4xf32>
  %z = mlc.gather %m, %p {axis = 0 : i64} : tensor<?x8xf32>, tensor<4xi64> -> tensor<4x8xf32>
  return %y, %z : tensor<4xf32>, tensor<4x8xf32>
}

// -----

// Rows of a table that follow each other are a part of it.
// CHECK-LABEL: func.func @embedded
// CHECK: %[[S:.*]] = mlc.slice %{{.*}} [2, 0] [4, 8] [1, 1] : tensor<9x8xf32> -> tensor<4x8xf32>
// CHECK: mlc.reshape %[[S]] [1, 4, 8]
func.func @embedded(%t: tensor<9x8xf32>) -> tensor<1x4x8xf32> {
  %two = mlc.constant dense<2> : tensor<i64>
  %i = mlc.iota [1, 4] {axis = 1 : i64} : tensor<1x4xi64>
  %p = mlc.binary add %i, %two : tensor<1x4xi64>, tensor<i64> -> tensor<1x4xi64>
  %y = mlc.gather %t, %p {axis = 0 : i64} : tensor<9x8xf32>, tensor<1x4xi64> -> tensor<1x4x8xf32>
  return %y : tensor<1x4x8xf32>
}

// -----

// The triangle that PyTorch's exporter writes for `is_causal`: of ones, cast, compared.
// CHECK-LABEL: func.func @triangle
// CHECK-DAG: %[[ROW:.*]] = mlc.iota [6, 1] {axis = 0 : i64}
// CHECK-DAG: %[[KEY:.*]] = mlc.iota [1, 6] {axis = 1 : i64}
// CHECK: %[[C:.*]] = mlc.compare gt %[[KEY]], %[[ROW]]
// CHECK: return %[[C]]
func.func @triangle() -> tensor<6x6xi1> {
  %c0 = arith.constant 0 : index
  %one = mlc.constant dense<1.0> : tensor<f32>
  %zero = mlc.constant dense<0.0> : tensor<f32>
  %ones = mlc.broadcast %one [6, 6] : tensor<f32> -> tensor<6x6xf32>
  %t = mlc.trilu %ones, %c0 {upper = false} : tensor<6x6xf32>
  %y = mlc.compare eq %t, %zero : tensor<6x6xf32>, tensor<f32> -> tensor<6x6xi1>
  return %y : tensor<6x6xi1>
}

// -----

// A part of a mask has a mask of its own.
// CHECK-LABEL: func.func @part
// CHECK-DAG: %[[TWO:.*]] = mlc.constant dense<2> : tensor<i64>
// CHECK-DAG: %[[ROW:.*]] = mlc.iota [1, 3, 1] {axis = 1 : i64}
// CHECK-DAG: %[[KEY:.*]] = mlc.iota [1, 1, 5] {axis = 2 : i64}
// CHECK-DAG: %[[MORE:.*]] = mlc.binary add %[[ROW]], %[[TWO]]
// CHECK: mlc.compare ge %[[MORE]], %[[KEY]] : tensor<1x3x1xi64>, tensor<1x1x5xi64> -> tensor<1x3x5xi1>
func.func @part() -> tensor<1x3x5xi1> {
  %i = mlc.iota [1, 64, 1] {axis = 1 : i64} : tensor<1x64x1xi64>
  %j = mlc.iota [1, 1, 64] {axis = 2 : i64} : tensor<1x1x64xi64>
  %m = mlc.compare ge %i, %j : tensor<1x64x1xi64>, tensor<1x1x64xi64> -> tensor<1x64x64xi1>
  %y = mlc.slice %m [0, 2, 0] [1, 3, 5] [1, 1, 1] : tensor<1x64x64xi1> -> tensor<1x3x5xi1>
  return %y : tensor<1x3x5xi1>
}
