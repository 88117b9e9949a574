// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose,mlc-narrow-contractions,cse,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views,mlc-plan-fusion,mlc-outline-kernels,mlc-assign-schedules{bf16-dot=true})' | FileCheck %s --check-prefix=PLAN
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose,mlc-narrow-contractions,cse,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views,mlc-plan-fusion,mlc-outline-kernels,mlc-assign-schedules{bf16-dot=true},mlc-expand-kernels)' | FileCheck %s

// Keys in a block of four vectors and two of three, of which the last one is full in part; rows in tiles of six and one of two.
// PLAN: mlc.schedule = [{lanes = 16 : i64, row_block = 60 : i64, rows = 6 : i64, scalef = 1 : i64, template = "dot_attention", vectors = 4 : i64}]
func.func @masked(%q: tensor<16x56x40xf32>, %k: tensor<16x150x40xf32>, %v: tensor<16x150x32xf32>, %m: tensor<56x150xf32>) -> tensor<16x56x32xf32> {
  %s = mlc.matmul %q, %k {transpose_rhs} : tensor<16x56x40xf32>, tensor<16x150x40xf32> -> tensor<16x56x150xf32>
  %x = mlc.binary add %s, %m : tensor<16x56x150xf32>, tensor<56x150xf32> -> tensor<16x56x150xf32>
  %p = mlc.softmax %x {axis = 2 : i64, log = false} : tensor<16x56x150xf32> -> tensor<16x56x150xf32>
  %r = mlc.matmul %p, %v : tensor<16x56x150xf32>, tensor<16x150x32xf32> -> tensor<16x56x32xf32>
  return %r : tensor<16x56x32xf32>
}

// A single query reads in f32 what is there; of heads that share keys several are one work item.
// PLAN: mlc.schedule = [{lanes = 16 : i64, row_block = 6 : i64, rows = 6 : i64, scalef = 1 : i64, template = "attention", vectors = 4 : i64}]
func.func @single(%q: tensor<4x1x16xf32>, %k: tensor<4x20x16xf32>, %v: tensor<4x20x16xf32>) -> tensor<4x1x16xf32> {
  %s = mlc.matmul %q, %k {transpose_rhs} : tensor<4x1x16xf32>, tensor<4x20x16xf32> -> tensor<4x1x20xf32>
  %p = mlc.softmax %s {axis = 2 : i64, log = false} : tensor<4x1x20xf32> -> tensor<4x1x20xf32>
  %r = mlc.matmul %p, %v : tensor<4x1x20xf32>, tensor<4x20x16xf32> -> tensor<4x1x16xf32>
  return %r : tensor<4x1x16xf32>
}

// PLAN: mlc.schedule = [{lanes = 16 : i64, row_block = 42 : i64, rows = 6 : i64, scalef = 1 : i64, template = "dot_attention", together = 4 : i64, vectors = 4 : i64}]
func.func @grouped(%q: tensor<1x16x40x64xf32>, %k: tensor<1x4x200x64xf32>, %v: tensor<1x4x200x64xf32>) -> tensor<1x16x40x64xf32> {
  %r = mlc.attention %q, %k, %v : tensor<1x16x40x64xf32>, tensor<1x4x200x64xf32>, tensor<1x4x200x64xf32> -> tensor<1x16x40x64xf32>
  return %r : tensor<1x16x40x64xf32>
}

// Operands of the products are bf16, scores and results are not.
// CHECK-LABEL: func.func @k0(
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<384xf32>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<384xbf16>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<3840xbf16>
// CHECK-DAG: memref.alloca() {alignment = 64 : i64} : memref<2560xbf16>
// What a mask hides entirely is left out.
// CHECK: vector.reduction <or>
// CHECK: scf.if
// Keys are transposed, two elements at a time, values are interleaved.
// CHECK: vector.bitcast {{.*}} : vector<32xbf16> to vector<16xi32>
// CHECK: vector.shuffle
// CHECK: vector.interleave {{.*}} : vector<32xbf16>
// The scores of six rows and 64 keys, four steps at a time; their exponentials; the products with the values.
// CHECK-COUNT-96: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK: call @exp_nonpositive{{[0-9]}}_16xf32
// CHECK: arith.truncf {{.*}} : vector<16xf32> to vector<16xbf16>
// CHECK-COUNT-48: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK-LABEL: func.func @k0_grid
