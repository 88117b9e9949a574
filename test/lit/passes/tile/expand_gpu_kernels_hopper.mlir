// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-expand-gpu-kernels)' | FileCheck %s

// The left operand along the sum; the right one across it, 64 columns a copy.
// CHECK: module @turned attributes {mlc.kernel,
// CHECK-SAME: mlc.shared_bytes = 131136 : i64
// CHECK-SAME: {box = array<i64: 64, 128>, element = "bf16", extents = [array<i64: 136>, array<i64: 300>], strides = [array<i64: 272>], swizzle = 128 : i64, tensor = 0 : i64}
// CHECK-SAME: {box = array<i64: 64, 64>, element = "bf16", extents = [array<i64: 200>, array<i64: 136>], strides = [array<i64: 400>], swizzle = 128 : i64, tensor = 1 : i64}
// CHECK: llvm.mlir.global external @mlc_shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK: func.func @turned(%{{.*}}: memref<bf16> {llvm.noalias}, %{{.*}}: memref<bf16> {llvm.noalias}, %{{.*}}: memref<f32> {llvm.noalias}, %{{.*}}: memref<bf16> {llvm.noalias}, %{{.*}}: memref<2xi64>, %[[BEGIN:.*]]: index, %{{.*}}: index, %[[LEFT:.*]]: !llvm.ptr, %[[RIGHT:.*]]: !llvm.ptr)
// Barriers of four stages, one arrival for full, two consumers for empty.
// CHECK: nvvm.mbarrier.init
// CHECK: nvvm.fence.mbarrier.init
// CHECK: nvvm.barrier0
// The copying warps give registers away, and ask for the two tiles of a stage.
// CHECK: nvvm.setmaxregister decrease 40
// CHECK: nvvm.elect.sync
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}, %[[LEFT]],
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}, %[[RIGHT]],
// The others multiply.
// CHECK: nvvm.setmaxregister increase 232
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, l, r, 1, 1, 1, 0, 1;
// CHECK: wgmma.wait_group.sync.aligned 1;
// CHECK: wgmma.wait_group.sync.aligned 0;
// The epilogue: through shared memory to rows of four elements, those inside of the result.
// All eight of a chunk are computed first, so that what they read comes at a time.
// CHECK: nvvm.bar.warp.sync
// CHECK-COUNT-8: arith.truncf %{{.*}} : vector<4xf32> to vector<4xbf16>
// CHECK-COUNT-8: vector.store {{.*}} {alignment = 8 : i64}
// CHECK-NOT: vector.store
// CHECK: func.func @turned_grid() -> index
module @turned attributes {mlc.kernel, mlc.schedule = [{blocks = 1 : i64, consumers = 2 : i64, element = "bf16", group = 384 : i64, lanes = 4 : i64, multiprocessors = 132 : i64, raster = 8 : i64, stages = 4 : i64, template = "hopper_contraction", threads = 384 : i64, tile_columns = 64 : i64, tile_rows = 128 : i64}]} {
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

// Of 16-bit results each thread computes pairs, of rows and columns that exist; a warp stages them as matrices, and
// stores vectors of 16 bytes.
// CHECK: module @packed
// CHECK: arith.minsi
// CHECK: arith.truncf %{{.*}} : vector<2xf32> to vector<2xbf16>
// CHECK: stmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: nvvm.bar.warp.sync
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<8xbf16>
// CHECK: scf.if
// CHECK: vector.store {{.*}} {alignment = 16 : i64}
// CHECK: func.func @packed_grid() -> index
module @packed attributes {mlc.kernel, mlc.schedule = [{blocks = 1 : i64, consumers = 2 : i64, element = "bf16", group = 384 : i64, lanes = 8 : i64, multiprocessors = 132 : i64, raster = 8 : i64, stages = 4 : i64, template = "hopper_contraction", threads = 384 : i64, tile_columns = 64 : i64, tile_rows = 128 : i64}]} {
  func.func @packed(%arg0: tensor<300x136xbf16>, %arg1: tensor<136x200xbf16>, %arg2: tensor<200xf32>, %arg3: tensor<300x200xbf16>) -> tensor<300x200xbf16> {
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

// 192 rows are a tile and a half: the second group of warps has rows behind the end, which are not stored.
// CHECK: module @half_a_tile
// CHECK: nvvm.bar.warp.sync
// CHECK: arith.cmpi ult, %{{.*}}, %c192_i32
// CHECK: func.func @half_a_tile_grid() -> index
module @half_a_tile attributes {mlc.kernel, mlc.schedule = [{blocks = 1 : i64, consumers = 2 : i64, element = "bf16", group = 384 : i64, lanes = 4 : i64, multiprocessors = 132 : i64, raster = 8 : i64, stages = 4 : i64, template = "hopper_contraction", threads = 384 : i64, tile_columns = 64 : i64, tile_rows = 128 : i64}]} {
  func.func @half_a_tile(%arg0: tensor<192x136xbf16>, %arg1: tensor<136x200xbf16>, %arg2: tensor<200xf32>, %arg3: tensor<192x200xbf16>) -> tensor<192x200xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<192x200xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<192x200xf32>) -> tensor<192x200xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<192x136xbf16>, tensor<136x200xbf16>) outs(%1 : tensor<192x200xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<192x200xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<192x200xf32>, tensor<200xf32>) outs(%arg3 : tensor<192x200xbf16>) {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %4 = arith.addf %in, %in_0 : f32
      %5 = arith.truncf %4 : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<192x200xbf16>
    return %3 : tensor<192x200xbf16>
  }
}

// Sixteen rows are copied without the rest of their tile. Two blocks share the sum, two pairs of tiles at a time; the
// second writes its part into its shared memory, from where the first reads it.
// CHECK: module @few_rows
// CHECK-SAME: {box = array<i64: 64, 16>, element = "bf16", extents = [array<i64: 136>, array<i64: 16>], strides = [array<i64: 272>]
// CHECK: nvvm.read.ptx.sreg.cluster.ctarank
// CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c20480_i32
// CHECK-COUNT-4: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-COUNT-8: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// CHECK: nvvm.cluster.arrive
// CHECK: mapa.shared::cluster.u32
// CHECK: nvvm.cluster.arrive
module @few_rows attributes {mlc.kernel, mlc.schedule = [{blocks = 1 : i64, consumers = 1 : i64, element = "bf16", group = 256 : i64, lanes = 4 : i64, multiprocessors = 132 : i64, pairs = 2 : i64, raster = 8 : i64, split = 2 : i64, stages = 4 : i64, template = "hopper_contraction", threads = 256 : i64, tile_columns = 64 : i64, tile_rows = 64 : i64}]} {
  func.func @few_rows(%arg0: tensor<16x136xbf16>, %arg1: tensor<200x136xbf16>, %arg2: tensor<200xf32>, %arg3: tensor<16x200xbf16>) -> tensor<16x200xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<16x200xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<16x200xf32>) -> tensor<16x200xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<16x136xbf16>, tensor<200x136xbf16>) outs(%1 : tensor<16x200xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<16x200xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<16x200xf32>, tensor<200xf32>) outs(%arg3 : tensor<16x200xbf16>) {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %4 = arith.addf %in, %in_0 : f32
      %5 = arith.truncf %4 : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<16x200xbf16>
    return %3 : tensor<16x200xbf16>
  }
}

// Two by two blocks begin and end together. Each copies half of the rows of the left tile, and half of the steps of the
// right one, to two blocks each; a stage is empty when two groups of three blocks have said so.
// CHECK: module @clusters
// CHECK-SAME: {box = array<i64: 64, 64>, element = "bf16", extents = [array<i64: 136>, array<i64: 300>]
// CHECK-SAME: {box = array<i64: 64, 32>, element = "bf16", extents = [array<i64: 200>, array<i64: 136>]
// CHECK: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank
// CHECK: nvvm.mbarrier.init %{{.*}}, %c6_i32
// CHECK: nvvm.barrier0
// CHECK-NEXT: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %c24576_i32
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} multicast_mask = %
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} multicast_mask = %
// CHECK: mapa.shared::cluster.u32 a, $0, $1; mbarrier.arrive.shared::cluster.b64 _, [a];
// CHECK: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK: func.func @clusters_grid() -> index
// CHECK: return %c16
module @clusters attributes {mlc.kernel, mlc.schedule = [{blocks = 1 : i64, cluster_columns = 2 : i64, cluster_rows = 2 : i64, consumers = 2 : i64, element = "bf16", group = 384 : i64, lanes = 8 : i64, multiprocessors = 132 : i64, raster = 8 : i64, stages = 4 : i64, template = "hopper_contraction", threads = 384 : i64, tile_columns = 64 : i64, tile_rows = 128 : i64}]} {
  func.func @clusters(%arg0: tensor<300x136xbf16>, %arg1: tensor<136x200xbf16>, %arg2: tensor<200xf32>, %arg3: tensor<300x200xbf16>) -> tensor<300x200xbf16> {
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

// Rows that are known at run time only are word 4 of the launch; one consumer needs no more registers.
// Copies take no more rows than there are, and the second operand, weights, is on its way before the launches in front are
// done: the first step of a tile that is not one of these is behind the stages.
// CHECK: module @any_rows
// CHECK-SAME: {box = array<i64: 64, 64>, element = "bf16", extents = [array<i64: 136>, array<i64: 1, 4>], fitted = array<i64: 1>,
// CHECK-SAME: {box = array<i64: 64, 64>, element = "bf16", extents = [array<i64: 136>, array<i64: 200>], strides = [array<i64: 272>]
// CHECK-SAME: mlc.waits
// Of an early launch's inputs weights alone are written by nobody.
// CHECK: func.func @any_rows(%{{.*}}: memref<bf16>, %{{.*}}: memref<bf16> {llvm.noalias, llvm.readonly}, %{{.*}}: memref<f32>, %{{.*}}: memref<bf16> {llvm.noalias},
// CHECK-NOT: setmaxregister
// CHECK: scf.for
// CHECK: arith.minsi %{{.*}}, %c64_i32
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK-NOT: nvvm.cp.async
// CHECK: nvvm.griddepcontrol wait
// CHECK: scf.for
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK-COUNT-2: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CHECK: nvvm.griddepcontrol wait
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, l, r, 1, 1, 1, 0, 0;
// CHECK: func.func @any_rows_grid(%{{.*}}: index, %{{.*}}: index) -> index
module @any_rows attributes {mlc.constants = array<i64: 0, 54400>, mlc.kernel, mlc.schedule = [{blocks = 1 : i64, consumers = 1 : i64, early = 1 : i64, element = "bf16", group = 256 : i64, lanes = 4 : i64, multiprocessors = 132 : i64, raster = 8 : i64, stages = 4 : i64, template = "hopper_contraction", threads = 256 : i64, tile_columns = 64 : i64, tile_rows = 64 : i64}]} {
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

// Windows of the tensor without its padding: one pixel in front and behind; of the filters, a tap is a dimension.
// CHECK: module @windows
// CHECK-SAME: {box = array<i64: 64, 1, 1, 1>, element = "bf16", extents = [array<i64: 24>, array<i64: 9>, array<i64: 9>, array<i64: 2>], high = array<i64: -1, -1>, low = array<i64: -1, -1>, pixels = 128 : i64, step = array<i64: 1, 1>, strides = [array<i64: 48>, array<i64: 432>, array<i64: 3888>], swizzle = 128 : i64, tensor = 0 : i64}
// CHECK-SAME: {box = array<i64: 64, 64, 1>, element = "bf16", extents = [array<i64: 40>, array<i64: 24>, array<i64: 9>]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} im2col[%{{.*}}, %{{.*}}] {mode = #nvvm.tma_load_mode<im2col>}
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// CHECK: func.func @windows_grid
module @windows attributes {mlc.kernel, mlc.schedule = [{blocks = 1 : i64, consumers = 2 : i64, element = "bf16", group = 384 : i64, lanes = 4 : i64, multiprocessors = 132 : i64, raster = 8 : i64, stages = 4 : i64, template = "hopper_contraction", threads = 384 : i64, tile_columns = 64 : i64, tile_rows = 128 : i64}]} {
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

// Operands change places: the left tile is of the matrix that was the right one. Results are transposed on their way to
// shared memory, from where a group of four warps stores rows of 64 elements.
// CHECK: module @places
// CHECK-SAME: {box = array<i64: 64, 32>, element = "bf16", extents = [array<i64: 200>, array<i64: 136>]
// CHECK-SAME: {box = array<i64: 64, 80>, element = "bf16", extents = [array<i64: 136>, array<i64: 300>]
// CHECK: wgmma.mma_async.sync.aligned.m64n80k16.f32.bf16.bf16 {{.*}}, l, r, 1, 1, 1, 1, 0;
// CHECK: llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.count"
// CHECK: stmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// CHECK: llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.count"
// CHECK: vector.store %{{.*}} : memref<60000xbf16>, vector<8xbf16>
module @places attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{blocks = 1 : i64, cluster_columns = 2 : i64, consumers = 2 : i64, element = "bf16", group = 384 : i64, lanes = 8 : i64, multiprocessors = 132 : i64, raster = 8 : i64, stages = 6 : i64, template = "hopper_contraction", threads = 384 : i64, tile_columns = 80 : i64, tile_rows = 128 : i64, turned = 1 : i64}]} {
  func.func @places(%arg0: tensor<300x136xbf16>, %arg1: tensor<136x200xbf16>, %arg2: tensor<200xf32>, %arg3: tensor<300x200xbf16>) -> tensor<300x200xbf16> {
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
