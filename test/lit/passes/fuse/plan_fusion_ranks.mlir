// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-fusion{target=cuda})' | FileCheck %s

#rows = affine_map<(d0, d1) -> (d0, d1)>
#line = affine_map<(d0, d1) -> (d1)>

// Results of one kernel have one domain: what makes [1, 10] of [10] is a kernel of its own where others read the latter.
// CHECK-LABEL: func.func @ranks
// CHECK: linalg.generic {{.*}}"reduction", "parallel"{{.*}}mlc.cluster = [[R:[0-9]]] : i64
// CHECK-NOT: mlc.cluster = [[R]]
// CHECK: return
func.func @ranks(%x: tensor<7x10xf32>) -> (tensor<10xf32>, tensor<1x10xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<10xf32>
  %i = linalg.fill ins(%low : f32) outs(%e : tensor<10xf32>) -> tensor<10xf32>
  %m = linalg.generic {indexing_maps = [#rows, #line], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<7x10xf32>) outs(%i : tensor<10xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<10xf32>
  %f = tensor.empty() : tensor<1x10xf32>
  %n = linalg.generic {indexing_maps = [#line, #rows], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<10xf32>) outs(%f : tensor<1x10xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  } -> tensor<1x10xf32>
  return %m, %n : tensor<10xf32>, tensor<1x10xf32>
}

// What is made of it again has the root's rank, and a kernel of its own as well.
// CHECK-LABEL: func.func @there_and_back
// CHECK: linalg.generic {{.*}}"reduction", "parallel"{{.*}}mlc.cluster = [[A:[0-9]]] : i64
// CHECK: linalg.generic {{.*}}mlc.cluster = [[B:[0-9]]] : i64
// CHECK: linalg.generic {{.*}}mlc.cluster = [[C:[0-9]]] : i64
// CHECK-NOT: mlc.cluster
func.func @there_and_back(%x: tensor<7x10xf32>) -> (tensor<10xf32>, tensor<1x10xf32>, tensor<10xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<10xf32>
  %i = linalg.fill ins(%low : f32) outs(%e : tensor<10xf32>) -> tensor<10xf32>
  %m = linalg.generic {indexing_maps = [#rows, #line], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<7x10xf32>) outs(%i : tensor<10xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<10xf32>
  %f = tensor.empty() : tensor<1x10xf32>
  %n = linalg.generic {indexing_maps = [#line, #rows], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<10xf32>) outs(%f : tensor<1x10xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  } -> tensor<1x10xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(d0) -> (0, d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%n : tensor<1x10xf32>) outs(%e : tensor<10xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %a, %a : f32
    linalg.yield %r : f32
  } -> tensor<10xf32>
  return %m, %n, %b : tensor<10xf32>, tensor<1x10xf32>, tensor<10xf32>
}
