// Every elementwise operation: what is printed parses to the same, in both forms.
// RUN: mlc-opt %s | mlc-opt | FileCheck %s
// RUN: mlc-opt %s --mlir-print-op-generic | mlc-opt | FileCheck %s

// CHECK-LABEL: func.func @elementwise
func.func @elementwise(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %i: tensor<?x4xi32>, %b: tensor<?x4xi1>, %s: tensor<f32>, %l: tensor<i64>, %n: index) {
  // CHECK: mlc.unary exp %{{.*}} : tensor<?x4xf32>
  %0 = mlc.unary exp %x : tensor<?x4xf32>
  // CHECK: mlc.unary popcount %{{.*}} {unsigned} : tensor<?x4xi32>
  %1 = mlc.unary popcount %i {unsigned} : tensor<?x4xi32>
  // CHECK: mlc.unary isnan %{{.*}} : tensor<?x4xf32> -> tensor<?x4xi1>
  %2 = mlc.unary isnan %x : tensor<?x4xf32> -> tensor<?x4xi1>
  // CHECK: mlc.unary isinf %{{.*}} {negative = false, positive = true} : tensor<?x4xf32> -> tensor<?x4xi1>
  %3 = mlc.unary isinf %x {negative = false, positive = true} : tensor<?x4xf32> -> tensor<?x4xi1>
  // CHECK: mlc.unary neg %{{.*}} : tensor<?x4xf32> -> tensor<8x4xf32>
  %4 = mlc.unary neg %x : tensor<?x4xf32> -> tensor<8x4xf32>
  // CHECK: mlc.binary add %{{.*}}, %{{.*}} : tensor<?x4xf32>
  %5 = mlc.binary add %x, %y : tensor<?x4xf32>
  // CHECK: mlc.binary mul %{{.*}}, %{{.*}} : tensor<?x4xf32>, tensor<f32> -> tensor<?x4xf32>
  %6 = mlc.binary mul %x, %s : tensor<?x4xf32>, tensor<f32> -> tensor<?x4xf32>
  // CHECK: mlc.binary pow %{{.*}}, %{{.*}} : tensor<?x4xf32>, tensor<?x4xi32> -> tensor<?x4xf32>
  %7 = mlc.binary pow %x, %i : tensor<?x4xf32>, tensor<?x4xi32> -> tensor<?x4xf32>
  // CHECK: mlc.binary shr %{{.*}}, %{{.*}} {unsigned} : tensor<?x4xi32>
  %8 = mlc.binary shr %i, %i {unsigned} : tensor<?x4xi32>
  // CHECK: mlc.compare lt %{{.*}}, %{{.*}} : tensor<?x4xf32> -> tensor<?x4xi1>
  %9 = mlc.compare lt %x, %y : tensor<?x4xf32> -> tensor<?x4xi1>
  // CHECK: mlc.compare eq %{{.*}}, %{{.*}} : tensor<?x4xf32>, tensor<f32> -> tensor<?x4xi1>
  %10 = mlc.compare eq %x, %s : tensor<?x4xf32>, tensor<f32> -> tensor<?x4xi1>
  // CHECK: mlc.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x4xi1>, tensor<?x4xf32>, tensor<f32> -> tensor<?x4xf32>
  %11 = mlc.select %b, %x, %s : tensor<?x4xi1>, tensor<?x4xf32>, tensor<f32> -> tensor<?x4xf32>
  // CHECK: mlc.cast %{{.*}} {saturate, unsigned_out} : tensor<?x4xf32> -> tensor<?x4xi8>
  %12 = mlc.cast %x {saturate, unsigned_out} : tensor<?x4xf32> -> tensor<?x4xi8>
  // CHECK: mlc.bitcast %{{.*}} : tensor<?x4xf32> -> tensor<?x4xi32>
  %13 = mlc.bitcast %x : tensor<?x4xf32> -> tensor<?x4xi32>
  // CHECK: mlc.activation leaky_relu %{{.*}} {alpha = 1.000000e-02 : f64} : tensor<?x4xf32>
  %14 = mlc.activation leaky_relu %x {alpha = 1.000000e-02 : f64} : tensor<?x4xf32>
  // CHECK: mlc.clamp %{{.*}} low(%{{.*}} : tensor<f32>) high(%{{.*}} : tensor<f32>) : tensor<?x4xf32>
  %15 = mlc.clamp %x low(%s : tensor<f32>) high(%s : tensor<f32>) : tensor<?x4xf32>
  // CHECK: mlc.clamp %{{.*}} high(%{{.*}} : tensor<f32>) : tensor<?x4xf32>
  %16 = mlc.clamp %x high(%s : tensor<f32>) : tensor<?x4xf32>
  // CHECK: mlc.prelu %{{.*}}, %{{.*}} : tensor<?x4xf32>, tensor<f32> -> tensor<?x4xf32>
  %17 = mlc.prelu %x, %s : tensor<?x4xf32>, tensor<f32> -> tensor<?x4xf32>
  return
}
