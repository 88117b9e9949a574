// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-fusion)' | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>
#tr = affine_map<(i, j) -> (j, i)>
#none = affine_map<(i, j) -> ()>

// The integers %q are written for the second contraction. Their residual is made of them by the kernel that adds it.
// CHECK-LABEL: func.func @residual
// CHECK: mlc.cluster = 0 : i64
// CHECK: arith.trunci
// CHECK: mlc.cluster = 1 : i64
// CHECK: arith.uitofp
// CHECK: mlc.cluster = 1 : i64
// CHECK: arith.mulf
// CHECK: mlc.cluster = 1 : i64, mlc.contraction
// CHECK: mlc.cluster = 1 : i64
// CHECK: arith.addf
func.func @residual(%x: tensor<8x16xf32>, %w: tensor<16x16xi8>, %s: tensor<f32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0 : i32
  %eq = tensor.empty() : tensor<8x16xi8>
  %ei = tensor.empty() : tensor<8x16xi32>
  %ef = tensor.empty() : tensor<8x16xf32>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x16xf32>) outs(%eq : tensor<8x16xi8>) {
  ^bb0(%p: f32, %o: i8):
    %i = arith.fptosi %p : f32 to i32
    %t = arith.trunci %i : i32 to i8
    linalg.yield %t : i8
  } -> tensor<8x16xi8>
  %f = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%q : tensor<8x16xi8>) outs(%ef : tensor<8x16xf32>) {
  ^bb0(%p: i8, %o: f32):
    %t = arith.uitofp %p : i8 to f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  %d = linalg.generic {indexing_maps = [#id, #none, #id], iterator_types = ["parallel", "parallel"]}
      ins(%f, %s : tensor<8x16xf32>, tensor<f32>) outs(%ef : tensor<8x16xf32>) {
  ^bb0(%p: f32, %r: f32, %o: f32):
    %t = arith.mulf %p, %r : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  %i = linalg.fill ins(%zero : i32) outs(%ei : tensor<8x16xi32>) -> tensor<8x16xi32>
  %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %w : tensor<8x16xi8>, tensor<16x16xi8>) outs(%i : tensor<8x16xi32>) attrs = {mlc.contraction} {
  ^bb0(%p: i8, %r: i8, %o: i32):
    %u = arith.extui %p : i8 to i32
    %v = arith.extsi %r : i8 to i32
    %t = arith.muli %u, %v : i32
    %z = arith.addi %o, %t : i32
    linalg.yield %z : i32
  } -> tensor<8x16xi32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m, %d : tensor<8x16xi32>, tensor<8x16xf32>) outs(%ef : tensor<8x16xf32>) {
  ^bb0(%p: i32, %r: f32, %o: f32):
    %t = arith.sitofp %p : i32 to f32
    %z = arith.addf %t, %r : f32
    linalg.yield %z : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// Read in another order they would be gathered for every tile: a kernel of its own.
// CHECK-LABEL: func.func @turned
// CHECK: mlc.cluster = 2 : i64
// CHECK: arith.negf
// CHECK: mlc.cluster = 3 : i64, mlc.contraction
// CHECK: mlc.cluster = 3 : i64
// CHECK: arith.addf
func.func @turned(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>, %r: tensor<16x8xf32>) -> tensor<8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %d = linalg.generic {indexing_maps = [#tr, #id], iterator_types = ["parallel", "parallel"]}
      ins(%r : tensor<16x8xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.negf %p : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x16xf32>, tensor<16x16xf32>) outs(%i : tensor<8x16xf32>) attrs = {mlc.contraction} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %z = arith.addf %o, %t : f32
    linalg.yield %z : f32
  } -> tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m, %d : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %z = arith.addf %p, %q : f32
    linalg.yield %z : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
