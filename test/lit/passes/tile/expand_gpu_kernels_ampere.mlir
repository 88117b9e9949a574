// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-expand-gpu-kernels)' | FileCheck %s

// The right operand lies across the sum and is transposed on the way to the registers; the left one does not.
// CHECK: module @turned attributes {{.*}}mlc.shared_bytes = 98304 : i64, mlc.tensor_maps = []
// CHECK: func.func @turned
// The first stages, each a group; rows and columns beyond the edge are zeros.
// CHECK: arith.cmpi ult
// CHECK: nvvm.cp.async.shared.global {{.*}}, 16, cache = cg, %{{.*}} : !llvm.ptr<3>, !llvm.ptr<1>, i32
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.commit.group
// CHECK-NOT: nvvm.cp.async.commit.group
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 1
// CHECK-NEXT: nvvm.barrier0
// CHECK: scf.if
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>, num = 4
// CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// CHECK: scf.yield
// Nobody reads tiles any more when results are staged in their place.
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: nvvm.barrier0
// CHECK: vector.store {{.*}}vector<4xbf16>
module @turned attributes {mlc.kernel, mlc.schedule = [{blocks = 2 : i64, element = "bf16", group = 128 : i64, lanes = 4 : i64, raster = 8 : i64, stages = 3 : i64, template = "ampere_contraction", threads = 128 : i64, tile_columns = 128 : i64, tile_rows = 128 : i64, warp_columns = 64 : i64, warp_rows = 64 : i64}]} {
  func.func @turned(%arg0: tensor<300x136xbf16>, %arg1: tensor<136x200xbf16>, %arg2: tensor<200xf32>, %arg3: tensor<300x200xbf16>) -> tensor<300x200xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<300x200xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<300x200xf32>) -> tensor<300x200xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<300x136xbf16>, tensor<136x200xbf16>) outs(%1 : tensor<300x200xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<300x200xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<300x200xf32>, tensor<200xf32>) outs(%arg3 : tensor<300x200xbf16>) {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %4 = arith.addf %in, %in_0 : f32
      %5 = arith.truncf %4 : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<300x200xbf16>
    return %3 : tensor<300x200xbf16>
  }
}

// Any number of rows: the sum is known, and the grid is a product of run-time tiles.
// CHECK: module @any_rows
// CHECK: scf.for
// CHECK: nvvm.cp.async.wait.group 2
// CHECK: func.func @any_rows_grid
// CHECK: arith.muli
module @any_rows attributes {mlc.kernel, mlc.schedule = [{blocks = 3 : i64, element = "bf16", group = 128 : i64, lanes = 4 : i64, raster = 8 : i64, stages = 4 : i64, template = "ampere_contraction", threads = 128 : i64, tile_columns = 64 : i64, tile_rows = 64 : i64, warp_columns = 32 : i64, warp_rows = 32 : i64}]} {
  func.func @any_rows(%arg0: tensor<?x136xbf16>, %arg1: tensor<200x136xbf16>, %arg2: tensor<200xf32>, %arg3: tensor<?x200xbf16>) -> tensor<?x200xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %c0 = arith.constant 0 : index
    %d = tensor.dim %arg0, %c0 : tensor<?x136xbf16>
    %0 = tensor.empty(%d) : tensor<?x200xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<?x200xf32>) -> tensor<?x200xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<?x136xbf16>, tensor<200x136xbf16>) outs(%1 : tensor<?x200xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<?x200xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<?x200xf32>, tensor<200xf32>) outs(%arg3 : tensor<?x200xbf16>) {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %4 = arith.addf %in, %in_0 : f32
      %5 = arith.truncf %4 : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<?x200xbf16>
    return %3 : tensor<?x200xbf16>
  }
}

// Windows: two comparisons say whether a pixel lies in the image, and the padding is nowhere stored.
// CHECK: module @windows
// CHECK: func.func @windows
// CHECK: %[[Y:.*]] = arith.cmpi ult, %{{.*}}, %c9_i32
// CHECK: arith.cmpi ult, %{{.*}}, %c9_i32
// CHECK: %[[SIZE:.*]] = arith.select %{{.*}}, %c16_i32, %c0_i32
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg, %[[SIZE]]
// CHECK-NOT: mlc.pad
module @windows attributes {mlc.kernel, mlc.schedule = [{blocks = 2 : i64, element = "bf16", group = 128 : i64, lanes = 4 : i64, raster = 8 : i64, stages = 3 : i64, template = "ampere_contraction", threads = 128 : i64, tile_columns = 64 : i64, tile_rows = 128 : i64, warp_columns = 32 : i64, warp_rows = 64 : i64}]} {
  func.func @windows(%arg0: tensor<2x9x9x24xbf16>, %arg1: tensor<3x3x24x40xbf16>, %arg2: tensor<40xf32>, %arg3: tensor<2x9x9x40xbf16>) -> tensor<2x9x9x40xbf16> {
    %c1 = arith.constant 1 : index
    %c9 = arith.constant 9 : index
    %zero = arith.constant 0.000000e+00 : bf16
    %e = tensor.empty() : tensor<2x11x11x24xbf16>
    %p = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%e : tensor<2x11x11x24xbf16>) {
    ^bb0(%out: bf16):
      %i0 = linalg.index 0 : index
      %i1 = linalg.index 1 : index
      %i2 = linalg.index 2 : index
      %i3 = linalg.index 3 : index
      %h = arith.subi %i1, %c1 : index
      %w = arith.subi %i2, %c1 : index
      %hin = arith.cmpi ult, %h, %c9 : index
      %win = arith.cmpi ult, %w, %c9 : index
      %in = arith.andi %hin, %win : i1
      %v = scf.if %in -> (bf16) {
        %x = tensor.extract %arg0[%i0, %h, %w, %i3] : tensor<2x9x9x24xbf16>
        scf.yield %x : bf16
      } else {
        scf.yield %zero : bf16
      }
      linalg.yield %v : bf16
    } -> tensor<2x11x11x24xbf16>
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x9x9x40xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x9x9x40xf32>) -> tensor<2x9x9x40xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d5, d6, d3)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%p, %arg1 : tensor<2x11x11x24xbf16>, tensor<3x3x24x40xbf16>) outs(%1 : tensor<2x9x9x40xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<2x9x9x40xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2, %arg2 : tensor<2x9x9x40xf32>, tensor<40xf32>) outs(%arg3 : tensor<2x9x9x40xbf16>) {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %4 = arith.addf %in, %in_0 : f32
      %5 = arith.truncf %4 : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<2x9x9x40xbf16>
    return %3 : tensor<2x9x9x40xbf16>
  }
}

// f32 is rounded to the nearest number of tf32 in the registers.
// CHECK: module @rounded
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
// CHECK: cvt.rna.tf32.f32
// CHECK: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
module @rounded attributes {mlc.kernel, mlc.schedule = [{blocks = 2 : i64, element = "tf32", group = 128 : i64, lanes = 4 : i64, raster = 8 : i64, stages = 3 : i64, template = "ampere_contraction", threads = 128 : i64, tile_columns = 64 : i64, tile_rows = 64 : i64, warp_columns = 32 : i64, warp_rows = 32 : i64}]} {
  func.func @rounded(%arg0: tensor<?x136xf32>, %arg1: tensor<200x136xf32>, %arg2: tensor<200xf32>, %arg3: tensor<?x200xf32>) -> tensor<?x200xf32> {
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
