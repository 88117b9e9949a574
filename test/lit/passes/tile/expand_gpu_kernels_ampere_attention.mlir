// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-expand-gpu-kernels)' | FileCheck %s

// A tile of 64 queries, 64 keys and 64 values in shared memory; no tensor maps. Two query heads share keys and values.
// CHECK: module @k0 attributes {{.*}}mlc.shared_bytes = 24576 : i64, mlc.tensor_maps = []
// CHECK: func.func @k0(
// CHECK-NOT: memref<200x264
// Queries and the last keys are a group, and queries stay in the registers.
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: nvvm.ldmatrix
// A block of keys: its values are asked for before the product of queries and keys, the next keys behind it.
// CHECK: nvvm.barrier0
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: nvvm.barrier0
// CHECK: scf.if
// CHECK: nvvm.cp.async.commit.group
// -inf for hidden keys; powers of two, rounded, are the left operand of the product with the values.
// CHECK: arith.cmpi sgt
// CHECK: arith.maxnumf
// CHECK: nvvm.shfl.sync
// CHECK: ex2.approx.ftz.f32
// CHECK: cvt.rn.bf16x2.f32
// CHECK: nvvm.cp.async.wait.group 1
// CHECK: nvvm.barrier0
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>, num = 4
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: scf.for
// CHECK: rcp.approx.ftz.f32
// CHECK: vector.store {{.*}}vector<4xbf16>
// CHECK: func.func @k0_grid() -> index
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{blocks = 3 : i64, element = "bf16", group = 128 : i64, lanes = 4 : i64, template = "ampere_attention", threads = 128 : i64, tile_rows = 64 : i64, warp_rows = 16 : i64}]} {
  func.func @k0(%arg0: tensor<1x2x2x200x64xbf16>, %arg1: tensor<1x2x264x64xbf16>, %arg2: tensor<1x2x264x64xbf16>, %arg3: tensor<1x2x2x200x64xbf16>) -> tensor<1x2x2x200x64xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1x2x2x200x264xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x2x2x200x264xf32>) -> tensor<1x2x2x200x264xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (0, d1, d4, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<1x2x2x200x64xbf16>, tensor<1x2x264x64xbf16>) outs(%1 : tensor<1x2x2x200x264xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_2: bf16, %out: f32):
      %27 = arith.extf %in : bf16 to f32
      %28 = arith.extf %in_2 : bf16 to f32
      %29 = arith.mulf %27, %28 : f32
      %30 = arith.addf %out, %29 : f32
      linalg.yield %30 : f32
    } -> tensor<1x2x2x200x264xf32>
    %cst_0 = arith.constant 1.250000e-01 : f32
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<1x2x2x200x264xf32>) outs(%0 : tensor<1x2x2x200x264xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.mulf %in, %cst_0 : f32
      linalg.yield %27 : f32
    } -> tensor<1x2x2x200x264xf32>
    %collapsed = tensor.collapse_shape %3 [[0], [1, 2], [3], [4]] : tensor<1x2x2x200x264xf32> into tensor<1x4x200x264xf32>
    %4 = tensor.empty() : tensor<1x264xi64>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%4 : tensor<1x264xi64>) {
    ^bb0(%out: i64):
      %27 = linalg.index 1 : index
      %28 = arith.index_cast %27 : index to i64
      linalg.yield %28 : i64
    } -> tensor<1x264xi64>
    %6 = tensor.empty() : tensor<200x1xi64>
    %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} outs(%6 : tensor<200x1xi64>) {
    ^bb0(%out: i64):
      %27 = linalg.index 0 : index
      %28 = arith.index_cast %27 : index to i64
      linalg.yield %28 : i64
    } -> tensor<200x1xi64>
    %8 = tensor.empty() : tensor<200x264xi1>
    %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (0, d1)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%5, %7 : tensor<1x264xi64>, tensor<200x1xi64>) outs(%8 : tensor<200x264xi1>) {
    ^bb0(%in: i64, %in_2: i64, %out: i1):
      %27 = arith.cmpi sle, %in, %in_2 : i64
      linalg.yield %27 : i1
    } -> tensor<200x264xi1>
    %10 = tensor.empty() : tensor<1x4x200x264xf32>
    %cst_1 = arith.constant 0xFF800000 : f32
    %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9, %collapsed : tensor<200x264xi1>, tensor<1x4x200x264xf32>) outs(%10 : tensor<1x4x200x264xf32>) {
    ^bb0(%in: i1, %in_2: f32, %out: f32):
      %27 = arith.select %in, %in_2, %cst_1 : f32
      linalg.yield %27 : f32
    } -> tensor<1x4x200x264xf32>
    %12 = tensor.empty() : tensor<1x4x200xf32>
    %13 = linalg.fill ins(%cst_1 : f32) outs(%12 : tensor<1x4x200xf32>) -> tensor<1x4x200xf32>
    %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%11 : tensor<1x4x200x264xf32>) outs(%13 : tensor<1x4x200xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.maximumf %out, %in : f32
      linalg.yield %27 : f32
    } -> tensor<1x4x200xf32>
    %15 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11, %14 : tensor<1x4x200x264xf32>, tensor<1x4x200xf32>) outs(%10 : tensor<1x4x200x264xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %27 = arith.subf %in, %in_2 : f32
      linalg.yield %27 : f32
    } -> tensor<1x4x200x264xf32>
    %16 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15 : tensor<1x4x200x264xf32>) outs(%10 : tensor<1x4x200x264xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = math.exp %in : f32
      linalg.yield %27 : f32
    } -> tensor<1x4x200x264xf32>
    %17 = linalg.fill ins(%cst : f32) outs(%12 : tensor<1x4x200xf32>) -> tensor<1x4x200xf32>
    %18 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%16 : tensor<1x4x200x264xf32>) outs(%17 : tensor<1x4x200xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.addf %out, %in : f32
      linalg.yield %27 : f32
    } -> tensor<1x4x200xf32>
    %19 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (0, d1, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16, %18 : tensor<1x4x200x264xf32>, tensor<1x4x200xf32>) outs(%10 : tensor<1x4x200x264xf32>) {
    ^bb0(%in: f32, %in_2: f32, %out: f32):
      %27 = arith.divf %in, %in_2 : f32
      linalg.yield %27 : f32
    } -> tensor<1x4x200x264xf32>
    %20 = tensor.empty() : tensor<1x4x200x264xbf16>
    %21 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19 : tensor<1x4x200x264xf32>) outs(%20 : tensor<1x4x200x264xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %27 = arith.truncf %in : f32 to bf16
      linalg.yield %27 : bf16
    } -> tensor<1x4x200x264xbf16>
    %expanded = tensor.expand_shape %21 [[0], [1, 2], [3], [4]] output_shape [1, 2, 2, 200, 264] : tensor<1x4x200x264xbf16> into tensor<1x2x2x200x264xbf16>
    %22 = tensor.empty() : tensor<1x2x2x200x64xf32>
    %23 = linalg.fill ins(%cst : f32) outs(%22 : tensor<1x2x2x200x64xf32>) -> tensor<1x2x2x200x64xf32>
    %24 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d5)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (0, d1, d5, d4)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%expanded, %arg2 : tensor<1x2x2x200x264xbf16>, tensor<1x2x264x64xbf16>) outs(%23 : tensor<1x2x2x200x64xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_2: bf16, %out: f32):
      %27 = arith.extf %in : bf16 to f32
      %28 = arith.extf %in_2 : bf16 to f32
      %29 = arith.mulf %27, %28 : f32
      %30 = arith.addf %out, %29 : f32
      linalg.yield %30 : f32
    } -> tensor<1x2x2x200x64xf32>
    %25 = tensor.empty() : tensor<1x2x2x200x64xbf16>
    %26 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%24 : tensor<1x2x2x200x64xf32>) outs(%arg3 : tensor<1x2x2x200x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %27 = arith.truncf %in : f32 to bf16
      linalg.yield %27 : bf16
    } -> tensor<1x2x2x200x64xbf16>
    return %26 : tensor<1x2x2x200x64xbf16>
  }
}
}
