// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-pack-weights)' | FileCheck %s

// CHECK: #[[PACKED:.*]] = affine_map<(d0, d1, d2) -> (d1 floordiv 64, d2, d1 mod 64)>
// CHECK: #[[TILES:.*]] = affine_map<(d0, d1, d2) -> (d1 floordiv 32, d2 floordiv 4, d1 mod 32, d2 mod 4)>
// 100 columns are two panels of 64; the padding is zeros.
// CHECK-LABEL: func.func @main
// CHECK: %[[W:.*]] = mlc.weight "w"
// CHECK: %[[P:.*]] = mlc.pad constant %[[W]] low [0, 0] high [0, 28]
// CHECK: %[[R:.*]] = mlc.reshape %[[P]] [16, 2, 64]
// CHECK: %[[T:.*]] = mlc.transpose %[[R]] {permutation = array<i64: 1, 0, 2>} : tensor<16x2x64xf32> -> tensor<2x16x64xf32>
// CHECK: mlc.launch @k0(%{{.*}}, %[[T]])
// CHECK: func.func @k0(%{{.*}}: tensor<8x16xf32>, %{{.*}}: tensor<2x16x64xf32>
// CHECK: indexing_maps = [#{{.*}}, #[[PACKED]], #{{.*}}]
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x100xf32> {
  %w = mlc.weight "w" : tensor<16x100xf32>
  %e = tensor.empty() : tensor<8x100xf32>
  %a = mlc.launch @k0(%x, %w) outs(%e) : (tensor<8x16xf32>, tensor<16x100xf32>) outs(tensor<8x100xf32>) -> tensor<8x100xf32>
  return %a : tensor<8x100xf32>
}
module @k0 attributes {mlc.kernel, mlc.schedule = [{block = 1 : i64, lanes = 16 : i64, packed_operand = 1 : i64, panel = 64 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 6 : i64, template = "contraction", unroll = 4 : i64, vector_dim = 1 : i64, vectors = 4 : i64}]} {
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

// For matrix tiles, groups of four bytes along the sum, and zeros behind it up to whole tiles of 64 bytes.
// CHECK-LABEL: func.func @tiles
// CHECK: %[[P:.*]] = mlc.pad constant %{{.*}} low [0, 0] high [28, 24]
// CHECK: %[[R:.*]] = mlc.reshape %[[P]] [32, 4, 2, 32]
// CHECK: %[[T:.*]] = mlc.transpose %[[R]] {permutation = array<i64: 2, 0, 3, 1>} : tensor<32x4x2x32xi8> -> tensor<2x32x32x4xi8>
// CHECK: mlc.launch @k1(%{{.*}}, %[[T]])
// CHECK: func.func @k1(%{{.*}}: tensor<8x100xi8>, %{{.*}}: tensor<2x32x32x4xi8>
// CHECK: indexing_maps = [#{{.*}}, #[[TILES]], #{{.*}}]
func.func @tiles(%x: tensor<8x100xi8>) -> tensor<8x40xi32> {
  %w = mlc.weight "v" : tensor<100x40xi8>
  %e = tensor.empty() : tensor<8x40xi32>
  %a = mlc.launch @k1(%x, %w) outs(%e) : (tensor<8x100xi8>, tensor<100x40xi8>) outs(tensor<8x40xi32>) -> tensor<8x40xi32>
  return %a : tensor<8x40xi32>
}
module @k1 attributes {mlc.kernel, mlc.schedule = [{block = 1 : i64, instruction = "tdpbssd", lanes = 16 : i64, packed_operand = 1 : i64, panel = 32 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 32 : i64, stored = "tiles", template = "tile_product", unroll = 1 : i64, vector_dim = 1 : i64, vector_operand = 1 : i64, vectors = 2 : i64}]} {
  func.func @k1(%a: tensor<8x100xi8>, %b: tensor<100x40xi8>, %o: tensor<8x40xi32>) -> tensor<8x40xi32> {
    %zero = arith.constant 0 : i32
    %f = linalg.fill ins(%zero : i32) outs(%o : tensor<8x40xi32>) -> tensor<8x40xi32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<8x100xi8>, tensor<100x40xi8>) outs(%f : tensor<8x40xi32>) attrs = {mlc.contraction} {
    ^bb0(%x: i8, %y: i8, %z: i32):
      %l = arith.extsi %x : i8 to i32
      %r = arith.extsi %y : i8 to i32
      %p = arith.muli %l, %r : i32
      %s = arith.addi %z, %p : i32
      linalg.yield %s : i32
    } -> tensor<8x40xi32>
    return %m : tensor<8x40xi32>
  }
}

// Recurrent weights are panels of hidden elements with all their gates; behind 20 elements there are zeros.
// CHECK-LABEL: func.func @recurrent
// CHECK: %[[A:.*]] = mlc.reshape %{{.*}} [2, 3, 20, 20]
// CHECK: %[[P:.*]] = mlc.pad constant %[[A]] low [0, 0, 0, 0] high [0, 0, 12, 0]
// CHECK: %[[R:.*]] = mlc.reshape %[[P]] [2, 3, 2, 16, 20]
// CHECK: %[[T:.*]] = mlc.transpose %[[R]] {permutation = array<i64: 0, 2, 4, 1, 3>} : tensor<2x3x2x16x20xf32> -> tensor<2x2x20x3x16xf32>
// CHECK: mlc.launch @k3(%{{.*}}, %[[T]])
// CHECK: mlc.recurrence gru {{.*}} : tensor<7x2x120xf32>, tensor<2x2x20x3x16xf32> ->
func.func @recurrent(%x: tensor<7x2x120xf32>) -> tensor<7x2x2x20xf32> {
  %w = mlc.weight "recurrent" : tensor<2x60x20xf32>
  %e = tensor.empty() : tensor<7x2x2x20xf32>
  %s = tensor.empty() : tensor<2x2x20xf32>
  %a:3 = mlc.launch @k3(%x, %w) outs(%e, %s, %s) : (tensor<7x2x120xf32>, tensor<2x60x20xf32>) outs(tensor<7x2x2x20xf32>, tensor<2x2x20xf32>, tensor<2x2x20xf32>) -> (tensor<7x2x2x20xf32>, tensor<2x2x20xf32>, tensor<2x2x20xf32>)
  return %a#0 : tensor<7x2x2x20xf32>
}
module @k3 attributes {mlc.kernel, mlc.schedule = [{lanes = 16 : i64, packed_operand = 1 : i64, panel = 16 : i64, rows = 2 : i64, template = "recurrence"}]} {
  func.func @k3(%x: tensor<7x2x120xf32>, %r: tensor<2x60x20xf32>, %o: tensor<7x2x2x20xf32>, %h: tensor<2x2x20xf32>, %c: tensor<2x2x20xf32>) -> (tensor<7x2x2x20xf32>, tensor<2x2x20xf32>, tensor<2x2x20xf32>) {
    %y, %y_h, %y_c = mlc.recurrence gru %x, %r {direction = "bidirectional"} : tensor<7x2x120xf32>, tensor<2x60x20xf32> -> tensor<7x2x2x20xf32>, tensor<2x2x20xf32>, tensor<2x2x20xf32>
    return %y, %y_h, %y_c : tensor<7x2x2x20xf32>, tensor<2x2x20xf32>, tensor<2x2x20xf32>
  }
}
