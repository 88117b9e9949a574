// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-convert-host)' | FileCheck %s

// The host becomes LLVM dialect and hidden; the kernel is left alone.
// CHECK-LABEL: module @mlc_host
// CHECK: llvm.mlir.global private constant @c(dense<[1.000000e+00, 2.000000e+00]>
// CHECK: llvm.func hidden @mlc_entry_f(%{{.*}}: !llvm.ptr) -> i64
// CHECK: llvm.mlir.addressof @c
// CHECK: llvm.return
module @mlc_host attributes {mlc.host} {
  memref.global "private" constant @c : memref<2xf32> = dense<[1.0, 2.0]> {alignment = 64 : i64}
  func.func @mlc_entry_f(%rt: !llvm.ptr) -> i64 {
    %c = memref.get_global @c : memref<2xf32>
    %p = memref.extract_aligned_pointer_as_index %c : memref<2xf32> -> index
    %r = arith.index_cast %p : index to i64
    return %r : i64
  }
}
// CHECK-LABEL: module @k0
// CHECK: func.func @k0(%{{.*}}: memref<f32>)
module @k0 attributes {mlc.kernel} {
  func.func @k0(%x: memref<f32>) {
    return
  }
}
