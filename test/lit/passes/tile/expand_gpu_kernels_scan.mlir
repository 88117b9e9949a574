// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-expand-gpu-kernels,canonicalize,cse)' | FileCheck %s

// Two chunks of a line. The next one is read before this one is combined: the threads of a warp first, then what all
// warps have found, in one of two places by turns; halves are sums in f32.
// CHECK: module @line
// CHECK: memref.global "private" @line_shared_64xf32 : memref<64xf32, 3>
// CHECK: func.func @line(
// CHECK: vector.load %{{.*}} : memref<96000xf16>, vector<8xf16>
// CHECK: scf.for %[[CHUNK:.*]] = %c0 to %c4000 step %c1024 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (f32, vector<8xf16>)
// CHECK: vector.load %{{.*}} : memref<96000xf16>, vector<8xf16>
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK-COUNT-6: nvvm.shfl.sync  up
// CHECK: nvvm.shfl.sync  idx
// CHECK: arith.remui %{{.*}}, %c2
// CHECK: memref.store %{{.*}} : memref<64xf32, 3>
// CHECK: nvvm.barrier0
// CHECK-COUNT-5: nvvm.shfl.sync  up
// CHECK-COUNT-2: nvvm.shfl.sync  idx
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: vector.store %{{.*}} : memref<96000xf16>, vector<8xf16>
// CHECK-LABEL: func.func @line_grid() -> index
// CHECK: arith.constant 3 : index
module {
module @line attributes {mlc.kernel, mlc.schedule = [{accesses = 1 : i64, ahead = 1 : i64, group = 1024 : i64, lanes = 8 : i64, template = "scan", threads = 1024 : i64, width = 0 : i64}]} {
  func.func @line(%arg0: tensor<3x32000xf16>, %arg1: tensor<3x32000xf16>) -> tensor<3x32000xf16> {
    %0 = mlc.scan sum %arg0 {axis = 1 : i64} : tensor<3x32000xf16>
    return %0 : tensor<3x32000xf16>
  }
}

// Eight threads of a warp beside each other, four along the lines: they are eight numbers apart.
// CHECK: module @columns
// CHECK: func.func @columns(
// CHECK-COUNT-2: vector.load %{{.*}} : memref<8192xi32>, vector<4xi32>
// CHECK-NOT: scf.for %{{.*}} iter_args
// CHECK: arith.addi
// CHECK: nvvm.shfl.sync  up %{{.*}}, %{{.*}}, %c8_i32
// CHECK: nvvm.shfl.sync  up %{{.*}}, %{{.*}}, %c16_i32
// CHECK: vector.load %{{.*}} : memref<512xi32, 3>, vector<4xi32>
// CHECK: vector.load %{{.*}} : memref<512xi32, 3>, vector<4xi32>
// CHECK-COUNT-2: vector.store %{{.*}} : memref<8192xi32>, vector<4xi32>
module @columns attributes {mlc.kernel, mlc.schedule = [{accesses = 2 : i64, ahead = 0 : i64, group = 256 : i64, lanes = 4 : i64, template = "scan", threads = 256 : i64, width = 8 : i64}]} {
  func.func @columns(%arg0: tensor<64x128xi32>, %arg1: tensor<64x128xi32>) -> tensor<64x128xi32> {
    %0 = mlc.scan sum %arg0 {axis = 0 : i64} : tensor<64x128xi32>
    return %0 : tensor<64x128xi32>
  }
}

// Parts of two lines, backwards: the last one in that order is shorter. What comes before the first one is nothing.
// CHECK: module @parts
// CHECK: func.func @parts(
// CHECK: [[PART:%.*]] = arith.remui %{{.*}}, %c11
// CHECK: [[LINE:%.*]] = arith.divui %{{.*}}, %c11
// CHECK: [[REACH:%.*]] = arith.muli [[PART]], %c4096
// CHECK: [[LEFT:%.*]] = arith.subi %c45007, [[REACH]]
// CHECK: [[LONG:%.*]] = arith.minsi [[LEFT]], %c4096
// CHECK: arith.subi [[LEFT]], [[LONG]]
// CHECK: arith.subi %c10, [[PART]]
// CHECK: arith.muli [[LINE]], %c10
// CHECK: [[BEFORE:%.*]] = memref.load %{{.*}} : memref<20xf32>
// CHECK: [[FIRST:%.*]] = arith.cmpi eq, [[PART]], %c0
// CHECK: arith.select [[FIRST]], %{{.*}}, [[BEFORE]] : f32
// CHECK-LABEL: func.func @parts_grid() -> index
// CHECK: arith.constant 22 : index
module @parts attributes {mlc.kernel, mlc.schedule = [{accesses = 2 : i64, ahead = 0 : i64, group = 256 : i64, lanes = 8 : i64, template = "scan", threads = 256 : i64, width = 0 : i64}]} {
  func.func @parts(%arg0: tensor<2x45007xf16>, %arg1: tensor<2x10xf32>, %arg2: tensor<2x45007xf16>) -> tensor<2x45007xf16> {
    %0 = mlc.scan sum %arg0 before(%arg1 : tensor<2x10xf32>) {axis = 1 : i64, part = 4096 : i64, reverse = true} : tensor<2x45007xf16>
    return %0 : tensor<2x45007xf16>
  }
}
}
