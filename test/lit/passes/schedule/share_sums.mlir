// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-share-sums{fewest=3})' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-share-sums)' | FileCheck %s --check-prefix=FEW

// Three sums of 24, 36 and 60 products are one kernel, which knows that they are a multiple of 12; it has the place of
// the first. One with another schedule, and one of more rows, stay what they are.
// CHECK-LABEL: func.func @main
// CHECK: mlc.launch @other(
// CHECK-DAG: %[[A:.*]] = tensor.cast %arg0 : tensor<6x24xf32> to tensor<6x?xf32>
// CHECK-DAG: %[[W:.*]] = tensor.cast %{{.*}} : tensor<1x24x16xf32> to tensor<1x?x16xf32>
// CHECK: mlc.launch @k1(%[[A]], %[[W]]) outs(%{{.*}}) {mlc.refused = []} : (tensor<6x?xf32>, tensor<1x?x16xf32>) outs(tensor<6x16xf32>)
// CHECK: mlc.launch @k1(%{{.*}}, %{{.*}}) outs(%{{.*}}) : (tensor<6x?xf32>, tensor<1x?x16xf32>)
// CHECK: mlc.launch @k1(%{{.*}}, %{{.*}}) outs(%{{.*}}) : (tensor<6x?xf32>, tensor<1x?x16xf32>)
// CHECK: mlc.launch @k4(%{{.*}}, %{{.*}}) outs(%{{.*}}) : (tensor<6x48xf32>, tensor<1x48x16xf32>)
// CHECK: mlc.launch @k5(%{{.*}}, %{{.*}}) outs(%{{.*}}) : (tensor<7x48xf32>, tensor<1x48x16xf32>)
// CHECK: module @k1 attributes {mlc.kernel, mlc.multiples = array<i64: 12, 12>, mlc.schedule =
// CHECK: func.func @k1(%{{.*}}: tensor<6x?xf32>, %{{.*}}: tensor<1x?x16xf32>, %{{.*}}: tensor<6x16xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<6x?xf32>, tensor<1x?x16xf32>) outs(%{{.*}} : tensor<6x16xf32>)
// CHECK-NOT: module @k2
// CHECK-NOT: module @k3
// CHECK: module @k4
// CHECK: tensor<6x48xf32>
// CHECK: module @k5

// So few stay apart by default.
// FEW-NOT: mlc.multiples
// FEW: module @k3
#lhs = affine_map<(m, n, k) -> (m, k)>
#rhs = affine_map<(m, n, k) -> (n floordiv 16, k, n mod 16)>
#out = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: tensor<6x24xf32>, %y: tensor<6x36xf32>, %z: tensor<6x60xf32>, %u: tensor<6x48xf32>, %v: tensor<7x48xf32>) -> (tensor<6x16xf32>, tensor<6x16xf32>, tensor<6x16xf32>, tensor<6x16xf32>, tensor<7x16xf32>, tensor<6x24xf32>) {
  %w1 = mlc.weight "w1" : tensor<1x24x16xf32>
  %w2 = mlc.weight "w2" : tensor<1x36x16xf32>
  %w3 = mlc.weight "w3" : tensor<1x60x16xf32>
  %w4 = mlc.weight "w4" : tensor<1x48x16xf32>
  %e = tensor.empty() : tensor<6x16xf32>
  %e7 = tensor.empty() : tensor<7x16xf32>
  %e24 = tensor.empty() : tensor<6x24xf32>
  %0 = mlc.launch @other(%x) outs(%e24) : (tensor<6x24xf32>) outs(tensor<6x24xf32>) -> tensor<6x24xf32>
  %1 = mlc.launch @k1(%x, %w1) outs(%e) {mlc.refused = []} : (tensor<6x24xf32>, tensor<1x24x16xf32>) outs(tensor<6x16xf32>) -> tensor<6x16xf32>
  %2 = mlc.launch @k2(%y, %w2) outs(%e) : (tensor<6x36xf32>, tensor<1x36x16xf32>) outs(tensor<6x16xf32>) -> tensor<6x16xf32>
  %3 = mlc.launch @k3(%z, %w3) outs(%e) : (tensor<6x60xf32>, tensor<1x60x16xf32>) outs(tensor<6x16xf32>) -> tensor<6x16xf32>
  %4 = mlc.launch @k4(%u, %w4) outs(%e) : (tensor<6x48xf32>, tensor<1x48x16xf32>) outs(tensor<6x16xf32>) -> tensor<6x16xf32>
  %5 = mlc.launch @k5(%v, %w4) outs(%e7) : (tensor<7x48xf32>, tensor<1x48x16xf32>) outs(tensor<7x16xf32>) -> tensor<7x16xf32>
  return %1, %2, %3, %4, %5, %0 : tensor<6x16xf32>, tensor<6x16xf32>, tensor<6x16xf32>, tensor<6x16xf32>, tensor<7x16xf32>, tensor<6x24xf32>
}
module @other attributes {mlc.kernel, mlc.schedule = [{template = "loops"}]} {
  func.func @other(%a: tensor<6x24xf32>, %o: tensor<6x24xf32>) -> tensor<6x24xf32> {
    %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<6x24xf32>) outs(%o : tensor<6x24xf32>) {
    ^bb0(%x: f32, %y: f32):
      %s = arith.negf %x : f32
      linalg.yield %s : f32
    } -> tensor<6x24xf32>
    return %r : tensor<6x24xf32>
  }
}
module @k1 attributes {mlc.kernel, mlc.schedule = [{block = 1 : i64, lanes = 8 : i64, template = "contraction", unroll = 4 : i64}]} {
  func.func @k1(%a: tensor<6x24xf32>, %b: tensor<1x24x16xf32>, %o: tensor<6x16xf32>) -> tensor<6x16xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<6x16xf32>) -> tensor<6x16xf32>
    %r = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<6x24xf32>, tensor<1x24x16xf32>) outs(%f : tensor<6x16xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<6x16xf32>
    return %r : tensor<6x16xf32>
  }
}
module @k2 attributes {mlc.kernel, mlc.schedule = [{block = 1 : i64, lanes = 8 : i64, template = "contraction", unroll = 4 : i64}]} {
  func.func @k2(%a: tensor<6x36xf32>, %b: tensor<1x36x16xf32>, %o: tensor<6x16xf32>) -> tensor<6x16xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<6x16xf32>) -> tensor<6x16xf32>
    %r = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<6x36xf32>, tensor<1x36x16xf32>) outs(%f : tensor<6x16xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<6x16xf32>
    return %r : tensor<6x16xf32>
  }
}
module @k3 attributes {mlc.kernel, mlc.schedule = [{block = 1 : i64, lanes = 8 : i64, template = "contraction", unroll = 4 : i64}]} {
  func.func @k3(%a: tensor<6x60xf32>, %b: tensor<1x60x16xf32>, %o: tensor<6x16xf32>) -> tensor<6x16xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<6x16xf32>) -> tensor<6x16xf32>
    %r = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<6x60xf32>, tensor<1x60x16xf32>) outs(%f : tensor<6x16xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<6x16xf32>
    return %r : tensor<6x16xf32>
  }
}
module @k4 attributes {mlc.kernel, mlc.schedule = [{block = 2 : i64, lanes = 8 : i64, template = "contraction", unroll = 4 : i64}]} {
  func.func @k4(%a: tensor<6x48xf32>, %b: tensor<1x48x16xf32>, %o: tensor<6x16xf32>) -> tensor<6x16xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<6x16xf32>) -> tensor<6x16xf32>
    %r = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<6x48xf32>, tensor<1x48x16xf32>) outs(%f : tensor<6x16xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<6x16xf32>
    return %r : tensor<6x16xf32>
  }
}
module @k5 attributes {mlc.kernel, mlc.schedule = [{block = 1 : i64, lanes = 8 : i64, template = "contraction", unroll = 4 : i64}]} {
  func.func @k5(%a: tensor<7x48xf32>, %b: tensor<1x48x16xf32>, %o: tensor<7x16xf32>) -> tensor<7x16xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<7x16xf32>) -> tensor<7x16xf32>
    %r = linalg.generic {indexing_maps = [#lhs, #rhs, #out], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<7x48xf32>, tensor<1x48x16xf32>) outs(%f : tensor<7x16xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<7x16xf32>
    return %r : tensor<7x16xf32>
  }
}
