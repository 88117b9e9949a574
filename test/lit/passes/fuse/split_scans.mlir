// RUN: mlc-opt %s --mlc-split-scans | FileCheck %s

// CHECK-DAG: #[[REST:.*]] = affine_map<(d0, d1, d2) -> (d0, d1 * 3001 + d2 + 2998)>

// Equal parts are a view; what they come to is combined, and what comes before each of them is its beginning.
// CHECK-LABEL: func.func @equal
// CHECK-SAME: %[[X:.*]]: tensor<2x9000x3xf16>
// CHECK: %[[P:.*]] = tensor.expand_shape %[[X]] {{\[\[}}0], [1, 2], [3]] output_shape [2, 3, 3000, 3]
// CHECK: %[[T:.*]] = linalg.generic {{.*}}["parallel", "parallel", "reduction", "parallel"]} ins(%[[P]] : {{.*}} outs(%{{.*}} : tensor<2x3x3xf32>)
// CHECK: arith.extf
// CHECK: arith.mulf
// CHECK: %[[B:.*]] = mlc.scan prod %[[T]] {axis = 1 : i64} : tensor<2x3x3xf32>
// CHECK: %[[S:.*]] = mlc.scan prod %[[X]] before(%[[B]] : tensor<2x3x3xf32>) {axis = 1 : i64, exclusive = true, part = 3000 : i64}
// CHECK: return %[[S]]
func.func @equal(%x: tensor<2x9000x3xf16>) -> tensor<2x9000x3xf16> {
  %0 = mlc.scan prod %x {axis = 1 : i64, exclusive = true, mlc.part = 3000 : i64} : tensor<2x9000x3xf16>
  return %0 : tensor<2x9000x3xf16>
}

// Nobody asks what the last part comes to, which is the first one in memory where a scan goes backwards.
// CHECK-LABEL: func.func @reverse
// CHECK-SAME: %[[X:.*]]: tensor<2x9000xi32>
// CHECK: %[[P:.*]] = linalg.generic {indexing_maps = [#[[REST]], {{.*}} ins(%[[X]] : {{.*}} outs(%{{.*}} : tensor<2x2x3001xi32>)
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[P]] : {{.*}} outs(%{{.*}} : tensor<2x2xi32>)
// CHECK: %[[B:.*]] = mlc.scan sum %[[T]] {axis = 1 : i64, reverse = true} : tensor<2x2xi32>
// CHECK: mlc.scan sum %[[X]] before(%[[B]] : tensor<2x2xi32>) {axis = 1 : i64, part = 3001 : i64, reverse = true}
func.func @reverse(%x: tensor<2x9000xi32>) -> tensor<2x9000xi32> {
  %0 = mlc.scan sum %x {axis = 1 : i64, reverse = true, mlc.part = 3001 : i64} : tensor<2x9000xi32>
  return %0 : tensor<2x9000xi32>
}
