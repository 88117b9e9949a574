// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-expand-gpu-kernels,canonicalize,cse)' | FileCheck %s

// Tiles of 2 x 4 pixels and 8 channels; the last tiles of a line and of an image move back to where they fit.
// CHECK: module @depthwise
// CHECK: func.func @depthwise(
// CHECK-DAG: %[[LAST_COLUMN:.*]] = arith.constant 6 : index
// CHECK-DAG: %[[LAST_LINE:.*]] = arith.constant 7 : index
// CHECK: arith.minsi %{{.*}}, %[[LAST_LINE]] : index
// CHECK: arith.minsi %{{.*}}, %[[LAST_COLUMN]] : index
// The first line of the input may lie above the image, its first pixel also on the left of it.
// CHECK: arith.cmpi ult, %{{.*}}, %{{.*}} : index
// CHECK: arith.maxsi
// CHECK: vector.load {{.*}} {alignment = 16 : i64} {{.*}} vector<8xbf16>
// CHECK: arith.select
// Nine products for each of eight pixels, of 24 that are loaded.
// CHECK-COUNT-72: arith.addf %{{.*}} : vector<8xf32>
// CHECK: arith.truncf %{{.*}} : vector<8xf32> to vector<8xbf16>
// CHECK: vector.store {{.*}} {alignment = 16 : i64}
// CHECK: func.func @depthwise_grid() -> index
// CHECK: arith.constant 90 : index
module {
module @depthwise attributes {mlc.kernel, mlc.schedule = [{blocks = 3 : i64, columns = 4 : i64, lanes = 8 : i64, rows = 2 : i64, template = "depthwise", threads = 128 : i64}]} {
  func.func @depthwise(%arg0: tensor<2x9x10x24xbf16>, %arg1: tensor<3x3x1x24xbf16>, %arg2: tensor<24xf32>, %arg3: tensor<2x9x10x24xbf16>) -> tensor<2x9x10x24xbf16> {
    %c1 = arith.constant 1 : index
    %c9 = arith.constant 9 : index
    %c10 = arith.constant 10 : index
    %zero = arith.constant 0.000000e+00 : bf16
    %e = tensor.empty() : tensor<2x11x12x24xbf16>
    %p = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%e : tensor<2x11x12x24xbf16>) {
    ^bb0(%out: bf16):
      %i0 = linalg.index 0 : index
      %i1 = linalg.index 1 : index
      %i2 = linalg.index 2 : index
      %i3 = linalg.index 3 : index
      %h = arith.subi %i1, %c1 : index
      %w = arith.subi %i2, %c1 : index
      %hin = arith.cmpi ult, %h, %c9 : index
      %win = arith.cmpi ult, %w, %c10 : index
      %in = arith.andi %hin, %win : i1
      %v = scf.if %in -> (bf16) {
        %x = tensor.extract %arg0[%i0, %h, %w, %i3] : tensor<2x9x10x24xbf16>
        scf.yield %x : bf16
      } else {
        scf.yield %zero : bf16
      }
      linalg.yield %v : bf16
    } -> tensor<2x11x12x24xbf16>
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x9x10x24xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x9x10x24xf32>) -> tensor<2x9x10x24xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d2 + d5, d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, 0, d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%p, %arg1 : tensor<2x11x12x24xbf16>, tensor<3x3x1x24xbf16>) outs(%1 : tensor<2x9x10x24xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<2x9x10x24xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2, %arg2 : tensor<2x9x10x24xf32>, tensor<24xf32>) outs(%arg3 : tensor<2x9x10x24xbf16>) {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %4 = arith.addf %in, %in_0 : f32
      %5 = arith.truncf %4 : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<2x9x10x24xbf16>
    return %3 : tensor<2x9x10x24xbf16>
  }
}
}
