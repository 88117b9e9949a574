// RUN: mlc-opt %s --mlc-split-selections | FileCheck %s

// The best of parts, and of these; positions are those of the whole line.
// CHECK-LABEL: func.func @select
// CHECK-SAME: %[[X:.*]]: tensor<2x9001x3xf32>
// CHECK: %[[K:.*]] = arith.constant 50
// CHECK: %[[V:.*]], %[[I:.*]] = mlc.topk %[[X]], %[[K]] {axis = 1 : i64, largest = false, part = 3001 : i64}
// CHECK-SAME: -> tensor<2x150x3xf32>, tensor<2x150x3xi64>
// CHECK: %[[W:.*]], %[[J:.*]] = mlc.topk %[[V]], %[[K]] places(%[[I]] : tensor<2x150x3xi64>) {axis = 1 : i64, largest = false}
// CHECK-SAME: tensor<2x150x3xf32> -> tensor<2x50x3xf32>, tensor<2x50x3xi64>
// CHECK: return %[[W]], %[[J]]
func.func @select(%x: tensor<2x9001x3xf32>) -> (tensor<2x50x3xf32>, tensor<2x50x3xi64>) {
  %k = arith.constant 50 : index
  %0, %1 = mlc.topk %x, %k {axis = 1 : i64, largest = false, mlc.part = 3001 : i64} : tensor<2x9001x3xf32> -> tensor<2x50x3xf32>, tensor<2x50x3xi64>
  return %0, %1 : tensor<2x50x3xf32>, tensor<2x50x3xi64>
}
