// Random numbers: what is printed parses to the same, in both forms.
// RUN: mlc-opt %s | mlc-opt | FileCheck %s
// RUN: mlc-opt %s --mlir-print-op-generic | mlc-opt | FileCheck %s

// CHECK-LABEL: func.func @random
func.func @random(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %i: tensor<?x4xi32>, %b: tensor<?x4xi1>, %s: tensor<f32>, %l: tensor<i64>, %n: index) {
  // CHECK: mlc.random normal %{{.*}} [%{{.*}}, 3] : tensor<i64> -> tensor<?x3xf32>
  %0 = mlc.random normal %l [%n, 3] : tensor<i64> -> tensor<?x3xf32>
  // CHECK: mlc.random uniform %{{.*}} [] : tensor<i64> -> tensor<f64>
  %1 = mlc.random uniform %l [] : tensor<i64> -> tensor<f64>
  return
}
