// An insertion updates what another launch has made for it alone; anything else is copied before.
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-insert-in-place)' | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x4xf32>, %[[U:.*]]: tensor<2x1x4xf32>, %[[N:.*]]: tensor<2xi64>)
// CHECK: %[[E:.*]] = tensor.empty() : tensor<2x8x4xf32>
// CHECK: %[[C:.*]] = mlc.launch @k_start(%[[X]]) outs(%[[E]])
// CHECK: %[[R:.*]] = mlc.launch @k(%[[U]], %[[N]]) outs(%[[C]]) {mlc.in_place, mlc.inout = array<i64: 0>}
// CHECK: %[[S:.*]] = mlc.launch @k(%[[U]], %[[N]]) outs(%[[R]]) {mlc.in_place, mlc.inout = array<i64: 0>}
// CHECK: return %[[S]]
// CHECK: module @k_start attributes {mlc.kernel}
// CHECK: linalg.generic {{.*}} ins(%[[A:.*]] : tensor<2x8x4xf32>)
// CHECK: module @k attributes {mlc.inout = array<i64: 0>, mlc.kernel}
// CHECK: func.func @k(%[[A1:.*]]: tensor<2x1x4xf32>, %[[A2:.*]]: tensor<2xi64>, %[[O:.*]]: tensor<2x8x4xf32>)
// CHECK: mlc.insert %[[O]], %[[A1]], %[[A2]]
func.func @main(%x: tensor<2x8x4xf32>, %u: tensor<2x1x4xf32>, %n: tensor<2xi64>) -> tensor<2x8x4xf32> {
  %e = tensor.empty() : tensor<2x8x4xf32>
  %r = mlc.launch @k(%x, %u, %n) outs(%e) : (tensor<2x8x4xf32>, tensor<2x1x4xf32>, tensor<2xi64>) outs(tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %f = tensor.empty() : tensor<2x8x4xf32>
  %s = mlc.launch @k(%r, %u, %n) outs(%f) : (tensor<2x8x4xf32>, tensor<2x1x4xf32>, tensor<2xi64>) outs(tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return %s : tensor<2x8x4xf32>
}
module @k attributes {mlc.kernel} {
  func.func @k(%x: tensor<2x8x4xf32>, %u: tensor<2x1x4xf32>, %n: tensor<2xi64>, %o: tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
    %0 = mlc.insert %x, %u, %n {axis = 1 : i64} : tensor<2x8x4xf32>, tensor<2x1x4xf32>, tensor<2xi64> -> tensor<2x8x4xf32>
    return %0 : tensor<2x8x4xf32>
  }
}

// What is inserted is the input too, which stays one; and a number is written by a launch of its own.
// CHECK: func.func @others(%[[X:[^ ]*]]: tensor<2x8x4xf32>, %[[N:[^ ]*]]: tensor<2xi64>)
// CHECK: %[[C:.*]] = mlc.launch @itself_start(%[[X]])
// CHECK: mlc.launch @itself(%[[X]], %[[N]]) outs(%[[C]]) {mlc.in_place, mlc.inout = array<i64: 0>}
// CHECK: %[[Z:.*]] = mlc.launch @zeros_start()
// CHECK: mlc.launch @zeros(%[[X]], %[[N]]) outs(%[[Z]]) {mlc.in_place, mlc.inout = array<i64: 0>}
// CHECK: module @itself attributes {mlc.inout = array<i64: 0>, mlc.kernel}
// CHECK: func.func @itself(%[[A:[^ ]*]]: tensor<2x8x4xf32>, %[[M:[^ ]*]]: tensor<2xi64>, %[[O:[^ ]*]]: tensor<2x8x4xf32>)
// CHECK: mlc.insert %[[O]], %[[A]], %[[M]]
// CHECK: module @zeros_start attributes {mlc.kernel}
// CHECK: linalg.fill
// CHECK: module @zeros attributes
// CHECK: func.func @zeros(%[[B:[^ ]*]]: tensor<2x8x4xf32>, %[[L:[^ ]*]]: tensor<2xi64>, %[[P:[^ ]*]]: tensor<2x8x4xf32>)
// CHECK: mlc.insert %[[P]], %[[B]], %[[L]]
func.func @others(%x: tensor<2x8x4xf32>, %n: tensor<2xi64>) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>) {
  %e = tensor.empty() : tensor<2x8x4xf32>
  %r = mlc.launch @itself(%x, %n) outs(%e) : (tensor<2x8x4xf32>, tensor<2xi64>) outs(tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %s = mlc.launch @zeros(%x, %n) outs(%e) : (tensor<2x8x4xf32>, tensor<2xi64>) outs(tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return %r, %s : tensor<2x8x4xf32>, tensor<2x8x4xf32>
}
module @itself attributes {mlc.kernel} {
  func.func @itself(%x: tensor<2x8x4xf32>, %n: tensor<2xi64>, %o: tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
    %0 = mlc.insert %x, %x, %n {axis = 1 : i64} : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2xi64> -> tensor<2x8x4xf32>
    return %0 : tensor<2x8x4xf32>
  }
}
module @zeros attributes {mlc.kernel} {
  func.func @zeros(%x: tensor<2x8x4xf32>, %n: tensor<2xi64>, %o: tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
    %z = arith.constant dense<0.0> : tensor<2x8x4xf32>
    %0 = mlc.insert %z, %x, %n {axis = 1 : i64} : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2xi64> -> tensor<2x8x4xf32>
    return %0 : tensor<2x8x4xf32>
  }
}

// What a loop carries is written over where nobody reads it afterwards.
// CHECK-LABEL: func.func @carried
// CHECK: scf.for {{.*}} iter_args(%[[Y:[^ ]*]] = %{{.*}}, %[[Z:[^ ]*]] = %{{[^ ]*}}, %{{[^ ]*}} = %{{[^ ]*}}) ->
// CHECK: %[[V:.*]] = mlc.launch @both(%{{.*}}, %{{.*}}) outs(%[[Y]]) {mlc.inout = array<i64: 0>, mlc.overwrite}
// CHECK: %[[C:.*]] = mlc.launch @both_start(%[[Z]])
// CHECK: %[[W:.*]] = mlc.launch @both(%{{.*}}, %{{.*}}) outs(%[[C]]) {mlc.in_place, mlc.inout = array<i64: 0>}
// CHECK: scf.yield %[[Z]], %[[W]], %[[V]]
func.func @carried(%x: tensor<2x8x4xf32>, %u: tensor<2x1x4xf32>, %n: tensor<2xi64>, %count: index) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<2x8x4xf32>
  %r:3 = scf.for %i = %c0 to %count step %c1 iter_args(%y = %x, %z = %x, %l = %x) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) {
    %v = mlc.launch @both(%y, %u, %n) outs(%e) : (tensor<2x8x4xf32>, tensor<2x1x4xf32>, tensor<2xi64>) outs(tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
    %w = mlc.launch @both(%z, %u, %n) outs(%e) : (tensor<2x8x4xf32>, tensor<2x1x4xf32>, tensor<2xi64>) outs(tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
    scf.yield %z, %w, %v : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>
  }
  return %r#0, %r#1, %r#2 : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>
}
module @both attributes {mlc.kernel} {
  func.func @both(%x: tensor<2x8x4xf32>, %u: tensor<2x1x4xf32>, %n: tensor<2xi64>, %o: tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
    %0 = mlc.insert %x, %u, %n {axis = 1 : i64} : tensor<2x8x4xf32>, tensor<2x1x4xf32>, tensor<2xi64> -> tensor<2x8x4xf32>
    return %0 : tensor<2x8x4xf32>
  }
}
