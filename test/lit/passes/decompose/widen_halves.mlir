// RUN: mlc-opt %s --mlc-widen-halves | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-widen-halves{weights=true})' | FileCheck %s --check-prefix=WEIGHTS

// What is computed is f32 until the end; a large weight stays as it is, a small one does not.
// CHECK-LABEL: func.func @layers
// CHECK-SAME: %[[X:.*]]: tensor<4x128xf16>
// CHECK: %[[A:.*]] = mlc.cast %[[X]] : tensor<4x128xf16> -> tensor<4x128xf32>
// CHECK: %[[W:.*]] = mlc.weight "w" : tensor<128x128xf16>
// CHECK: %[[M:.*]] = mlc.matmul %[[A]], %[[W]] {widen} : tensor<4x128xf32>, tensor<128x128xf16> -> tensor<4x128xf32>
// CHECK: %[[T:.*]] = mlc.unary tanh %[[M]] : tensor<4x128xf32>
// CHECK: %[[V:.*]] = mlc.weight "v" : tensor<128x8xf16>
// CHECK: %[[B:.*]] = mlc.cast %[[V]] : tensor<128x8xf16> -> tensor<128x8xf32>
// CHECK: %[[N:.*]] = mlc.matmul %[[T]], %[[B]] : tensor<4x128xf32>, tensor<128x8xf32> -> tensor<4x8xf32>
// CHECK: %[[R:.*]] = mlc.cast %[[N]] : tensor<4x8xf32> -> tensor<4x8xf16>
// CHECK: return %[[R]]
// WEIGHTS-LABEL: func.func @layers
// WEIGHTS: mlc.matmul {{.*}} : tensor<4x128xf32>, tensor<128x128xf32> -> tensor<4x128xf32>
func.func @layers(%x: tensor<4x128xf16>) -> tensor<4x8xf16> {
  %w = mlc.weight "w" : tensor<128x128xf16>
  %0 = mlc.matmul %x, %w : tensor<4x128xf16>, tensor<128x128xf16> -> tensor<4x128xf16>
  %1 = mlc.unary tanh %0 : tensor<4x128xf16> -> tensor<4x128xf16>
  %v = mlc.weight "v" : tensor<128x8xf16>
  %2 = mlc.matmul %1, %v : tensor<4x128xf16>, tensor<128x8xf16> -> tensor<4x8xf16>
  return %2 : tensor<4x8xf16>
}

// Filters, with a bias that is f32; a transposed weight is a weight.
// CHECK-LABEL: func.func @filters
// CHECK: %[[B:.*]] = mlc.cast %{{.*}} : tensor<64xf16> -> tensor<64xf32>
// CHECK: %[[F:.*]] = mlc.transpose %{{.*}} : tensor<3x3x64x64xf16> -> tensor<64x64x3x3xf16>
// CHECK: mlc.conv %{{.*}}, %[[F]] bias(%[[B]] : tensor<64xf32>) {{.*}}widen} : tensor<1x64x9x9xf32>, tensor<64x64x3x3xf16> -> tensor<1x64x7x7xf32>
func.func @filters(%x: tensor<1x64x9x9xf16>) -> tensor<1x64x7x7xf16> {
  %w = mlc.weight "w" : tensor<3x3x64x64xf16>
  %b = mlc.weight "b" : tensor<64xf16>
  %t = mlc.transpose %w {permutation = array<i64: 3, 2, 0, 1>} : tensor<3x3x64x64xf16> -> tensor<64x64x3x3xf16>
  %0 = mlc.conv %x, %t bias(%b : tensor<64xf16>) {dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x64x9x9xf16>, tensor<64x64x3x3xf16> -> tensor<1x64x7x7xf16>
  return %0 : tensor<1x64x7x7xf16>
}

// A cache stays as it is, with what is new rounded to it; so does a table. Sizes are asked of what there is.
// CHECK-LABEL: func.func @caches
// CHECK-SAME: %[[C:.*]]: tensor<1x?x8xf16>, %[[X:.*]]: tensor<1x1x8xf16>
// CHECK: %[[W:.*]] = mlc.cast %[[X]] : tensor<1x1x8xf16> -> tensor<1x1x8xf32>
// CHECK: %[[D:.*]] = mlc.binary add %[[W]], %[[W]]
// CHECK: %[[N:.*]] = mlc.cast %[[D]] : tensor<1x1x8xf32> -> tensor<1x1x8xf16>
// CHECK: %[[J:.*]] = mlc.concat %[[C]], %[[N]] {axis = 1 : i64} : tensor<1x?x8xf16>
// CHECK: %[[K:.*]] = mlc.cast %[[J]] : tensor<1x?x8xf16> -> tensor<1x?x8xf32>
// CHECK: %[[S:.*]] = mlc.matmul %[[D]], %[[K]] {transpose_rhs} : tensor<1x1x8xf32>, tensor<1x?x8xf32> -> tensor<1x1x?xf32>
// CHECK: %[[SIZE:.*]] = mlc.shape_of %[[S]] : tensor<1x1x?xf32> -> tensor<3xi64>
// CHECK: return %[[J]], %[[SIZE]]
func.func @caches(%c: tensor<1x?x8xf16>, %x: tensor<1x1x8xf16>) -> (tensor<1x?x8xf16>, tensor<3xi64>) {
  %0 = mlc.binary add %x, %x : tensor<1x1x8xf16>, tensor<1x1x8xf16> -> tensor<1x1x8xf16>
  %1 = mlc.concat %c, %0 {axis = 1 : i64} : tensor<1x?x8xf16>, tensor<1x1x8xf16> -> tensor<1x?x8xf16>
  %2 = mlc.matmul %0, %1 {transpose_rhs} : tensor<1x1x8xf16>, tensor<1x?x8xf16> -> tensor<1x1x?xf16>
  %3 = mlc.shape_of %2 : tensor<1x1x?xf16> -> tensor<3xi64>
  return %1, %3 : tensor<1x?x8xf16>, tensor<3xi64>
}

// Casts between what is computed are left out; those of integers give f32.
// CHECK-LABEL: func.func @casts
// CHECK: %[[N:.*]] = mlc.cast %{{.*}} : tensor<4xi32> -> tensor<4xf32>
// CHECK: %[[S:.*]] = mlc.binary add %{{.*}}, %[[N]] : tensor<4xf32>
// CHECK: %[[E:.*]] = mlc.unary exp %[[S]] : tensor<4xf32>
// CHECK: %[[I:.*]] = mlc.cast %[[E]] : tensor<4xf32> -> tensor<4xi32>
// CHECK: return %[[E]], %[[I]]
func.func @casts(%x: tensor<4xf32>, %n: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %0 = mlc.cast %x : tensor<4xf32> -> tensor<4xf16>
  %1 = mlc.cast %n : tensor<4xi32> -> tensor<4xf16>
  %2 = mlc.binary add %0, %1 : tensor<4xf16>, tensor<4xf16> -> tensor<4xf16>
  %3 = mlc.cast %2 : tensor<4xf16> -> tensor<4xf32>
  %4 = mlc.unary exp %3 : tensor<4xf32> -> tensor<4xf32>
  %5 = mlc.cast %4 : tensor<4xf32> -> tensor<4xf16>
  %6 = mlc.cast %5 : tensor<4xf16> -> tensor<4xi32>
  return %4, %6 : tensor<4xf32>, tensor<4xi32>
}

// What control flow carries stays, and what is computed inside is f32.
// CHECK-LABEL: func.func @branches
// CHECK: scf.if {{.*}} -> (tensor<4xf16>)
// CHECK: mlc.unary exp %{{.*}} : tensor<4xf32>
// CHECK: %[[Y:.*]] = mlc.cast %{{.*}} : tensor<4xf32> -> tensor<4xf16>
// CHECK: scf.yield %[[Y]]
// CHECK: } else {
// CHECK: scf.yield %{{.*}} : tensor<4xf16>
func.func @branches(%x: tensor<4xf16>, %c: i1) -> tensor<4xf16> {
  %0 = scf.if %c -> (tensor<4xf16>) {
    %1 = mlc.unary exp %x : tensor<4xf16> -> tensor<4xf16>
    scf.yield %1 : tensor<4xf16>
  } else {
    scf.yield %x : tensor<4xf16>
  }
  return %0 : tensor<4xf16>
}

// Weights that steps of a recurrent layer multiply are f32, however small: its kernel reads them in every step.
// CHECK-LABEL: func.func @recurrent
// CHECK: %[[R:.*]] = mlc.weight "recurrent"
// CHECK: %[[W:.*]] = mlc.cast %[[R]] : tensor<1x64x16xf16> -> tensor<1x64x16xf32>
// CHECK: mlc.recurrence lstm %{{.*}}, %[[W]] : tensor<5x2x64xf32>, tensor<1x64x16xf32>
func.func @recurrent(%x: tensor<5x2x64xf32>) -> tensor<5x2x1x16xf32> {
  %r = mlc.weight "recurrent" : tensor<1x64x16xf16>
  %y, %h, %c = mlc.recurrence lstm %x, %r : tensor<5x2x64xf32>, tensor<1x64x16xf16> -> tensor<5x2x1x16xf32>, tensor<1x2x16xf32>, tensor<1x2x16xf32>
  return %y : tensor<5x2x1x16xf32>
}
