// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-expand-gpu-kernels,canonicalize,cse)' | FileCheck %s

// Weights are read in front of the steps: of a piece of a row of 64 bytes, 16 for each thread. A step reads the inputs of
// the next one, and has one barrier; products are added to what the gates get from the input.
// CHECK: module @kept {{.*}}mlc.shared_bytes = 1280 : i64
// CHECK: func.func @kept(
// CHECK: scf.for
// CHECK: nvvm.barrier0
// CHECK-COUNT-4: vector.load %{{.*}} : memref<4096xbf16>, vector<8xbf16>
// CHECK: memref.load %{{.*}} : memref<10240xf32>
// CHECK-NOT: vector.load
// CHECK: scf.for %[[STEP:.*]] = %c0 to %c5 step %c1 iter_args(
// CHECK-COUNT-8: memref.load %{{.*}} : memref<10240xf32>
// CHECK: nvvm.barrier0
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-COUNT-4: llvm.inline_asm {{.*}}"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: ex2.approx
// CHECK-COUNT-2: llvm.store %{{.*}} : bf16, !llvm.ptr<3>
// CHECK-NOT: nvvm.barrier0
// CHECK: memref.store %{{.*}} : memref<2560xf32>
// CHECK: scf.yield
// CHECK-LABEL: func.func @kept_grid() -> index
// CHECK: arith.constant 2 : index
module {
module @kept attributes {mlc.kernel, mlc.schedule = [{ahead = 0 : i64, blocks = 1 : i64, element = "bf16", group = 128 : i64, kept = 1 : i64, rows = 8 : i64, template = "recurrence", threads = 128 : i64}]} {
  func.func @kept(%x: tensor<5x16x128xf32>, %r: tensor<1x128x32xbf16>, %0: tensor<5x16x1x32xf32>, %1: tensor<1x16x32xf32>, %2: tensor<1x16x32xf32>) -> (tensor<5x16x1x32xf32>, tensor<1x16x32xf32>, tensor<1x16x32xf32>) {
    %y, %h, %c = mlc.recurrence lstm %x, %r {direction = "reverse"} : tensor<5x16x128xf32>, tensor<1x128x32xbf16> -> tensor<5x16x1x32xf32>, tensor<1x16x32xf32>, tensor<1x16x32xf32>
    return %y, %h, %c : tensor<5x16x1x32xf32>, tensor<1x16x32xf32>, tensor<1x16x32xf32>
  }
}

// Weights that are not kept are read in each step, a piece while the one in front of it is multiplied; f32 is rounded.
// CHECK: module @streamed
// CHECK: func.func @streamed(
// CHECK-NOT: vector.load
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c1 iter_args(
// CHECK: nvvm.barrier0
// CHECK-COUNT-6: vector.load %{{.*}} : memref<6912xf32>, vector<4xf32>
// CHECK: scf.for
// CHECK: .pragma \22nounroll\22
// CHECK-COUNT-6: vector.load %{{.*}} : memref<6912xf32>, vector<4xf32>
// CHECK: cvt.rna.tf32.f32
// CHECK-COUNT-6: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
// CHECK: scf.yield
// CHECK: arith.cmpi sgt
// CHECK: cvt.rna.tf32.f32
// CHECK: memref.store
// CHECK-LABEL: func.func @streamed_grid(
module @streamed attributes {mlc.kernel, mlc.schedule = [{ahead = 1 : i64, blocks = 1 : i64, element = "tf32", group = 96 : i64, kept = 0 : i64, rows = 8 : i64, template = "recurrence", threads = 96 : i64}]} {
  func.func @streamed(%x: tensor<?x3x144xf32>, %r: tensor<1x144x48xf32>, %b: tensor<1x48xf32>, %l: tensor<3xi32>, %0: tensor<?x3x1x48xf32>, %1: tensor<1x3x48xf32>, %2: tensor<1x3x48xf32>) -> (tensor<?x3x1x48xf32>, tensor<1x3x48xf32>, tensor<1x3x48xf32>) {
    %y, %h, %c = mlc.recurrence gru %x, %r bias(%b : tensor<1x48xf32>) lengths(%l : tensor<3xi32>) {direction = "forward"} : tensor<?x3x144xf32>, tensor<1x144x48xf32> -> tensor<?x3x1x48xf32>, tensor<1x3x48xf32>, tensor<1x3x48xf32>
    return %y, %h, %c : tensor<?x3x1x48xf32>, tensor<1x3x48xf32>, tensor<1x3x48xf32>
  }
}
}
