// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-turn-weights)' | FileCheck %s

// CHECK: #[[TURNED:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: func.func @main
// CHECK: %[[W:.*]] = mlc.weight "w"
// CHECK: %[[T:.*]] = mlc.transpose %[[W]] {permutation = array<i64: 1, 0>} : tensor<16x100xf32> -> tensor<100x16xf32>
// CHECK: mlc.launch @k0(%{{.*}}, %[[T]])
// What the program computes stays.
// CHECK: mlc.launch @k1(%{{.*}}, %arg1)
// CHECK: func.func @k0(%{{.*}}: tensor<8x16xf32>, %{{.*}}: tensor<100x16xf32>
// CHECK: indexing_maps = [#{{.*}}, #[[TURNED]], #{{.*}}]
// CHECK: func.func @k1(%{{.*}}: tensor<8x16xf32>, %{{.*}}: tensor<16x100xf32>
func.func @main(%x: tensor<8x16xf32>, %v: tensor<16x100xf32>) -> (tensor<8x100xf32>, tensor<8x100xf32>) {
  %w = mlc.weight "w" : tensor<16x100xf32>
  %e = tensor.empty() : tensor<8x100xf32>
  %a = mlc.launch @k0(%x, %w) outs(%e) : (tensor<8x16xf32>, tensor<16x100xf32>) outs(tensor<8x100xf32>) -> tensor<8x100xf32>
  %b = mlc.launch @k1(%x, %v) outs(%e) : (tensor<8x16xf32>, tensor<16x100xf32>) outs(tensor<8x100xf32>) -> tensor<8x100xf32>
  return %a, %b : tensor<8x100xf32>, tensor<8x100xf32>
}
module @k0 attributes {mlc.kernel} {
  func.func @k0(%a: tensor<8x16xf32>, %b: tensor<16x100xf32>, %o: tensor<8x100xf32>) -> tensor<8x100xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<8x100xf32>) -> tensor<8x100xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<8x16xf32>, tensor<16x100xf32>) outs(%f : tensor<8x100xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<8x100xf32>
    return %m : tensor<8x100xf32>
  }
}
module @k1 attributes {mlc.kernel} {
  func.func @k1(%a: tensor<8x16xf32>, %b: tensor<16x100xf32>, %o: tensor<8x100xf32>) -> tensor<8x100xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<8x100xf32>) -> tensor<8x100xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<8x16xf32>, tensor<16x100xf32>) outs(%f : tensor<8x100xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<8x100xf32>
    return %m : tensor<8x100xf32>
  }
}
