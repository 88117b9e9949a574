// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-group-heads,canonicalize)' | FileCheck %s

// CHECK-LABEL: func @repeated
// CHECK-SAME: %[[Q:.*]]: tensor<2x8x5x16xf32>, %[[K:.*]]: tensor<2x2x7x16xf32>, %[[V:.*]]: tensor<2x2x7x16xf32>
// CHECK-NEXT: %[[R:.*]] = mlc.attention %[[Q]], %[[K]], %[[V]]
// CHECK-NEXT: return %[[R]]
func.func @repeated(%q: tensor<2x8x5x16xf32>, %k: tensor<2x2x7x16xf32>, %v: tensor<2x2x7x16xf32>) -> tensor<2x8x5x16xf32> {
  %0 = mlc.reshape %k [2, 2, 1, 7, 16] : tensor<2x2x7x16xf32> -> tensor<2x2x1x7x16xf32>
  %1 = mlc.broadcast %0 [2, 2, 4, 7, 16] : tensor<2x2x1x7x16xf32> -> tensor<2x2x4x7x16xf32>
  %2 = mlc.reshape %1 [2, 8, 7, 16] : tensor<2x2x4x7x16xf32> -> tensor<2x8x7x16xf32>
  %3 = mlc.reshape %v [2, 2, 1, 7, 16] : tensor<2x2x7x16xf32> -> tensor<2x2x1x7x16xf32>
  %4 = mlc.broadcast %3 [2, 2, 4, 7, 16] : tensor<2x2x1x7x16xf32> -> tensor<2x2x4x7x16xf32>
  %5 = mlc.reshape %4 [2, 8, 7, 16] : tensor<2x2x4x7x16xf32> -> tensor<2x8x7x16xf32>
  %6 = mlc.attention %q, %2, %5 : tensor<2x8x5x16xf32>, tensor<2x8x7x16xf32>, tensor<2x8x7x16xf32> -> tensor<2x8x5x16xf32>
  return %6 : tensor<2x8x5x16xf32>
}

// One head for all.
// CHECK-LABEL: func @one_head
// CHECK-SAME: %[[Q:.*]]: tensor<?x8x5x16xf32>, %[[K:.*]]: tensor<?x1x?x16xf32>, %[[V:.*]]: tensor<?x1x?x16xf32>
// CHECK: mlc.attention %[[Q]], %[[K]], %[[V]] :
func.func @one_head(%q: tensor<?x8x5x16xf32>, %k: tensor<?x1x?x16xf32>, %v: tensor<?x1x?x16xf32>) -> tensor<?x8x5x16xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %b = tensor.dim %k, %c0 : tensor<?x1x?x16xf32>
  %n = tensor.dim %k, %c2 : tensor<?x1x?x16xf32>
  %bv = tensor.dim %v, %c0 : tensor<?x1x?x16xf32>
  %nv = tensor.dim %v, %c2 : tensor<?x1x?x16xf32>
  %0 = mlc.broadcast %k [%b, 8, %n, 16] : tensor<?x1x?x16xf32> -> tensor<?x8x?x16xf32>
  %1 = mlc.broadcast %v [%bv, 8, %nv, 16] : tensor<?x1x?x16xf32> -> tensor<?x8x?x16xf32>
  %2 = mlc.attention %q, %0, %1 : tensor<?x8x5x16xf32>, tensor<?x8x?x16xf32>, tensor<?x8x?x16xf32> -> tensor<?x8x5x16xf32>
  return %2 : tensor<?x8x5x16xf32>
}

// Extents that only a run knows are the same ones.
// CHECK-LABEL: func @unknown_length
// CHECK-SAME: %[[Q:.*]]: tensor<2x8x5x16xf32>, %[[K:.*]]: tensor<2x2x?x16xf32>, %[[V:.*]]: tensor<2x2x?x16xf32>
// CHECK: mlc.attention %[[Q]], %[[K]], %[[V]] :
func.func @unknown_length(%q: tensor<2x8x5x16xf32>, %k: tensor<2x2x?x16xf32>, %v: tensor<2x2x?x16xf32>) -> tensor<2x8x5x16xf32> {
  %c2 = arith.constant 2 : index
  %n = tensor.dim %k, %c2 : tensor<2x2x?x16xf32>
  %nv = tensor.dim %v, %c2 : tensor<2x2x?x16xf32>
  %0 = mlc.reshape %k [2, 2, 1, %n, 16] : tensor<2x2x?x16xf32> -> tensor<2x2x1x?x16xf32>
  %1 = mlc.broadcast %0 [2, 2, 4, %n, 16] : tensor<2x2x1x?x16xf32> -> tensor<2x2x4x?x16xf32>
  %2 = mlc.reshape %1 [2, 8, %n, 16] : tensor<2x2x4x?x16xf32> -> tensor<2x8x?x16xf32>
  %3 = mlc.reshape %v [2, 2, 1, %nv, 16] : tensor<2x2x?x16xf32> -> tensor<2x2x1x?x16xf32>
  %4 = mlc.broadcast %3 [2, 2, 4, %nv, 16] : tensor<2x2x1x?x16xf32> -> tensor<2x2x4x?x16xf32>
  %5 = mlc.reshape %4 [2, 8, %nv, 16] : tensor<2x2x4x?x16xf32> -> tensor<2x8x?x16xf32>
  %6 = mlc.attention %q, %2, %5 : tensor<2x8x5x16xf32>, tensor<2x8x?x16xf32>, tensor<2x8x?x16xf32> -> tensor<2x8x5x16xf32>
  return %6 : tensor<2x8x5x16xf32>
}

// Heads in turns, as `tile` gives them, are other groups; so are the keys alone.
// CHECK-LABEL: func @in_turns
// CHECK: mlc.broadcast
// CHECK: mlc.attention %{{.*}} : tensor<2x8x5x16xf32>, tensor<2x8x7x16xf32>, tensor<2x8x7x16xf32>
func.func @in_turns(%q: tensor<2x8x5x16xf32>, %k: tensor<2x2x7x16xf32>, %v: tensor<2x2x7x16xf32>) -> tensor<2x8x5x16xf32> {
  %0 = mlc.reshape %k [2, 1, 2, 7, 16] : tensor<2x2x7x16xf32> -> tensor<2x1x2x7x16xf32>
  %1 = mlc.broadcast %0 [2, 4, 2, 7, 16] : tensor<2x1x2x7x16xf32> -> tensor<2x4x2x7x16xf32>
  %2 = mlc.reshape %1 [2, 8, 7, 16] : tensor<2x4x2x7x16xf32> -> tensor<2x8x7x16xf32>
  %3 = mlc.reshape %v [2, 1, 2, 7, 16] : tensor<2x2x7x16xf32> -> tensor<2x1x2x7x16xf32>
  %4 = mlc.broadcast %3 [2, 4, 2, 7, 16] : tensor<2x1x2x7x16xf32> -> tensor<2x4x2x7x16xf32>
  %5 = mlc.reshape %4 [2, 8, 7, 16] : tensor<2x4x2x7x16xf32> -> tensor<2x8x7x16xf32>
  %6 = mlc.attention %q, %2, %5 : tensor<2x8x5x16xf32>, tensor<2x8x7x16xf32>, tensor<2x8x7x16xf32> -> tensor<2x8x5x16xf32>
  return %6 : tensor<2x8x5x16xf32>
}

// CHECK-LABEL: func @keys_alone
// CHECK: mlc.broadcast
// CHECK: mlc.attention %{{.*}} : tensor<2x8x5x16xf32>, tensor<2x8x7x16xf32>, tensor<2x8x7x16xf32>
func.func @keys_alone(%q: tensor<2x8x5x16xf32>, %k: tensor<2x1x7x16xf32>, %v: tensor<2x8x7x16xf32>) -> tensor<2x8x5x16xf32> {
  %0 = mlc.broadcast %k [2, 8, 7, 16] : tensor<2x1x7x16xf32> -> tensor<2x8x7x16xf32>
  %1 = mlc.attention %q, %0, %v : tensor<2x8x5x16xf32>, tensor<2x8x7x16xf32>, tensor<2x8x7x16xf32> -> tensor<2x8x5x16xf32>
  return %1 : tensor<2x8x5x16xf32>
}

// An attention that is written as products: keys are transposed behind the repetition, with heads joined with the batch
// of one, and scaled; both products broadcast along the members of a group.
// CHECK-LABEL: func @products
// CHECK-SAME: %[[Q:.*]]: tensor<1x8x?x16xf32>, %[[K:.*]]: tensor<1x2x?x16xf32>, %[[V:.*]]: tensor<1x2x?x16xf32>
// CHECK-NOT: mlc.broadcast
// CHECK: %[[KT:.*]] = mlc.transpose %{{.*}} {permutation = array<i64: 0, 1, 2, 4, 3>} : tensor<1x2x1x?x16xf32>
// CHECK: %[[KS:.*]] = mlc.binary mul %[[KT]], %{{.*}} : tensor<1x2x1x16x?xf32>, tensor<f32>
// CHECK: mlc.matmul %{{.*}}, %[[KS]] : tensor<1x2x4x?x16xf32>, tensor<1x2x1x16x?xf32> -> tensor<1x2x4x?x?xf32>
// CHECK: mlc.reshape %{{.*}} -> tensor<1x8x?x?xf32>
// CHECK: mlc.softmax %{{.*}} : tensor<1x8x?x?xf32>
// CHECK: mlc.matmul %{{.*}} : tensor<1x2x4x?x?xf32>, tensor<1x2x1x?x16xf32> -> tensor<1x2x4x?x16xf32>
func.func @products(%q: tensor<1x8x?x16xf32>, %k: tensor<1x2x?x16xf32>, %v: tensor<1x2x?x16xf32>) -> tensor<1x8x?x16xf32> {
  %c2 = arith.constant 2 : index
  %factor = mlc.constant dense<0.5> : tensor<f32>
  %n = tensor.dim %k, %c2 : tensor<1x2x?x16xf32>
  %nv = tensor.dim %v, %c2 : tensor<1x2x?x16xf32>
  %0 = mlc.reshape %k [1, 2, 1, %n, 16] : tensor<1x2x?x16xf32> -> tensor<1x2x1x?x16xf32>
  %1 = mlc.broadcast %0 [1, 2, 4, %n, 16] : tensor<1x2x1x?x16xf32> -> tensor<1x2x4x?x16xf32>
  %2 = mlc.reshape %1 [8, %n, 16] : tensor<1x2x4x?x16xf32> -> tensor<8x?x16xf32>
  %3 = mlc.transpose %2 {permutation = array<i64: 0, 2, 1>} : tensor<8x?x16xf32> -> tensor<8x16x?xf32>
  %4 = mlc.reshape %3 [1, 8, 16, %n] : tensor<8x16x?xf32> -> tensor<1x8x16x?xf32>
  %5 = mlc.binary mul %4, %factor : tensor<1x8x16x?xf32>, tensor<f32> -> tensor<1x8x16x?xf32>
  %6 = mlc.reshape %v [1, 2, 1, %nv, 16] : tensor<1x2x?x16xf32> -> tensor<1x2x1x?x16xf32>
  %7 = mlc.broadcast %6 [1, 2, 4, %nv, 16] : tensor<1x2x1x?x16xf32> -> tensor<1x2x4x?x16xf32>
  %8 = mlc.reshape %7 [1, 8, %nv, 16] : tensor<1x2x4x?x16xf32> -> tensor<1x8x?x16xf32>
  %9 = mlc.matmul %q, %5 : tensor<1x8x?x16xf32>, tensor<1x8x16x?xf32> -> tensor<1x8x?x?xf32>
  %10 = mlc.softmax %9 {axis = 3 : i64} : tensor<1x8x?x?xf32>
  %11 = mlc.matmul %10, %8 : tensor<1x8x?x?xf32>, tensor<1x8x?x16xf32> -> tensor<1x8x?x16xf32>
  return %11 : tensor<1x8x?x16xf32>
}

// A single head broadcasts as it is, behind a cast, too.
// CHECK-LABEL: func @product_of_one_head
// CHECK-SAME: %[[P:.*]]: tensor<?x8x5x7xf32>, %[[V:.*]]: tensor<?x1x7x16xf16>
// CHECK-NEXT: %[[C:.*]] = mlc.cast %[[V]] : tensor<?x1x7x16xf16> -> tensor<?x1x7x16xf32>
// CHECK-NEXT: %[[R:.*]] = mlc.matmul %[[P]], %[[C]] : tensor<?x8x5x7xf32>, tensor<?x1x7x16xf32> -> tensor<?x8x5x16xf32>
// CHECK-NEXT: return %[[R]]
func.func @product_of_one_head(%p: tensor<?x8x5x7xf32>, %v: tensor<?x1x7x16xf16>) -> tensor<?x8x5x16xf32> {
  %c0 = arith.constant 0 : index
  %b = tensor.dim %v, %c0 : tensor<?x1x7x16xf16>
  %0 = mlc.broadcast %v [%b, 8, 7, 16] : tensor<?x1x7x16xf16> -> tensor<?x8x7x16xf16>
  %1 = mlc.cast %0 : tensor<?x8x7x16xf16> -> tensor<?x8x7x16xf32>
  %2 = mlc.matmul %p, %1 : tensor<?x8x5x7xf32>, tensor<?x8x7x16xf32> -> tensor<?x8x5x16xf32>
  return %2 : tensor<?x8x5x16xf32>
}

// The left side may be the same for all of a batch.
// CHECK-LABEL: func @one_batch
// CHECK: mlc.matmul %{{.*}} : tensor<1x2x4x5x7xf32>, tensor<3x2x1x7x16xf32> -> tensor<3x2x4x5x16xf32>
// CHECK: mlc.reshape %{{.*}} [3, 8, 5, 16]
func.func @one_batch(%p: tensor<1x8x5x7xf32>, %v: tensor<3x2x7x16xf32>) -> tensor<3x8x5x16xf32> {
  %0 = mlc.reshape %v [3, 2, 1, 7, 16] : tensor<3x2x7x16xf32> -> tensor<3x2x1x7x16xf32>
  %1 = mlc.broadcast %0 [3, 2, 4, 7, 16] : tensor<3x2x1x7x16xf32> -> tensor<3x2x4x7x16xf32>
  %2 = mlc.reshape %1 [3, 8, 7, 16] : tensor<3x2x4x7x16xf32> -> tensor<3x8x7x16xf32>
  %3 = mlc.matmul %p, %2 : tensor<1x8x5x7xf32>, tensor<3x8x7x16xf32> -> tensor<3x8x5x16xf32>
  return %3 : tensor<3x8x5x16xf32>
}

// Factors that differ from one repetition to the next, heads in turns, and heads behind their keys stay.
// CHECK-LABEL: func @factors_of_heads
// CHECK: mlc.matmul %{{.*}} : tensor<2x8x5x7xf32>, tensor<2x8x7x16xf32>
func.func @factors_of_heads(%p: tensor<2x8x5x7xf32>, %v: tensor<2x1x7x16xf32>, %f: tensor<8x1x1xf32>) -> tensor<2x8x5x16xf32> {
  %0 = mlc.broadcast %v [2, 8, 7, 16] : tensor<2x1x7x16xf32> -> tensor<2x8x7x16xf32>
  %1 = mlc.binary mul %0, %f : tensor<2x8x7x16xf32>, tensor<8x1x1xf32> -> tensor<2x8x7x16xf32>
  %2 = mlc.matmul %p, %1 : tensor<2x8x5x7xf32>, tensor<2x8x7x16xf32> -> tensor<2x8x5x16xf32>
  return %2 : tensor<2x8x5x16xf32>
}

// CHECK-LABEL: func @product_in_turns
// CHECK: mlc.matmul %{{.*}} : tensor<2x8x5x7xf32>, tensor<2x8x7x16xf32>
func.func @product_in_turns(%p: tensor<2x8x5x7xf32>, %v: tensor<2x2x7x16xf32>) -> tensor<2x8x5x16xf32> {
  %0 = mlc.reshape %v [2, 1, 2, 7, 16] : tensor<2x2x7x16xf32> -> tensor<2x1x2x7x16xf32>
  %1 = mlc.broadcast %0 [2, 4, 2, 7, 16] : tensor<2x1x2x7x16xf32> -> tensor<2x4x2x7x16xf32>
  %2 = mlc.reshape %1 [2, 8, 7, 16] : tensor<2x4x2x7x16xf32> -> tensor<2x8x7x16xf32>
  %3 = mlc.matmul %p, %2 : tensor<2x8x5x7xf32>, tensor<2x8x7x16xf32> -> tensor<2x8x5x16xf32>
  return %3 : tensor<2x8x5x16xf32>
}

// The same extents in another order are other elements.
// CHECK-LABEL: func @other_order
// CHECK: mlc.matmul %{{.*}} : tensor<2x8x8x8xf32>, tensor<2x8x8x8xf32>
func.func @other_order(%p: tensor<2x8x8x8xf32>, %v: tensor<2x1x8x8xf32>) -> tensor<2x8x8x8xf32> {
  %0 = mlc.broadcast %v [2, 8, 8, 8] : tensor<2x1x8x8xf32> -> tensor<2x8x8x8xf32>
  %1 = mlc.transpose %0 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x8x8x8xf32> -> tensor<2x8x8x8xf32>
  %2 = mlc.matmul %p, %1 : tensor<2x8x8x8xf32>, tensor<2x8x8x8xf32> -> tensor<2x8x8x8xf32>
  return %2 : tensor<2x8x8x8xf32>
}

// CHECK-LABEL: func @divided
// CHECK: mlc.matmul %{{.*}} : tensor<2x8x5x4xf32>, tensor<2x8x4x28xf32>
func.func @divided(%p: tensor<2x8x5x4xf32>, %v: tensor<2x1x7x16xf32>) -> tensor<2x8x5x28xf32> {
  %0 = mlc.broadcast %v [2, 8, 7, 16] : tensor<2x1x7x16xf32> -> tensor<2x8x7x16xf32>
  %1 = mlc.reshape %0 [2, 8, 4, 28] : tensor<2x8x7x16xf32> -> tensor<2x8x4x28xf32>
  %2 = mlc.matmul %p, %1 : tensor<2x8x5x4xf32>, tensor<2x8x4x28xf32> -> tensor<2x8x5x28xf32>
  return %2 : tensor<2x8x5x28xf32>
}
