// RUN: mlc-opt %s --mlc-assign-schedules | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{distant=true})' | FileCheck %s --check-prefix=FAR

// Two rows fetch the next panel of a weight where what the second level of cache lacks is far away, four tiles of rows do
// everywhere.
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: module @few
// CHECK-NOT: ahead
// CHECK-SAME: rows = 8 : i64
// FAR-LABEL: module @few
// FAR-SAME: ahead = 16 : i64{{.*}}rows = 8 : i64
module @few attributes {mlc.kernel, mlc.packed} {
  func.func @few(%x: tensor<16x256xf32>, %w: tensor<256x768xf32>, %out: tensor<16x768xf32>) -> tensor<16x768xf32> {
    %zero = arith.constant 0.000000e+00 : f32
    %0 = linalg.fill ins(%zero : f32) outs(%out : tensor<16x768xf32>) -> tensor<16x768xf32>
    %1 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], mlc.contraction} ins(%x, %w : tensor<16x256xf32>, tensor<256x768xf32>) outs(%0 : tensor<16x768xf32>) {
    ^bb0(%p: f32, %q: f32, %s: f32):
      %product = arith.mulf %p, %q : f32
      %sum = arith.addf %s, %product : f32
      linalg.yield %sum : f32
    } -> tensor<16x768xf32>
    return %1 : tensor<16x768xf32>
  }
}

// CHECK-LABEL: module @any
// CHECK-SAME: ahead = -32 : i64
// FAR-LABEL: module @any
// FAR-SAME: ahead = -2 : i64
module @any attributes {mlc.kernel, mlc.packed} {
  func.func @any(%x: tensor<?x256xf32>, %w: tensor<256x768xf32>, %out: tensor<?x768xf32>) -> tensor<?x768xf32> {
    %zero = arith.constant 0.000000e+00 : f32
    %0 = linalg.fill ins(%zero : f32) outs(%out : tensor<?x768xf32>) -> tensor<?x768xf32>
    %1 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], mlc.contraction} ins(%x, %w : tensor<?x256xf32>, tensor<256x768xf32>) outs(%0 : tensor<?x768xf32>) {
    ^bb0(%p: f32, %q: f32, %s: f32):
      %product = arith.mulf %p, %q : f32
      %sum = arith.addf %s, %product : f32
      linalg.yield %sum : f32
    } -> tensor<?x768xf32>
    return %1 : tensor<?x768xf32>
  }
}

// Panels of a matrix that only a run knows are copied where its lines are shorter and fewer as well, for many rows.
// CHECK-LABEL: module @short
// CHECK-SAME: template = "contraction"
// FAR-LABEL: module @short
// FAR-SAME: template = "copy_ahead"
module @short attributes {mlc.kernel} {
  func.func @short(%x: tensor<200x64xf32>, %y: tensor<64x160xf32>, %out: tensor<200x160xf32>) -> tensor<200x160xf32> {
    %zero = arith.constant 0.000000e+00 : f32
    %0 = linalg.fill ins(%zero : f32) outs(%out : tensor<200x160xf32>) -> tensor<200x160xf32>
    %1 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], mlc.contraction} ins(%x, %y : tensor<200x64xf32>, tensor<64x160xf32>) outs(%0 : tensor<200x160xf32>) {
    ^bb0(%p: f32, %q: f32, %s: f32):
      %product = arith.mulf %p, %q : f32
      %sum = arith.addf %s, %product : f32
      linalg.yield %sum : f32
    } -> tensor<200x160xf32>
    return %1 : tensor<200x160xf32>
  }
}

// FAR-LABEL: module @few_rows
// FAR-SAME: template = "contraction"
module @few_rows attributes {mlc.kernel} {
  func.func @few_rows(%x: tensor<96x64xf32>, %y: tensor<64x160xf32>, %out: tensor<96x160xf32>) -> tensor<96x160xf32> {
    %zero = arith.constant 0.000000e+00 : f32
    %0 = linalg.fill ins(%zero : f32) outs(%out : tensor<96x160xf32>) -> tensor<96x160xf32>
    %1 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"], mlc.contraction} ins(%x, %y : tensor<96x64xf32>, tensor<64x160xf32>) outs(%0 : tensor<96x160xf32>) {
    ^bb0(%p: f32, %q: f32, %s: f32):
      %product = arith.mulf %p, %q : f32
      %sum = arith.addf %s, %product : f32
      linalg.yield %sum : f32
    } -> tensor<96x160xf32>
    return %1 : tensor<96x160xf32>
  }
}

func.func @main(%x: tensor<16x256xf32>, %y: tensor<?x256xf32>, %o: tensor<16x768xf32>, %q: tensor<?x768xf32>) -> (tensor<16x768xf32>, tensor<?x768xf32>) {
  %w = mlc.weight "w" : tensor<256x768xf32>
  %0 = mlc.launch @few(%x, %w) outs(%o) : (tensor<16x256xf32>, tensor<256x768xf32>) outs(tensor<16x768xf32>) -> tensor<16x768xf32>
  %1 = mlc.launch @any(%y, %w) outs(%q) : (tensor<?x256xf32>, tensor<256x768xf32>) outs(tensor<?x768xf32>) -> tensor<?x768xf32>
  return %0, %1 : tensor<16x768xf32>, tensor<?x768xf32>
}
