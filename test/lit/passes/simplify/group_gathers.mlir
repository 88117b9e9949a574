// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-group-gathers,canonicalize,cse)' | FileCheck %s

// Both products of an expert, whose rows are put in order once.
// CHECK-LABEL: func.func @mixture
// CHECK-SAME: (%[[X:.*]]: tensor<8x256x1xf32>, %[[SCORES:.*]]: tensor<4x16xf32>)
// CHECK: %[[VALUES:.*]], %[[PLACES:.*]] = mlc.topk %[[SCORES]]
// CHECK: %[[CHOSEN:.*]] = mlc.reshape %[[PLACES]] [8]
// CHECK: %{{.*}}, %[[ORDER:.*]] = mlc.sort %[[CHOSEN]]
// CHECK: %[[LESS:.*]] = mlc.compare lt %[[LINE:[^,]*]], %[[NUMBERS:[^ ]*]]
// CHECK: %[[BEGINS:.*]] = mlc.reduce sum
// CHECK: mlc.compare le %[[LINE]], %[[NUMBERS]]
// CHECK: %[[ENDS:.*]] = mlc.reduce sum
// CHECK: %[[SOME:.*]] = mlc.nonzero
// CHECK: %[[BACK:.*]] = mlc.scatter_elements %[[ORDER]], %[[ORDER]]
// CHECK: %[[ROWS:.*]] = mlc.gather %{{.*}}, %[[ORDER]] {axis = 0 : i64, mlc.in_range} : tensor<8x256xf32>
// CHECK: %[[MADE:.*]] = scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[OLD:.*]] = %{{.*}}) -> (tensor<1x8x512xf32>)
// CHECK:   tensor.extract %{{.*}}[%[[I]]]
// CHECK:   tensor.extract %[[BEGINS]]
// CHECK:   tensor.extract %[[ENDS]]
// CHECK:   %[[PART:.*]] = mlc.slice %[[ROWS]]
// CHECK:   %[[MATRIX:.*]] = mlc.reshape %{{.*}} [512, 256]
// CHECK:   %[[PRODUCT:.*]] = mlc.matmul %[[PART]], %[[MATRIX]] {transpose_rhs}
// CHECK:   mlc.insert %[[OLD]], %{{.*}}, %{{.*}} {axis = 1 : i64}
// CHECK: %[[Y:.*]] = mlc.gather %{{.*}}, %[[BACK]] {axis = 0 : i64, mlc.in_range} : tensor<8x512xf32>
// CHECK-NOT: mlc.sort
// CHECK: scf.for
// CHECK:   mlc.matmul %{{.*}}, %{{.*}} : tensor<?x512xf32>, tensor<512x256xf32>
// CHECK: mlc.gather %{{.*}}, %[[BACK]]
func.func @mixture(%x: tensor<8x256x1xf32>, %scores: tensor<4x16xf32>) -> tensor<8x1x256xf32> {
  %k = arith.constant 2 : index
  %values, %places = mlc.topk %scores, %k {axis = 1 : i64} : tensor<4x16xf32> -> tensor<4x2xf32>, tensor<4x2xi64>
  %chosen = mlc.reshape %places [8] : tensor<4x2xi64> -> tensor<8xi64>
  %up = mlc.weight "up" : tensor<16x512x256xf32>
  %0 = mlc.gather %up, %chosen {axis = 0 : i64} : tensor<16x512x256xf32>, tensor<8xi64> -> tensor<8x512x256xf32>
  %1 = mlc.matmul %0, %x : tensor<8x512x256xf32>, tensor<8x256x1xf32> -> tensor<8x512x1xf32>
  %2 = mlc.reshape %1 [8, 1, 512] : tensor<8x512x1xf32> -> tensor<8x1x512xf32>
  %down = mlc.weight "down" : tensor<16x512x256xf32>
  %3 = mlc.gather %down, %chosen {axis = 0 : i64} : tensor<16x512x256xf32>, tensor<8xi64> -> tensor<8x512x256xf32>
  %4 = mlc.matmul %2, %3 : tensor<8x1x512xf32>, tensor<8x512x256xf32> -> tensor<8x1x256xf32>
  return %4 : tensor<8x1x256xf32>
}

// Points of one coordinate say the same; rows of any number.
// CHECK-LABEL: func.func @points
// CHECK: scf.for
// CHECK:   mlc.matmul %{{.*}}, %{{.*}} {transpose_rhs} : tensor<?x256xf32>, tensor<512x256xf32>
func.func @points(%x: tensor<?x1x256xf32>, %scores: tensor<?x16xf32>) -> tensor<?x1x512xf32> {
  %k = arith.constant 1 : index
  %values, %places = mlc.topk %scores, %k {axis = 1 : i64} : tensor<?x16xf32> -> tensor<?x1xf32>, tensor<?x1xi64>
  %up = mlc.weight "up" : tensor<16x512x256xf32>
  %0 = mlc.gather_nd %up, %places : tensor<16x512x256xf32>, tensor<?x1xi64> -> tensor<?x512x256xf32>
  %1 = mlc.matmul %x, %0 {transpose_rhs} : tensor<?x1x256xf32>, tensor<?x512x256xf32> -> tensor<?x1x512xf32>
  return %1 : tensor<?x1x512xf32>
}

// Numbers that anybody may give, no weight, several rows of each, small matrices, more choices than matrices, numbers
// that were bytes on the way.
// CHECK-LABEL: func.func @others
// CHECK-NOT: scf.for
// CHECK: return
func.func @others(%x: tensor<4x1x256xf32>, %z: tensor<4x3x256xf32>, %w: tensor<4x1x16xf32>, %given: tensor<4xi64>,
                  %scores: tensor<4x16xf32>, %many: tensor<4x17xf32>, %run: tensor<16x256x512xf32>)
    -> (tensor<4x1x512xf32>, tensor<4x1x512xf32>, tensor<4x3x512xf32>, tensor<4x1x16xf32>, tensor<4x1x512xf32>, tensor<4x1x512xf32>) {
  %k = arith.constant 1 : index
  %v, %p = mlc.topk %scores, %k {axis = 1 : i64} : tensor<4x16xf32> -> tensor<4x1xf32>, tensor<4x1xi64>
  %c = mlc.reshape %p [4] : tensor<4x1xi64> -> tensor<4xi64>
  %v1, %p1 = mlc.topk %many, %k {axis = 1 : i64} : tensor<4x17xf32> -> tensor<4x1xf32>, tensor<4x1xi64>
  %c1 = mlc.reshape %p1 [4] : tensor<4x1xi64> -> tensor<4xi64>
  %stack = mlc.weight "up" : tensor<16x256x512xf32>
  %small = mlc.weight "small" : tensor<16x16x16xf32>
  %0 = mlc.gather %stack, %given {axis = 0 : i64} : tensor<16x256x512xf32>, tensor<4xi64> -> tensor<4x256x512xf32>
  %y0 = mlc.matmul %x, %0 : tensor<4x1x256xf32>, tensor<4x256x512xf32> -> tensor<4x1x512xf32>
  %1 = mlc.gather %run, %c {axis = 0 : i64} : tensor<16x256x512xf32>, tensor<4xi64> -> tensor<4x256x512xf32>
  %y1 = mlc.matmul %x, %1 : tensor<4x1x256xf32>, tensor<4x256x512xf32> -> tensor<4x1x512xf32>
  %2 = mlc.gather %stack, %c {axis = 0 : i64} : tensor<16x256x512xf32>, tensor<4xi64> -> tensor<4x256x512xf32>
  %y2 = mlc.matmul %z, %2 : tensor<4x3x256xf32>, tensor<4x256x512xf32> -> tensor<4x3x512xf32>
  %3 = mlc.gather %small, %c {axis = 0 : i64} : tensor<16x16x16xf32>, tensor<4xi64> -> tensor<4x16x16xf32>
  %y3 = mlc.matmul %w, %3 : tensor<4x1x16xf32>, tensor<4x16x16xf32> -> tensor<4x1x16xf32>
  %4 = mlc.gather %stack, %c1 {axis = 0 : i64} : tensor<16x256x512xf32>, tensor<4xi64> -> tensor<4x256x512xf32>
  %y4 = mlc.matmul %x, %4 : tensor<4x1x256xf32>, tensor<4x256x512xf32> -> tensor<4x1x512xf32>
  %narrow = mlc.cast %c : tensor<4xi64> -> tensor<4xi8>
  %c5 = mlc.cast %narrow : tensor<4xi8> -> tensor<4xi64>
  %5 = mlc.gather %stack, %c5 {axis = 0 : i64} : tensor<16x256x512xf32>, tensor<4xi64> -> tensor<4x256x512xf32>
  %y5 = mlc.matmul %x, %5 : tensor<4x1x256xf32>, tensor<4x256x512xf32> -> tensor<4x1x512xf32>
  return %y0, %y1, %y2, %y3, %y4, %y5 : tensor<4x1x512xf32>, tensor<4x1x512xf32>, tensor<4x3x512xf32>, tensor<4x1x16xf32>, tensor<4x1x512xf32>, tensor<4x1x512xf32>
}
