// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-expand-gpu-kernels,canonicalize,cse)' | FileCheck %s

// Two blocks of four warps have a row: of what threads combine, value and position travel together, through each warp,
// the shared memory of a block and that of the cluster. A NaN is the largest; of equals the first position counts.
// CHECK: module @k0
// CHECK-DAG: memref.global "private" @[[VALUES:.*_4xf32_1]] : memref<4xf32, 3>
// CHECK-DAG: memref.global "private" @[[PLACES:.*_4xi32_1_1]] : memref<4xi32, 3>
// CHECK-DAG: memref.global "private" @{{.*}}_2xi32_blocks_1 : memref<2xi32, 3>
// CHECK-DAG: memref.global "private" @{{.*}}_2xi32_blocks_1_1 : memref<2xi32, 3>
// CHECK: vector.load {{.*}} {alignment = 16 : i64} : memref<12300xf32>, vector<4xf32>
// CHECK: arith.cmpf ugt, %{{.*}} : vector<4xf32>
// CHECK: arith.select %{{.*}} : vector<4xi1>, vector<4xi32>
// CHECK: vector.reduction <maximumf>
// CHECK: vector.reduction <minsi>
// CHECK-COUNT-2: nvvm.shfl.sync bfly
// CHECK: arith.maximumf %{{.*}} : f32
// CHECK: arith.select %{{.*}}, %{{.*}}, %c2147483647_i32 : i32
// CHECK: arith.minsi %{{.*}} : i32
// CHECK-COUNT-8: nvvm.shfl.sync bfly
// CHECK-DAG: memref.store %{{.*}} : memref<4xf32, 3>
// CHECK-DAG: memref.store %{{.*}} : memref<4xi32, 3>
// CHECK: nvvm.barrier0
// CHECK-COUNT-2: mapa.shared::cluster
// CHECK: nvvm.cluster.wait
// CHECK: scf.if
// CHECK: memref.store %{{.*}} : memref<3xi64>
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{cluster = 2 : i64, first = 1 : i64, group = 128 : i64, kept = 5 : i64, lanes = 4 : i64, template = "rows", threads = 128 : i64}]} {
  func.func @k0(%arg0: tensor<3x4100xf32>, %arg1: tensor<3xi64>) -> tensor<3xi64> {
    %cst = arith.constant 0xFF800000 : f32
    %0 = tensor.empty() : tensor<3xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<3xf32>) -> tensor<3xf32>
    %c0_i32 = arith.constant 0 : i32
    %2 = tensor.empty() : tensor<3xi32>
    %3 = linalg.fill ins(%c0_i32 : i32) outs(%2 : tensor<3xi32>) -> tensor<3xi32>
    %4:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
        ins(%arg0 : tensor<3x4100xf32>) outs(%1, %3 : tensor<3xf32>, tensor<3xi32>) attrs =  {mlc.arg_reduce = "maximumf"} {
    ^bb0(%in: f32, %out: f32, %out_0: i32):
      %7 = arith.cmpf ord, %out, %out : f32
      %8 = arith.cmpf ugt, %in, %out : f32
      %9 = arith.andi %8, %7 : i1
      %10 = linalg.index 1 : index
      %11 = arith.index_cast %10 : index to i32
      %12 = arith.select %9, %in, %out : f32
      %13 = arith.select %9, %11, %out_0 : i32
      linalg.yield %12, %13 : f32, i32
    } -> (tensor<3xf32>, tensor<3xi32>)
    %6 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        ins(%4#1 : tensor<3xi32>) outs(%arg1 : tensor<3xi64>) {
    ^bb0(%in: i32, %out: i64):
      %7 = arith.extsi %in : i32 to i64
      linalg.yield %7 : i64
    } -> tensor<3xi64>
    return %6 : tensor<3xi64>
  }
}
}

// -----

// Thirty-two threads share two columns, of which four of a warp meet first; eight neighbours take the parts of the eight
// warps, which lie side by side, and the first of them puts their best behind these. Of equals the last position counts.
// CHECK: module @k1
// CHECK-DAG: memref.global "private" @{{.*}}_144xi8 : memref<144xi8, 3>
// CHECK-DAG: memref.global "private" @{{.*}}_144xi32_1 : memref<144xi32, 3>
// CHECK: arith.cmpi ule, %{{.*}} : vector<2xi8>
// CHECK: arith.minui %{{.*}} : vector<2xi8>
// CHECK: arith.select %{{.*}} : vector<2xi1>, vector<2xi32>
// CHECK: arith.maxsi %{{.*}} : vector<2xi32>
// CHECK: nvvm.barrier0
// CHECK: scf.if
// CHECK-COUNT-2: memref.store %{{.*}} : memref<144xi8, 3>
// CHECK-COUNT-2: memref.store %{{.*}} : memref<144xi32, 3>
// CHECK: nvvm.barrier0
// CHECK: memref.load %{{.*}} : memref<144xi8, 3>
// CHECK: memref.load %{{.*}} : memref<144xi32, 3>
// CHECK: nvvm.shfl.sync  bfly %{{.*}}, %{{.*}}, %c1_i32
// CHECK: nvvm.shfl.sync  bfly %{{.*}}, %{{.*}}, %c2_i32
// CHECK: nvvm.shfl.sync  bfly %{{.*}}, %{{.*}}, %c4_i32
// CHECK: scf.if
// CHECK: memref.store %{{.*}} : memref<144xi32, 3>
// CHECK: nvvm.barrier0
// CHECK: arith.extsi %{{.*}} : vector<2xi32> to vector<2xi64>
// CHECK: vector.store %{{.*}} : memref<16xi64>, vector<2xi64>
module {
module @k1 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{first = 0 : i64, lanes = 2 : i64, last = 0 : i64, split = 32 : i64, template = "columns", threads = 256 : i64}]} {
  func.func @k1(%arg0: tensor<4000x16xi8>, %arg1: tensor<16xi64>) -> tensor<16xi64> {
    %c-1_i8 = arith.constant -1 : i8
    %0 = tensor.empty() : tensor<16xi8>
    %1 = linalg.fill ins(%c-1_i8 : i8) outs(%0 : tensor<16xi8>) -> tensor<16xi8>
    %c0_i32 = arith.constant 0 : i32
    %2 = tensor.empty() : tensor<16xi32>
    %3 = linalg.fill ins(%c0_i32 : i32) outs(%2 : tensor<16xi32>) -> tensor<16xi32>
    %4:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]}
        ins(%arg0 : tensor<4000x16xi8>) outs(%1, %3 : tensor<16xi8>, tensor<16xi32>) attrs =  {mlc.arg_reduce = "minui", mlc.select_last} {
    ^bb0(%in: i8, %out: i8, %out_0: i32):
      %7 = arith.cmpi ule, %in, %out : i8
      %8 = linalg.index 0 : index
      %9 = arith.index_cast %8 : index to i32
      %10 = arith.select %7, %in, %out : i8
      %11 = arith.select %7, %9, %out_0 : i32
      linalg.yield %10, %11 : i8, i32
    } -> (tensor<16xi8>, tensor<16xi32>)
    %6 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
        ins(%4#1 : tensor<16xi32>) outs(%arg1 : tensor<16xi64>) {
    ^bb0(%in: i32, %out: i64):
      %7 = arith.extsi %in : i32 to i64
      linalg.yield %7 : i64
    } -> tensor<16xi64>
    return %6 : tensor<16xi64>
  }
}
}
