// RUN: mlc-opt %s --mlc-scatter-in-place | FileCheck %s

// An argument of the model is copied; what another kernel has made for this one is updated where it is; zeros are
// written by a launch of their own.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: (%[[X:.*]]: tensor<90x4xf32>, %[[I:.*]]: tensor<3x1xi64>, %[[U:.*]]: tensor<3x4xf32>
func.func @forward(%x: tensor<90x4xf32>, %i: tensor<3x1xi64>, %u: tensor<3x4xf32>)
    -> (tensor<90x4xf32>, tensor<90x4xf32>, tensor<90x4xi32>) {
  %e = tensor.empty() : tensor<90x4xf32>
  // CHECK: %[[A:.*]] = mlc.launch @put(%[[I]], %[[U]]) outs(%[[X]]) {mlc.inout = array<i64: 0>, mlc.placement = "device"}
  %a = mlc.launch @put(%x, %i, %u) outs(%e) {mlc.placement = "device"} : (tensor<90x4xf32>, tensor<3x1xi64>, tensor<3x4xf32>) outs(tensor<90x4xf32>) -> tensor<90x4xf32>
  %f = tensor.empty() : tensor<90x4xf32>
  // CHECK: %[[M:.*]] = mlc.launch @made
  %m = mlc.launch @made(%x) outs(%f) {mlc.placement = "device"} : (tensor<90x4xf32>) outs(tensor<90x4xf32>) -> tensor<90x4xf32>
  %g = tensor.empty() : tensor<90x4xf32>
  // CHECK: mlc.launch @put(%[[I]], %[[U]]) outs(%[[M]]) {mlc.in_place, mlc.inout = array<i64: 0>, mlc.placement = "device"}
  %b = mlc.launch @put(%m, %i, %u) outs(%g) {mlc.placement = "device"} : (tensor<90x4xf32>, tensor<3x1xi64>, tensor<3x4xf32>) outs(tensor<90x4xf32>) -> tensor<90x4xf32>
  %h = tensor.empty() : tensor<90x4xi32>
  // CHECK: %[[H:.*]] = tensor.empty() : tensor<90x4xi32>
  // CHECK: %[[Z:.*]] = mlc.launch @count_start() outs(%[[H]]) {mlc.placement = "device"}
  // CHECK: mlc.launch @count(%[[I]]) outs(%[[Z]]) {mlc.in_place, mlc.inout = array<i64: 0>, mlc.placement = "device"}
  %c = mlc.launch @count(%i) outs(%h) {mlc.placement = "device"} : (tensor<3x1xi64>) outs(tensor<90x4xi32>) -> tensor<90x4xi32>
  return %a, %b, %c : tensor<90x4xf32>, tensor<90x4xf32>, tensor<90x4xi32>
}
// CHECK: module @put attributes {mlc.inout = array<i64: 0>
// CHECK: func.func @put(%[[J:.*]]: tensor<3x1xi64>, %[[V:.*]]: tensor<3x4xf32>, %[[O:.*]]: tensor<90x4xf32>)
// CHECK: mlc.scatter_nd %[[O]], %[[J]], %[[V]]
module @put attributes {mlc.kernel, mlc.placement = "device"} {
  func.func @put(%x: tensor<90x4xf32>, %i: tensor<3x1xi64>, %u: tensor<3x4xf32>, %o: tensor<90x4xf32>) -> tensor<90x4xf32> {
    %r = mlc.scatter_nd %x, %i, %u {reduction = "none"} : tensor<90x4xf32>, tensor<3x1xi64>, tensor<3x4xf32> -> tensor<90x4xf32>
    return %r : tensor<90x4xf32>
  }
}
module @made attributes {mlc.kernel, mlc.placement = "device"} {
  func.func @made(%x: tensor<90x4xf32>, %o: tensor<90x4xf32>) -> tensor<90x4xf32> {
    return %x : tensor<90x4xf32>
  }
}
// CHECK: module @count_start attributes {mlc.kernel, mlc.placement = "device"}
// CHECK: func.func @count_start(%[[O:.*]]: tensor<90x4xi32>) -> tensor<90x4xi32>
// CHECK: %[[F:.*]] = linalg.fill ins(%c0_i32 : i32) outs(%[[O]] : tensor<90x4xi32>)
// CHECK: return %[[F]]
// CHECK: module @count attributes {mlc.inout = array<i64: 0>
// CHECK: func.func @count(%{{.*}}, %[[O:.*]]: tensor<90x4xi32>)
// CHECK: mlc.scatter_nd %[[O]]
module @count attributes {mlc.kernel, mlc.placement = "device"} {
  func.func @count(%i: tensor<3x1xi64>, %o: tensor<90x4xi32>) -> tensor<90x4xi32> {
    %zero = arith.constant 0 : i32
    %e = tensor.empty() : tensor<90x4xi32>
    %z = linalg.fill ins(%zero : i32) outs(%e : tensor<90x4xi32>) -> tensor<90x4xi32>
    %u = mlc.constant dense<1> : tensor<3x4xi32>
    %r = mlc.scatter_nd %z, %i, %u {reduction = "add"} : tensor<90x4xi32>, tensor<3x1xi64>, tensor<3x4xi32> -> tensor<90x4xi32>
    return %r : tensor<90x4xi32>
  }
}
