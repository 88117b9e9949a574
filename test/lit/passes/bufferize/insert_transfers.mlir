// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-insert-transfers)' | FileCheck %s

// The argument that a kernel reads is on the GPU; the result is brought to the host once, before its first use there.
// CHECK-LABEL: func.func @once(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32> {mlc.placement = "device"}, %[[S:.*]]: tensor<1xi64>)
// CHECK-SAME: attributes {mlc.placed}
func.func @once(%x: tensor<4xf32>, %s: tensor<1xi64>) -> (i64, i64, i64) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<2xi64>
  // CHECK: %[[R:.*]] = mlc.launch @k(%[[X]])
  %r = mlc.launch @k(%x) outs(%e) {mlc.placement = "device"} : (tensor<4xf32>) outs(tensor<2xi64>) -> tensor<2xi64>
  // CHECK: tensor.extract %[[S]]
  %a = tensor.extract %s[%c0] : tensor<1xi64>
  // CHECK: %[[H:.*]] = mlc.extern "mlc_rt_to_host"(%[[R]])
  // CHECK: tensor.extract %[[H]]
  %b = tensor.extract %r[%c0] : tensor<2xi64>
  // CHECK-NOT: mlc.extern
  // CHECK: tensor.extract %[[H]]
  %c = tensor.extract %r[%c1] : tensor<2xi64>
  return %a, %b, %c : i64, i64, i64
}

// -----

// Constants and weights are in both memories: no transfer in a run. A view is made of what lies there.
// CHECK-LABEL: func.func @constants(
func.func @constants(%x: tensor<4xf32>) -> (tensor<4xf32>, i64) {
  %c0 = arith.constant 0 : index
  %k = mlc.constant dense<[1, 2]> : tensor<2xi64>
  %w = mlc.weight "w" : tensor<2x2xf32>
  %v = tensor.collapse_shape %w [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  // CHECK: %[[K:.*]] = mlc.constant dense<[1, 2]> : tensor<2xi64>
  // CHECK: %[[D:.*]] = mlc.constant {mlc.placement = "device"} dense<[1, 2]>
  // CHECK: %[[W:.*]] = mlc.weight "w" {mlc.placement = "device"}
  // CHECK: %[[V:.*]] = tensor.collapse_shape %[[W]]
  // CHECK-NOT: mlc.extern
  // CHECK: mlc.launch @k(%{{.*}}, %[[D]], %[[V]])
  %y = mlc.launch @k(%x, %k, %v) outs(%e) {mlc.placement = "device"}
      : (tensor<4xf32>, tensor<2xi64>, tensor<4xf32>) outs(tensor<4xf32>) -> tensor<4xf32>
  // CHECK: tensor.extract %[[K]]
  %a = tensor.extract %k[%c0] : tensor<2xi64>
  return %y, %a : tensor<4xf32>, i64
}

// -----

// What the host has made goes to the GPU; both branches yield in one memory.
// CHECK-LABEL: func.func @branch(
func.func @branch(%x: tensor<1xi64>, %go: i1, %n: i64) -> tensor<1xi64> {
  // CHECK: %[[H:.*]] = tensor.from_elements
  %h = tensor.from_elements %n : tensor<1xi64>
  %e = tensor.empty() : tensor<1xi64>
  // CHECK: %[[D:.*]] = mlc.extern "mlc_rt_to_device"(%[[H]])
  // CHECK: scf.if
  %r = scf.if %go -> tensor<1xi64> {
    %y = mlc.launch @k(%x) outs(%e) {mlc.placement = "device"} : (tensor<1xi64>) outs(tensor<1xi64>) -> tensor<1xi64>
    // CHECK: scf.yield
    scf.yield %y : tensor<1xi64>
  } else {
    // CHECK: } else {
    // CHECK: scf.yield %[[D]] :
    scf.yield %h : tensor<1xi64>
  } {mlc.placement = ["device"]}
  return %r : tensor<1xi64>
}
