// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-stream-weights{codes=8 lanes=16},mlc-hoist-weights,canonicalize,cse)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-stream-weights{codes=4 lanes=8},mlc-hoist-weights,canonicalize,cse)' | FileCheck %s --check-prefix=FOUR

// Rows become codes with a scale for each block, where the product allows it and the target multiplies such codes.
// CHECK-LABEL: func.func @words
// CHECK-DAG: %[[W:.*]] = mlc.weight "n#{{.*}}" : tensor<8x64x64x4xi8>
// CHECK-DAG: mlc.constant dense<1.270000e+02>
// CHECK: %[[B:.*]] = mlc.dequantize %{{.*}} {axis = 1 : i64, block_size = 32 : i64, mlc.streamed, unsigned}
// CHECK: %[[M:.*]] = mlc.reduce max %{{.*}} : tensor<1x3x16x32xf32> -> tensor<1x3x16xf32>
// CHECK: %[[Q:.*]] = mlc.cast %{{.*}} {saturate} : tensor<1x3x16x32xf32> -> tensor<1x3x16x32xi8>
// CHECK: %[[R:.*]] = mlc.reshape %[[Q]] [1, 3, 512]
// CHECK: %[[A:.*]] = mlc.dequantize %[[R]], %{{.*}} {axis = 2 : i64, block_size = 32 : i64, mlc.streamed} : tensor<1x3x512xi8>, tensor<1x3x16xf32>
// CHECK: mlc.matmul %[[A]], %[[B]] : tensor<1x3x512xf32>, tensor<8x512x64xf32> -> tensor<8x3x64xf32>
// FOUR-LABEL: func.func @words
// FOUR: mlc.weight "n#{{.*}}" : tensor<32x64x16x4xi8>
func.func @words(%x: tensor<3x512xf32>) -> tensor<3x512xf32> {
  %w = mlc.weight "n" : tensor<512x512xi8>
  %s = mlc.weight "s" : tensor<16x512xf32>
  %d = mlc.dequantize %w, %s {axis = 0 : i64, block_size = 32 : i64, bits = 4 : i64} : tensor<512x512xi8>, tensor<16x512xf32> -> tensor<512x512xf32>
  %0 = mlc.matmul %x, %d {lhs_bits = 8 : i64} : tensor<3x512xf32>, tensor<512x512xf32> -> tensor<3x512xf32>
  return %0 : tensor<3x512xf32>
}

// Without the permission rows stay floats, and so they do where codes of eight bits are too large for the target.
// CHECK-LABEL: func.func @floats
// CHECK-NOT: mlc.cast
// CHECK-LABEL: func.func @bytes
// CHECK: mlc.unpack %{{.*}} {bits = 8 : i64, mlc.streamed} : tensor<8x128x64x4xi8> -> tensor<8x512x64xi8>
// CHECK: mlc.dequantize %{{.*}} {axis = 2 : i64
// FOUR-LABEL: func.func @bytes
// FOUR-NOT: axis = 2
func.func @floats(%x: tensor<3x512xf32>) -> tensor<3x512xf32> {
  %w = mlc.weight "n" : tensor<512x512xi8>
  %s = mlc.weight "s" : tensor<16x512xf32>
  %d = mlc.dequantize %w, %s {axis = 0 : i64, block_size = 32 : i64, bits = 4 : i64} : tensor<512x512xi8>, tensor<16x512xf32> -> tensor<512x512xf32>
  %0 = mlc.matmul %x, %d : tensor<3x512xf32>, tensor<512x512xf32> -> tensor<3x512xf32>
  return %0 : tensor<3x512xf32>
}

func.func @bytes(%x: tensor<3x512xf32>) -> tensor<3x512xf32> {
  %w = mlc.weight "b" : tensor<512x512xi8>
  %s = mlc.weight "s" : tensor<16x512xf32>
  %d = mlc.dequantize %w, %s {axis = 0 : i64, block_size = 32 : i64} : tensor<512x512xi8>, tensor<16x512xf32> -> tensor<512x512xf32>
  %0 = mlc.matmul %x, %d {lhs_bits = 8 : i64} : tensor<3x512xf32>, tensor<512x512xf32> -> tensor<3x512xf32>
  return %0 : tensor<3x512xf32>
}
