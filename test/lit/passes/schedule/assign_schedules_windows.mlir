// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{vector-bits=256 vector-registers=16})' | FileCheck %s --check-prefix=AVX2

#x = affine_map<(n, h, w, k, i, j, c) -> (n, h + i, w + j, c)>
#w = affine_map<(n, h, w, k, i, j, c) -> (i, j, c, k)>
#o = affine_map<(n, h, w, k, i, j, c) -> (n, h, w, k)>

func.func @of_large(%x: tensor<1x16x16x256xf32>) -> tensor<1x14x14x256xf32> {
  %w = mlc.weight "large" : tensor<3x3x256x256xf32>
  %e = tensor.empty() : tensor<1x14x14x256xf32>
  %a = mlc.launch @large(%x, %w) outs(%e) : (tensor<1x16x16x256xf32>, tensor<3x3x256x256xf32>) outs(tensor<1x14x14x256xf32>) -> tensor<1x14x14x256xf32>
  return %a : tensor<1x14x14x256xf32>
}

func.func @of_small(%x: tensor<1x16x16x128xf32>) -> tensor<1x14x14x128xf32> {
  %w = mlc.weight "small" : tensor<3x3x128x128xf32>
  %e = tensor.empty() : tensor<1x14x14x128xf32>
  %a = mlc.launch @small(%x, %w) outs(%e) : (tensor<1x16x16x128xf32>, tensor<3x3x128x128xf32>) outs(tensor<1x14x14x128xf32>) -> tensor<1x14x14x128xf32>
  return %a : tensor<1x14x14x128xf32>
}

// All pixels fetch the next panel of a weight that the second cache does not hold, in place of sharing lines of the image.
// With vectors of half a line of the cache they do not.
// CHECK: module @large
// CHECK-SAME: mlc.schedule = [{ahead = 196 : i64
// CHECK-NOT: part =
// AVX2: module @large
// AVX2-NOT: ahead
// AVX2: func.func
module @large attributes {mlc.kernel} {
  func.func @large(%x: tensor<1x16x16x256xf32>, %w: tensor<3x3x256x256xf32>, %o: tensor<1x14x14x256xf32>) -> tensor<1x14x14x256xf32> {
    %z = arith.constant 0.0 : f32
    %f = linalg.fill ins(%z : f32) outs(%o : tensor<1x14x14x256xf32>) -> tensor<1x14x14x256xf32>
    %r = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<1x16x16x256xf32>, tensor<3x3x256x256xf32>) outs(%f : tensor<1x14x14x256xf32>) attrs = {mlc.contraction} {
    ^bb0(%a: f32, %b: f32, %s: f32):
      %m = arith.mulf %a, %b : f32
      %t = arith.addf %s, %m : f32
      linalg.yield %t : f32
    } -> tensor<1x14x14x256xf32>
    return %r : tensor<1x14x14x256xf32>
  }
}

// A small one is near from panel to panel: halves of the image are those of two threads.
// CHECK: module @small
// CHECK-NOT: ahead
// CHECK: part = 14
module @small attributes {mlc.kernel} {
  func.func @small(%x: tensor<1x16x16x128xf32>, %w: tensor<3x3x128x128xf32>, %o: tensor<1x14x14x128xf32>) -> tensor<1x14x14x128xf32> {
    %z = arith.constant 0.0 : f32
    %f = linalg.fill ins(%z : f32) outs(%o : tensor<1x14x14x128xf32>) -> tensor<1x14x14x128xf32>
    %r = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%x, %w : tensor<1x16x16x128xf32>, tensor<3x3x128x128xf32>) outs(%f : tensor<1x14x14x128xf32>) attrs = {mlc.contraction} {
    ^bb0(%a: f32, %b: f32, %s: f32):
      %m = arith.mulf %a, %b : f32
      %t = arith.addf %s, %m : f32
      linalg.yield %t : f32
    } -> tensor<1x14x14x128xf32>
    return %r : tensor<1x14x14x128xf32>
  }
}
