// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-fusion)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-fusion{fuse-padding=false})' | FileCheck %s --check-prefix=OFF
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-fusion{target=cuda})' | FileCheck %s --check-prefix=CUDA

#id = affine_map<(n, y, x, c) -> (n, y, x, c)>
#window = affine_map<(n, y, x, o, i, j, c) -> (n, y * 2 + i, x * 2 + j, c)>
#filter = affine_map<(n, y, x, o, i, j, c) -> (i, j, c, o)>
#out = affine_map<(n, y, x, o, i, j, c) -> (n, y, x, o)>

// Every window reads the unpadded tensor: a kernel of its own for each of the two convolutions.
// CHECK-LABEL: func.func @padding
// CHECK: {mlc.cluster = [[A:[0-9]]] : i64}
// CHECK: tensor.extract %arg0
// CHECK: mlc.cluster = [[A]] : i64, mlc.contraction}
// CHECK: {mlc.cluster = [[B:[0-9]]] : i64}
// CHECK: tensor.extract %arg0
// CHECK: mlc.cluster = [[B]] : i64, mlc.contraction}
// OFF-LABEL: func.func @padding
// OFF: mlc.contraction, mlc.refused = [{node = "", reason = "other kernels read its result too", role = "producer"}]
// CUDA-LABEL: func.func @padding
// CUDA: mlc.contraction, mlc.refused = [{node = "", reason = "other kernels read its result too", role = "producer"}]
func.func @padding(%x: tensor<1x9x9x8xf32>, %w: tensor<3x3x8x16xf32>, %v: tensor<3x3x8x16xf32>) -> (tensor<1x5x5x16xf32>, tensor<1x5x5x16xf32>) {
  %zero = arith.constant 0.0 : f32
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
      scf.yield %zero : f32
    }
    linalg.yield %r : f32
  } -> tensor<1x11x11x8xf32>
  %o = tensor.empty() : tensor<1x5x5x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x5x5x16xf32>) -> tensor<1x5x5x16xf32>
  %a = linalg.generic {indexing_maps = [#window, #filter, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%p, %w : tensor<1x11x11x8xf32>, tensor<3x3x8x16xf32>) outs(%f : tensor<1x5x5x16xf32>) attrs = {mlc.contraction} {
  ^bb0(%s: f32, %t: f32, %z: f32):
    %m = arith.mulf %s, %t : f32
    %n = arith.addf %z, %m : f32
    linalg.yield %n : f32
  } -> tensor<1x5x5x16xf32>
  %b = linalg.generic {indexing_maps = [#window, #filter, #out], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%p, %v : tensor<1x11x11x8xf32>, tensor<3x3x8x16xf32>) outs(%f : tensor<1x5x5x16xf32>) attrs = {mlc.contraction} {
  ^bb0(%s: f32, %t: f32, %z: f32):
    %m = arith.mulf %s, %t : f32
    %n = arith.addf %z, %m : f32
    linalg.yield %n : f32
  } -> tensor<1x5x5x16xf32>
  return %a, %b : tensor<1x5x5x16xf32>, tensor<1x5x5x16xf32>
}

#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id2 = affine_map<(m, n) -> (m, n)>

// The reduced dimension of a matrix product is no window.
// CHECK-LABEL: func.func @no_window
// CHECK: mlc.refused = [{node = "", reason = "dimension 1 is padded, which is not one of the window", role = "producer"}]
func.func @no_window(%x: tensor<4x7xf32>, %w: tensor<9x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %e = tensor.empty() : tensor<4x9xf32>
  %p = linalg.generic {indexing_maps = [#id2], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<4x9xf32>) {
  ^bb0(%z: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %u = arith.subi %j, %c1 : index
    %in = arith.cmpi ult, %u, %c7 : index
    %r = scf.if %in -> (f32) {
      %l = tensor.extract %x[%i, %u] : tensor<4x7xf32>
      scf.yield %l : f32
    } else {
      scf.yield %zero : f32
    }
    linalg.yield %r : f32
  } -> tensor<4x9xf32>
  %o = tensor.empty() : tensor<4x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<4x16xf32>) -> tensor<4x16xf32>
  %a = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %w : tensor<4x9xf32>, tensor<9x16xf32>) outs(%f : tensor<4x16xf32>) attrs = {mlc.contraction} {
  ^bb0(%s: f32, %t: f32, %z: f32):
    %m = arith.mulf %s, %t : f32
    %n = arith.addf %z, %m : f32
    linalg.yield %n : f32
  } -> tensor<4x16xf32>
  return %a : tensor<4x16xf32>
}
