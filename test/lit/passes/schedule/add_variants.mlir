// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-add-variants,mlc-assign-gpu-schedules)' | FileCheck %s

#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>

// A product of any number of rows has copies for few of them, with tiles of their own.
// CHECK: mlc.launch @k0
// CHECK: module @k0 attributes {mlc.kernel, mlc.rows = 2048 : i64
// CHECK-SAME: tile_rows = 128
// CHECK: func.func @k0(
// CHECK: module @k0_64 attributes {mlc.kernel, mlc.most = 64 : i64, mlc.rows = 64 : i64
// CHECK-SAME: tile_rows = 64
// CHECK-SAME: mlc.variant_of = "k0"
// CHECK: func.func @k0_64(
// CHECK: module @k0_512 attributes
// Known rows, and columns that are not: none.
// CHECK: module @k1 attributes {mlc.kernel, mlc.schedule
// CHECK: module @k2 attributes {mlc.kernel, mlc.schedule
// CHECK-NOT: mlc.variant_of
// Few rows that are reduced have more threads each.
// CHECK: module @k3 attributes {mlc.kernel, mlc.schedule
// CHECK-SAME: group = 32 : i64
// CHECK: module @k3_512 attributes {mlc.kernel, mlc.most = 512 : i64, mlc.rows = 512 : i64
// CHECK-SAME: group = 192 : i64
// CHECK-SAME: mlc.variant_of = "k3"
// The pixels of images: of sixteen, of one and of four.
// CHECK: module @k4 attributes {mlc.kernel, mlc.rows = 50176 : i64
// CHECK-SAME: tile_rows = 128
// CHECK: module @k4_3136 attributes {mlc.kernel, mlc.most = 1 : i64, mlc.rows = 3136 : i64
// CHECK-SAME: tile_rows = 64
// CHECK: module @k4_12544 attributes {mlc.kernel, mlc.most = 4 : i64, mlc.rows = 12544 : i64
module {
  func.func @forward(%x: tensor<?x768xbf16>, %w: tensor<768x3072xbf16>, %o: tensor<?x3072xf32>) -> tensor<?x3072xf32> {
    %r = mlc.launch @k0(%x, %w) outs(%o) : (tensor<?x768xbf16>, tensor<768x3072xbf16>) outs(tensor<?x3072xf32>) -> tensor<?x3072xf32>
    return %r : tensor<?x3072xf32>
  }
  module @k0 attributes {mlc.kernel} {
    func.func @k0(%x: tensor<?x768xbf16>, %w: tensor<768x3072xbf16>, %o: tensor<?x3072xf32>) -> tensor<?x3072xf32> {
      %z = arith.constant 0.0 : f32
      %i = linalg.fill ins(%z : f32) outs(%o : tensor<?x3072xf32>) -> tensor<?x3072xf32>
      %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x768xbf16>, tensor<768x3072xbf16>) outs(%i : tensor<?x3072xf32>) attrs = {mlc.contraction} {
      ^bb0(%a: bf16, %b: bf16, %s: f32):
        %1 = arith.extf %a : bf16 to f32
        %2 = arith.extf %b : bf16 to f32
        %3 = arith.mulf %1, %2 : f32
        %4 = arith.addf %s, %3 : f32
        linalg.yield %4 : f32
      } -> tensor<?x3072xf32>
      return %r : tensor<?x3072xf32>
    }
  }
  module @k1 attributes {mlc.kernel} {
    func.func @k1(%x: tensor<64x768xbf16>, %w: tensor<768x3072xbf16>, %o: tensor<64x3072xf32>) -> tensor<64x3072xf32> {
      %z = arith.constant 0.0 : f32
      %i = linalg.fill ins(%z : f32) outs(%o : tensor<64x3072xf32>) -> tensor<64x3072xf32>
      %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<64x768xbf16>, tensor<768x3072xbf16>) outs(%i : tensor<64x3072xf32>) attrs = {mlc.contraction} {
      ^bb0(%a: bf16, %b: bf16, %s: f32):
        %1 = arith.extf %a : bf16 to f32
        %2 = arith.extf %b : bf16 to f32
        %3 = arith.mulf %1, %2 : f32
        %4 = arith.addf %s, %3 : f32
        linalg.yield %4 : f32
      } -> tensor<64x3072xf32>
      return %r : tensor<64x3072xf32>
    }
  }
  module @k2 attributes {mlc.kernel} {
    func.func @k2(%x: tensor<64x768xbf16>, %w: tensor<?x768xbf16>, %o: tensor<64x?xf32>) -> tensor<64x?xf32> {
      %z = arith.constant 0.0 : f32
      %i = linalg.fill ins(%z : f32) outs(%o : tensor<64x?xf32>) -> tensor<64x?xf32>
      %r = linalg.generic {indexing_maps = [#a, affine_map<(i, j, k) -> (j, k)>, #c], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<64x768xbf16>, tensor<?x768xbf16>) outs(%i : tensor<64x?xf32>) attrs = {mlc.contraction} {
      ^bb0(%a: bf16, %b: bf16, %s: f32):
        %1 = arith.extf %a : bf16 to f32
        %2 = arith.extf %b : bf16 to f32
        %3 = arith.mulf %1, %2 : f32
        %4 = arith.addf %s, %3 : f32
        linalg.yield %4 : f32
      } -> tensor<64x?xf32>
      return %r : tensor<64x?xf32>
    }
  }
  module @k3 attributes {mlc.kernel} {
    func.func @k3(%x: tensor<?x768xf32>, %o: tensor<?xf32>) -> tensor<?xf32> {
      %z = arith.constant 0.0 : f32
      %i = linalg.fill ins(%z : f32) outs(%o : tensor<?xf32>) -> tensor<?xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x768xf32>) outs(%i : tensor<?xf32>) {
      ^bb0(%a: f32, %s: f32):
        %1 = arith.addf %s, %a : f32
        linalg.yield %1 : f32
      } -> tensor<?xf32>
      return %r : tensor<?xf32>
    }
  }
  module @k4 attributes {mlc.kernel} {
    func.func @k4(%x: tensor<?x3136x64xbf16>, %w: tensor<64x64xbf16>, %o: tensor<?x3136x64xf32>) -> tensor<?x3136x64xf32> {
      %z = arith.constant 0.0 : f32
      %i = linalg.fill ins(%z : f32) outs(%o : tensor<?x3136x64xf32>) -> tensor<?x3136x64xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(n, i, j, k) -> (n, i, k)>, affine_map<(n, i, j, k) -> (k, j)>, affine_map<(n, i, j, k) -> (n, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x3136x64xbf16>, tensor<64x64xbf16>) outs(%i : tensor<?x3136x64xf32>) attrs = {mlc.contraction} {
      ^bb0(%a: bf16, %b: bf16, %s: f32):
        %1 = arith.extf %a : bf16 to f32
        %2 = arith.extf %b : bf16 to f32
        %3 = arith.mulf %1, %2 : f32
        %4 = arith.addf %s, %3 : f32
        linalg.yield %4 : f32
      } -> tensor<?x3136x64xf32>
      return %r : tensor<?x3136x64xf32>
    }
  }
}
