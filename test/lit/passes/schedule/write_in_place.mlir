// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-write-in-place)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-write-in-place,mlc-bufferize-host)' | FileCheck %s --check-prefix=BUFFERS

#i = affine_map<(m) -> (m)>

// What is added is the destination. A launch that must not write over it calls the kernel as it was.
// CHECK: func.func @main(%[[X:.*]]: tensor<?xf32>, %[[R:.*]]: tensor<?xf32>)
// CHECK: %[[A:.*]] = mlc.launch @k(%[[X]], %[[R]], %[[N:.*]]) outs(%{{.*}}) :
// CHECK-NOT: tensor.empty
// CHECK: mlc.launch @k_in_place(%[[X]], %[[N]]) outs(%[[A]]) {mlc.in_place, mlc.inout = array<i64: 0>, mlc.refused = []} : (tensor<?xf32>, index) outs(tensor<?xf32>)
// CHECK: module @k attributes {mlc.kernel}
// CHECK-NEXT: func.func @k(%{{.*}}: tensor<?xf32>, %{{.*}}: tensor<?xf32>, %{{.*}}: index, %{{.*}}: tensor<?xf32>)
// CHECK: module @k_in_place attributes {mlc.inout = array<i64: 0>, mlc.kernel}
// CHECK-NEXT: func.func @k_in_place(%[[B:.*]]: tensor<?xf32>, %{{.*}}: index, %[[O:.*]]: tensor<?xf32>) -> tensor<?xf32>
// CHECK: tensor.dim %[[O]]
// CHECK: linalg.generic {{.*}} ins(%[[B]], %[[O]] :

// No buffer and no copy for the second result.
// BUFFERS-LABEL: func.func @main
// BUFFERS: %[[M:.*]] = memref.alloc
// BUFFERS-NOT: memref.copy
// BUFFERS-NOT: memref.alloc
// BUFFERS: mlc.launch @k({{.*}}) outs(%[[M]])
// BUFFERS-NOT: memref.copy
// BUFFERS-NOT: memref.alloc
// BUFFERS: mlc.launch @k_in_place({{.*}}) outs(%[[M]])
// BUFFERS: return %[[M]]
func.func @main(%x: tensor<?xf32>, %r: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %a = mlc.launch @k(%x, %r, %n) outs(%e) : (tensor<?xf32>, tensor<?xf32>, index) outs(tensor<?xf32>) -> tensor<?xf32>
  %f = tensor.empty(%n) : tensor<?xf32>
  %b = mlc.launch @k(%x, %a, %n) outs(%f) {mlc.over = 1 : i64, mlc.refused = []} : (tensor<?xf32>, tensor<?xf32>, index) outs(tensor<?xf32>) -> tensor<?xf32>
  return %b : tensor<?xf32>
}
module @k attributes {mlc.kernel} {
  func.func @k(%b: tensor<?xf32>, %r: tensor<?xf32>, %n: index, %o: tensor<?xf32>) -> tensor<?xf32> {
    %c0 = arith.constant 0 : index
    %d = tensor.dim %r, %c0 : tensor<?xf32>
    %e = tensor.empty(%d) : tensor<?xf32>
    %s = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel"]}
        ins(%b, %r : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) {
    ^bb0(%p: f32, %q: f32, %z: f32):
      %1 = arith.addf %p, %q : f32
      linalg.yield %1 : f32
    } -> tensor<?xf32>
    return %s : tensor<?xf32>
  }
}
