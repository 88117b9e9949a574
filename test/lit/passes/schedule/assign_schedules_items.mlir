// RUN: mlc-opt %s --mlc-assign-schedules | FileCheck %s

// Products with a weight have 64 work items, or as many as have results enough, and sixteen however small these are; how
// deep the sum is does not count, so that layers of other depths can be one kernel. Products with right sides of the run,
// which work items may copy, have sixteen.
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

func.func @of_many(%x: tensor<1200x64xf32>) -> tensor<1200x128xf32> {
  %w = mlc.weight "many" : tensor<64x128xf32>
  %e = tensor.empty() : tensor<1200x128xf32>
  %r = mlc.launch @many(%x, %w) outs(%e) : (tensor<1200x64xf32>, tensor<64x128xf32>) outs(tensor<1200x128xf32>) -> tensor<1200x128xf32>
  return %r : tensor<1200x128xf32>
}

func.func @of_deeper(%x: tensor<1200x512xf32>) -> tensor<1200x128xf32> {
  %w = mlc.weight "deeper" : tensor<512x128xf32>
  %e = tensor.empty() : tensor<1200x128xf32>
  %r = mlc.launch @deeper(%x, %w) outs(%e) : (tensor<1200x512xf32>, tensor<512x128xf32>) outs(tensor<1200x128xf32>) -> tensor<1200x128xf32>
  return %r : tensor<1200x128xf32>
}

func.func @of_flat(%x: tensor<1200x8xf32>) -> tensor<1200x128xf32> {
  %w = mlc.weight "flat" : tensor<8x128xf32>
  %e = tensor.empty() : tensor<1200x128xf32>
  %r = mlc.launch @flat(%x, %w) outs(%e) : (tensor<1200x8xf32>, tensor<8x128xf32>) outs(tensor<1200x128xf32>) -> tensor<1200x128xf32>
  return %r : tensor<1200x128xf32>
}

func.func @of_small(%x: tensor<96x64xf32>) -> tensor<96x128xf32> {
  %w = mlc.weight "small" : tensor<64x128xf32>
  %e = tensor.empty() : tensor<96x128xf32>
  %r = mlc.launch @small(%x, %w) outs(%e) : (tensor<96x64xf32>, tensor<64x128xf32>) outs(tensor<96x128xf32>) -> tensor<96x128xf32>
  return %r : tensor<96x128xf32>
}

// CHECK-LABEL: module @many
// CHECK-SAME: block = 7 : i64
module @many attributes {mlc.kernel, mlc.packed} {
  func.func @many(%x: tensor<1200x64xf32>, %w: tensor<64x128xf32>, %out: tensor<1200x128xf32>) -> tensor<1200x128xf32> {
    %zero = arith.constant 0.000000e+00 : f32
    %0 = linalg.fill ins(%zero : f32) outs(%out : tensor<1200x128xf32>) -> tensor<1200x128xf32>
    %1 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], mlc.contraction} ins(%x, %w : tensor<1200x64xf32>, tensor<64x128xf32>) outs(%0 : tensor<1200x128xf32>) {
    ^bb0(%p: f32, %q: f32, %s: f32):
      %product = arith.mulf %p, %q : f32
      %sum = arith.addf %s, %product : f32
      linalg.yield %sum : f32
    } -> tensor<1200x128xf32>
    return %1 : tensor<1200x128xf32>
  }
}

// CHECK-LABEL: module @deeper
// CHECK-SAME: block = 7 : i64
module @deeper attributes {mlc.kernel, mlc.packed} {
  func.func @deeper(%x: tensor<1200x512xf32>, %w: tensor<512x128xf32>, %out: tensor<1200x128xf32>) -> tensor<1200x128xf32> {
    %zero = arith.constant 0.000000e+00 : f32
    %0 = linalg.fill ins(%zero : f32) outs(%out : tensor<1200x128xf32>) -> tensor<1200x128xf32>
    %1 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], mlc.contraction} ins(%x, %w : tensor<1200x512xf32>, tensor<512x128xf32>) outs(%0 : tensor<1200x128xf32>) {
    ^bb0(%p: f32, %q: f32, %s: f32):
      %product = arith.mulf %p, %q : f32
      %sum = arith.addf %s, %product : f32
      linalg.yield %sum : f32
    } -> tensor<1200x128xf32>
    return %1 : tensor<1200x128xf32>
  }
}

// CHECK-LABEL: module @flat
// CHECK-SAME: block = 7 : i64
module @flat attributes {mlc.kernel, mlc.packed} {
  func.func @flat(%x: tensor<1200x8xf32>, %w: tensor<8x128xf32>, %out: tensor<1200x128xf32>) -> tensor<1200x128xf32> {
    %zero = arith.constant 0.000000e+00 : f32
    %0 = linalg.fill ins(%zero : f32) outs(%out : tensor<1200x128xf32>) -> tensor<1200x128xf32>
    %1 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], mlc.contraction} ins(%x, %w : tensor<1200x8xf32>, tensor<8x128xf32>) outs(%0 : tensor<1200x128xf32>) {
    ^bb0(%p: f32, %q: f32, %s: f32):
      %product = arith.mulf %p, %q : f32
      %sum = arith.addf %s, %product : f32
      linalg.yield %sum : f32
    } -> tensor<1200x128xf32>
    return %1 : tensor<1200x128xf32>
  }
}

// CHECK-LABEL: module @small
// CHECK-SAME: block = 2 : i64
module @small attributes {mlc.kernel, mlc.packed} {
  func.func @small(%x: tensor<96x64xf32>, %w: tensor<64x128xf32>, %out: tensor<96x128xf32>) -> tensor<96x128xf32> {
    %zero = arith.constant 0.000000e+00 : f32
    %0 = linalg.fill ins(%zero : f32) outs(%out : tensor<96x128xf32>) -> tensor<96x128xf32>
    %1 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], mlc.contraction} ins(%x, %w : tensor<96x64xf32>, tensor<64x128xf32>) outs(%0 : tensor<96x128xf32>) {
    ^bb0(%p: f32, %q: f32, %s: f32):
      %product = arith.mulf %p, %q : f32
      %sum = arith.addf %s, %product : f32
      linalg.yield %sum : f32
    } -> tensor<96x128xf32>
    return %1 : tensor<96x128xf32>
  }
}

// CHECK-LABEL: module @copied
// CHECK-SAME: block = 25 : i64
module @copied attributes {mlc.kernel} {
  func.func @copied(%x: tensor<1200x64xf32>, %w: tensor<64x128xf32>, %out: tensor<1200x128xf32>) -> tensor<1200x128xf32> {
    %zero = arith.constant 0.000000e+00 : f32
    %0 = linalg.fill ins(%zero : f32) outs(%out : tensor<1200x128xf32>) -> tensor<1200x128xf32>
    %1 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], mlc.contraction} ins(%x, %w : tensor<1200x64xf32>, tensor<64x128xf32>) outs(%0 : tensor<1200x128xf32>) {
    ^bb0(%p: f32, %q: f32, %s: f32):
      %product = arith.mulf %p, %q : f32
      %sum = arith.addf %s, %product : f32
      linalg.yield %sum : f32
    } -> tensor<1200x128xf32>
    return %1 : tensor<1200x128xf32>
  }
}
