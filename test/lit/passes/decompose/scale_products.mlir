// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-scale-products)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-scale-products{even=16})' | FileCheck %s --check-prefix=EVEN

// Rows of eight are none that are multiples of 16.
// EVEN: mlc.binary div
// EVEN-NEXT: mlc.binary mul
// EVEN: mlc.matmul

// Channels of both sides are divided by their lengths over the tokens, which a product has given token by token.
// CHECK-LABEL: func.func @channels
// CHECK-DAG: [[Q:%.+]] = mlc.transpose %arg0
// CHECK-DAG: [[K:%.+]] = mlc.transpose %arg1
// CHECK-DAG: [[T:%.+]] = mlc.transpose [[K]] {permutation = array<i64: 0, 2, 1>}
// CHECK-DAG: [[N:%.+]] = mlc.transpose %arg3 {permutation = array<i64: 0, 2, 1>} : tensor<2x8x1xf32> -> tensor<2x1x8xf32>
// CHECK: [[P:%.+]] = mlc.matmul [[Q]], [[T]]
// CHECK: [[D:%.+]] = mlc.binary mul [[P]], [[N]] : tensor<2x8x8xf32>, tensor<2x1x8xf32>
// CHECK: [[I:%.+]] = mlc.unary reciprocal %arg2
// CHECK: mlc.binary mul [[D]], [[I]] : tensor<2x8x8xf32>, tensor<2x8x1xf32>
func.func @channels(%q: tensor<2x50x8xf32>, %k: tensor<2x50x8xf32>, %m: tensor<2x8x1xf32>, %n: tensor<2x8x1xf32>) -> tensor<2x8x8xf32> {
  %0 = mlc.transpose %q {permutation = array<i64: 0, 2, 1>} : tensor<2x50x8xf32> -> tensor<2x8x50xf32>
  %1 = mlc.transpose %k {permutation = array<i64: 0, 2, 1>} : tensor<2x50x8xf32> -> tensor<2x8x50xf32>
  %2 = mlc.binary div %0, %m : tensor<2x8x50xf32>, tensor<2x8x1xf32> -> tensor<2x8x50xf32>
  %3 = mlc.binary mul %1, %n : tensor<2x8x50xf32>, tensor<2x8x1xf32> -> tensor<2x8x50xf32>
  %4 = mlc.transpose %3 {permutation = array<i64: 0, 2, 1>} : tensor<2x8x50xf32> -> tensor<2x50x8xf32>
  %5 = mlc.matmul %2, %4 : tensor<2x8x50xf32>, tensor<2x50x8xf32> -> tensor<2x8x8xf32>
  return %5 : tensor<2x8x8xf32>
}

// 16 bits keep the accumulators until they have their factor.
// CHECK-LABEL: func.func @halves
// CHECK: [[P:%.+]] = mlc.matmul %{{.+}}, %{{.+}} {widen} : tensor<2x8x50xf16>, tensor<2x50x8xf16> -> tensor<2x8x8xf32>
// CHECK: [[F:%.+]] = mlc.cast %arg2 : tensor<2x8x1xf16> -> tensor<2x8x1xf32>
// CHECK: [[I:%.+]] = mlc.unary reciprocal [[F]]
// CHECK: [[D:%.+]] = mlc.binary mul [[P]], [[I]] : tensor<2x8x8xf32>, tensor<2x8x1xf32>
// CHECK: mlc.cast [[D]] : tensor<2x8x8xf32> -> tensor<2x8x8xf16>
func.func @halves(%q: tensor<2x50x8xf16>, %k: tensor<2x50x8xf16>, %m: tensor<2x8x1xf16>) -> tensor<2x8x8xf16> {
  %0 = mlc.transpose %q {permutation = array<i64: 0, 2, 1>} : tensor<2x50x8xf16> -> tensor<2x8x50xf16>
  %1 = mlc.binary div %0, %m : tensor<2x8x50xf16>, tensor<2x8x1xf16> -> tensor<2x8x50xf16>
  %2 = mlc.matmul %1, %k : tensor<2x8x50xf16>, tensor<2x50x8xf16> -> tensor<2x8x8xf16>
  return %2 : tensor<2x8x8xf16>
}

// Where rows lie together one kernel divides them as it sums them up, and a product larger than the operand has more to
// divide.
// CHECK-LABEL: func.func @rows
// CHECK: mlc.binary div %arg0
// CHECK: mlc.matmul
// CHECK-NOT: mlc.binary
func.func @rows(%q: tensor<2x8x50xf32>, %k: tensor<2x50x8xf32>, %m: tensor<2x8x1xf32>) -> tensor<2x8x8xf32> {
  %0 = mlc.binary div %q, %m : tensor<2x8x50xf32>, tensor<2x8x1xf32> -> tensor<2x8x50xf32>
  %1 = mlc.matmul %0, %k : tensor<2x8x50xf32>, tensor<2x50x8xf32> -> tensor<2x8x8xf32>
  return %1 : tensor<2x8x8xf32>
}

// CHECK-LABEL: func.func @large
// CHECK: mlc.binary div
// CHECK: mlc.matmul
// CHECK-NOT: mlc.binary
func.func @large(%q: tensor<2x5x80xf32>, %k: tensor<2x5x90xf32>, %m: tensor<2x80x1xf32>) -> tensor<2x80x90xf32> {
  %0 = mlc.transpose %q {permutation = array<i64: 0, 2, 1>} : tensor<2x5x80xf32> -> tensor<2x80x5xf32>
  %1 = mlc.binary div %0, %m : tensor<2x80x5xf32>, tensor<2x80x1xf32> -> tensor<2x80x5xf32>
  %2 = mlc.matmul %1, %k : tensor<2x80x5xf32>, tensor<2x5x90xf32> -> tensor<2x80x90xf32>
  return %2 : tensor<2x80x90xf32>
}

// What else reads the quotient has it made anyway.
// CHECK-LABEL: func.func @read_twice
// CHECK: mlc.binary div
// CHECK-NEXT: mlc.matmul
func.func @read_twice(%q: tensor<2x50x8xf32>, %k: tensor<2x50x8xf32>, %m: tensor<2x8x1xf32>) -> (tensor<2x8x8xf32>, tensor<2x8x50xf32>) {
  %0 = mlc.transpose %q {permutation = array<i64: 0, 2, 1>} : tensor<2x50x8xf32> -> tensor<2x8x50xf32>
  %1 = mlc.binary div %0, %m : tensor<2x8x50xf32>, tensor<2x8x1xf32> -> tensor<2x8x50xf32>
  %2 = mlc.matmul %1, %k : tensor<2x8x50xf32>, tensor<2x50x8xf32> -> tensor<2x8x8xf32>
  return %2, %1 : tensor<2x8x8xf32>, tensor<2x8x50xf32>
}

// Convolutions will have channels last: their pixels lie apart.
// CHECK-LABEL: func.func @pixels
// CHECK: [[C:%.+]] = mlc.conv
// CHECK: [[R:%.+]] = mlc.reshape [[C]] [2, 8, 81]
// CHECK: [[P:%.+]] = mlc.matmul [[R]], %arg2
// CHECK: [[I:%.+]] = mlc.unary reciprocal %arg3
// CHECK: mlc.binary mul [[P]], [[I]]
func.func @pixels(%x: tensor<2x8x9x9xf32>, %w: tensor<8x8x1x1xf32>, %k: tensor<2x81x8xf32>, %m: tensor<2x8x1xf32>) -> tensor<2x8x8xf32> {
  %0 = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : tensor<2x8x9x9xf32>, tensor<8x8x1x1xf32> -> tensor<2x8x9x9xf32>
  %1 = mlc.reshape %0 [2, 8, 81] : tensor<2x8x9x9xf32> -> tensor<2x8x81xf32>
  %2 = mlc.binary div %1, %m : tensor<2x8x81xf32>, tensor<2x8x1xf32> -> tensor<2x8x81xf32>
  %3 = mlc.matmul %2, %k : tensor<2x8x81xf32>, tensor<2x81x8xf32> -> tensor<2x8x8xf32>
  return %3 : tensor<2x8x8xf32>
}

// CHECK-LABEL: func.func @integers
// CHECK: mlc.binary div
// CHECK-NEXT: mlc.matmul
func.func @integers(%q: tensor<2x50x8xi32>, %k: tensor<2x50x8xi32>, %m: tensor<2x8x1xi32>) -> tensor<2x8x8xi32> {
  %0 = mlc.transpose %q {permutation = array<i64: 0, 2, 1>} : tensor<2x50x8xi32> -> tensor<2x8x50xi32>
  %1 = mlc.binary div %0, %m : tensor<2x8x50xi32>, tensor<2x8x1xi32> -> tensor<2x8x50xi32>
  %2 = mlc.matmul %1, %k : tensor<2x8x50xi32>, tensor<2x50x8xi32> -> tensor<2x8x8xi32>
  return %2 : tensor<2x8x8xi32>
}
