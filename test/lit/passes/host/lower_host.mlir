// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-lower-host)' | FileCheck %s

// Tables: kernels by position, nodes and messages by first use. The arena's size is kept for the metadata.
// CHECK: module attributes {
// CHECK-SAME: mlc.kernels = [{name = "k0", nodes = ["first", "second"], template = "loops"}, {name = "k1", nodes = ["last"], template = ""}]
// CHECK-SAME: mlc.memory = {forward = "64*n"}
// CHECK-SAME: mlc.messages = ["too many"]
// CHECK-SAME: mlc.nodes = ["first", "checked", "last"]
module {
// CHECK-LABEL: module @mlc_host
module @mlc_host attributes {mlc.host} {
  // CHECK: llvm.func hidden @mlc_kernel_______k0(!llvm.ptr, !llvm.ptr, i64, i64)
  // CHECK: llvm.func hidden @mlc_kernel_______k0_grid(!llvm.ptr) -> i64
  // CHECK: func.func @mlc_entry_forward(%[[RT:.*]]: !llvm.ptr, %[[ARGS:.*]]: !llvm.ptr) -> i32
  func.func @forward(%x: memref<?x4xf32>, %i: memref<1xi64>) attributes {mlc.arena_formula = "64*n"} {
    %c0 = arith.constant 0 : index
    // CHECK: %[[STACK:.*]] = llvm.alloca %{{.*}} x i64
    // CHECK: %[[WEIGHTS:.*]] = llvm.call @mlc_rt_weights(%[[RT]])
    // CHECK: %[[N:.*]] = memref.dim
    %n = memref.dim %x, %c0 : memref<?x4xf32>
    // CHECK: %[[ARENA:.*]] = llvm.call @mlc_rt_arena(%[[RT]],
    // CHECK: %[[NULL:.*]] = llvm.icmp "eq" %[[ARENA]]
    // CHECK: cf.cond_br %[[NULL]], ^[[FAIL:bb[0-9]+]](%{{.*}} : i64), ^
    %arena = mlc.buffer arena (%n) {static_offset = 0 : i64} : memref<?xi8>
    %a = memref.view %arena[%c0][%n] : memref<?xi8> to memref<?x4xf32>
    // CHECK: llvm.getelementptr %[[WEIGHTS]]
    %w = mlc.buffer weights {static_offset = 64 : i64} : memref<4xf32>
    // One of a stack, at a place of the run.
    // CHECK: %[[AT:.*]] = arith.index_cast %[[N]] : index to i64
    // CHECK: llvm.getelementptr %[[WEIGHTS]][%[[AT]]]
    %s = mlc.buffer weights offset [%n] : memref<4xf32>
    // Three pointers, then the extents of the two dynamic tensors, then the index.
    // CHECK-COUNT-6: llvm.store
    // CHECK: %[[K:.*]] = llvm.mlir.addressof @mlc_kernel_______k0
    // CHECK: %[[G:.*]] = llvm.mlir.addressof @mlc_kernel_______k0_grid
    // CHECK: %[[CODE:.*]] = llvm.call @mlc_rt_launch(%[[RT]], %[[K]], %[[G]], %[[STACK]], %{{.*}})
    // CHECK: %[[FAILED:.*]] = arith.cmpi ne, %[[CODE]]
    // CHECK: cf.cond_br %[[FAILED]], ^[[FAIL]](%{{.*}} : i64), ^
    mlc.launch @k0(%x, %w, %n) outs(%a) : (memref<?x4xf32>, memref<4xf32>, index) outs(memref<?x4xf32>) loc(fused["first", "second"])
    %limit = arith.constant 512 : index
    %ok = arith.cmpi sle, %n, %limit : index
    // CHECK: llvm.call @mlc_rt_check
    // CHECK: cf.cond_br %{{.*}}, ^[[FAIL]]
    mlc.check %ok, %n, "too many" loc("checked")
    // Nothing that a failed kernel may have left is read.
    // CHECK: llvm.call @mlc_rt_poll
    // CHECK: cf.cond_br %{{.*}}, ^[[FAIL]]
    // CHECK: memref.load
    %v = memref.load %i[%c0] : memref<1xi64>
    %m = arith.index_cast %v : i64 to index
    // CHECK: llvm.call @mlc_rt_pool
    %p = mlc.buffer pool (%m) : memref<?xf32>
    // CHECK: llvm.call @mlc_rt_output
    %o = mlc.buffer output (%m) {number = 0 : i64} : memref<?xf32>
    // CHECK: llvm.call @mlc_rt_launch
    mlc.launch @k1(%p) outs(%o) : (memref<?xf32>) outs(memref<?xf32>) loc("last")
    // CHECK: "llvm.intr.memcpy"
    %q = mlc.buffer output (%n) {number = 1 : i64} : memref<?x4xf32>
    memref.copy %x, %q : memref<?x4xf32> to memref<?x4xf32>
    // CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
    // CHECK: return %[[ZERO]] : i32
    return
    // CHECK: ^[[FAIL]](%[[NODE:.*]]: i64):
    // CHECK: llvm.call @mlc_rt_failed(%[[RT]], %[[NODE]])
    // CHECK: %[[ONE:.*]] = arith.constant 1 : i32
    // CHECK: return %[[ONE]] : i32
  }
}
module @k0 attributes {mlc.kernel, mlc.schedule = [{template = "loops"}]} {
}
module @k1 attributes {mlc.kernel} {
}
}

// -----

// On a GPU launches do not wait: the runtime gets the node with the launch, and the number of items.
// CHECK: llvm.func hidden @mlc_kernel_______k0_items(i64) -> i64
module {
module @mlc_host attributes {mlc.host} {
  // CHECK: func.func @mlc_entry_placed(
  func.func @placed(%x: memref<?xf32>) {
    %c0 = arith.constant 0 : index
    %n = memref.dim %x, %c0 : memref<?xf32>
    // CHECK: llvm.call @mlc_rt_gpu_weights
    %w = mlc.buffer weights {mlc.space = "device", static_offset = 64 : i64} : memref<4xf32>
    // CHECK: %[[IMAGE:.*]] = llvm.call @mlc_rt_gpu_weights
    // CHECK: llvm.getelementptr %[[IMAGE]][%{{.*}}]
    %s = mlc.buffer weights offset [%n] {mlc.space = "device"} : memref<4xf32>
    // CHECK: llvm.call @mlc_rt_gpu_pool
    %a = mlc.buffer pool (%n) {mlc.space = "device"} : memref<?xf32>
    // CHECK: %[[ITEMS:.*]] = llvm.call @mlc_kernel_______k0_items
    // CHECK: llvm.call @mlc_rt_gpu_launch(%{{.*}}, %{{.*}}, %{{.*}}, %[[ITEMS]], %{{.*}})
    mlc.launch @k0(%w) outs(%a) {mlc.placement = "device"} : (memref<4xf32>) outs(memref<?xf32>) loc("node")
    // CHECK: llvm.call @mlc_rt_pool
    %h = mlc.buffer pool (%n) : memref<?xf32>
    // CHECK: llvm.call @mlc_rt_gpu_to_host
    memref.copy %a, %h {mlc.transfer = "host"} : memref<?xf32> to memref<?xf32>
    // CHECK: llvm.call @mlc_rt_gpu_to_device
    memref.copy %h, %a {mlc.transfer = "device"} : memref<?xf32> to memref<?xf32>
    // CHECK: llvm.call @mlc_rt_gpu_output
    %o = mlc.buffer output (%n) {mlc.space = "device", number = 0 : i64} : memref<?xf32>
    // CHECK: llvm.call @mlc_rt_gpu_copy
    memref.copy %a, %o {mlc.space = "device"} : memref<?xf32> to memref<?xf32>
    return
  }
}
module @k0 attributes {mlc.kernel} {
}
}
