// RUN: mlc-opt %s --mlc-assign-schedules | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{widens-beside=true})' | FileCheck %s --check-prefix=BESIDE

// A weight of f16 is widened for all rows of a work item, unless that costs nothing where it is multiplied.
// CHECK-LABEL: module @many
// CHECK-SAME: mlc.schedule = [{{{.*}}stored = "rows", template = "dot_floats"
// BESIDE-LABEL: module @many
// BESIDE-SAME: template = "contraction"
module @many attributes {mlc.kernel} {
  func.func @many(%x: tensor<64x256xf32>, %w: tensor<256x512xf16>, %out: tensor<64x512xf32>) -> tensor<64x512xf32> {
    %zero = arith.constant 0.000000e+00 : f32
    %0 = linalg.fill ins(%zero : f32) outs(%out : tensor<64x512xf32>) -> tensor<64x512xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], mlc.contraction} ins(%x, %w : tensor<64x256xf32>, tensor<256x512xf16>) outs(%0 : tensor<64x512xf32>) {
    ^bb0(%a: f32, %b: f16, %c: f32):
      %wide = arith.extf %b : f16 to f32
      %product = arith.mulf %a, %wide : f32
      %sum = arith.addf %c, %product : f32
      linalg.yield %sum : f32
    } -> tensor<64x512xf32>
    return %1 : tensor<64x512xf32>
  }
}

// Few rows do not pay for that.
// CHECK-LABEL: module @few
// CHECK-SAME: template = "contraction"
module @few attributes {mlc.kernel} {
  func.func @few(%x: tensor<16x256xf32>, %w: tensor<256x512xf16>, %out: tensor<16x512xf32>) -> tensor<16x512xf32> {
    %zero = arith.constant 0.000000e+00 : f32
    %0 = linalg.fill ins(%zero : f32) outs(%out : tensor<16x512xf32>) -> tensor<16x512xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], mlc.contraction} ins(%x, %w : tensor<16x256xf32>, tensor<256x512xf16>) outs(%0 : tensor<16x512xf32>) {
    ^bb0(%a: f32, %b: f16, %c: f32):
      %wide = arith.extf %b : f16 to f32
      %product = arith.mulf %a, %wide : f32
      %sum = arith.addf %c, %product : f32
      linalg.yield %sum : f32
    } -> tensor<16x512xf32>
    return %1 : tensor<16x512xf32>
  }
}

func.func @forward(%x: tensor<64x256xf32>, %y: tensor<16x256xf32>) -> (tensor<64x512xf32>, tensor<16x512xf32>) {
  %w = mlc.weight "w" : tensor<256x512xf16>
  %0 = tensor.empty() : tensor<64x512xf32>
  %1 = mlc.launch @many(%x, %w) outs(%0) : (tensor<64x256xf32>, tensor<256x512xf16>) outs(tensor<64x512xf32>) -> tensor<64x512xf32>
  %2 = tensor.empty() : tensor<16x512xf32>
  %3 = mlc.launch @few(%y, %w) outs(%2) : (tensor<16x256xf32>, tensor<256x512xf16>) outs(tensor<16x512xf32>) -> tensor<16x512xf32>
  return %1, %3 : tensor<64x512xf32>, tensor<16x512xf32>
}
