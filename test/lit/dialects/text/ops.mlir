// Calls of C routines: what is printed parses to the same, in both forms.
// RUN: mlc-opt %s | mlc-opt | FileCheck %s
// RUN: mlc-opt %s --mlir-print-op-generic | mlc-opt | FileCheck %s

// CHECK-LABEL: func.func @text
func.func @text(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %i: tensor<?x4xi32>, %b: tensor<?x4xi1>, %s: tensor<f32>, %l: tensor<i64>, %n: index) {
  // CHECK: mlc.extern "mlc_x_upper"(%{{.*}}) {config = "{}"} : (tensor<?x4xf32>) -> tensor<?x!mlc.str>
  %0 = mlc.extern "mlc_x_upper"(%x) {config = "{}"} : (tensor<?x4xf32>) -> tensor<?x!mlc.str>
  // CHECK: mlc.extern "mlc_x_tree"(%{{.*}}, %{{.*}}) : (tensor<?x4xf32>, index) -> (tensor<?xi64>, tensor<?x3xf32>)
  %1:2 = mlc.extern "mlc_x_tree"(%x, %n) : (tensor<?x4xf32>, index) -> (tensor<?xi64>, tensor<?x3xf32>)
  return
}
