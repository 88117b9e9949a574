// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose{none=true},mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views{target=cuda})' | FileCheck %s

// Parts of rows of any number: the first one's rows are those of the product, as both were made with one size; where a
// part has rows of another number, it is moved.
// CHECK-LABEL: func.func @parts
// CHECK: linalg.generic {{.*}}mlc.contraction
// CHECK: %[[M:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?x96xbf16>)
// CHECK: %[[N:.*]] = tensor.dim %[[M]]
// CHECK: %[[E:.*]] = tensor.expand_shape %[[M]] {{\[\[}}0], [1, 2, 3]] output_shape [%[[N]], 3, 2, 16]
// CHECK: linalg.generic {{.*}} ins(%[[E]] : tensor<?x3x2x16xbf16>)
// CHECK: linalg.generic {{.*}} ins(%[[M]] : tensor<?x96xbf16>)
// CHECK: %[[F:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<?x32xbf16>)
// CHECK: tensor.extract %[[M]]
// CHECK: linalg.generic {{.*}} ins(%[[F]] : tensor<?x32xbf16>)
// CHECK-NOT: linalg.generic
func.func @parts(%x: tensor<?x64xbf16>, %w: tensor<64x96xbf16>, %k: index) -> (tensor<2x?x16xbf16>, tensor<?x32xbf16>, tensor<?x32xbf16>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xbf16>
  %m = mlc.matmul %x, %w : tensor<?x64xbf16>, tensor<64x96xbf16> -> tensor<?x96xbf16>
  %a = mlc.slice %m [0, 0] [%n, 32] [1, 1] : tensor<?x96xbf16> -> tensor<?x32xbf16>
  %b = mlc.slice %m [0, 32] [%n, 32] [1, 1] : tensor<?x96xbf16> -> tensor<?x32xbf16>
  %r = mlc.reshape %a [%n, 2, 16] : tensor<?x32xbf16> -> tensor<?x2x16xbf16>
  %t = mlc.transpose %r {permutation = array<i64: 1, 0, 2>} : tensor<?x2x16xbf16> -> tensor<2x?x16xbf16>
  %u = mlc.unary neg %t : tensor<2x?x16xbf16>
  %s = mlc.unary neg %b : tensor<?x32xbf16>
  %d = mlc.slice %m [0, 0] [%k, 32] [1, 1] : tensor<?x96xbf16> -> tensor<?x32xbf16>
  %v = mlc.unary neg %d : tensor<?x32xbf16>
  return %u, %s, %v : tensor<2x?x16xbf16>, tensor<?x32xbf16>, tensor<?x32xbf16>
}

// A product writes in the order that its transposition has.
// CHECK-LABEL: func.func @turned
// CHECK: %[[O:.*]] = tensor.empty(%{{.*}}) : tensor<?x2x32xf32>
// CHECK: %[[Z:.*]] = linalg.fill {{.*}} outs(%[[O]] : tensor<?x2x32xf32>)
// CHECK: linalg.generic {{.*}} outs(%[[Z]] : tensor<?x2x32xf32>) attrs = {mlc.contraction}
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @turned(%x: tensor<2x?x64xbf16>, %w: tensor<2x64x32xbf16>) -> tensor<?x2x32xf32> {
  %m = mlc.matmul %x, %w {widen} : tensor<2x?x64xbf16>, tensor<2x64x32xbf16> -> tensor<2x?x32xf32>
  %t = mlc.transpose %m {permutation = array<i64: 1, 0, 2>} : tensor<2x?x32xf32> -> tensor<?x2x32xf32>
  return %t : tensor<?x2x32xf32>
}
