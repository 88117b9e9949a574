// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose,mlc-narrow-contractions,cse,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views,mlc-plan-fusion,mlc-outline-kernels,mlc-assign-schedules{bf16-tiles=true})' | FileCheck %s --check-prefix=PLAN
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose,mlc-narrow-contractions,cse,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views,mlc-plan-fusion,mlc-outline-kernels,mlc-assign-schedules{bf16-tiles=true},mlc-expand-kernels)' | FileCheck %s

// An item has all rows of a head, two tiles and one and a half; keys in a block of 96 and one of 64, of which 54 exist.
// PLAN: mlc.schedule = [{lanes = 16 : i64, row_block = 64 : i64, rows = 32 : i64, scalef = 1 : i64, template = "tile_attention", vectors = 8 : i64}]
func.func @masked(%q: tensor<16x56x40xf32>, %k: tensor<16x150x40xf32>, %v: tensor<16x150x32xf32>, %m: tensor<56x150xf32>) -> tensor<16x56x32xf32> {
  %s = mlc.matmul %q, %k {transpose_rhs} : tensor<16x56x40xf32>, tensor<16x150x40xf32> -> tensor<16x56x150xf32>
  %x = mlc.binary add %s, %m : tensor<16x56x150xf32>, tensor<56x150xf32> -> tensor<16x56x150xf32>
  %p = mlc.softmax %x {axis = 2 : i64, log = false} : tensor<16x56x150xf32> -> tensor<16x56x150xf32>
  %r = mlc.matmul %p, %v : tensor<16x56x150xf32>, tensor<16x150x32xf32> -> tensor<16x56x32xf32>
  return %r : tensor<16x56x32xf32>
}

// Few rows and keys; then heads wide enough for blocks of 64 keys.
// PLAN: mlc.schedule = [{lanes = 16 : i64, row_block = 16 : i64, rows = 16 : i64, scalef = 1 : i64, template = "tile_attention", vectors = 2 : i64}]
func.func @small(%q: tensor<4x9x16xf32>, %k: tensor<4x20x16xf32>, %v: tensor<4x20x16xf32>) -> tensor<4x9x16xf32> {
  %s = mlc.matmul %q, %k {transpose_rhs} : tensor<4x9x16xf32>, tensor<4x20x16xf32> -> tensor<4x9x20xf32>
  %p = mlc.softmax %s {axis = 2 : i64, log = false} : tensor<4x9x20xf32> -> tensor<4x9x20xf32>
  %r = mlc.matmul %p, %v : tensor<4x9x20xf32>, tensor<4x20x16xf32> -> tensor<4x9x16xf32>
  return %r : tensor<4x9x16xf32>
}

// PLAN: mlc.schedule = [{lanes = 16 : i64, row_block = 192 : i64, rows = 32 : i64, scalef = 1 : i64, template = "tile_attention", vectors = 4 : i64}]
func.func @wide(%q: tensor<4x?x192xf32>, %k: tensor<4x?x192xf32>, %v: tensor<4x?x192xf32>) -> tensor<4x?x192xf32> {
  %s = mlc.matmul %q, %k {transpose_rhs} : tensor<4x?x192xf32>, tensor<4x?x192xf32> -> tensor<4x?x?xf32>
  %p = mlc.softmax %s {axis = 2 : i64, log = false} : tensor<4x?x?xf32> -> tensor<4x?x?xf32>
  %r = mlc.matmul %p, %v : tensor<4x?x?xf32>, tensor<4x?x192xf32> -> tensor<4x?x192xf32>
  return %r : tensor<4x?x192xf32>
}

// The panels are on the stack; operands of the products are bf16.
// CHECK-LABEL: func.func @k0(
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<4096xf32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<66xi8>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<4096xbf16>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<8192xbf16>
// Queries with zeros behind 40 elements; sums are cleared.
// CHECK: vector.maskedload
// CHECK: arith.select
// CHECK: llvm.call_intrinsic "llvm.x86.tilezero.internal"
// What a mask hides entirely is left out.
// CHECK: vector.reduction <or>
// CHECK: scf.if
// Keys are transposed, two elements at a time, values are interleaved.
// CHECK: vector.bitcast {{.*}} : vector<32xbf16> to vector<16xi32>
// CHECK: vector.shuffle
// CHECK: vector.interleave {{.*}} : vector<32xbf16>
// The scores of 32 rows and 32 keys, in two steps; their exponentials; the products with the values, in three steps.
// CHECK-COUNT-8: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK: vector.reduction <maxnumf>
// CHECK: call @exp_nonpositive{{[0-9]}}_16xf32
// CHECK: arith.truncf {{.*}} : vector<16xf32> to vector<16xbf16>
// CHECK-COUNT-12: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// One item for every head and block of rows.
// CHECK-LABEL: func.func @k0_grid
// CHECK: return
