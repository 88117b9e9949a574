// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-guard-softmax)' | FileCheck %s

// CHECK-LABEL: func.func @weights
// CHECK-SAME: (%[[X:.*]]: tensor<1x12x?x128xf32>)
// CHECK-NOT: mlc.softmax
// CHECK: %[[TOP:.*]] = mlc.reduce max %[[X]] {axes = array<i64: 3>
// CHECK: mlc.compare eq %[[TOP]]
// CHECK: %[[SHIFT:.*]] = mlc.select
// CHECK: %[[SUB:.*]] = mlc.binary sub %[[X]], %[[SHIFT]]
// CHECK: %[[EXP:.*]] = mlc.unary exp %[[SUB]]
// CHECK: %[[SUM:.*]] = mlc.reduce sum %[[EXP]] {axes = array<i64: 3>
// CHECK: mlc.compare eq %[[SUM]]
// CHECK: %[[BY:.*]] = mlc.select
// CHECK: %[[W:.*]] = mlc.binary div %[[EXP]], %[[BY]]
// CHECK-NOT: isnan
// CHECK: return %[[W]]
func.func @weights(%x: tensor<1x12x?x128xf32>) -> tensor<1x12x?x128xf32> {
  %zero = mlc.constant dense<0.0> : tensor<f32>
  %s = mlc.softmax %x {axis = 3 : i64} : tensor<1x12x?x128xf32>
  %n = mlc.unary isnan %s : tensor<1x12x?x128xf32> -> tensor<1x12x?x128xi1>
  %y = mlc.select %n, %zero, %s : tensor<1x12x?x128xi1>, tensor<f32>, tensor<1x12x?x128xf32> -> tensor<1x12x?x128xf32>
  return %y : tensor<1x12x?x128xf32>
}

// Another number, another axis, logarithms, another tensor that is asked for NaN: as they were.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-4: mlc.softmax
// CHECK: return
func.func @others(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = mlc.constant dense<0.0> : tensor<f32>
  %one = mlc.constant dense<1.0> : tensor<f32>
  %s = mlc.softmax %x {axis = 1 : i64} : tensor<4x8xf32>
  %n = mlc.unary isnan %s : tensor<4x8xf32> -> tensor<4x8xi1>
  %a = mlc.select %n, %one, %s : tensor<4x8xi1>, tensor<f32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %t = mlc.softmax %x {axis = 0 : i64} : tensor<4x8xf32>
  %m = mlc.unary isnan %t : tensor<4x8xf32> -> tensor<4x8xi1>
  %b = mlc.select %m, %zero, %t : tensor<4x8xi1>, tensor<f32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %u = mlc.softmax %x {axis = 1 : i64, log = true} : tensor<4x8xf32>
  %l = mlc.unary isnan %u : tensor<4x8xf32> -> tensor<4x8xi1>
  %c = mlc.select %l, %zero, %u : tensor<4x8xi1>, tensor<f32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %v = mlc.softmax %x {axis = 1 : i64, other} : tensor<4x8xf32>
  %d = mlc.select %l, %zero, %v : tensor<4x8xi1>, tensor<f32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %a, %b, %c, %d : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
