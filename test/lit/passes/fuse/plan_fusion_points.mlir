// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-fusion)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-fusion{target=cuda})' | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#third = affine_map<(i, j) -> (3, j)>
#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#out = affine_map<(i, j, k) -> (i, j)>

// What reads a product at its own point and at another one as well is no part of its kernel; nor is what loads from it.
// CHECK-LABEL: func.func @two_points
// CHECK: mlc.cluster = [[P:[0-9]]] : i64, mlc.contraction
// CHECK-SAME: "it reads the result at another point than its own"
// CHECK-NOT: mlc.cluster = [[P]]
// CHECK: return
func.func @two_points(%x: tensor<36x49xf32>, %w: tensor<49x36xf32>, %n: tensor<36x36xi64>) -> (tensor<36x36xf32>, tensor<36x36xf32>) {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<36x36xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<36x36xf32>) -> tensor<36x36xf32>
  %p = linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<36x49xf32>, tensor<49x36xf32>) outs(%f : tensor<36x36xf32>) attrs = {mlc.contraction} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<36x36xf32>
  %d = linalg.generic {indexing_maps = [#third, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %p : tensor<36x36xf32>, tensor<36x36xf32>) outs(%e : tensor<36x36xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.subf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<36x36xf32>
  %g = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%p, %n : tensor<36x36xf32>, tensor<36x36xi64>) outs(%e : tensor<36x36xf32>) {
  ^bb0(%a: f32, %b: i64, %o: f32):
    %i = arith.index_cast %b : i64 to index
    %l = tensor.extract %p[%i, %i] : tensor<36x36xf32>
    %s = arith.subf %a, %l : f32
    linalg.yield %s : f32
  } -> tensor<36x36xf32>
  return %d, %g : tensor<36x36xf32>, tensor<36x36xf32>
}
