// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-fold-factors,canonicalize,cse)' | FileCheck %s

// Four columns times 0.5, four times 1; slices are behind a reshape, factors behind one too.
// CHECK-LABEL: func.func @parts
// CHECK: %[[W:.*]] = mlc.weight "w"
// CHECK: %[[F:.*]] = mlc.concat %{{.*}}, %{{.*}} {axis = 0 : i64} : tensor<4xf32>, tensor<4xf32> -> tensor<8xf32>
// CHECK: %[[C:.*]] = mlc.reshape %[[F]] [8, 1]
// CHECK: %[[WF:.*]] = mlc.binary mul %[[W]], %[[C]]
// CHECK: %[[B:.*]] = mlc.weight "b"
// CHECK: %[[BF:.*]] = mlc.binary mul %[[B]], %[[F]]
// CHECK: %[[M:.*]] = mlc.matmul %arg0, %[[WF]] {transpose_rhs}
// CHECK: mlc.binary add %[[M]], %[[BF]]
// CHECK-NOT: mlc.binary mul
// CHECK: return
func.func @parts(%x: tensor<3x6xf32>) -> (tensor<12xf32>, tensor<3x1x4xf32>) {
  %w = mlc.weight "w" : tensor<8x6xf32>
  %b = mlc.weight "b" : tensor<8xf32>
  %c = mlc.constant dense<0.5> : tensor<f32>
  %m = mlc.matmul %x, %w {transpose_rhs} : tensor<3x6xf32>, tensor<8x6xf32> -> tensor<3x8xf32>
  %p = mlc.binary add %m, %b : tensor<3x8xf32>, tensor<8xf32> -> tensor<3x8xf32>
  %r = mlc.reshape %p [3, 2, 4] : tensor<3x8xf32> -> tensor<3x2x4xf32>
  %s = mlc.slice %r [0, 0, 0] [3, 1, 4] [1, 1, 1] : tensor<3x2x4xf32> -> tensor<3x1x4xf32>
  %t = mlc.slice %r [0, 1, 0] [3, 1, 4] [1, 1, 1] : tensor<3x2x4xf32> -> tensor<3x1x4xf32>
  %u = mlc.reshape %s [12] : tensor<3x1x4xf32> -> tensor<12xf32>
  %q = mlc.binary mul %u, %c : tensor<12xf32>, tensor<f32> -> tensor<12xf32>
  return %q, %t : tensor<12xf32>, tensor<3x1x4xf32>
}

// Somebody else reads the product; factors of rows are none of columns.
// CHECK-LABEL: func.func @others
// CHECK: mlc.matmul %arg0, %{{.*}} {transpose_rhs}
// CHECK: mlc.binary mul
// CHECK: mlc.matmul %arg0, %{{.*}} {transpose_rhs}
// CHECK: mlc.binary mul
func.func @others(%x: tensor<3x6xf32>) -> (tensor<3x8xf32>, tensor<3x4xf32>, tensor<1x8xf32>) {
  %w = mlc.weight "w" : tensor<8x6xf32>
  %v = mlc.weight "v" : tensor<8x6xf32>
  %c = mlc.constant dense<0.5> : tensor<f32>
  %m = mlc.matmul %x, %w {transpose_rhs} : tensor<3x6xf32>, tensor<8x6xf32> -> tensor<3x8xf32>
  %s = mlc.slice %m [0, 0] [3, 4] [1, 1] : tensor<3x8xf32> -> tensor<3x4xf32>
  %q = mlc.binary mul %s, %c : tensor<3x4xf32>, tensor<f32> -> tensor<3x4xf32>
  %n = mlc.matmul %x, %v {transpose_rhs} : tensor<3x6xf32>, tensor<8x6xf32> -> tensor<3x8xf32>
  %t = mlc.slice %n [1, 0] [1, 8] [1, 1] : tensor<3x8xf32> -> tensor<1x8xf32>
  %k = mlc.binary mul %t, %c : tensor<1x8xf32>, tensor<f32> -> tensor<1x8xf32>
  return %m, %q, %k : tensor<3x8xf32>, tensor<3x4xf32>, tensor<1x8xf32>
}

// A factor of all columns.
// CHECK-LABEL: func.func @whole
// CHECK: %[[W:.*]] = mlc.weight "w"
// CHECK: %[[WF:.*]] = mlc.binary mul %[[W]], %{{.*}} : tensor<6x8xf32>
// CHECK: %[[M:.*]] = mlc.matmul %arg0, %[[WF]]
// CHECK: %[[R:.*]] = mlc.reshape %[[M]] [3, 2, 4]
// CHECK: return %[[R]]
func.func @whole(%x: tensor<3x6xf32>) -> tensor<3x2x4xf32> {
  %w = mlc.weight "w" : tensor<6x8xf32>
  %c = mlc.constant dense<0.5> : tensor<f32>
  %m = mlc.matmul %x, %w : tensor<3x6xf32>, tensor<6x8xf32> -> tensor<3x8xf32>
  %r = mlc.reshape %m [3, 2, 4] : tensor<3x8xf32> -> tensor<3x2x4xf32>
  %q = mlc.binary mul %r, %c : tensor<3x2x4xf32>, tensor<f32> -> tensor<3x2x4xf32>
  return %q : tensor<3x2x4xf32>
}

// Any number of rows; slices of the product itself, the factor behind a reshape that splits columns.
// CHECK-LABEL: func.func @rows
// CHECK: %[[W:.*]] = mlc.weight "w"
// CHECK: %[[F:.*]] = mlc.concat %{{.*}}, %{{.*}} {axis = 0 : i64} : tensor<4xf32>, tensor<4xf32> -> tensor<8xf32>
// CHECK: %[[WF:.*]] = mlc.binary mul %[[W]], %[[F]]
// CHECK: mlc.matmul %arg0, %[[WF]]
// CHECK-NOT: mlc.binary mul
// CHECK: return
func.func @rows(%x: tensor<?x?x6xf32>, %n: index, %m: index) -> (tensor<?x?x2x2xf32>, tensor<?x?x4xf32>) {
  %w = mlc.weight "w" : tensor<6x8xf32>
  %c = mlc.constant dense<0.5> : tensor<f32>
  %p = mlc.matmul %x, %w : tensor<?x?x6xf32>, tensor<6x8xf32> -> tensor<?x?x8xf32>
  %s = mlc.slice %p [0, 0, 0] [%n, %m, 4] [1, 1, 1] : tensor<?x?x8xf32> -> tensor<?x?x4xf32>
  %t = mlc.slice %p [0, 0, 4] [%n, %m, 4] [1, 1, 1] : tensor<?x?x8xf32> -> tensor<?x?x4xf32>
  %r = mlc.reshape %s [%n, %m, 2, 2] : tensor<?x?x4xf32> -> tensor<?x?x2x2xf32>
  %q = mlc.binary mul %r, %c : tensor<?x?x2x2xf32>, tensor<f32> -> tensor<?x?x2x2xf32>
  return %q, %t : tensor<?x?x2x2xf32>, tensor<?x?x4xf32>
}

// Slices along a dynamic dimension are no parts of the columns.
// CHECK-LABEL: func.func @split_rows
// CHECK: mlc.matmul
// CHECK: mlc.binary mul
// CHECK: return
func.func @split_rows(%x: tensor<?x6xf32>, %n: index) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %w = mlc.weight "w" : tensor<6x8xf32>
  %c = mlc.constant dense<0.5> : tensor<f32>
  %p = mlc.matmul %x, %w : tensor<?x6xf32>, tensor<6x8xf32> -> tensor<?x8xf32>
  %s = mlc.slice %p [0, 0] [%n, 8] [1, 1] : tensor<?x8xf32> -> tensor<?x8xf32>
  %t = mlc.slice %p [%n, 0] [%n, 8] [1, 1] : tensor<?x8xf32> -> tensor<?x8xf32>
  %q = mlc.binary mul %s, %c : tensor<?x8xf32>, tensor<f32> -> tensor<?x8xf32>
  return %q, %t : tensor<?x8xf32>, tensor<?x8xf32>
}

// The columns of a convolution are its channels; its bias gets their factors too.
// CHECK-LABEL: func.func @channels
// CHECK-DAG: %[[W:.*]] = mlc.weight "w"
// CHECK-DAG: %[[B:.*]] = mlc.weight "b"
// CHECK-DAG: %[[WF:.*]] = mlc.binary mul %[[W]], %{{.*}} : tensor<6x4x1x1xf32>, tensor<6x1x1x1xf32>
// CHECK-DAG: %[[BF:.*]] = mlc.binary mul %[[B]], %{{.*}} : tensor<6xf32>
// CHECK: mlc.conv %arg0, %[[WF]] bias(%[[BF]] : tensor<6xf32>)
// CHECK-NOT: mlc.binary
func.func @channels(%x: tensor<?x4x3x3xf32>) -> (tensor<?x2x1x9xf32>, tensor<?x2x2x9xf32>) {
  %w = mlc.weight "w" : tensor<6x4x1x1xf32>
  %b = mlc.weight "b" : tensor<6xf32>
  %c = mlc.constant dense<0.5> : tensor<f32>
  %z = arith.constant 0 : index
  %n = tensor.dim %x, %z : tensor<?x4x3x3xf32>
  %m = mlc.conv %x, %w bias(%b : tensor<6xf32>) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : tensor<?x4x3x3xf32>, tensor<6x4x1x1xf32> -> tensor<?x6x3x3xf32>
  %r = mlc.reshape %m [%n, 2, 3, 9] : tensor<?x6x3x3xf32> -> tensor<?x2x3x9xf32>
  %q = mlc.slice %r [0, 0, 0, 0] [%n, 2, 1, 9] [1, 1, 1, 1] : tensor<?x2x3x9xf32> -> tensor<?x2x1x9xf32>
  %k = mlc.slice %r [0, 0, 1, 0] [%n, 2, 2, 9] [1, 1, 1, 1] : tensor<?x2x3x9xf32> -> tensor<?x2x2x9xf32>
  %s = mlc.binary mul %q, %c : tensor<?x2x1x9xf32>, tensor<f32> -> tensor<?x2x1x9xf32>
  return %s, %k : tensor<?x2x1x9xf32>, tensor<?x2x2x9xf32>
}
