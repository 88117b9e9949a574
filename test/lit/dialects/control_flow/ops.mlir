// Run-time checks: what is printed parses to the same, in both forms.
// RUN: mlc-opt %s | mlc-opt | FileCheck %s
// RUN: mlc-opt %s --mlir-print-op-generic | mlc-opt | FileCheck %s

// CHECK-LABEL: func.func @control_flow
func.func @control_flow(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %i: tensor<?x4xi32>, %b: tensor<?x4xi1>, %s: tensor<f32>, %l: tensor<i64>, %n: index) {
  // CHECK: arith.cmpi slt, %{{.*}}, %{{.*}} : index
  %c = arith.cmpi slt, %n, %n : index
  // CHECK: mlc.check %{{.*}}, %{{.*}}, "the size must be positive"
  mlc.check %c, %n, "the size must be positive"
  return
}
