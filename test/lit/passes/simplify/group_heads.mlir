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
