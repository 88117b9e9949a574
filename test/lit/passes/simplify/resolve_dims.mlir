// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-resolve-dims,canonicalize,cse)' | FileCheck %s

// CHECK-LABEL: func.func @loop
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[N:.*]]: index)
// CHECK: %[[D:.*]] = tensor.dim %[[X]], %c0
// CHECK-NEXT: return %[[D]]
func.func @loop(%x: tensor<?x8xf32>, %n: index) -> index {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> (tensor<?x8xf32>) {
    %y = mlc.unary exp %h : tensor<?x8xf32>
    scf.yield %y : tensor<?x8xf32>
  }
  %d = tensor.dim %0, %c0 : tensor<?x8xf32>
  return %d : index
}

// CHECK-LABEL: func.func @named
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<?x?xf32> {{.*}}, %[[Y:[a-z0-9]+]]: tensor<?x?xf32>
// CHECK-DAG: %[[B:.*]] = tensor.dim %[[X]], %c0
// CHECK-DAG: %[[S:.*]] = tensor.dim %[[Y]], %c1
// CHECK: return %[[B]], %[[B]], %[[S]]
func.func @named(%x: tensor<?x?xf32> {mlc.dims = ["b", ""]}, %y: tensor<?x?xf32> {mlc.dims = ["b", "s"]})
    -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = mlc.unary exp %y : tensor<?x?xf32>
  %a = tensor.dim %x, %c0 : tensor<?x?xf32>
  %b = tensor.dim %0, %c0 : tensor<?x?xf32>
  %s = tensor.dim %0, %c1 : tensor<?x?xf32>
  return %a, %b, %s : index, index, index
}

// CHECK-LABEL: func.func @cancels
// CHECK-SAME: (%[[X:.*]]: tensor<?x?x64xf32>)
// CHECK-DAG: %[[B:.*]] = tensor.dim %[[X]], %c0
// CHECK-DAG: %[[S:.*]] = tensor.dim %[[X]], %c1
// CHECK: mlc.reshape %[[X]] [%[[B]], %[[S]], 8, 8]
func.func @cancels(%x: tensor<?x?x64xf32>) -> tensor<?x?x8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %b = tensor.dim %x, %c0 : tensor<?x?x64xf32>
  %s = tensor.dim %x, %c1 : tensor<?x?x64xf32>
  %bs = arith.muli %b, %s : index
  %all = arith.muli %bs, %c64 : index
  %row = arith.muli %b, %c64 : index
  %rest = arith.divsi %all, %row : index
  %0 = mlc.reshape %x [%b, %rest, 8, 8] : tensor<?x?x64xf32> -> tensor<?x?x8x8xf32>
  return %0 : tensor<?x?x8x8xf32>
}

// CHECK-LABEL: func.func @products
// CHECK: %[[N:.*]] = arith.muli
// CHECK: %[[T:.*]] = arith.muli %[[N]], %c2
// CHECK: return %[[T]], %{{.*}}
func.func @products(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>) -> (index, index) {
  %c0 = arith.constant 0 : index
  %b = tensor.dim %x, %c0 : tensor<?x?xf32>
  %c1 = arith.constant 1 : index
  %s = tensor.dim %x, %c1 : tensor<?x?xf32>
  %bs = arith.muli %b, %s : index
  %flat = mlc.reshape %x [%bs] : tensor<?x?xf32> -> tensor<?xf32>
  %two = mlc.concat %flat, %flat {axis = 0 : i64} : tensor<?xf32>, tensor<?xf32> -> tensor<?xf32>
  %n = tensor.dim %two, %c0 : tensor<?xf32>
  %sum = mlc.binary add %x, %y : tensor<?x?xf32>
  %m = tensor.dim %sum, %c0 : tensor<?x?xf32>
  return %n, %m : index, index
}

// CHECK-LABEL: func.func @data
// CHECK: %[[I:.*]] = mlc.nonzero
// CHECK: tensor.dim %[[I]], %c1
func.func @data(%x: tensor<?xf32>) -> index {
  %c0 = arith.constant 0 : index
  %i = mlc.nonzero %x : tensor<?xf32> -> tensor<1x?xi64>
  %t = mlc.transpose %i {permutation = array<i64: 1, 0>} : tensor<1x?xi64> -> tensor<?x1xi64>
  %n = tensor.dim %t, %c0 : tensor<?x1xi64>
  return %n : index
}

// What the data decide can be seen in the branch, but not after it.
// CHECK-LABEL: func.func @visible
// CHECK: scf.if
// CHECK:   %[[I:.*]] = mlc.nonzero
// CHECK:   %[[N:.*]] = tensor.dim %[[I]], %c1
// CHECK:   %[[M:.*]] = arith.muli %[[N]], %c2
// CHECK:   mlc.broadcast %{{.*}} [%[[M]]]
// CHECK: } else {
// CHECK: tensor.dim %{{.*}}, %c0 : tensor<?xf32>
func.func @visible(%c: i1, %x: tensor<?xf32>) -> (tensor<?xf32>, index) {
  %c0 = arith.constant 0 : index
  %0 = scf.if %c -> (tensor<?xf32>) {
    %i = mlc.nonzero %x : tensor<?xf32> -> tensor<1x?xi64>
    %t = mlc.transpose %i {permutation = array<i64: 1, 0>} : tensor<1x?xi64> -> tensor<?x1xi64>
    %u = mlc.concat %t, %t {axis = 0 : i64} : tensor<?x1xi64>, tensor<?x1xi64> -> tensor<?x1xi64>
    %n = tensor.dim %u, %c0 : tensor<?x1xi64>
    %one = mlc.constant dense<1.0> : tensor<1xf32>
    %y = mlc.broadcast %one [%n] : tensor<1xf32> -> tensor<?xf32>
    scf.yield %y : tensor<?xf32>
  } else {
    scf.yield %x : tensor<?xf32>
  }
  %e = mlc.unary exp %0 : tensor<?xf32>
  %d = tensor.dim %e, %c0 : tensor<?xf32>
  return %e, %d : tensor<?xf32>, index
}

// A size that is an element of a tensor of integers.
// CHECK-LABEL: func.func @integers
// CHECK: %[[E:.*]] = tensor.extract
// CHECK: %[[N:.*]] = arith.index_cast %[[E]] : i64 to index
// CHECK: arith.muli %[[N]], %c2
func.func @integers(%s: tensor<i64>, %x: tensor<1xf32>) -> index {
  %c0 = arith.constant 0 : index
  %e = tensor.extract %s[] : tensor<i64>
  %n = arith.index_cast %e : i64 to index
  %0 = mlc.broadcast %x [%n] : tensor<1xf32> -> tensor<?xf32>
  %1 = mlc.concat %0, %0 {axis = 0 : i64} : tensor<?xf32>, tensor<?xf32> -> tensor<?xf32>
  %d = tensor.dim %1, %c0 : tensor<?xf32>
  return %d : index
}

// The extent of a strided window over an input that may be too short for it: the division rounds down.
// CHECK-LABEL: func.func @strided
// CHECK: %[[D:.*]] = tensor.dim %arg0
// CHECK: arith.floordivsi
// CHECK-NOT: tensor.dim %{{[0-9]+}}
// CHECK: return
func.func @strided(%x: tensor<1x3x?xf32> {mlc.dims = ["", "", "length"]}, %w: tensor<4x3x5xf32>) -> (tensor<1x4x?xf32>, tensor<?xi64>) {
  %c2 = arith.constant 2 : index
  %y = mlc.conv %x, %w {dilations = array<i64: 1>, padding = array<i64: 0, 0>, strides = array<i64: 2>} : tensor<1x3x?xf32>, tensor<4x3x5xf32> -> tensor<1x4x?xf32>
  %n = tensor.dim %y, %c2 : tensor<1x4x?xf32>
  %r = mlc.iota [%n] {axis = 0 : i64} : tensor<?xi64>
  return %y, %r : tensor<1x4x?xf32>, tensor<?xi64>
}

// The extent of a sum of two tensors that broadcast at run time, asked for again: a choice between the arguments' extents.
// CHECK-LABEL: func.func @broadcast_sum
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<?x4xf32>, %[[Y:[a-z0-9]+]]: tensor<?x4xf32>,
// CHECK-DAG: %[[A:.*]] = tensor.dim %[[X]]
// CHECK-DAG: %[[B:.*]] = tensor.dim %[[Y]]
// CHECK: %[[N:.*]] = arith.select
// CHECK-NOT: tensor.dim
// CHECK: mlc.broadcast %{{.*}} [%[[N]], 4]
func.func @broadcast_sum(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %z: tensor<1x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %s = mlc.binary add %x, %y : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  %n = tensor.dim %s, %c0 : tensor<?x4xf32>
  %b = mlc.broadcast %z [%n, 4] : tensor<1x4xf32> -> tensor<?x4xf32>
  %r = mlc.binary mul %s, %b : tensor<?x4xf32>, tensor<?x4xf32> -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
