// RUN: mlc-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(mlc-lower-to-nvvm)' | FileCheck %s

// 128 threads of 64 registers fit a multiprocessor eight times.
// CHECK: module @k0 attributes {llvm.data_layout = "e-{{.*}}i64:64{{.*}}", llvm.target_triple = "nvptx64-nvidia-cuda"
// CHECK: llvm.func @k0(%{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: i64) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 128>, nvvm.minctasm = 8 : i32}
// The next launch may begin; this one has begun when all before were done.
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: llvm.return
// CHECK: llvm.func @k0_grid(%{{.*}}: i64) -> i64 {
// CHECK-NEXT: llvm.return
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{template = "rows", threads = 128 : i64}]} {
  llvm.func @k0(%t: !llvm.ptr {llvm.noalias}, %items: i64) {
    llvm.return
  }
  llvm.func @k0_grid(%d: i64) -> i64 {
    llvm.return %d : i64
  }
}
}

// -----

// A launch that may be early waits for those before it; the next one need not wait for that to begin.
// CHECK-LABEL: llvm.func @k4
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: nvvm.griddepcontrol wait
// CHECK-NEXT: llvm.return
module {
module @k4 attributes {mlc.kernel, mlc.schedule = [{template = "rows", threads = 128 : i64, early = 1 : i64}]} {
  llvm.func @k4(%t: !llvm.ptr {llvm.noalias}, %items: i64) {
    llvm.return
  }
}
}

// -----

// Weights of which each of the block's threads can bring a line are on their way meanwhile. The template of this one waits
// where it wants to.
// CHECK-LABEL: llvm.func @k6
// CHECK-SAME: (%{{.*}}, %[[W:.*]]: !llvm.ptr, %{{.*}}, %{{.*}})
// CHECK-NEXT: nvvm.griddepcontrol launch_dependents
// CHECK-NEXT: %[[BYTES:.*]] = llvm.mlir.constant(16384 : i32)
// CHECK-NEXT: llvm.inline_asm {{.*}}prefetch.L2{{.*}} %[[W]], %[[BYTES]]
// CHECK-NEXT: llvm.return
module {
module @k6 attributes {mlc.kernel, mlc.constants = array<i64: 0, 16384, 16385>, mlc.waits, mlc.schedule = [{template = "rows", threads = 128 : i64, early = 1 : i64}]} {
  llvm.func @k6(%t: !llvm.ptr, %w: !llvm.ptr, %large: !llvm.ptr, %items: i64) {
    llvm.return
  }
}
}

// -----

// Launches do not overlap on chips before Hopper.
// CHECK-LABEL: llvm.func @k5
// CHECK-NEXT: llvm.return
module attributes {mlc.target = "nvidia:sm_80"} {
module @k5 attributes {mlc.kernel, mlc.schedule = [{template = "rows", threads = 128 : i64}]} {
  llvm.func @k5(%t: !llvm.ptr {llvm.noalias}, %items: i64) {
    llvm.return
  }
}
}

// -----

// Tensor maps are parameters by value.
// CHECK: llvm.func @k2(%{{.*}}: !llvm.ptr {llvm.noalias}, %{{.*}}: i64, %{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<16 x i64>, nvvm.grid_constant})
module {
module @k2 attributes {mlc.kernel, mlc.schedule = [{template = "hopper_contraction", threads = 128 : i64}], mlc.tensor_maps = [{}]} {
  llvm.func @k2(%t: !llvm.ptr {llvm.noalias}, %items: i64, %map: !llvm.ptr) {
    llvm.return
  }
}
}

// -----

// Blocks of a cluster.
// CHECK: llvm.func @k3{{.*}} attributes {nvvm.cluster_dim = array<i32: 4, 1, 1>
module {
// CHECK: llvm.func @k4{{.*}} attributes {nvvm.cluster_dim = array<i32: 8, 1, 1>
module @k3 attributes {mlc.kernel, mlc.schedule = [{template = "hopper_attention", split = 4 : i64, threads = 128 : i64}]} {
  llvm.func @k3(%t: !llvm.ptr {llvm.noalias}, %items: i64) {
    llvm.return
  }
}
module @k4 attributes {mlc.kernel, mlc.schedule = [{cluster = 8 : i64, group = 256 : i64, template = "rows", threads = 256 : i64}]} {
  llvm.func @k4(%t: !llvm.ptr {llvm.noalias}, %items: i64) {
    llvm.return
  }
}
}

// -----

// CHECK: llvm.func @k6{{.*}} attributes {nvvm.cluster_dim = array<i32: 8, 1, 1>
module {
module @k6 attributes {mlc.kernel, mlc.schedule = [{template = "hopper_contraction", cluster_rows = 2 : i64, cluster_columns = 4 : i64, threads = 128 : i64}]} {
  llvm.func @k6(%t: !llvm.ptr {llvm.noalias}, %items: i64) {
    llvm.return
  }
}
}

// -----

// expected-error@below {{has no llvm.func of its name}}
module {
module @k1 attributes {mlc.kernel, mlc.schedule = [{template = "rows", threads = 128 : i64}]} {
  func.func @k1() {
    return
  }
}
}
