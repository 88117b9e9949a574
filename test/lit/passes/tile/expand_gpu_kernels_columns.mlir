// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-expand-gpu-kernels)' | FileCheck %s

#all = affine_map<(i, j, k) -> (i, j, k)>
#across = affine_map<(i, j, k) -> (i, k)>

// 20 threads share four columns of 50 elements: three each, of which the last one of some does not count. They are read
// once, before the parts meet, and the quotients are written by threads with a column and an element.
// CHECK: module @block
// CHECK: memref.global "private" @[[PARTS:.*]] : memref<640xf32, 3>
// CHECK: arith.cmpi ult, %{{.*}}, %c44
// CHECK-COUNT-3: vector.load {{.*}} {alignment = 16 : i64} : memref<4400xf32>, vector<4xf32>
// CHECK-NOT: vector.load {{.*}} memref<4400xf32>
// CHECK: arith.select {{.*}} vector<4xf32>
// CHECK-COUNT-8: nvvm.shfl
// CHECK-COUNT-2: nvvm.barrier0
// CHECK-COUNT-5: vector.load {{.*}} memref<640xf32, 3>
// CHECK: arith.andi
// CHECK-NOT: vector.load {{.*}} memref<4400xf32>
// CHECK: return
module {
module @block attributes {mlc.kernel, mlc.schedule = [{blocks = 2 : i64, first = 1 : i64, kept = 3 : i64, lanes = 4 : i64, last = 1 : i64, split = 20 : i64, template = "whole_columns", threads = 160 : i64, width = 8 : i64}]} {
  func.func @block(%a: tensor<2x50x44xf32>, %o: tensor<2x50x44xf32>) -> tensor<2x50x44xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<2x44xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x44xf32>) -> tensor<2x44xf32>
    %s = linalg.generic {indexing_maps = [#all, #across], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%a : tensor<2x50x44xf32>) outs(%f : tensor<2x44xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<2x44xf32>
    %d = linalg.generic {indexing_maps = [#all, #across, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a, %s : tensor<2x50x44xf32>, tensor<2x44xf32>) outs(%o : tensor<2x50x44xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %r = arith.divf %x, %y : f32
      linalg.yield %r : f32
    } -> tensor<2x50x44xf32>
    return %d : tensor<2x50x44xf32>
  }
}
}

// -----

#all = affine_map<(i, j, k) -> (i, j, k)>
#across = affine_map<(i, j, k) -> (i, k)>

// Threads of a warp have no need of shared memory. What is not kept is read for the sum and for the
// quotients, here in one step of four lines each, which is no loop.
// CHECK: module @warp
// CHECK-NOT: memref.global
// CHECK: scf.for %{{.*}} = %arg{{.*}} to %arg{{.*}} step %c1
// CHECK-NOT: scf.for
// CHECK-COUNT-6: vector.load {{.*}} memref<800xf32>, vector<4xf32>
// CHECK: nvvm.shfl
// CHECK-NOT: nvvm.barrier0
// CHECK-NOT: scf.for
// CHECK-COUNT-4: vector.load {{.*}} memref<800xf32>, vector<4xf32>
module {
module @warp attributes {mlc.kernel, mlc.schedule = [{blocks = 2 : i64, first = 1 : i64, kept = 2 : i64, lanes = 4 : i64, last = 1 : i64, split = 16 : i64, template = "whole_columns", threads = 128 : i64, width = 2 : i64}]} {
  func.func @warp(%a: tensor<2x50x8xf32>, %o: tensor<2x50x8xf32>) -> tensor<2x50x8xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<2x8xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8xf32>) -> tensor<2x8xf32>
    %s = linalg.generic {indexing_maps = [#all, #across], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%a : tensor<2x50x8xf32>) outs(%f : tensor<2x8xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<2x8xf32>
    %d = linalg.generic {indexing_maps = [#all, #across, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a, %s : tensor<2x50x8xf32>, tensor<2x8xf32>) outs(%o : tensor<2x50x8xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %r = arith.divf %x, %y : f32
      linalg.yield %r : f32
    } -> tensor<2x50x8xf32>
    return %d : tensor<2x50x8xf32>
  }
}
}

// -----

#all = affine_map<(i, j, k) -> (i, j, k)>
#across = affine_map<(i, j, k) -> (i, k)>

// A thread with a column of its own shares nothing.
// CHECK: module @alone
// CHECK-NOT: nvvm.shfl
// CHECK-COUNT-5: vector.load {{.*}} memref<300xf32>, vector<2xf32>
// CHECK-COUNT-5: vector.store
// CHECK-NOT: arith.cmpi
// CHECK: return
module {
module @alone attributes {mlc.kernel, mlc.schedule = [{blocks = 2 : i64, first = 1 : i64, kept = 5 : i64, lanes = 2 : i64, last = 1 : i64, split = 1 : i64, template = "whole_columns", threads = 256 : i64, width = 10 : i64}]} {
  func.func @alone(%a: tensor<3x5x20xf32>, %o: tensor<3x5x20xf32>) -> tensor<3x5x20xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<3x20xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x20xf32>) -> tensor<3x20xf32>
    %s = linalg.generic {indexing_maps = [#all, #across], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%a : tensor<3x5x20xf32>) outs(%f : tensor<3x20xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<3x20xf32>
    %d = linalg.generic {indexing_maps = [#all, #across, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a, %s : tensor<3x5x20xf32>, tensor<3x20xf32>) outs(%o : tensor<3x5x20xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %r = arith.divf %x, %y : f32
      linalg.yield %r : f32
    } -> tensor<3x5x20xf32>
    return %d : tensor<3x5x20xf32>
  }
}
}
