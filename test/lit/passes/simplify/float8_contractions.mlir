// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-float8-contractions{native=true},canonicalize,cse)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-float8-contractions,canonicalize,cse)' | FileCheck %s --check-prefix=WIDE

// Both operands along the sum; the scales of rows and of columns come behind it.
// CHECK-LABEL: func.func @product
// CHECK: %[[W:.*]] = mlc.weight "w" : tensor<64x8xf8E4M3FN>
// CHECK: %[[T:.*]] = mlc.transpose %[[W]] {permutation = array<i64: 1, 0>} : tensor<64x8xf8E4M3FN> -> tensor<8x64xf8E4M3FN>
// CHECK: %[[P:.*]] = mlc.matmul %arg0, %[[T]] {transpose_rhs, widen} : tensor<4x64xf8E4M3FN>, tensor<8x64xf8E4M3FN> -> tensor<4x8xf32>
// CHECK: %[[R:.*]] = mlc.reshape %arg1 [4, 1] : tensor<4xf32> -> tensor<4x1xf32>
// CHECK: %[[C:.*]] = mlc.reshape %{{.*}} [1, 8] : tensor<8xf32> -> tensor<1x8xf32>
// CHECK: %[[S:.*]] = mlc.binary mul %[[P]], %[[R]]
// CHECK: %[[Y:.*]] = mlc.binary mul %[[S]], %[[C]] : tensor<4x8xf32>, tensor<1x8xf32> -> tensor<4x8xf32>
// CHECK: return %[[Y]]
// Tensor cores without floats of eight bits multiply them as bf16, which holds each of them.
// WIDE-LABEL: func.func @product
// WIDE-DAG: %[[A:.*]] = mlc.cast %arg0 : tensor<4x64xf8E4M3FN> -> tensor<4x64xbf16>
// WIDE-DAG: %[[B:.*]] = mlc.cast %{{.*}} : tensor<8x64xf8E4M3FN> -> tensor<8x64xbf16>
// WIDE: mlc.matmul %[[A]], %[[B]] {transpose_rhs, widen} : tensor<4x64xbf16>, tensor<8x64xbf16> -> tensor<4x8xf32>
func.func @product(%x: tensor<4x64xf8E4M3FN>, %s: tensor<4xf32>) -> tensor<4x8xf32> {
  %w = mlc.weight "w" : tensor<64x8xf8E4M3FN>
  %t = mlc.weight "t" : tensor<8xf32>
  %z = mlc.constant dense<0.0> : tensor<f8E4M3FN>
  %a = mlc.dequantize %x, %s zero_point(%z : tensor<f8E4M3FN>) {axis = 0 : i64} : tensor<4x64xf8E4M3FN>, tensor<4xf32> -> tensor<4x64xf32>
  %b = mlc.dequantize %w, %t {axis = 1 : i64} : tensor<64x8xf8E4M3FN>, tensor<8xf32> -> tensor<64x8xf32>
  %0 = mlc.matmul %a, %b : tensor<4x64xf32>, tensor<64x8xf32> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// A result of 16 bits; the scale of what is stored transposed is turned with it. Two formats are multiplied as bf16.
// CHECK-LABEL: func.func @formats
// CHECK: %[[P:.*]] = mlc.matmul %arg0, %arg1 {transpose_rhs, widen} : tensor<2x4x64xf8E5M2>, tensor<8x64xf8E5M2> -> tensor<2x4x8xf32>
// CHECK: mlc.transpose %{{.*}} {permutation = array<i64: 1, 0>} : tensor<8x1xbf16> -> tensor<1x8xbf16>
// CHECK: mlc.binary mul %{{.*}}, %{{.*}} : tensor<f32>, tensor<1x8xf32> -> tensor<1x8xf32>
// CHECK: mlc.cast %{{.*}} : tensor<2x4x8xf32> -> tensor<2x4x8xbf16>
// CHECK: mlc.matmul %{{.*}}, %{{.*}} {transpose_rhs, widen} : tensor<2x4x64xbf16>, tensor<8x64xbf16> -> tensor<2x4x8xf32>
func.func @formats(%x: tensor<2x4x64xf8E5M2>, %w: tensor<8x64xf8E5M2>, %v: tensor<8x64xf8E4M3FN>, %s: tensor<bf16>,
                   %t: tensor<8xbf16>) -> (tensor<2x4x8xbf16>, tensor<2x4x8xbf16>) {
  %a = mlc.dequantize %x, %s : tensor<2x4x64xf8E5M2>, tensor<bf16> -> tensor<2x4x64xbf16>
  %b = mlc.dequantize %w, %t {axis = 0 : i64} : tensor<8x64xf8E5M2>, tensor<8xbf16> -> tensor<8x64xbf16>
  %c = mlc.dequantize %v, %t {axis = 0 : i64} : tensor<8x64xf8E4M3FN>, tensor<8xbf16> -> tensor<8x64xbf16>
  %0 = mlc.matmul %a, %b {transpose_rhs} : tensor<2x4x64xbf16>, tensor<8x64xbf16> -> tensor<2x4x8xbf16>
  %1 = mlc.matmul %a, %c {transpose_rhs} : tensor<2x4x64xbf16>, tensor<8x64xbf16> -> tensor<2x4x8xbf16>
  return %0, %1 : tensor<2x4x8xbf16>, tensor<2x4x8xbf16>
}

// Rows of 40 bytes are none that the copy engine reads.
// CHECK-LABEL: func.func @short_rows
// CHECK: mlc.matmul %{{.*}}, %{{.*}} {transpose_rhs, widen} : tensor<4x40xbf16>, tensor<8x40xbf16> -> tensor<4x8xf32>
func.func @short_rows(%x: tensor<4x40xf8E4M3FN>, %w: tensor<8x40xf8E4M3FN>, %s: tensor<f32>) -> tensor<4x8xf32> {
  %a = mlc.dequantize %x, %s : tensor<4x40xf8E4M3FN>, tensor<f32> -> tensor<4x40xf32>
  %b = mlc.dequantize %w, %s : tensor<8x40xf8E4M3FN>, tensor<f32> -> tensor<8x40xf32>
  %0 = mlc.matmul %a, %b {transpose_rhs} : tensor<4x40xf32>, tensor<8x40xf32> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// A scale that changes along the sum, a format that no tensor core has, an operand that was not quantized.
// CHECK-LABEL: func.func @others
// CHECK: mlc.matmul %{{.*}} : tensor<4x64xf32>, tensor<64x8xf32> -> tensor<4x8xf32>
// CHECK: mlc.matmul %{{.*}} : tensor<4x64xf32>, tensor<64x8xf32> -> tensor<4x8xf32>
// CHECK: mlc.matmul %{{.*}} : tensor<4x64xf32>, tensor<64x8xf32> -> tensor<4x8xf32>
func.func @others(%x: tensor<4x64xf8E4M3FN>, %u: tensor<4x64xf8E4M3FNUZ>, %f: tensor<4x64xf32>, %w: tensor<64x8xf8E4M3FN>,
                  %s: tensor<f32>, %t: tensor<64xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %a = mlc.dequantize %x, %t {axis = 1 : i64} : tensor<4x64xf8E4M3FN>, tensor<64xf32> -> tensor<4x64xf32>
  %b = mlc.dequantize %w, %s : tensor<64x8xf8E4M3FN>, tensor<f32> -> tensor<64x8xf32>
  %c = mlc.dequantize %u, %s : tensor<4x64xf8E4M3FNUZ>, tensor<f32> -> tensor<4x64xf32>
  %0 = mlc.matmul %a, %b : tensor<4x64xf32>, tensor<64x8xf32> -> tensor<4x8xf32>
  %1 = mlc.matmul %c, %b : tensor<4x64xf32>, tensor<64x8xf32> -> tensor<4x8xf32>
  %2 = mlc.matmul %f, %b : tensor<4x64xf32>, tensor<64x8xf32> -> tensor<4x8xf32>
  return %0, %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
