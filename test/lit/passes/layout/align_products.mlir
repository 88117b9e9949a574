// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-align-products)' | FileCheck %s

// Sums of 521 terms get seven zeros; what lies across the sum and in rows of 521 is transposed first.
// CHECK-LABEL: func.func @odd_sum
// CHECK: %[[A:.*]] = mlc.pad constant %arg0 low [0, 0] high [0, 7]
// CHECK: %[[T:.*]] = mlc.transpose %arg1 {permutation = array<i64: 1, 0>} : tensor<521x521xbf16> -> tensor<521x521xbf16>
// CHECK: %[[B:.*]] = mlc.pad constant %[[T]] low [0, 0] high [0, 7]
// CHECK: mlc.matmul %[[A]], %[[B]] {mlc.along_sum, transpose_rhs, widen} : tensor<300x528xbf16>, tensor<521x528xbf16> -> tensor<300x521xf32>
// CHECK: mlc.cast %{{.*}} : tensor<300x521xf32> -> tensor<300x521xbf16>
func.func @odd_sum(%x: tensor<300x521xbf16>, %y: tensor<521x521xbf16>) -> tensor<300x521xbf16> {
  %0 = mlc.matmul %x, %y : tensor<300x521xbf16>, tensor<521x521xbf16> -> tensor<300x521xbf16>
  return %0 : tensor<300x521xbf16>
}

// Rows of 520 stay across the sum.
// CHECK-LABEL: func.func @even_columns
// CHECK: mlc.pad constant %arg1 low [0, 0] high [7, 0]
// CHECK: mlc.matmul %{{.*}}, %{{.*}} {widen} : tensor<300x528xf16>, tensor<528x520xf16> -> tensor<300x520xf32>
func.func @even_columns(%x: tensor<300x521xf16>, %y: tensor<521x520xf16>) -> tensor<300x520xf16> {
  %0 = mlc.matmul %x, %y : tensor<300x521xf16>, tensor<521x520xf16> -> tensor<300x520xf16>
  return %0 : tensor<300x520xf16>
}

// A small product with a sum of some length.
// CHECK-LABEL: func.func @small
// CHECK: mlc.matmul %{{.*}}, %{{.*}} {mlc.along_sum, transpose_rhs, widen} : tensor<46x160xbf16>, tensor<451x160xbf16> -> tensor<46x451xf32>
func.func @small(%x: tensor<46x155xbf16>, %y: tensor<451x155xbf16>) -> tensor<46x451xbf16> {
  %0 = mlc.matmul %x, %y {transpose_rhs} : tensor<46x155xbf16>, tensor<451x155xbf16> -> tensor<46x451xbf16>
  return %0 : tensor<46x451xbf16>
}

// A left operand that is stored transposed, a number of rows that the run knows; a weight alone is moved at any size.
// CHECK-LABEL: func.func @weights
// CHECK: %[[A:.*]] = mlc.transpose %arg0 {permutation = array<i64: 1, 0>} : tensor<512x100xbf16> -> tensor<100x512xbf16>
// CHECK: mlc.matmul %[[A]], %{{.*}} {widen} : tensor<100x512xbf16>, tensor<512x128xbf16> -> tensor<100x128xf32>
// CHECK: mlc.pad constant %arg1
// CHECK: mlc.matmul %{{.*}}, %{{.*}} {widen} : tensor<?x136xbf16>, tensor<136x64xbf16> -> tensor<?x64xf32>
// CHECK: %[[W:.*]] = mlc.transpose %{{.*}} {permutation = array<i64: 1, 0>} : tensor<64x10xbf16> -> tensor<10x64xbf16>
// CHECK: mlc.matmul %arg2, %[[W]] {mlc.along_sum, transpose_rhs, widen} : tensor<2x3x64xbf16>, tensor<10x64xbf16> -> tensor<2x3x10xf32>
func.func @weights(%x: tensor<512x100xbf16>, %y: tensor<?x131xbf16>, %z: tensor<2x3x64xbf16>)
    -> (tensor<100x128xf32>, tensor<?x64xbf16>, tensor<2x3x10xbf16>) {
  %u = mlc.weight "u" : tensor<512x128xbf16>
  %v = mlc.weight "v" : tensor<131x64xbf16>
  %w = mlc.weight "w" : tensor<64x10xbf16>
  %0 = mlc.matmul %x, %u {transpose_lhs, widen} : tensor<512x100xbf16>, tensor<512x128xbf16> -> tensor<100x128xf32>
  %1 = mlc.matmul %y, %v : tensor<?x131xbf16>, tensor<131x64xbf16> -> tensor<?x64xbf16>
  %2 = mlc.matmul %z, %w : tensor<2x3x64xbf16>, tensor<64x10xbf16> -> tensor<2x3x10xbf16>
  return %0, %1, %2 : tensor<100x128xf32>, tensor<?x64xbf16>, tensor<2x3x10xbf16>
}

// A weight on the left of a batch gets zeros, and what it multiplies.
// CHECK-LABEL: func.func @from_the_left
// CHECK: mlc.matmul %{{.*}}, %{{.*}} {widen} : tensor<196x200xbf16>, tensor<16x200x768xbf16> -> tensor<16x196x768xf32>
func.func @from_the_left(%x: tensor<16x196x768xbf16>) -> tensor<16x196x768xf32> {
  %w = mlc.weight "w" : tensor<196x196xbf16>
  %0 = mlc.matmul %w, %x {widen} : tensor<196x196xbf16>, tensor<16x196x768xbf16> -> tensor<16x196x768xf32>
  return %0 : tensor<16x196x768xf32>
}

// Small products, few rows, other types, what is aligned, and products of attention.
// CHECK-LABEL: func.func @others
// CHECK-NOT: mlc.pad
// CHECK: return
func.func @others(%x: tensor<20x67xbf16>, %y: tensor<67x30xbf16>, %r: tensor<1x4099xbf16>, %m: tensor<4099x4096xbf16>,
                  %f: tensor<300x521xf32>, %g: tensor<521x521xf32>, %a: tensor<300x520xbf16>, %b: tensor<520x1024xbf16>,
                  %p: tensor<2x8x900x901xbf16>, %v: tensor<2x8x901x64xbf16>)
    -> (tensor<20x30xbf16>, tensor<1x4096xbf16>, tensor<300x521xf32>, tensor<300x1024xbf16>, tensor<2x8x900x64xbf16>) {
  %0 = mlc.matmul %x, %y : tensor<20x67xbf16>, tensor<67x30xbf16> -> tensor<20x30xbf16>
  %1 = mlc.matmul %r, %m : tensor<1x4099xbf16>, tensor<4099x4096xbf16> -> tensor<1x4096xbf16>
  %2 = mlc.matmul %f, %g : tensor<300x521xf32>, tensor<521x521xf32> -> tensor<300x521xf32>
  %3 = mlc.matmul %a, %b : tensor<300x520xbf16>, tensor<520x1024xbf16> -> tensor<300x1024xbf16>
  %4 = mlc.matmul %p, %v : tensor<2x8x900x901xbf16>, tensor<2x8x901x64xbf16> -> tensor<2x8x900x64xbf16>
  return %0, %1, %2, %3, %4
    : tensor<20x30xbf16>, tensor<1x4096xbf16>, tensor<300x521xf32>, tensor<300x1024xbf16>, tensor<2x8x900x64xbf16>
}
