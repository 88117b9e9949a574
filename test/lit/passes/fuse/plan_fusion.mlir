// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-fusion)' | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#col = affine_map<(i, j) -> (j)>
#tr = affine_map<(i, j) -> (j, i)>

// A contraction takes the elementwise operations that read it at the same point.
// CHECK-LABEL: func.func @epilogue
// CHECK: {mlc.cluster = 0 : i64, mlc.contraction}
// CHECK: arith.mulf
// CHECK: mlc.cluster = 0
// CHECK: arith.maximumf
func.func @epilogue(%a: tensor<8x16xf32>, %b: tensor<16x32xf32>, %c: tensor<32xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<8x16xf32>, tensor<16x32xf32>) outs(%f : tensor<8x32xf32>) attrs = {mlc.contraction} {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %z, %p : f32
    linalg.yield %s : f32
  } -> tensor<8x32xf32>
  %r = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
      ins(%m, %c : tensor<8x32xf32>, tensor<32xf32>) outs(%e : tensor<8x32xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %s = arith.addf %x, %y : f32
    %t = arith.maximumf %s, %zero : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}

// The reductions of a row pattern, what reads them along the same rows and what they read are one kernel, although %y
// is read outside too.
// CHECK-LABEL: func.func @rows
// CHECK: mlc.cluster = 1 : i64
// CHECK: math.absf
// CHECK: mlc.cluster = 1 : i64
// CHECK: arith.addf
// CHECK: mlc.cluster = 1 : i64
// CHECK: arith.divf
func.func @rows(%x: tensor<?x64xf32>, %n: index) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%p: f32, %q: f32):
    %s = math.absf %p : f32
    linalg.yield %s : f32
  } -> tensor<?x64xf32>
  %er = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%y : tensor<?x64xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %q, %p : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %r = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y, %sum : tensor<?x64xf32>, tensor<?xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %s = arith.divf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<?x64xf32>
  return %r, %y : tensor<?x64xf32>, tensor<?x64xf32>
}

// %b depends on %a through an opaque operation: joining both ends would make a circle.
// CHECK-LABEL: func.func @no_circle
// CHECK: mlc.cluster = 2 : i64
// CHECK: math.exp
// CHECK: mlc.scan {{.*}}mlc.cluster = 3 : i64
// CHECK: mlc.cluster = 4 : i64
// CHECK: arith.addf
func.func @no_circle(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%p: f32, %q: f32):
    %s = math.exp %p : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  %scan = mlc.scan sum %a {axis = 0 : i64, exclusive = false, reverse = false} : tensor<8x8xf32>
  %b = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %scan : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%p: f32, %q: f32, %z: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  return %b : tensor<8x8xf32>
}

// A transposing reader inlines its only producer.
// CHECK-LABEL: func.func @inlined_transpose
// CHECK: mlc.cluster = 5 : i64
// CHECK: math.absf
// CHECK: mlc.cluster = 5 : i64
// CHECK: arith.negf
func.func @inlined_transpose(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%p: f32, %q: f32):
    %s = math.absf %p : f32
    linalg.yield %s : f32
  } -> tensor<4x8xf32>
  %et = tensor.empty() : tensor<8x4xf32>
  %b = linalg.generic {indexing_maps = [#tr, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x8xf32>) outs(%et : tensor<8x4xf32>) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.negf %p : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %b : tensor<8x4xf32>
}
