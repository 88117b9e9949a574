// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-merge-contractions)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-merge-contractions{even=true})' | FileCheck %s --check-prefix=EVEN

// Products and biases are joined; a scale that all of them have stays one.
// CHECK-LABEL: func.func @queries_and_keys
// CHECK: [[W:%.+]] = mlc.concat %{{.+}}, %{{.+}} {axis = 1 : i64} : {{.*}} -> tensor<8x48xf32>
// CHECK: [[M:%.+]] = mlc.matmul %arg0, [[W]] : tensor<2x4x8xf32>, tensor<8x48xf32> -> tensor<2x4x48xf32>
// CHECK: [[B:%.+]] = mlc.concat %{{.+}}, %{{.+}} {axis = 0 : i64} : {{.*}} -> tensor<48xf32>
// CHECK: [[A:%.+]] = mlc.binary add [[M]], [[B]]
// CHECK: [[S:%.+]] = mlc.binary mul [[A]], %{{.+}} : tensor<2x4x48xf32>, tensor<f32>
// CHECK: mlc.slice [[S]] [0, 0, 0] [2, 4, 16]
// CHECK: mlc.slice [[S]] [0, 0, 16] [2, 4, 32]
// CHECK-NOT: mlc.matmul
func.func @queries_and_keys(%x: tensor<2x4x8xf32>) -> (tensor<8x16xf32>, tensor<8x32xf32>) {
  %wq = mlc.weight "wq" : tensor<8x16xf32>
  %wk = mlc.weight "wk" : tensor<8x32xf32>
  %bq = mlc.weight "bq" : tensor<16xf32>
  %bk = mlc.weight "bk" : tensor<32xf32>
  %half = mlc.constant dense<0.5> : tensor<f32>
  %q = mlc.matmul %x, %wq : tensor<2x4x8xf32>, tensor<8x16xf32> -> tensor<2x4x16xf32>
  %qb = mlc.binary add %q, %bq : tensor<2x4x16xf32>, tensor<16xf32> -> tensor<2x4x16xf32>
  %qs = mlc.binary mul %qb, %half : tensor<2x4x16xf32>, tensor<f32> -> tensor<2x4x16xf32>
  %k = mlc.matmul %x, %wk : tensor<2x4x8xf32>, tensor<8x32xf32> -> tensor<2x4x32xf32>
  %kb = mlc.binary add %k, %bk : tensor<2x4x32xf32>, tensor<32xf32> -> tensor<2x4x32xf32>
  %ks = mlc.binary mul %kb, %half : tensor<2x4x32xf32>, tensor<f32> -> tensor<2x4x32xf32>
  %0 = mlc.reshape %qs [8, 16] : tensor<2x4x16xf32> -> tensor<8x16xf32>
  %1 = mlc.reshape %ks [8, 32] : tensor<2x4x32xf32> -> tensor<8x32xf32>
  return %0, %1 : tensor<8x16xf32>, tensor<8x32xf32>
}

// Transposed weights are joined along their rows. Without a bias in common the products are one, the biases are not:
// what follows the product of `v` decides that the two stay apart.
// CHECK-LABEL: func.func @other_biases
// CHECK-NOT: mlc.concat
// CHECK-LABEL: func.func @transposed
// CHECK: mlc.concat %{{.+}}, %{{.+}} {axis = 0 : i64} : {{.*}} -> tensor<32x8xf32>
// CHECK: mlc.matmul %arg0, %{{.+}} {transpose_rhs} : tensor<4x8xf32>, tensor<32x8xf32> -> tensor<4x32xf32>
func.func @other_biases(%x: tensor<4x8xf32>) -> (tensor<16x4xf32>, tensor<16x4xf32>) {
  %wk = mlc.weight "wk" : tensor<8x16xf32>
  %wv = mlc.weight "wv" : tensor<8x16xf32>
  %bv = mlc.weight "bv" : tensor<16xf32>
  %k = mlc.matmul %x, %wk : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %v = mlc.matmul %x, %wv : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %vb = mlc.binary add %v, %bv : tensor<4x16xf32>, tensor<16xf32> -> tensor<4x16xf32>
  %0 = mlc.transpose %k {permutation = array<i64: 1, 0>} : tensor<4x16xf32> -> tensor<16x4xf32>
  %1 = mlc.transpose %vb {permutation = array<i64: 1, 0>} : tensor<4x16xf32> -> tensor<16x4xf32>
  return %0, %1 : tensor<16x4xf32>, tensor<16x4xf32>
}
func.func @transposed(%x: tensor<4x8xf32>) -> (tensor<16x4xf32>, tensor<16x4xf32>) {
  %wk = mlc.weight "wk" : tensor<16x8xf32>
  %wv = mlc.weight "wv" : tensor<16x8xf32>
  %k = mlc.matmul %x, %wk {transpose_rhs} : tensor<4x8xf32>, tensor<16x8xf32> -> tensor<4x16xf32>
  %v = mlc.matmul %x, %wv {transpose_rhs} : tensor<4x8xf32>, tensor<16x8xf32> -> tensor<4x16xf32>
  %0 = mlc.transpose %k {permutation = array<i64: 1, 0>} : tensor<4x16xf32> -> tensor<16x4xf32>
  %1 = mlc.transpose %v {permutation = array<i64: 1, 0>} : tensor<4x16xf32> -> tensor<16x4xf32>
  return %0, %1 : tensor<16x4xf32>, tensor<16x4xf32>
}

// The product of the two would no longer be the consumer of one of them.
// CHECK-LABEL: func.func @gate_and_up
// CHECK-NOT: mlc.concat
func.func @gate_and_up(%x: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %wg = mlc.weight "wg" : tensor<8x16xf32>
  %wu = mlc.weight "wu" : tensor<8x16xf32>
  %g = mlc.matmul %x, %wg : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %s = mlc.unary sigmoid %g : tensor<4x16xf32>
  %u = mlc.matmul %x, %wu : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %p = mlc.binary mul %s, %u : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  return %p : tensor<4x16xf32>
}

// Parts that start in the middle of a vector, other tensors, and shapes that are not known stay apart.
// CHECK-LABEL: func.func @odd_columns
// CHECK-NOT: mlc.concat
func.func @odd_columns(%x: tensor<4x8xf32>) -> (tensor<12x4xf32>, tensor<12x4xf32>) {
  %wk = mlc.weight "wk" : tensor<8x12xf32>
  %wv = mlc.weight "wv" : tensor<8x12xf32>
  %k = mlc.matmul %x, %wk : tensor<4x8xf32>, tensor<8x12xf32> -> tensor<4x12xf32>
  %v = mlc.matmul %x, %wv : tensor<4x8xf32>, tensor<8x12xf32> -> tensor<4x12xf32>
  %0 = mlc.transpose %k {permutation = array<i64: 1, 0>} : tensor<4x12xf32> -> tensor<12x4xf32>
  %1 = mlc.transpose %v {permutation = array<i64: 1, 0>} : tensor<4x12xf32> -> tensor<12x4xf32>
  return %0, %1 : tensor<12x4xf32>, tensor<12x4xf32>
}
// CHECK-LABEL: func.func @two_tensors
// CHECK-NOT: mlc.concat
func.func @two_tensors(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<16x4xf32>, tensor<16x4xf32>) {
  %wk = mlc.weight "wk" : tensor<8x16xf32>
  %wv = mlc.weight "wv" : tensor<8x16xf32>
  %k = mlc.matmul %x, %wk : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %v = mlc.matmul %y, %wv : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %0 = mlc.transpose %k {permutation = array<i64: 1, 0>} : tensor<4x16xf32> -> tensor<16x4xf32>
  %1 = mlc.transpose %v {permutation = array<i64: 1, 0>} : tensor<4x16xf32> -> tensor<16x4xf32>
  return %0, %1 : tensor<16x4xf32>, tensor<16x4xf32>
}
// CHECK-LABEL: func.func @unknown_rows
// CHECK-NOT: mlc.concat
func.func @unknown_rows(%x: tensor<?x8xf32>) -> (tensor<16x?xf32>, tensor<16x?xf32>) {
  %wk = mlc.weight "wk" : tensor<8x16xf32>
  %wv = mlc.weight "wv" : tensor<8x16xf32>
  %k = mlc.matmul %x, %wk : tensor<?x8xf32>, tensor<8x16xf32> -> tensor<?x16xf32>
  %v = mlc.matmul %x, %wv : tensor<?x8xf32>, tensor<8x16xf32> -> tensor<?x16xf32>
  %0 = mlc.transpose %k {permutation = array<i64: 1, 0>} : tensor<?x16xf32> -> tensor<16x?xf32>
  %1 = mlc.transpose %v {permutation = array<i64: 1, 0>} : tensor<?x16xf32> -> tensor<16x?xf32>
  return %0, %1 : tensor<16x?xf32>, tensor<16x?xf32>
}

// Results of the program would have to be copied out of the product.
// CHECK-LABEL: func.func @results
// CHECK-NOT: mlc.concat
func.func @results(%x: tensor<4x8xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %wk = mlc.weight "wk" : tensor<8x16xf32>
  %wv = mlc.weight "wv" : tensor<8x16xf32>
  %k = mlc.matmul %x, %wk : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %v = mlc.matmul %x, %wv : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  return %k, %v : tensor<4x16xf32>, tensor<4x16xf32>
}

// Products of fewer columns come first, so that heads of 8 columns begin at whole heads of a part of several.
// CHECK-LABEL: func.func @grouped
// CHECK: [[W:%.+]] = mlc.concat [[K:%.+]], [[Q:%.+]] {axis = 1 : i64} : tensor<8x16xf32>, tensor<8x32xf32> -> tensor<8x48xf32>
// CHECK: mlc.slice %{{.+}} [0, 0] [4, 16]
// CHECK: mlc.slice %{{.+}} [0, 16] [4, 32]
func.func @grouped(%x: tensor<4x8xf32>) -> (tensor<4x4x8xf32>, tensor<4x2x8xf32>) {
  %wq = mlc.weight "gq" : tensor<8x32xf32>
  %wk = mlc.weight "gk" : tensor<8x16xf32>
  %q = mlc.matmul %x, %wq : tensor<4x8xf32>, tensor<8x32xf32> -> tensor<4x32xf32>
  %k = mlc.matmul %x, %wk : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %0 = mlc.reshape %q [4, 4, 8] : tensor<4x32xf32> -> tensor<4x4x8xf32>
  %1 = mlc.reshape %k [4, 2, 8] : tensor<4x16xf32> -> tensor<4x2x8xf32>
  return %0, %1 : tensor<4x4x8xf32>, tensor<4x2x8xf32>
}

// Parts of equally many columns are places of a dimension; what rounds them moves along. A wider one is behind them.
// CHECK-LABEL: func.func @rounded
// CHECK: mlc.matmul
// CHECK: mlc.matmul
// CHECK: mlc.matmul
// EVEN-LABEL: func.func @rounded
// EVEN: [[M:%.+]] = mlc.matmul %arg0, %{{.+}} {widen} : tensor<2x8xbf16>, tensor<8x80xbf16> -> tensor<2x80xf32>
// EVEN: [[C:%.+]] = mlc.cast [[M]] : tensor<2x80xf32> -> tensor<2x80xbf16>
// EVEN: [[R:%.+]] = mlc.reshape [[C]] [2, 5, 16]
// EVEN: [[Q:%.+]] = mlc.slice [[R]] [0, 0, 0] [2, 1, 16] [1, 1, 1]
// EVEN: mlc.reshape [[Q]] [2, 16]
// EVEN: [[S:%.+]] = mlc.reshape [[C]] [2, 5, 16]
// EVEN: [[K:%.+]] = mlc.slice [[S]] [0, 1, 0] [2, 1, 16] [1, 1, 1]
// EVEN: mlc.reshape [[K]] [2, 16]
// EVEN: mlc.slice [[C]] [0, 32] [2, 48] [1, 1]
func.func @rounded(%x: tensor<2x8xbf16>) -> (tensor<32xbf16>, tensor<32xbf16>, tensor<96xbf16>) {
  %wq = mlc.weight "wq" : tensor<8x16xbf16>
  %wk = mlc.weight "wk" : tensor<8x16xbf16>
  %wv = mlc.weight "wv" : tensor<8x48xbf16>
  %q = mlc.matmul %x, %wq {widen} : tensor<2x8xbf16>, tensor<8x16xbf16> -> tensor<2x16xf32>
  %qc = mlc.cast %q : tensor<2x16xf32> -> tensor<2x16xbf16>
  %k = mlc.matmul %x, %wk {widen} : tensor<2x8xbf16>, tensor<8x16xbf16> -> tensor<2x16xf32>
  %kc = mlc.cast %k : tensor<2x16xf32> -> tensor<2x16xbf16>
  %v = mlc.matmul %x, %wv {widen} : tensor<2x8xbf16>, tensor<8x48xbf16> -> tensor<2x48xf32>
  %vc = mlc.cast %v : tensor<2x48xf32> -> tensor<2x48xbf16>
  %0 = mlc.reshape %qc [32] : tensor<2x16xbf16> -> tensor<32xbf16>
  %1 = mlc.reshape %kc [32] : tensor<2x16xbf16> -> tensor<32xbf16>
  %2 = mlc.reshape %vc [96] : tensor<2x48xbf16> -> tensor<96xbf16>
  return %0, %1, %2 : tensor<32xbf16>, tensor<32xbf16>, tensor<96xbf16>
}

// Where the narrowest would be no place of a dimension, products of equally many columns are merged.
// EVEN-LABEL: func.func @misfit
// EVEN: mlc.matmul %arg0, %{{.+}} {widen} : tensor<2x8xbf16>, tensor<8x64xbf16> -> tensor<2x64xf32>
// EVEN: mlc.matmul %arg0, %{{.+}} {widen} : tensor<2x8xbf16>, tensor<8x48xbf16> -> tensor<2x48xf32>
func.func @misfit(%x: tensor<2x8xbf16>) -> (tensor<64xbf16>, tensor<64xbf16>, tensor<96xbf16>) {
  %wq = mlc.weight "mq" : tensor<8x32xbf16>
  %wk = mlc.weight "mk" : tensor<8x32xbf16>
  %wv = mlc.weight "mv" : tensor<8x48xbf16>
  %q = mlc.matmul %x, %wq {widen} : tensor<2x8xbf16>, tensor<8x32xbf16> -> tensor<2x32xf32>
  %qc = mlc.cast %q : tensor<2x32xf32> -> tensor<2x32xbf16>
  %k = mlc.matmul %x, %wk {widen} : tensor<2x8xbf16>, tensor<8x32xbf16> -> tensor<2x32xf32>
  %kc = mlc.cast %k : tensor<2x32xf32> -> tensor<2x32xbf16>
  %v = mlc.matmul %x, %wv {widen} : tensor<2x8xbf16>, tensor<8x48xbf16> -> tensor<2x48xf32>
  %vc = mlc.cast %v : tensor<2x48xf32> -> tensor<2x48xbf16>
  %0 = mlc.reshape %qc [64] : tensor<2x32xbf16> -> tensor<64xbf16>
  %1 = mlc.reshape %kc [64] : tensor<2x32xbf16> -> tensor<64xbf16>
  %2 = mlc.reshape %vc [96] : tensor<2x48xbf16> -> tensor<96xbf16>
  return %0, %1, %2 : tensor<64xbf16>, tensor<64xbf16>, tensor<96xbf16>
}
