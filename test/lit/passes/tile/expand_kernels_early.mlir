// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views,mlc-plan-fusion,mlc-outline-kernels,mlc-assign-schedules,mlc-expand-kernels)' | FileCheck %s

// The row's x is loaded four vectors before the exponentials of those in front are stored, of the last step once more;
// one multiply-add shifts and scales it.
func.func @row(%x: tensor<1x1024xf32>) -> tensor<1x1024xf32> {
  %s = mlc.softmax %x {axis = 1 : i64, log = false} : tensor<1x1024xf32>
  return %s : tensor<1x1024xf32>
}
// CHECK: mlc.schedule = [{{.*}}early = 4 : i64
// CHECK-LABEL: func.func @k0(
// CHECK: vector.reduction <maxnumf>
// CHECK-COUNT-4: vector.load
// CHECK: scf.for %{{.*}} iter_args
// CHECK: arith.minsi
// CHECK-NOT: vector.store
// CHECK: vector.load
// CHECK-NOT: vector.load
// CHECK: math.absf
// CHECK: %[[A:.*]] = vector.broadcast
// CHECK: %[[B:.*]] = vector.broadcast
// CHECK: math.fma %{{.*}}, %[[A]], %[[B]] : vector<16xf32>
// CHECK: llvm.x86.avx512.mask.scalef.ps.512
// CHECK: vector.store
// CHECK: scf.yield

// The logarithm of the sum feels the shift: nothing is shifted but by the maximum.
func.func @logarithm(%x: tensor<1x1024xf32>) -> tensor<1x1024xf32> {
  %s = mlc.softmax %x {axis = 1 : i64, log = true} : tensor<1x1024xf32>
  return %s : tensor<1x1024xf32>
}
// CHECK-LABEL: module @k1
// CHECK-NOT: early
// CHECK-LABEL: func.func @k1(
// CHECK: vector.reduction <maximumf>
// CHECK: arith.subf
// CHECK-NOT: math.absf
// CHECK-LABEL: func.func @k1_grid
