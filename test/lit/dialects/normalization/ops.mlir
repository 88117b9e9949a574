// Normalizations: what is printed parses to the same, in both forms.
// RUN: mlc-opt %s | mlc-opt | FileCheck %s
// RUN: mlc-opt %s --mlir-print-op-generic | mlc-opt | FileCheck %s

// CHECK-LABEL: func.func @normalization
func.func @normalization(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %i: tensor<?x4xi32>, %b: tensor<?x4xi1>, %s: tensor<f32>, %l: tensor<i64>, %n: index) {
  // CHECK: mlc.weight "c" : tensor<4xf32>
  %c = mlc.weight "c" : tensor<4xf32>
  // CHECK: mlc.weight "x" : tensor<1x4x8x8xf32>
  %img = mlc.weight "x" : tensor<1x4x8x8xf32>
  // CHECK: mlc.softmax %{{.*}} {axis = 1 : i64} : tensor<?x4xf32>
  %0 = mlc.softmax %x {axis = 1 : i64} : tensor<?x4xf32>
  // CHECK: mlc.softmax %{{.*}} {axis = 0 : i64, log = true} : tensor<?x4xf32>
  %1 = mlc.softmax %x {axis = 0 : i64, log = true} : tensor<?x4xf32>
  // CHECK: mlc.batch_norm %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {epsilon = 1.000000e-05 : f64} : tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<?x4xf32>
  %2 = mlc.batch_norm %x, %c, %c, %c, %c {epsilon = 1.000000e-05 : f64} : tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<?x4xf32>
  // CHECK: mlc.layer_norm %{{.*}} scale(%{{.*}} : tensor<4xf32>) bias(%{{.*}} : tensor<4xf32>) {axis = 1 : i64, epsilon = 1.000000e-05 : f64} : tensor<?x4xf32>
  %3 = mlc.layer_norm %x scale(%c : tensor<4xf32>) bias(%c : tensor<4xf32>) {axis = 1 : i64, epsilon = 1.000000e-05 : f64} : tensor<?x4xf32>
  // CHECK: mlc.layer_norm %{{.*}} bias(%{{.*}} : tensor<4xf32>) {axis = 0 : i64, epsilon = 0.000000e+00 : f64, rms = true} : tensor<?x4xf32>
  %4 = mlc.layer_norm %x bias(%c : tensor<4xf32>) {axis = 0 : i64, epsilon = 0.000000e+00 : f64, rms = true} : tensor<?x4xf32>
  // CHECK: mlc.group_norm %{{.*}}, %{{.*}}, %{{.*}} {epsilon = 1.000000e-05 : f64, groups = 2 : i64} : tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<1x4x8x8xf32>
  %5 = mlc.group_norm %img, %c, %c {epsilon = 1.000000e-05 : f64, groups = 2 : i64} : tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<1x4x8x8xf32>
  // CHECK: mlc.lrn %{{.*}} {alpha = 1.000000e-04 : f64, beta = 7.500000e-01 : f64, bias = 1.000000e+00 : f64, size = 5 : i64} : tensor<1x4x8x8xf32>
  %6 = mlc.lrn %img {alpha = 1.000000e-04 : f64, beta = 7.500000e-01 : f64, bias = 1.000000e+00 : f64, size = 5 : i64} : tensor<1x4x8x8xf32>
  // CHECK: mlc.lp_normalize %{{.*}} {axis = 1 : i64, p = 2 : i64} : tensor<?x4xf32>
  %7 = mlc.lp_normalize %x {axis = 1 : i64, p = 2 : i64} : tensor<?x4xf32>
  return
}
