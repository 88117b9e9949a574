// RUN: mlc-opt %s --mlc-sum-products | FileCheck %s

// The vector may be on either side, and the matrix transposed: the sum goes along what both share.
// CHECK-LABEL: func.func @columns
// CHECK: [[V:%.+]] = mlc.reshape %arg1 [16, 1, 196] : tensor<16x196x1xf32> -> tensor<16x1x196xf32>
// CHECK: [[P:%.+]] = mlc.binary mul %arg0, [[V]]
// CHECK: [[S:%.+]] = mlc.reduce sum [[P]] {axes = array<i64: 2>} : tensor<16x768x196xf32> -> tensor<16x768xf32>
// CHECK: mlc.reshape [[S]] [16, 768, 1]
func.func @columns(%x: tensor<16x768x196xf32>, %v: tensor<16x196x1xf32>) -> tensor<16x768x1xf32> {
  %y = mlc.matmul %x, %v : tensor<16x768x196xf32>, tensor<16x196x1xf32> -> tensor<16x768x1xf32>
  return %y : tensor<16x768x1xf32>
}

// CHECK-LABEL: func.func @transposed
// CHECK: [[V:%.+]] = mlc.reshape %arg1 [196, 1] : tensor<1x196xf32> -> tensor<196x1xf32>
// CHECK: [[P:%.+]] = mlc.binary mul %arg0, [[V]] : tensor<?x196x768xf32>, tensor<196x1xf32>
// CHECK: mlc.reduce sum [[P]] {axes = array<i64: 1>} : tensor<?x196x768xf32> -> tensor<?x768xf32>
// CHECK: mlc.reshape {{.*}} -> tensor<?x768x1xf32>
func.func @transposed(%x: tensor<?x196x768xf32>, %v: tensor<1x196xf32>) -> tensor<?x768x1xf32> {
  %y = mlc.matmul %x, %v {transpose_lhs, transpose_rhs} : tensor<?x196x768xf32>, tensor<1x196xf32> -> tensor<?x768x1xf32>
  return %y : tensor<?x768x1xf32>
}

// Sums of 16-bit floats are rounded once; rows of 30 are not for tensor cores.
// CHECK-LABEL: func.func @from_the_left
// CHECK: mlc.reduce sum {{.*}} {axes = array<i64: 2>} : tensor<4x40x30xf32> -> tensor<4x40xf32>
// CHECK: [[R:%.+]] = mlc.reshape {{.*}} [4, 1, 40]
// CHECK: mlc.cast [[R]] : tensor<4x1x40xf32> -> tensor<4x1x40xf16>
func.func @from_the_left(%x: tensor<4x40x30xf16>, %v: tensor<1x30xf16>) -> tensor<4x1x40xf16> {
  %y = mlc.matmul %v, %x {transpose_rhs} : tensor<1x30xf16>, tensor<4x40x30xf16> -> tensor<4x1x40xf16>
  return %y : tensor<4x1x40xf16>
}

// A vector of weights meets rows of 33, which no tensor core reads; rows of 32 stay.
// CHECK-LABEL: func.func @vector_of_weights
// CHECK: mlc.reduce sum
// CHECK: mlc.matmul {{.*}} tensor<9x32xf32>
func.func @vector_of_weights(%x: tensor<9x33xf32>, %y: tensor<9x32xf32>) -> (tensor<9x1xf32>, tensor<9x1xf32>) {
  %v = mlc.weight "v" : tensor<33x1xf32>
  %w = mlc.weight "w" : tensor<32x1xf32>
  %0 = mlc.matmul %x, %v : tensor<9x33xf32>, tensor<33x1xf32> -> tensor<9x1xf32>
  %1 = mlc.matmul %y, %w : tensor<9x32xf32>, tensor<32x1xf32> -> tensor<9x1xf32>
  return %0, %1 : tensor<9x1xf32>, tensor<9x1xf32>
}

// The shares of a pooling come from weights, not from other products.
// CHECK-LABEL: func.func @pooling
// CHECK-NOT: mlc.matmul
func.func @pooling(%x: tensor<2x24x35xf32>, %s: tensor<2x1x35xf32>) -> tensor<2x24x1xf32> {
  %p = mlc.softmax %s {axis = 2 : i64} : tensor<2x1x35xf32>
  %y = mlc.matmul %x, %p {transpose_rhs} : tensor<2x24x35xf32>, tensor<2x1x35xf32> -> tensor<2x24x1xf32>
  return %y : tensor<2x24x1xf32>
}

// Weights, matrices, 16-bit floats in rows of 16 bytes, and both products of an attention of one query stay.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-5: mlc.matmul
// CHECK-NOT: mlc.reduce
func.func @others(%x: tensor<1x33xf32>, %h: tensor<1x64xf16>, %m: tensor<64x80xf16>,
                  %q: tensor<8x1x12xf32>, %k: tensor<8x30x12xf32>, %v: tensor<8x30x12xf32>, %a: tensor<4x2xf32>)
    -> (tensor<1x7xf32>, tensor<1x80xf16>, tensor<8x1x12xf32>, tensor<4x4xf32>) {
  %w = mlc.weight "w" : tensor<33x7xf32>
  %c = mlc.constant dense<0.125> : tensor<f32>
  %0 = mlc.matmul %x, %w : tensor<1x33xf32>, tensor<33x7xf32> -> tensor<1x7xf32>
  %1 = mlc.matmul %h, %m : tensor<1x64xf16>, tensor<64x80xf16> -> tensor<1x80xf16>
  %2 = mlc.matmul %q, %k {transpose_rhs} : tensor<8x1x12xf32>, tensor<8x30x12xf32> -> tensor<8x1x30xf32>
  %3 = mlc.binary mul %2, %c : tensor<8x1x30xf32>, tensor<f32> -> tensor<8x1x30xf32>
  %4 = mlc.softmax %3 {axis = 2 : i64} : tensor<8x1x30xf32>
  %5 = mlc.matmul %4, %v : tensor<8x1x30xf32>, tensor<8x30x12xf32> -> tensor<8x1x12xf32>
  %6 = mlc.matmul %a, %a {transpose_rhs} : tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x4xf32>
  return %0, %1, %5, %6 : tensor<1x7xf32>, tensor<1x80xf16>, tensor<8x1x12xf32>, tensor<4x4xf32>
}

// So do those of an attention of one query with a sink among its scores.
// CHECK-LABEL: func.func @sink
// CHECK-COUNT-2: mlc.matmul
// CHECK-NOT: mlc.reduce
func.func @sink(%q: tensor<8x1x12xf32>, %k: tensor<8x30x12xf32>, %v: tensor<8x30x12xf32>, %s: tensor<8x1x1xf32>) -> tensor<8x1x12xf32> {
  %0 = mlc.matmul %q, %k {transpose_rhs} : tensor<8x1x12xf32>, tensor<8x30x12xf32> -> tensor<8x1x30xf32>
  %1 = mlc.concat %0, %s {axis = 2 : i64} : tensor<8x1x30xf32>, tensor<8x1x1xf32> -> tensor<8x1x31xf32>
  %2 = mlc.softmax %1 {axis = 2 : i64} : tensor<8x1x31xf32>
  %3 = mlc.slice %2 [0, 0, 0] [8, 1, 30] [1, 1, 1] : tensor<8x1x31xf32> -> tensor<8x1x30xf32>
  %4 = mlc.matmul %3, %v : tensor<8x1x30xf32>, tensor<8x30x12xf32> -> tensor<8x1x12xf32>
  return %4 : tensor<8x1x12xf32>
}

// A softmax may be written out.
// CHECK-LABEL: func.func @written_out
// CHECK-COUNT-2: mlc.matmul
// CHECK-NOT: mlc.matmul
func.func @written_out(%q: tensor<8x1x12xf32>, %k: tensor<8x30x12xf32>, %v: tensor<8x30x12xf32>) -> tensor<8x1x12xf32> {
  %0 = mlc.matmul %q, %k {transpose_rhs} : tensor<8x1x12xf32>, tensor<8x30x12xf32> -> tensor<8x1x30xf32>
  %1 = mlc.reduce max %0 {axes = array<i64: 2>, keepdims = true} : tensor<8x1x30xf32> -> tensor<8x1x1xf32>
  %2 = mlc.binary sub %0, %1 : tensor<8x1x30xf32>, tensor<8x1x1xf32> -> tensor<8x1x30xf32>
  %3 = mlc.unary exp %2 : tensor<8x1x30xf32>
  %4 = mlc.reduce sum %3 {axes = array<i64: 2>, keepdims = true} : tensor<8x1x30xf32> -> tensor<8x1x1xf32>
  %5 = mlc.binary div %3, %4 : tensor<8x1x30xf32>, tensor<8x1x1xf32> -> tensor<8x1x30xf32>
  %6 = mlc.matmul %5, %v : tensor<8x1x30xf32>, tensor<8x30x12xf32> -> tensor<8x1x12xf32>
  return %6 : tensor<8x1x12xf32>
}
