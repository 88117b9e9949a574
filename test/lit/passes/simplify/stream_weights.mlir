// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-stream-weights,mlc-hoist-weights,canonicalize,cse)' | FileCheck %s

// The weight is stored in panels of columns, as integers; it is scaled where it is read. Those with scales in blocks are
// in words, and have no sign there.
// CHECK-LABEL: func.func @blocks
// CHECK-DAG: %[[W:.*]] = mlc.weight "w#{{.*}}" : tensor<16x128x32x4xi8>
// CHECK-DAG: %[[S:.*]] = mlc.weight "s#{{.*}}" : tensor<16x16x32xf32>
// CHECK-DAG: %[[Z:.*]] = mlc.constant dense<-128> : tensor<i8>
// CHECK-DAG: %[[U:.*]] = mlc.unpack %[[W]] {bits = 8 : i64, mlc.streamed} : tensor<16x128x32x4xi8> -> tensor<16x512x32xi8>
// CHECK: %[[D:.*]] = mlc.dequantize %[[U]], %[[S]] zero_point(%[[Z]] : tensor<i8>) {axis = 1 : i64, block_size = 32 : i64, mlc.streamed, unsigned}
// CHECK: %[[X:.*]] = mlc.reshape %arg0 [1, 3, 512]
// CHECK: %[[P:.*]] = mlc.matmul %[[X]], %[[D]] : tensor<1x3x512xf32>, tensor<16x512x32xf32> -> tensor<16x3x32xf32>
// CHECK: mlc.transpose %[[P]] {permutation = array<i64: 1, 0, 2>}
func.func @blocks(%x: tensor<3x512xf32>) -> tensor<3x512xf32> {
  %w = mlc.weight "w" : tensor<512x512xi8>
  %s = mlc.weight "s" : tensor<16x512xf32>
  %d = mlc.dequantize %w, %s {axis = 0 : i64, block_size = 32 : i64} : tensor<512x512xi8>, tensor<16x512xf32> -> tensor<512x512xf32>
  %0 = mlc.matmul %x, %d : tensor<3x512xf32>, tensor<512x512xf32> -> tensor<3x512xf32>
  return %0 : tensor<3x512xf32>
}

// One scale for every column, of a weight that is stored by columns, whose number is no multiple of a panel's.
// CHECK-LABEL: func.func @channels
// CHECK-DAG: mlc.weight "v#{{.*}}" : tensor<5x512x64xi8>
// CHECK-DAG: mlc.weight "t#{{.*}}" : tensor<5x1x64xf32>
// CHECK: mlc.dequantize {{.*}} {axis = 1 : i64, block_size = 512 : i64, mlc.streamed}
// CHECK: mlc.slice %{{.*}} [0, 0] [%{{.*}}, 300]
func.func @channels(%x: tensor<?x512xf32>) -> tensor<?x300xf32> {
  %w = mlc.weight "v" : tensor<300x512xi8>
  %s = mlc.weight "t" : tensor<300xf32>
  %d = mlc.dequantize %w, %s {axis = 0 : i64} : tensor<300x512xi8>, tensor<300xf32> -> tensor<300x512xf32>
  %0 = mlc.matmul %x, %d {transpose_rhs} : tensor<?x512xf32>, tensor<300x512xf32> -> tensor<?x300xf32>
  return %0 : tensor<?x300xf32>
}

// Products of halves become those of f32.
// CHECK-LABEL: func.func @halves
// CHECK: mlc.cast %arg0 : tensor<3x512xf16> -> tensor<3x512xf32>
// CHECK: mlc.dequantize {{.*}} {axis = 1 : i64, block_size = 32 : i64, mlc.streamed, unsigned} : tensor<16x512x32xi8>, tensor<16x16x32xf32>
// CHECK: mlc.matmul {{.*}} : tensor<1x3x512xf32>, tensor<16x512x32xf32> -> tensor<16x3x32xf32>
// CHECK: mlc.cast %{{.*}} : tensor<3x512xf32> -> tensor<3x512xf16>
func.func @halves(%x: tensor<3x512xf16>) -> tensor<3x512xf16> {
  %w = mlc.weight "w" : tensor<512x512xi8>
  %s = mlc.weight "h" : tensor<16x512xf16>
  %d = mlc.dequantize %w, %s {axis = 0 : i64, block_size = 32 : i64} : tensor<512x512xi8>, tensor<16x512xf16> -> tensor<512x512xf16>
  %0 = mlc.matmul %x, %d : tensor<3x512xf16>, tensor<512x512xf16> -> tensor<3x512xf16>
  return %0 : tensor<3x512xf16>
}

// A small weight is dequantized when the model is compiled.
// CHECK-LABEL: func.func @small
// CHECK-NOT: mlc.dequantize
func.func @small(%x: tensor<3x16xf32>, %s: tensor<f32>) -> tensor<3x16xf32> {
  %w = mlc.weight "u" : tensor<16x16xi8>
  %t = mlc.weight "r" : tensor<16xf32>
  %d = mlc.dequantize %w, %t {axis = 1 : i64} : tensor<16x16xi8>, tensor<16xf32> -> tensor<16x16xf32>
  %0 = mlc.matmul %x, %d : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
  return %0 : tensor<3x16xf32>
}

// Products that feed each other, and one weight of two products.
// CHECK-LABEL: func.func @in_a_row
// CHECK-COUNT-3: mlc.matmul %{{.*}} tensor<16x512x32xf32> -> tensor<16x3x32xf32>
// CHECK-NOT: mlc.matmul
func.func @in_a_row(%x: tensor<3x512xf32>) -> tensor<3x512xf32> {
  %w = mlc.weight "w" : tensor<512x512xi8>
  %s = mlc.weight "s" : tensor<16x512xf32>
  %d = mlc.dequantize %w, %s {axis = 0 : i64, block_size = 32 : i64} : tensor<512x512xi8>, tensor<16x512xf32> -> tensor<512x512xf32>
  %0 = mlc.matmul %x, %d : tensor<3x512xf32>, tensor<512x512xf32> -> tensor<3x512xf32>
  %1 = mlc.matmul %0, %d : tensor<3x512xf32>, tensor<512x512xf32> -> tensor<3x512xf32>
  %2 = mlc.matmul %1, %d : tensor<3x512xf32>, tensor<512x512xf32> -> tensor<3x512xf32>
  return %2 : tensor<3x512xf32>
}

// Codes of four bits stay so small: in words, and panels of two vectors of columns.
// CHECK-LABEL: func.func @words
// CHECK-DAG: %[[W:.*]] = mlc.weight "n#{{.*}}" : tensor<16x64x32x4xi8>
// CHECK-DAG: %[[S:.*]] = mlc.weight "s#{{.*}}" : tensor<16x16x32xf32>
// CHECK-DAG: %[[Z:.*]] = mlc.constant dense<8> : tensor<i8>
// CHECK-DAG: %[[C:.*]] = mlc.unpack %[[W]] {bits = 4 : i64, mlc.streamed} : tensor<16x64x32x4xi8> -> tensor<16x512x32xi8>
// CHECK: %[[D:.*]] = mlc.dequantize %[[C]], %[[S]] zero_point(%[[Z]] : tensor<i8>) {axis = 1 : i64, block_size = 32 : i64, mlc.streamed, unsigned}
// CHECK: mlc.matmul %{{.*}}, %[[D]] : tensor<1x3x512xf32>, tensor<16x512x32xf32> -> tensor<16x3x32xf32>
func.func @words(%x: tensor<3x512xf32>) -> tensor<3x512xf32> {
  %w = mlc.weight "n" : tensor<512x512xi8>
  %s = mlc.weight "s" : tensor<16x512xf32>
  %d = mlc.dequantize %w, %s {axis = 0 : i64, block_size = 32 : i64, bits = 4 : i64} : tensor<512x512xi8>, tensor<16x512xf32> -> tensor<512x512xf32>
  %0 = mlc.matmul %x, %d {lhs_bits = 8 : i64} : tensor<3x512xf32>, tensor<512x512xf32> -> tensor<3x512xf32>
  return %0 : tensor<3x512xf32>
}
