// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-count-nonzero)' | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<?x4xf32>)
// CHECK: %[[COUNT:.*]] = linalg.generic
// CHECK: arith.cmpf une
// CHECK: %[[E:.*]] = tensor.extract %[[COUNT]][] : tensor<i64>
// CHECK: %[[N:.*]] = arith.index_cast %[[E]] : i64 to index
// CHECK: %[[D:.*]] = tensor.empty(%[[N]]) : tensor<2x?xi64>
// CHECK: mlc.launch @nonzero0(%[[X]]) outs(%[[D]])
// CHECK: module @nonzero0 attributes {mlc.kernel}
// CHECK: mlc.nonzero
func.func @main(%x: tensor<?x4xf32>) -> tensor<2x?xi64> {
  %r = mlc.nonzero %x : tensor<?x4xf32> -> tensor<2x?xi64>
  return %r : tensor<2x?xi64>
}
