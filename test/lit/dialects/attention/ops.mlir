// Attention: what is printed parses to the same, in both forms.
// RUN: mlc-opt %s | mlc-opt | FileCheck %s
// RUN: mlc-opt %s --mlir-print-op-generic | mlc-opt | FileCheck %s

// CHECK-LABEL: func.func @attention
func.func @attention(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %i: tensor<?x4xi32>, %b: tensor<?x4xi1>, %s: tensor<f32>, %l: tensor<i64>, %n: index) {
  // CHECK: mlc.weight "q" : tensor<2x8x5x16xf32>
  %q = mlc.weight "q" : tensor<2x8x5x16xf32>
  // CHECK: mlc.weight "k" : tensor<2x4x7x16xf32>
  %k = mlc.weight "k" : tensor<2x4x7x16xf32>
  // CHECK: mlc.weight "v" : tensor<2x4x7x32xf32>
  %v = mlc.weight "v" : tensor<2x4x7x32xf32>
  // CHECK: mlc.weight "m" : tensor<5x7xi1>
  %mask = mlc.weight "m" : tensor<5x7xi1>
  // CHECK: mlc.attention %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x8x5x16xf32>, tensor<2x4x7x16xf32>, tensor<2x4x7x32xf32> -> tensor<2x8x5x32xf32>
  %0 = mlc.attention %q, %k, %v : tensor<2x8x5x16xf32>, tensor<2x4x7x16xf32>, tensor<2x4x7x32xf32> -> tensor<2x8x5x32xf32>
  // CHECK: mlc.attention %{{.*}}, %{{.*}}, %{{.*}} mask(%{{.*}} : tensor<5x7xi1>) {causal = true, scale = 1.250000e-01 : f64, softcap = 3.000000e+01 : f64} : tensor<2x8x5x16xf32>, tensor<2x4x7x16xf32>, tensor<2x4x7x32xf32> -> tensor<2x8x5x32xf32>
  %1 = mlc.attention %q, %k, %v mask(%mask : tensor<5x7xi1>) {causal = true, scale = 1.250000e-01 : f64, softcap = 3.000000e+01 : f64} : tensor<2x8x5x16xf32>, tensor<2x4x7x16xf32>, tensor<2x4x7x32xf32> -> tensor<2x8x5x32xf32>
  return
}
