// Data-dependent movement: what is printed parses to the same, in both forms.
// RUN: mlc-opt %s | mlc-opt | FileCheck %s
// RUN: mlc-opt %s --mlir-print-op-generic | mlc-opt | FileCheck %s

// CHECK-LABEL: func.func @indexing
func.func @indexing(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %i: tensor<?x4xi32>, %b: tensor<?x4xi1>, %s: tensor<f32>, %l: tensor<i64>, %n: index) {
  // CHECK: mlc.weight "ix" : tensor<3x2xi64>
  %ix = mlc.weight "ix" : tensor<3x2xi64>
  // CHECK: mlc.weight "flat" : tensor<9xf32>
  %flat = mlc.weight "flat" : tensor<9xf32>
  // CHECK: mlc.constant dense<[0.000000e+00, 1.000000e+00]> : tensor<2xf32>
  %on = mlc.constant dense<[0.000000e+00, 1.000000e+00]> : tensor<2xf32>
  // CHECK: mlc.weight "up" : tensor<3x2xf32>
  %up = mlc.weight "up" : tensor<3x2xf32>
  // CHECK: mlc.weight "up1" : tensor<3xf32>
  %up1 = mlc.weight "up1" : tensor<3xf32>
  // CHECK: mlc.gather %{{.*}}, %{{.*}} {axis = 1 : i64} : tensor<?x4xf32>, tensor<3x2xi64> -> tensor<?x3x2xf32>
  %0 = mlc.gather %x, %ix {axis = 1 : i64} : tensor<?x4xf32>, tensor<3x2xi64> -> tensor<?x3x2xf32>
  // CHECK: mlc.gather_elements %{{.*}}, %{{.*}} {axis = 0 : i64} : tensor<?x4xf32>, tensor<3x2xi64> -> tensor<3x2xf32>
  %1 = mlc.gather_elements %x, %ix {axis = 0 : i64} : tensor<?x4xf32>, tensor<3x2xi64> -> tensor<3x2xf32>
  // CHECK: mlc.gather_nd %{{.*}}, %{{.*}} : tensor<?x4xf32>, tensor<3x2xi64> -> tensor<3xf32>
  %2 = mlc.gather_nd %x, %ix : tensor<?x4xf32>, tensor<3x2xi64> -> tensor<3xf32>
  // CHECK: mlc.scatter_elements %{{.*}}, %{{.*}}, %{{.*}} {axis = 1 : i64, reduction = "add"} : tensor<?x4xf32>, tensor<3x2xi64>, tensor<3x2xf32> -> tensor<?x4xf32>
  %3 = mlc.scatter_elements %x, %ix, %up {axis = 1 : i64, reduction = "add"} : tensor<?x4xf32>, tensor<3x2xi64>, tensor<3x2xf32> -> tensor<?x4xf32>
  // CHECK: mlc.scatter_nd %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x4xf32>, tensor<3x2xi64>, tensor<3xf32> -> tensor<?x4xf32>
  %4 = mlc.scatter_nd %x, %ix, %up1 : tensor<?x4xf32>, tensor<3x2xi64>, tensor<3xf32> -> tensor<?x4xf32>
  // CHECK: mlc.insert %{{.*}}, %{{.*}}, %{{.*}} {axis = 1 : i64} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  %starts = tensor.empty(%n) : tensor<?xi64>
  %inserted = mlc.insert %x, %y, %starts {axis = 1 : i64} : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?xi64> -> tensor<?x4xf32>
  // CHECK: mlc.nonzero %{{.*}} : tensor<?x4xf32> -> tensor<2x?xi64>
  %5 = mlc.nonzero %x : tensor<?x4xf32> -> tensor<2x?xi64>
  // CHECK: mlc.topk %{{.*}}, %{{.*}} {axis = 1 : i64, largest = false} : tensor<?x4xf32> -> tensor<?x?xf32>, tensor<?x?xi64>
  %values_6, %indices_6 = mlc.topk %x, %n {axis = 1 : i64, largest = false} : tensor<?x4xf32> -> tensor<?x?xf32>, tensor<?x?xi64>
  // CHECK: mlc.topk %{{.*}}, %{{.*}} places(%{{.*}} : tensor<9xi64>) {axis = 0 : i64, part = 5 : i64} : tensor<9xf32> -> tensor<4xf32>, tensor<4xi64>
  %two = arith.constant 2 : index
  %places = arith.constant dense<1> : tensor<9xi64>
  %values_7b, %indices_7b = mlc.topk %flat, %two places(%places : tensor<9xi64>) {axis = 0 : i64, part = 5 : i64} : tensor<9xf32> -> tensor<4xf32>, tensor<4xi64>
  // CHECK: mlc.sort %{{.*}} {axis = 0 : i64, descending = true} : tensor<?x4xf32> -> tensor<?x4xf32>, tensor<?x4xi64>
  %values_7, %indices_7 = mlc.sort %x {axis = 0 : i64, descending = true} : tensor<?x4xf32> -> tensor<?x4xf32>, tensor<?x4xi64>
  // CHECK: mlc.unique %{{.*}} {sorted = false} : tensor<9xf32> -> tensor<?xf32>, tensor<?xi64>, tensor<9xi64>, tensor<?xi64>
  %values_8, %first_8, %inverse_8, %counts_8 = mlc.unique %flat {sorted = false} : tensor<9xf32> -> tensor<?xf32>, tensor<?xi64>, tensor<9xi64>, tensor<?xi64>
  // CHECK: mlc.one_hot %{{.*}}, %{{.*}}, %{{.*}} {axis = 2 : i64} : tensor<3x2xi64>, tensor<2xf32> -> tensor<3x2x?xf32>
  %9 = mlc.one_hot %ix, %n, %on {axis = 2 : i64} : tensor<3x2xi64>, tensor<2xf32> -> tensor<3x2x?xf32>
  // CHECK: mlc.trilu %{{.*}}, %{{.*}} {upper = false} : tensor<?x4xf32>
  %10 = mlc.trilu %x, %n {upper = false} : tensor<?x4xf32>
  return
}
