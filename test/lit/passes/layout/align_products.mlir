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

// A left operand that is stored transposed, a number of rows that the run knows, a weight: moved at any size.
// CHECK-LABEL: func.func @turned
// CHECK: %[[A:.*]] = mlc.transpose %arg0 {permutation = array<i64: 1, 0>} : tensor<64x100xbf16> -> tensor<100x64xbf16>
// CHECK: mlc.matmul %[[A]], %{{.*}} {widen} : tensor<100x64xbf16>, tensor<64x8xbf16> -> tensor<100x8xf32>
// CHECK: mlc.pad constant %arg1
// CHECK: mlc.matmul %{{.*}}, %{{.*}} {widen} : tensor<?x72xbf16>, tensor<72x8xbf16> -> tensor<?x8xf32>
func.func @turned(%x: tensor<64x100xbf16>, %y: tensor<?x67xbf16>) -> (tensor<100x8xf32>, tensor<?x8xbf16>) {
  %v = mlc.weight "v" : tensor<64x8xbf16>
  %w = mlc.weight "w" : tensor<67x8xbf16>
  %0 = mlc.matmul %x, %v {transpose_lhs, widen} : tensor<64x100xbf16>, tensor<64x8xbf16> -> tensor<100x8xf32>
  %1 = mlc.matmul %y, %w : tensor<?x67xbf16>, tensor<67x8xbf16> -> tensor<?x8xbf16>
  return %0, %1 : tensor<100x8xf32>, tensor<?x8xbf16>
}

// Small products, few rows, other types, and what is aligned.
// CHECK-LABEL: func.func @others
// CHECK-NOT: mlc.pad
// CHECK: return
func.func @others(%x: tensor<20x67xbf16>, %y: tensor<67x30xbf16>, %r: tensor<1x4099xbf16>, %m: tensor<4099x4096xbf16>,
                  %f: tensor<300x521xf32>, %g: tensor<521x521xf32>, %a: tensor<300x520xbf16>, %b: tensor<520x1024xbf16>)
    -> (tensor<20x30xbf16>, tensor<1x4096xbf16>, tensor<300x521xf32>, tensor<300x1024xbf16>) {
  %0 = mlc.matmul %x, %y : tensor<20x67xbf16>, tensor<67x30xbf16> -> tensor<20x30xbf16>
  %1 = mlc.matmul %r, %m : tensor<1x4099xbf16>, tensor<4099x4096xbf16> -> tensor<1x4096xbf16>
  %2 = mlc.matmul %f, %g : tensor<300x521xf32>, tensor<521x521xf32> -> tensor<300x521xf32>
  %3 = mlc.matmul %a, %b : tensor<300x520xbf16>, tensor<520x1024xbf16> -> tensor<300x1024xbf16>
  return %0, %1, %2, %3 : tensor<20x30xbf16>, tensor<1x4096xbf16>, tensor<300x521xf32>, tensor<300x1024xbf16>
}
