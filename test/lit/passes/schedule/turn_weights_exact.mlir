// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-turn-weights{exact=true})' | FileCheck %s

// Exact products are done in tiles, which lie along the sum, where there are enough of them.
// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]] = mlc.transpose %{{.*}} {permutation = array<i64: 1, 0>} : tensor<264x1100xf32> -> tensor<1100x264xf32>
// CHECK: mlc.launch @k0(%{{.*}}, %[[T]])
// A small one keeps its weights in the order that vectors of columns want.
// CHECK-NOT: mlc.transpose
// CHECK: mlc.launch @k1(%{{.*}}, %{{.*}}) {{.*}} tensor<264x1100xf32>
func.func @main(%x0: tensor<1000x264xf32>, %x1: tensor<32x264xf32>) -> (tensor<1000x1100xf32>, tensor<32x1100xf32>) {
  %w0 = mlc.weight "w0" : tensor<264x1100xf32>
  %e0 = tensor.empty() : tensor<1000x1100xf32>
  %r0 = mlc.launch @k0(%x0, %w0) outs(%e0) : (tensor<1000x264xf32>, tensor<264x1100xf32>) outs(tensor<1000x1100xf32>) -> tensor<1000x1100xf32>
  %w1 = mlc.weight "w1" : tensor<264x1100xf32>
  %e1 = tensor.empty() : tensor<32x1100xf32>
  %r1 = mlc.launch @k1(%x1, %w1) outs(%e1) : (tensor<32x264xf32>, tensor<264x1100xf32>) outs(tensor<32x1100xf32>) -> tensor<32x1100xf32>
  return %r0, %r1 : tensor<1000x1100xf32>, tensor<32x1100xf32>
}
module @k0 attributes {mlc.kernel} {
  func.func @k0(%a: tensor<1000x264xf32>, %b: tensor<264x1100xf32>, %o: tensor<1000x1100xf32>) -> tensor<1000x1100xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1000x1100xf32>) -> tensor<1000x1100xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<1000x264xf32>, tensor<264x1100xf32>) outs(%f : tensor<1000x1100xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<1000x1100xf32>
    return %m : tensor<1000x1100xf32>
  }
}
module @k1 attributes {mlc.kernel} {
  func.func @k1(%a: tensor<32x264xf32>, %b: tensor<264x1100xf32>, %o: tensor<32x1100xf32>) -> tensor<32x1100xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<32x1100xf32>) -> tensor<32x1100xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<32x264xf32>, tensor<264x1100xf32>) outs(%f : tensor<32x1100xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<32x1100xf32>
    return %m : tensor<32x1100xf32>
  }
}
