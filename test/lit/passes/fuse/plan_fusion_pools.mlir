// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-fusion)' | FileCheck %s

#id = affine_map<(n, y, x, c) -> (n, y, x, c)>
#pool = affine_map<(n, y, x, c, i, j) -> (n, y * 2 + i, x * 2 + j, c)>
#taps = affine_map<(n, y, x, c, i, j) -> (i, j)>
#pooled = affine_map<(n, y, x, c, i, j) -> (n, y, x, c)>

// A pool reads its image without the padding that it starts with: one kernel.
// CHECK-LABEL: func.func @largest
// CHECK: {mlc.cluster = [[A:[0-9]]] : i64}
// CHECK: tensor.extract %arg0
// CHECK: mlc.cluster = [[A]] : i64}
// CHECK: arith.maximumf
func.func @largest(%x: tensor<1x9x9x8xf32>) -> tensor<1x5x5x8xf32> {
  %outside = arith.constant 0xFF800000 : f32
  %start = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %e = tensor.empty() : tensor<1x11x11x8xf32>
  %p = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%e : tensor<1x11x11x8xf32>) {
  ^bb0(%z: f32):
    %i = linalg.index 1 : index
    %y = arith.subi %i, %c1 : index
    %iny = arith.cmpi ult, %y, %c9 : index
    %j = linalg.index 2 : index
    %u = arith.subi %j, %c1 : index
    %inx = arith.cmpi ult, %u, %c9 : index
    %in = arith.andi %iny, %inx : i1
    %c = linalg.index 3 : index
    %r = scf.if %in -> (f32) {
      %l = tensor.extract %x[%c0, %y, %u, %c] : tensor<1x9x9x8xf32>
      scf.yield %l : f32
    } else {
      scf.yield %outside : f32
    }
    linalg.yield %r : f32
  } -> tensor<1x11x11x8xf32>
  %o = tensor.empty() : tensor<1x5x5x8xf32>
  %f = linalg.fill ins(%start : f32) outs(%o : tensor<1x5x5x8xf32>) -> tensor<1x5x5x8xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %a = linalg.generic {indexing_maps = [#pool, #taps, #pooled], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%p, %w : tensor<1x11x11x8xf32>, tensor<3x3xf32>) outs(%f : tensor<1x5x5x8xf32>) {
  ^bb0(%s: f32, %t: f32, %z: f32):
    %n = arith.maximumf %z, %s : f32
    linalg.yield %n : f32
  } -> tensor<1x5x5x8xf32>
  return %a : tensor<1x5x5x8xf32>
}

// CHECK-LABEL: func.func @sum
// CHECK: {mlc.cluster = [[A:[0-9]]] : i64}
// CHECK: tensor.extract %arg0
// CHECK: mlc.cluster = [[A]] : i64}
// CHECK: arith.addf
func.func @sum(%x: tensor<1x9x9x8xf32>) -> tensor<1x5x5x8xf32> {
  %outside = arith.constant 0.0 : f32
  %start = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %e = tensor.empty() : tensor<1x11x11x8xf32>
  %p = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%e : tensor<1x11x11x8xf32>) {
  ^bb0(%z: f32):
    %i = linalg.index 1 : index
    %y = arith.subi %i, %c1 : index
    %iny = arith.cmpi ult, %y, %c9 : index
    %j = linalg.index 2 : index
    %u = arith.subi %j, %c1 : index
    %inx = arith.cmpi ult, %u, %c9 : index
    %in = arith.andi %iny, %inx : i1
    %c = linalg.index 3 : index
    %r = scf.if %in -> (f32) {
      %l = tensor.extract %x[%c0, %y, %u, %c] : tensor<1x9x9x8xf32>
      scf.yield %l : f32
    } else {
      scf.yield %outside : f32
    }
    linalg.yield %r : f32
  } -> tensor<1x11x11x8xf32>
  %o = tensor.empty() : tensor<1x5x5x8xf32>
  %f = linalg.fill ins(%start : f32) outs(%o : tensor<1x5x5x8xf32>) -> tensor<1x5x5x8xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %a = linalg.generic {indexing_maps = [#pool, #taps, #pooled], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%p, %w : tensor<1x11x11x8xf32>, tensor<3x3xf32>) outs(%f : tensor<1x5x5x8xf32>) {
  ^bb0(%s: f32, %t: f32, %z: f32):
    %n = arith.addf %z, %s : f32
    linalg.yield %n : f32
  } -> tensor<1x5x5x8xf32>
  return %a : tensor<1x5x5x8xf32>
}

// Zeros in front of a maximum count.
// CHECK-LABEL: func.func @zeros
// CHECK: {mlc.cluster = [[A:[0-9]]] : i64}
// CHECK: tensor.extract %arg0
// CHECK: mlc.refused = [{node = "", reason = "its elements would be computed more than once", role = "producer"}]
func.func @zeros(%x: tensor<1x9x9x8xf32>) -> tensor<1x5x5x8xf32> {
  %outside = arith.constant 0.0 : f32
  %start = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %e = tensor.empty() : tensor<1x11x11x8xf32>
  %p = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%e : tensor<1x11x11x8xf32>) {
  ^bb0(%z: f32):
    %i = linalg.index 1 : index
    %y = arith.subi %i, %c1 : index
    %iny = arith.cmpi ult, %y, %c9 : index
    %j = linalg.index 2 : index
    %u = arith.subi %j, %c1 : index
    %inx = arith.cmpi ult, %u, %c9 : index
    %in = arith.andi %iny, %inx : i1
    %c = linalg.index 3 : index
    %r = scf.if %in -> (f32) {
      %l = tensor.extract %x[%c0, %y, %u, %c] : tensor<1x9x9x8xf32>
      scf.yield %l : f32
    } else {
      scf.yield %outside : f32
    }
    linalg.yield %r : f32
  } -> tensor<1x11x11x8xf32>
  %o = tensor.empty() : tensor<1x5x5x8xf32>
  %f = linalg.fill ins(%start : f32) outs(%o : tensor<1x5x5x8xf32>) -> tensor<1x5x5x8xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %a = linalg.generic {indexing_maps = [#pool, #taps, #pooled], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%p, %w : tensor<1x11x11x8xf32>, tensor<3x3xf32>) outs(%f : tensor<1x5x5x8xf32>) {
  ^bb0(%s: f32, %t: f32, %z: f32):
    %n = arith.maximumf %z, %s : f32
    linalg.yield %n : f32
  } -> tensor<1x5x5x8xf32>
  return %a : tensor<1x5x5x8xf32>
}
