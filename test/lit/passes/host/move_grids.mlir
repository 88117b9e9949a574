// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-move-grids)' | FileCheck %s

// CHECK: module @mlc_host
// CHECK: llvm.call @mlc_kernel_______k0_items
// CHECK: llvm.func internal @mlc_kernel_______k0_items(%[[N:.*]]: i64) -> i64 {
// CHECK: llvm.return %[[N]]
module @mlc_host attributes {mlc.host} {
  llvm.func hidden @mlc_kernel_______k0_items(i64) -> i64
  llvm.func @entry(%n: i64) -> i64 {
    %r = llvm.call @mlc_kernel_______k0_items(%n) : (i64) -> i64
    llvm.return %r : i64
  }
}
// CHECK: module @k0
// CHECK-NOT: @k0_grid
// CHECK: module @k1
module @k0 attributes {mlc.kernel} {
  llvm.func @k0(%t: !llvm.ptr) attributes {nvvm.kernel} {
    llvm.return
  }
  llvm.func @k0_grid(%n: i64) -> i64 {
    llvm.return %n : i64
  }
}
// A kernel that nobody launches.
// CHECK-NOT: @k1_grid
module @k1 attributes {mlc.kernel} {
  llvm.func @k1_grid() -> i64 {
    %c = llvm.mlir.constant(1 : i64) : i64
    llvm.return %c : i64
  }
}
// The host's own kernels keep theirs.
// CHECK: module @k2
// CHECK: func.func @k2_grid
module @k2 attributes {mlc.kernel, mlc.placement = "host"} {
  func.func @k2_grid() -> index {
    %c = arith.constant 1 : index
    return %c : index
  }
}
