// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views,mlc-plan-fusion,mlc-outline-kernels,mlc-assign-schedules)' | FileCheck %s --check-prefix=PLAN
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views,mlc-plan-fusion,mlc-outline-kernels,mlc-assign-schedules,mlc-expand-kernels)' | FileCheck %s

// Keys in two blocks of two vectors, the last one with 8 lanes; rows in two items of two tiles each, the rest a tile of 2.
// PLAN: mlc.schedule = [{lanes = 16 : i64, row_block = 12 : i64, rows = 6 : i64, scalef = 1 : i64, template = "attention", vectors = 4 : i64}]
func.func @masked(%q: tensor<8x20x16xf32>, %k: tensor<8x16x120xf32>, %v: tensor<8x120x32xf32>, %m: tensor<20x120xf32>) -> tensor<8x20x32xf32> {
  %s = mlc.matmul %q, %k : tensor<8x20x16xf32>, tensor<8x16x120xf32> -> tensor<8x20x120xf32>
  %x = mlc.binary add %s, %m : tensor<8x20x120xf32>, tensor<20x120xf32> -> tensor<8x20x120xf32>
  %p = mlc.softmax %x {axis = 2 : i64, log = false} : tensor<8x20x120xf32> -> tensor<8x20x120xf32>
  %r = mlc.matmul %p, %v : tensor<8x20x120xf32>, tensor<8x120x32xf32> -> tensor<8x20x32xf32>
  return %r : tensor<8x20x32xf32>
}

// The panels are on the stack: queries, keys, values, scores of a tile, sums, results, largest logits.
// CHECK-LABEL: func.func @k0(
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<192xf32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<1024xf32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<2048xf32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<14xi8>
// Keys are taken in once, and again where a row has seen none of them.
// CHECK: scf.for %[[TIME:.*]] = %c0{{.*}} to %c2
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[TIME]], %c0
// CHECK: %[[AGAIN:.*]] = arith.ori %[[FIRST]]
// CHECK: scf.if %[[AGAIN]]
// What a mask hides entirely is left out.
// CHECK: vector.reduction <or>
// CHECK: scf.if
// The scores of 6 rows and 4 vectors of keys, their exponentials, the product with the values.
// CHECK: scf.for {{.*}} -> (vector<16xf32>
// CHECK-COUNT-96: vector.fma
// CHECK-NOT: vector.reduction <maxnumf>
// Only where a logit is much larger than what a row is shifted by, the largest one is looked for.
// CHECK: vector.reduction <or>
// CHECK: scf.if
// CHECK: vector.reduction <maxnumf>
// CHECK: call @exp_nonpositive{{[0-9]}}_16xf32
// CHECK: scf.for {{.*}} -> (vector<16xf32>
// CHECK-COUNT-48: vector.fma
// Exponentials are a function's, which LLVM has in the places of its calls.
// CHECK-LABEL: func.func private @exp_nonpositive
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// One item for every head and block of rows.
// CHECK-LABEL: func.func @k0_grid
// CHECK: return
