// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-lift-gathers,canonicalize,cse)' | FileCheck %s

// Rows are picked before they are widened, with one scale for all of them.
// CHECK-LABEL: func.func @tensor
// CHECK: %[[T:.*]] = mlc.weight "t" : tensor<4000x512xi8>
// CHECK: %[[G:.*]] = mlc.gather %[[T]], %arg0 {axis = 0 : i64} : tensor<4000x512xi8>, tensor<1x6xi64> -> tensor<1x6x512xi8>
// CHECK: %[[W:.*]] = mlc.cast %[[G]] {unsigned_in} : tensor<1x6x512xi8> -> tensor<1x6x512xi32>
// CHECK: mlc.binary sub %[[W]], %{{.*}} : tensor<1x6x512xi32>, tensor<i32> -> tensor<1x6x512xi32>
// CHECK: mlc.binary mul %{{.*}} : tensor<1x6x512xf32>, tensor<f32> -> tensor<1x6x512xf32>
// CHECK-NOT: tensor<4000x512xf32>
func.func @tensor(%words: tensor<1x6xi64>) -> tensor<1x6x512xf32> {
  %t = mlc.weight "t" : tensor<4000x512xi8>
  %s = mlc.weight "s" : tensor<f32>
  %z = mlc.weight "z" : tensor<i8>
  %f = mlc.dequantize %t, %s zero_point(%z : tensor<i8>) {unsigned} : tensor<4000x512xi8>, tensor<f32> -> tensor<4000x512xf32>
  %y = mlc.gather %f, %words {axis = 0 : i64} : tensor<4000x512xf32>, tensor<1x6xi64> -> tensor<1x6x512xf32>
  return %y : tensor<1x6x512xf32>
}

// A scale for each row is picked, too; one for each column is not.
// CHECK-LABEL: func.func @rows
// CHECK-DAG: mlc.gather %{{.*}}, %arg0 {axis = 0 : i64} : tensor<4000x512xi8>, tensor<?xi64> -> tensor<?x512xi8>
// CHECK-DAG: mlc.gather %{{.*}}, %arg0 {axis = 0 : i64} : tensor<4000x1xf32>, tensor<?xi64> -> tensor<?x1xf32>
// CHECK: mlc.binary mul %{{.*}} : tensor<?x512xf32>, tensor<?x1xf32> -> tensor<?x512xf32>
func.func @rows(%words: tensor<?xi64>) -> tensor<?x512xf32> {
  %t = mlc.weight "t" : tensor<4000x512xi8>
  %s = mlc.weight "s" : tensor<4000xf32>
  %f = mlc.dequantize %t, %s {axis = 0 : i64} : tensor<4000x512xi8>, tensor<4000xf32> -> tensor<4000x512xf32>
  %y = mlc.gather %f, %words {axis = 0 : i64} : tensor<4000x512xf32>, tensor<?xi64> -> tensor<?x512xf32>
  return %y : tensor<?x512xf32>
}

// CHECK-LABEL: func.func @columns
// CHECK: mlc.gather %{{.*}}, %arg0 {axis = 0 : i64} : tensor<4000x512xi8>, tensor<2x3xi64> -> tensor<2x3x512xi8>
// CHECK-NOT: mlc.gather
// CHECK: mlc.binary mul %{{.*}} : tensor<2x3x512xf32>, tensor<1x1x512xf32> -> tensor<2x3x512xf32>
func.func @columns(%words: tensor<2x3xi64>) -> tensor<2x3x512xf32> {
  %t = mlc.weight "t" : tensor<4000x512xi8>
  %s = mlc.weight "s" : tensor<512xf32>
  %f = mlc.dequantize %t, %s {axis = 1 : i64} : tensor<4000x512xi8>, tensor<512xf32> -> tensor<4000x512xf32>
  %y = mlc.gather %f, %words {axis = 0 : i64} : tensor<4000x512xf32>, tensor<2x3xi64> -> tensor<2x3x512xf32>
  return %y : tensor<2x3x512xf32>
}

// Scales of blocks of a row: those of the rows are picked, and then spread.
// CHECK-LABEL: func.func @blocks
// CHECK: %[[S:.*]] = mlc.gather %{{.*}}, %arg0 {axis = 0 : i64} : tensor<4000x16xf32>, tensor<2x3xi64> -> tensor<2x3x16xf32>
// CHECK: mlc.gather %[[S]], %{{.*}} {axis = 2 : i64, mlc.in_range} : tensor<2x3x16xf32>, tensor<512xi64> -> tensor<2x3x512xf32>
func.func @blocks(%words: tensor<2x3xi64>) -> tensor<2x3x512xf32> {
  %t = mlc.weight "t" : tensor<4000x512xi8>
  %s = mlc.weight "s" : tensor<4000x16xf32>
  %f = mlc.dequantize %t, %s {axis = 1 : i64, block_size = 32 : i64} : tensor<4000x512xi8>, tensor<4000x16xf32> -> tensor<4000x512xf32>
  %y = mlc.gather %f, %words {axis = 0 : i64} : tensor<4000x512xf32>, tensor<2x3xi64> -> tensor<2x3x512xf32>
  return %y : tensor<2x3x512xf32>
}

// Weights of 16 bits stay what they are, unless something else makes them wider anyway.
// CHECK-LABEL: func.func @half
// CHECK: mlc.gather %{{.*}}, %arg0 {axis = 0 : i64} : tensor<4000x512xf16>, tensor<6xi64> -> tensor<6x512xf16>
// CHECK: mlc.cast %{{.*}} : tensor<6x512xf16> -> tensor<6x512xf32>
func.func @half(%words: tensor<6xi64>) -> tensor<6x512xf32> {
  %t = mlc.weight "t" : tensor<4000x512xf16>
  %f = mlc.cast %t : tensor<4000x512xf16> -> tensor<4000x512xf32>
  %y = mlc.gather %f, %words {axis = 0 : i64} : tensor<4000x512xf32>, tensor<6xi64> -> tensor<6x512xf32>
  return %y : tensor<6x512xf32>
}

// CHECK-LABEL: func.func @tied
// CHECK: mlc.gather %{{.*}}, %arg0 {axis = 0 : i64} : tensor<4000x512xf32>, tensor<6xi64> -> tensor<6x512xf32>
func.func @tied(%words: tensor<6xi64>) -> tensor<6x4000xf32> {
  %t = mlc.weight "t" : tensor<4000x512xf16>
  %f = mlc.cast %t : tensor<4000x512xf16> -> tensor<4000x512xf32>
  %y = mlc.gather %f, %words {axis = 0 : i64} : tensor<4000x512xf32>, tensor<6xi64> -> tensor<6x512xf32>
  %p = mlc.matmul %y, %f {transpose_rhs} : tensor<6x512xf32>, tensor<4000x512xf32> -> tensor<6x4000xf32>
  return %p : tensor<6x4000xf32>
}

// What `mlc-hoist-weights` makes a weight is left: a small table, one no wider than its weight, and a table of the run.
// More rows than there are would be computed more often.
// CHECK-LABEL: func.func @others
// CHECK: mlc.gather {{.*}} tensor<400x512xf32>
// CHECK: mlc.gather {{.*}} tensor<4000x512xf32>
// CHECK: mlc.gather {{.*}} tensor<4000x512xf32>
// CHECK: mlc.gather {{.*}} tensor<4000x512xf32>
func.func @others(%x: tensor<4000x512xi8>, %words: tensor<6xi64>, %many: tensor<4001xi64>)
    -> (tensor<6x512xf32>, tensor<6x512xf32>, tensor<6x512xf32>, tensor<4001x512xf32>) {
  %t = mlc.weight "t" : tensor<4000x512xi8>
  %u = mlc.weight "u" : tensor<400x512xi8>
  %v = mlc.weight "v" : tensor<4000x512xf32>
  %s = mlc.weight "s" : tensor<f32>
  %0 = mlc.dequantize %u, %s : tensor<400x512xi8>, tensor<f32> -> tensor<400x512xf32>
  %1 = mlc.gather %0, %words {axis = 0 : i64} : tensor<400x512xf32>, tensor<6xi64> -> tensor<6x512xf32>
  %2 = mlc.unary exp %v : tensor<4000x512xf32>
  %3 = mlc.gather %2, %words {axis = 0 : i64} : tensor<4000x512xf32>, tensor<6xi64> -> tensor<6x512xf32>
  %4 = mlc.dequantize %x, %s : tensor<4000x512xi8>, tensor<f32> -> tensor<4000x512xf32>
  %5 = mlc.gather %4, %words {axis = 0 : i64} : tensor<4000x512xf32>, tensor<6xi64> -> tensor<6x512xf32>
  %6 = mlc.dequantize %t, %s : tensor<4000x512xi8>, tensor<f32> -> tensor<4000x512xf32>
  %7 = mlc.gather %6, %many {axis = 0 : i64} : tensor<4000x512xf32>, tensor<4001xi64> -> tensor<4001x512xf32>
  return %1, %3, %5, %7 : tensor<6x512xf32>, tensor<6x512xf32>, tensor<6x512xf32>, tensor<4001x512xf32>
}
