// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-outline-kernels)' | FileCheck %s

#id = affine_map<(i) -> (i)>

// One launch per cluster; the view stays on the host; a value that leaves the cluster twice has one destination.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<?xf32>)
// CHECK: %[[N:.*]] = tensor.dim %[[X]]
// CHECK: %[[D:.*]] = tensor.empty(%[[N]]) : tensor<?xf32>
// CHECK: %[[A:.*]] = mlc.launch @k0(%[[X]]{{.*}}) outs(%[[D]])
// CHECK: tensor.expand_shape %[[A]]
// CHECK: %[[S:.*]] = mlc.launch @k1(%[[A]]) outs(%{{.*}}) : (tensor<?xf32>) outs(tensor<?xf32>) -> tensor<?xf32>
// CHECK-NOT: linalg.generic
// CHECK: return

// CHECK: module @k0 attributes {mlc.kernel}
// CHECK: func.func @k0(%[[IN:.*]]: tensor<?xf32>, {{.*}}%[[OUT:.*]]: tensor<?xf32>) -> tensor<?xf32>
// CHECK: linalg.generic
// CHECK: linalg.generic {{.*}} outs(%[[OUT]] : tensor<?xf32>)
// CHECK: module @k1 attributes {mlc.kernel}
// CHECK: mlc.scan
func.func @main(%x: tensor<?xf32>) -> (tensor<1x?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) attrs = {mlc.cluster = 0 : i64} {
  ^bb0(%p: f32, %q: f32):
    %s = arith.addf %p, %one : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%a : tensor<?xf32>) outs(%e : tensor<?xf32>) attrs = {mlc.cluster = 0 : i64} {
  ^bb0(%p: f32, %q: f32):
    %s = arith.mulf %p, %p : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  %v = tensor.expand_shape %b [[0, 1]] output_shape [1, %n] : tensor<?xf32> into tensor<1x?xf32>
  %scan = mlc.scan sum %b {axis = 0 : i64, exclusive = false, reverse = false, mlc.cluster = 1 : i64} : tensor<?xf32>
  return %v, %scan : tensor<1x?xf32>, tensor<?xf32>
}
