// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-join-launches,mlc-assign-gpu-schedules)' | FileCheck %s

#a = affine_map<(i, j) -> (i, j)>
#b = affine_map<(i, j) -> (j)>

// What both read is passed once; sizes come behind tensors. What stands between them and reads the first result comes
// behind the launch, and launches of the same kernels in the same way are launches of one kernel.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[R:.*]]:2 = mlc.launch @rows_flat(%[[X:.*]], %[[B:.*]], %[[Y:.*]], %[[N:.*]]) outs({{.*}}) {mlc.placement = "device"} : (tensor<?x64xf32>, tensor<64xf32>, tensor<64xbf16>, index)
// CHECK: tensor.collapse_shape %[[R]]#0
// CHECK: %[[S:.*]]:2 = mlc.launch @rows_flat(%[[R]]#0, %[[B]], %[[Y]], %[[N]]) outs
// CHECK-NOT: mlc.launch
// CHECK: return
// CHECK: module @rows_flat attributes {mlc.kernel, mlc.parts = array<i64: 1, 1>, mlc.placement = "device"
// CHECK-SAME: first = "1 0", flat = "0 0", lanes = "4 4", last = "1 0", rows = "1 1", template = "joined", threads = 256
// CHECK: func.func @rows_flat(%[[A0:.*]]: tensor<?x64xf32>, %[[A1:.*]]: tensor<64xf32>, %[[A2:.*]]: tensor<64xbf16>, %{{.*}}: index, %[[O0:.*]]: tensor<?x64xf32>, %[[O1:.*]]: tensor<64xf32>) -> (tensor<?x64xf32>, tensor<64xf32>)
// CHECK: %[[P0:.*]] = linalg.generic {{.*}} ins(%[[A0]], %[[A1]] : {{.*}}) outs(%[[O0]]
// CHECK: %[[P1:.*]] = linalg.generic {{.*}} ins(%[[A2]], %[[A1]] : {{.*}}) outs(%[[O1]]
// CHECK: return %[[P0]], %[[P1]]
// CHECK-NOT: module @
module {
  func.func @forward(%x: tensor<?x64xf32>, %y: tensor<64xbf16>, %b: tensor<64xf32>, %n: index) -> (tensor<?xf32>, tensor<?x64xf32>, tensor<64xf32>) {
    %e = tensor.empty(%n) : tensor<?x64xf32>
    %f = tensor.empty() : tensor<64xf32>
    %r = mlc.launch @rows(%x, %b, %n) outs(%e) {mlc.joined = 0 : i64, mlc.placement = "device"} : (tensor<?x64xf32>, tensor<64xf32>, index) outs(tensor<?x64xf32>) -> tensor<?x64xf32>
    %v = tensor.collapse_shape %r [[0, 1]] : tensor<?x64xf32> into tensor<?xf32>
    %s = mlc.launch @flat(%y, %b) outs(%f) {mlc.joined = 0 : i64, mlc.placement = "device"} : (tensor<64xbf16>, tensor<64xf32>) outs(tensor<64xf32>) -> tensor<64xf32>
    %t = mlc.launch @rows(%r, %b, %n) outs(%e) {mlc.joined = 1 : i64, mlc.placement = "device"} : (tensor<?x64xf32>, tensor<64xf32>, index) outs(tensor<?x64xf32>) -> tensor<?x64xf32>
    %u = mlc.launch @flat(%y, %b) outs(%f) {mlc.joined = 1 : i64, mlc.placement = "device"} : (tensor<64xbf16>, tensor<64xf32>) outs(tensor<64xf32>) -> tensor<64xf32>
    return %v, %t, %u : tensor<?xf32>, tensor<?x64xf32>, tensor<64xf32>
  }
  module @rows attributes {mlc.kernel} {
    func.func @rows(%x: tensor<?x64xf32>, %b: tensor<64xf32>, %n: index, %o: tensor<?x64xf32>) -> tensor<?x64xf32> {
      %r = linalg.generic {indexing_maps = [#a, #b, #a], iterator_types = ["parallel", "parallel"]} ins(%x, %b : tensor<?x64xf32>, tensor<64xf32>) outs(%o : tensor<?x64xf32>) {
      ^bb0(%0: f32, %1: f32, %2: f32):
        %s = arith.addf %0, %1 : f32
        linalg.yield %s : f32
      } -> tensor<?x64xf32>
      return %r : tensor<?x64xf32>
    }
  }
  module @flat attributes {mlc.kernel} {
    func.func @flat(%y: tensor<64xbf16>, %b: tensor<64xf32>, %o: tensor<64xf32>) -> tensor<64xf32> {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%y, %b : tensor<64xbf16>, tensor<64xf32>) outs(%o : tensor<64xf32>) {
      ^bb0(%0: bf16, %1: f32, %2: f32):
        %w = arith.extf %0 : bf16 to f32
        %s = arith.mulf %w, %1 : f32
        linalg.yield %s : f32
      } -> tensor<64xf32>
      return %r : tensor<64xf32>
    }
  }
}
