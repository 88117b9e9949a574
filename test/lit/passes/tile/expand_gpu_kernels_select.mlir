// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-expand-gpu-kernels,canonicalize,cse)' | FileCheck %s

// A block for each line. Keys of two halves, value and position; what is counted are digits of eight bits of one half, of
// keys that begin with what is known, and threads add up how many have a larger digit.
// CHECK: module @best
// CHECK-DAG: memref.global "private" @best_shared_64xi64_keys : memref<64xi64, 3>
// CHECK-DAG: memref.global "private" @best_shared_256xi32_bins : memref<256xi32, 3>
// CHECK: func.func @best(
// CHECK: nvvm.barrier
// CHECK: scf.for %{{.*}} = %c0 to %c4
// CHECK: scf.if
// CHECK: [[SHIFTED:%.*]] = arith.shrui %{{.*}}, %{{.*}} : i32
// CHECK: arith.shrui [[SHIFTED]], %c8_i32 : i32
// CHECK: arith.cmpi eq
// CHECK: memref.atomic_rmw addi
// CHECK-COUNT-5: nvvm.shfl.sync  bfly
// CHECK: nvvm.barrier0
// Where values alone do not tell, those of the bound's value, by their positions, which have ten bits.
// CHECK: scf.for %{{.*}} = %c0 to %c2
// CHECK: arith.index_cast %{{.*}} : index to i32
// CHECK: arith.andi %{{.*}}, %{{.*}} : i1
// CHECK: memref.atomic_rmw addi
// The keys that reach the bound are collected where there is room,
// CHECK: arith.cmpi uge, %{{.*}}, %{{.*}} : i32
// CHECK: arith.cmpi uge, %{{.*}}, %{{.*}} : i64
// CHECK: memref.atomic_rmw addi
// and sorted by 2, 4, … 64; values are read again at their positions.
// CHECK: scf.for [[LEVEL:%.*]] = %c1 to %c7
// CHECK: scf.for %{{.*}} = %c0 to [[LEVEL]]
// CHECK: arith.maxsi %{{.*}}, %{{.*}} : i64
// CHECK: arith.minsi %{{.*}}, %{{.*}} : i64
// CHECK: nvvm.barrier0
// CHECK: memref.load %{{.*}} : memref<2100xf32>
// CHECK: memref.store %{{.*}} : memref<150xf32>
// CHECK: memref.store %{{.*}} : memref<150xi64>
// CHECK: func.func @best_grid() -> index
// CHECK: arith.constant 3 : index
module {
module @best attributes {mlc.kernel, mlc.schedule = [{group = 256 : i64, template = "block_select", threads = 256 : i64}]} {
  func.func @best(%arg0: tensor<3x700xf32>, %arg1: tensor<3x50xf32>, %arg2: tensor<3x50xi64>) -> (tensor<3x50xf32>, tensor<3x50xi64>) {
    %c50 = arith.constant 50 : index
    %values, %indices = mlc.topk %arg0, %c50 {axis = 1 : i64} : tensor<3x700xf32> -> tensor<3x50xf32>, tensor<3x50xi64>
    return %values, %indices : tensor<3x50xf32>, tensor<3x50xi64>
  }
}

// Seven parts of a line, the last of which is shorter. Values of 16 bits have two digits, and so have positions in a part.
// CHECK: module @parts
// CHECK: [[PART:%.*]] = arith.remui %{{.*}}, %c7
// CHECK: [[BEGIN:%.*]] = arith.muli [[PART]], %c4288
// CHECK: [[OUT:%.*]] = arith.muli [[PART]], %c40
// CHECK: [[LEFT:%.*]] = arith.subi %c30011, [[BEGIN]]
// CHECK: [[LONG:%.*]] = arith.minsi [[LEFT]], %c4288
// CHECK: scf.for %{{.*}} = %c0 to %c2
// CHECK: scf.for %{{.*}} to [[LONG]] step
// CHECK: arith.andi %{{.*}}, %c-65536_i32
// CHECK: scf.for %{{.*}} = %c0 to %c2
// CHECK: arith.addi [[BEGIN]], %{{.*}}
// CHECK: arith.addi [[OUT]], %{{.*}}
// CHECK: memref.store %{{.*}} : memref<560xbf16>
// CHECK: memref.store %{{.*}} : memref<560xi64>
// CHECK: func.func @parts_grid() -> index
// CHECK: arith.constant 14 : index
module @parts attributes {mlc.kernel, mlc.schedule = [{group = 1024 : i64, template = "block_select", threads = 1024 : i64}]} {
  func.func @parts(%arg0: tensor<2x30011xbf16>, %arg1: tensor<2x280xbf16>, %arg2: tensor<2x280xi64>) -> (tensor<2x280xbf16>, tensor<2x280xi64>) {
    %c40 = arith.constant 40 : index
    %0, %1 = mlc.topk %arg0, %c40 {axis = 1 : i64, part = 4288 : i64} : tensor<2x30011xbf16> -> tensor<2x280xbf16>, tensor<2x280xi64>
    return %0, %1 : tensor<2x280xbf16>, tensor<2x280xi64>
  }
}

// What is written is the place that the element of that position has.
// CHECK: module @places
// CHECK: memref.store %{{.*}} : memref<80xbf16>
// CHECK: [[PLACE:%.*]] = memref.load %{{.*}} : memref<560xi64>
// CHECK: memref.store [[PLACE]], %{{.*}} : memref<80xi64>
module @places attributes {mlc.kernel, mlc.schedule = [{group = 256 : i64, template = "block_select", threads = 256 : i64}]} {
  func.func @places(%arg0: tensor<2x280xbf16>, %arg1: tensor<2x280xi64>, %arg2: tensor<2x40xbf16>, %arg3: tensor<2x40xi64>) -> (tensor<2x40xbf16>, tensor<2x40xi64>) {
    %c40 = arith.constant 40 : index
    %0, %1 = mlc.topk %arg0, %c40 places(%arg1 : tensor<2x280xi64>) {axis = 1 : i64} : tensor<2x280xbf16> -> tensor<2x40xbf16>, tensor<2x40xi64>
    return %0, %1 : tensor<2x40xbf16>, tensor<2x40xi64>
  }
}
}
