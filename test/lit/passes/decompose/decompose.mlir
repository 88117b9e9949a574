// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose{claims=softmax,attention})' | FileCheck %s --check-prefix=CLAIM

// CHECK-LABEL: func.func @softmax
// CLAIM-LABEL: func.func @softmax
// CHECK: %[[TOP:.*]] = mlc.reduce max %arg0 {axes = array<i64: 1>, keepdims = true}
// CHECK: %[[D:.*]] = mlc.binary sub %arg0, %[[TOP]]
// CHECK: %[[E:.*]] = mlc.unary exp %[[D]]
// CHECK: %[[S:.*]] = mlc.reduce sum %[[E]]
// CHECK: mlc.binary div %[[E]], %[[S]]
// CLAIM: mlc.softmax
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = mlc.softmax %x {axis = 1 : i64} : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// Composites inside of composites: attention has a softmax. Narrow floats compute in f32.
// CHECK-LABEL: func.func @attention
// CLAIM-LABEL: func.func @attention
// CHECK-NOT: mlc.softmax
// CHECK: mlc.cast {{.*}} tensor<1x2x4x8xf32>
// CHECK: mlc.matmul {{.*}}transpose_rhs
// CHECK: mlc.unary exp
// CHECK: mlc.matmul
// CHECK: mlc.cast {{.*}} -> tensor<1x2x4x8xbf16>
// CLAIM: mlc.attention
// CLAIM-NOT: mlc.matmul
func.func @attention(%q: tensor<1x2x4x8xbf16>) -> tensor<1x2x4x8xbf16> {
  %0 = mlc.attention %q, %q, %q : tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16> -> tensor<1x2x4x8xbf16>
  return %0 : tensor<1x2x4x8xbf16>
}

// A single head of keys and values is read by all heads of queries as it is.
// CHECK-LABEL: func.func @one_head_of_keys
// CHECK-NOT: mlc.reshape
// CHECK: mlc.matmul {{.*}} : tensor<1x4x4x8xf32>, tensor<1x1x6x8xf32> -> tensor<1x4x4x6xf32>
// CHECK-NOT: mlc.reshape
// CHECK: mlc.matmul {{.*}} : tensor<1x4x4x6xf32>, tensor<1x1x6x8xf32> -> tensor<1x4x4x8xf32>
// CHECK: return
func.func @one_head_of_keys(%q: tensor<1x4x4x8xf32>, %k: tensor<1x1x6x8xf32>) -> tensor<1x4x4x8xf32> {
  %0 = mlc.attention %q, %k, %k : tensor<1x4x4x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32> -> tensor<1x4x4x8xf32>
  return %0 : tensor<1x4x4x8xf32>
}

// A batch normalization behind a convolution with a constant filter disappears into it.
// CHECK-LABEL: func.func @fold
// CLAIM-LABEL: func.func @fold
// CHECK: %[[W:.*]] = mlc.weight "w"
// CHECK: %[[F:.*]] = mlc.binary mul %[[W]]
// CHECK: %[[C:.*]] = mlc.conv %arg0, %[[F]] bias(
// CHECK-NEXT: return %[[C]]
func.func @fold(%x: tensor<1x3x8xf32>) -> tensor<1x4x8xf32> {
  %w = mlc.weight "w" : tensor<4x3x1xf32>
  %v = mlc.weight "v" : tensor<4xf32>
  %0 = mlc.conv %x, %w {strides = array<i64: 1>, padding = array<i64: 0, 0>, dilations = array<i64: 1>} : tensor<1x3x8xf32>, tensor<4x3x1xf32> -> tensor<1x4x8xf32>
  %1 = mlc.batch_norm %0, %v, %v, %v, %v {epsilon = 1.0e-5 : f64} : tensor<1x4x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<1x4x8xf32>
  return %1 : tensor<1x4x8xf32>
}

// Long sequences are a loop over the steps.
// CHECK-LABEL: func.func @loop
// CHECK: mlc.matmul {{.*}}transpose_rhs{{.*}} tensor<9x2x3xf32>
// CHECK: scf.for
// CHECK: mlc.unary tanh
func.func @loop(%x: tensor<9x2x3xf32>, %w: tensor<1x4x3xf32>, %r: tensor<1x4x4xf32>) -> tensor<1x2x4xf32> {
  %0, %1, %2 = mlc.recurrent rnn %x, %w, %r {activations = []} : tensor<9x2x3xf32>, tensor<1x4x3xf32>, tensor<1x4x4xf32> -> tensor<9x1x2x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>
  return %1 : tensor<1x2x4xf32>
}

// Rows and columns of an image that is enlarged by whole factors are repeated together, after other dimensions.
// CHECK-LABEL: func.func @enlarge
// CHECK: %[[D:.*]] = mlc.gather
// CHECK: %[[A:.*]] = mlc.reshape %[[D]] {{.*}} -> tensor<1x2x4x1x5x1xf32>
// CHECK-NEXT: %[[B:.*]] = mlc.broadcast %[[A]] {{.*}} -> tensor<1x2x4x2x5x3xf32>
// CHECK-NEXT: %[[R:.*]] = mlc.reshape %[[B]] {{.*}} -> tensor<1x2x8x15xf32>
// CHECK-NEXT: return %[[R]]
func.func @enlarge(%x: tensor<1x4x4x5xf32>) -> tensor<1x2x8x15xf32> {
  %s = mlc.constant dense<[1.0, 0.5, 2.0, 3.0]> : tensor<4xf32>
  %0 = mlc.resize nearest %x, %s [1, 2, 8, 15] {coordinate = "asymmetric", nearest_mode = "floor"} : tensor<1x4x4x5xf32>, tensor<4xf32> -> tensor<1x2x8x15xf32>
  return %0 : tensor<1x2x8x15xf32>
}

// Products of bytes are wider than bytes; the result is not.
// CHECK-LABEL: func.func @einsum_of_bytes
// CHECK: %[[P:.*]] = mlc.matmul {{.*}} -> tensor<4x5xi32>
// CHECK: mlc.cast %[[P]] : tensor<4x5xi32> -> tensor<4x5xi8>
func.func @einsum_of_bytes(%x: tensor<4x3xi8>, %y: tensor<3x5xi8>) -> tensor<4x5xi8> {
  %0 = mlc.einsum "ij,jk->ik"(%x, %y) : tensor<4x3xi8>, tensor<3x5xi8> -> tensor<4x5xi8>
  return %0 : tensor<4x5xi8>
}
