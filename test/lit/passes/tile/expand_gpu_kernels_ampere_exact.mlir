// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-expand-gpu-kernels)' | FileCheck %s

// Tiles of f32 are copied like those of tensor cores, and multiplied four terms at a time by ordinary arithmetic.
// CHECK: module @k0 attributes {{.*}}mlc.tensor_maps = []
// CHECK: func.func @k0(
// CHECK: nvvm.cp.async.shared.global
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 1
// CHECK-NEXT: nvvm.barrier0
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} iter_args
// CHECK-NOT: ldmatrix
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
// CHECK: math.fma
// CHECK-NOT: mma.sync
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: vector.store {{.*}}vector<4xf32>
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{blocks = 2 : i64, element = "f32", group = 128 : i64, lanes = 4 : i64, raster = 8 : i64, stages = 3 : i64, template = "ampere_contraction", threads = 128 : i64, tile_columns = 64 : i64, tile_rows = 64 : i64, warp_columns = 32 : i64, warp_rows = 32 : i64}]} {
  func.func @k0(%arg0: tensor<?x136xf32>, %arg1: tensor<200x136xf32>, %arg2: tensor<200xf32>, %arg3: tensor<?x200xf32>) -> tensor<?x200xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %c0 = arith.constant 0 : index
    %d = tensor.dim %arg0, %c0 : tensor<?x136xf32>
    %0 = tensor.empty(%d) : tensor<?x200xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<?x200xf32>) -> tensor<?x200xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<?x136xf32>, tensor<200x136xf32>) outs(%1 : tensor<?x200xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %6 = arith.mulf %in, %in_0 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<?x200xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<?x200xf32>, tensor<200xf32>) outs(%arg3 : tensor<?x200xf32>) {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %4 = arith.addf %in, %in_0 : f32
      linalg.yield %4 : f32
    } -> tensor<?x200xf32>
    return %3 : tensor<?x200xf32>
  }
}
}
