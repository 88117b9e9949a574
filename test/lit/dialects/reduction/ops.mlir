// Every reduction and scan: what is printed parses to the same, in both forms.
// RUN: mlc-opt %s | mlc-opt | FileCheck %s
// RUN: mlc-opt %s --mlir-print-op-generic | mlc-opt | FileCheck %s

// CHECK-LABEL: func.func @reduction
func.func @reduction(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %i: tensor<?x4xi32>, %b: tensor<?x4xi1>, %s: tensor<f32>, %l: tensor<i64>, %n: index) {
  // CHECK: mlc.reduce sum %{{.*}} {axes = array<i64: 1>, keepdims = true} : tensor<?x4xf32> -> tensor<?x1xf32>
  %0 = mlc.reduce sum %x {axes = array<i64: 1>, keepdims = true} : tensor<?x4xf32> -> tensor<?x1xf32>
  // CHECK: mlc.reduce max %{{.*}} {axes = array<i64: 0, 1>, unsigned} : tensor<?x4xi32> -> tensor<i32>
  %1 = mlc.reduce max %i {axes = array<i64: 0, 1>, unsigned} : tensor<?x4xi32> -> tensor<i32>
  // CHECK: mlc.arg_reduce min %{{.*}} {axis = 1 : i64, select_last = true} : tensor<?x4xf32> -> tensor<?xi64>
  %2 = mlc.arg_reduce min %x {axis = 1 : i64, select_last = true} : tensor<?x4xf32> -> tensor<?xi64>
  // CHECK: mlc.scan sum %{{.*}} {axis = 0 : i64, exclusive = true, reverse = true} : tensor<?x4xf32>
  %3 = mlc.scan sum %x {axis = 0 : i64, exclusive = true, reverse = true} : tensor<?x4xf32>
  // CHECK: mlc.scan prod %{{.*}} before(%{{.*}} : tensor<?x4xf32>) {axis = 0 : i64, part = 3 : i64} : tensor<?x4xf32>
  %5 = mlc.scan prod %x before(%y : tensor<?x4xf32>) {axis = 0 : i64, part = 3 : i64} : tensor<?x4xf32>
  // CHECK: mlc.statistic log_sum_exp %{{.*}} {axes = array<i64: 0>} : tensor<?x4xf32> -> tensor<4xf32>
  %4 = mlc.statistic log_sum_exp %x {axes = array<i64: 0>} : tensor<?x4xf32> -> tensor<4xf32>
  return
}
