// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-narrow-stores)' | FileCheck %s

// What is computed of rounded tensors element by element is stored rounded, too; results of the model are not.
// CHECK-LABEL: func.func @sums
// CHECK: %[[S:.*]] = linalg.generic {{.*}}, %arg1 : tensor<128x256xf32>, tensor<128x256xf32>) {{.*}} attrs = {{ *}}{mlc.cluster = 1 : i64}
// CHECK: arith.addf
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[S]] : tensor<128x256xf32>) outs(%{{.*}} : tensor<128x256xbf16>) attrs = {{ *}}{mlc.cluster = 1 : i64}
// CHECK: arith.truncf
// CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%[[T]] : tensor<128x256xbf16>) outs(%{{.*}} : tensor<128x256xf32>) attrs = {{ *}}{mlc.cluster = 2 : i64}
// CHECK: arith.extf
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[W]], %[[W]] : tensor<128x256xf32>, tensor<128x256xf32>) {{.*}} attrs = {{ *}}{mlc.cluster = 2 : i64}
// CHECK-NOT: truncf
// CHECK: linalg.generic {{.*}} ins(%[[Y]] : tensor<128x256xf32>)
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @sums(%x: tensor<128x256xf32>, %z: tensor<128x256xf32>) -> tensor<128xf32> {
  %h = tensor.empty() : tensor<128x256xbf16>
  %e = tensor.empty() : tensor<128x256xf32>
  %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<128x256xf32>) outs(%h : tensor<128x256xbf16>) attrs = {mlc.cluster = 0 : i64} {
  ^bb0(%a: f32, %o: bf16):
    %r = arith.truncf %a : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<128x256xbf16>
  %u = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<128x256xbf16>) outs(%e : tensor<128x256xf32>) attrs = {mlc.cluster = 1 : i64} {
  ^bb0(%a: bf16, %o: f32):
    %r = arith.extf %a : bf16 to f32
    linalg.yield %r : f32
  } -> tensor<128x256xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%u, %z : tensor<128x256xf32>, tensor<128x256xf32>) outs(%e : tensor<128x256xf32>) attrs = {mlc.cluster = 1 : i64} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.addf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<128x256xf32>
  %m = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%s, %s : tensor<128x256xf32>, tensor<128x256xf32>) outs(%e : tensor<128x256xf32>) attrs = {mlc.cluster = 2 : i64} {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<128x256xf32>
  %c = arith.constant 0.000000e+00 : f32
  %l = tensor.empty() : tensor<128xf32>
  %f = linalg.fill ins(%c : f32) outs(%l : tensor<128xf32>) -> tensor<128xf32>
  %n = linalg.generic {indexing_maps = [#id, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%m : tensor<128x256xf32>) outs(%f : tensor<128xf32>) attrs = {mlc.cluster = 2 : i64} {
  ^bb0(%a: f32, %o: f32):
    %r = arith.addf %o, %a : f32
    linalg.yield %r : f32
  } -> tensor<128xf32>
  return %n : tensor<128xf32>
}
