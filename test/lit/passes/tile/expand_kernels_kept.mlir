// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views,mlc-plan-fusion,mlc-outline-kernels,mlc-assign-schedules,mlc-expand-kernels)' | FileCheck %s

// The exponentials of a row are computed for their sum and wait in the result; the sum of what is made of them, and the
// result, read them there.
func.func @again(%x: tensor<1x64xf32>, %b: tensor<1x64xf32>) -> tensor<1x64xf32> {
  %s = mlc.softmax %x {axis = 1 : i64, log = false} : tensor<1x64xf32>
  %a = mlc.binary add %s, %b : tensor<1x64xf32>, tensor<1x64xf32> -> tensor<1x64xf32>
  %n = mlc.reduce sum %a {axes = array<i64: 1>, keepdims = true} : tensor<1x64xf32> -> tensor<1x1xf32>
  %q = mlc.binary div %a, %n : tensor<1x64xf32>, tensor<1x1xf32> -> tensor<1x64xf32>
  return %q : tensor<1x64xf32>
}
// Four vectors: of two rows in turns, and of a last one.
// CHECK-LABEL: func.func @k0(
// CHECK-COUNT-12: llvm.x86.avx512.mask.scalef.ps.512
// CHECK-NOT: llvm.x86.avx512.mask.scalef.ps.512
// CHECK-LABEL: func.func @k0_grid
