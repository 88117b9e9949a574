// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-check-shapes)' | FileCheck %s

// A product of an extent that is not known with one that is.
// CHECK-LABEL: func.func @product
// CHECK: %[[D:.*]] = tensor.dim %arg0, %{{.*}} : tensor<?x?xf32>
// CHECK: %[[OK:.*]] = arith.cmpi eq, %[[D]], %c4{{.*}} : index
// CHECK-NEXT: mlc.check %[[OK]], %[[D]], "contraction extents of ?x? and 4x2 differ: 4 is needed"
// CHECK: mlc.matmul
func.func @product(%x: tensor<?x?xf32>, %w: tensor<4x2xf32>) -> tensor<?x2xf32> {
  %0 = mlc.unary exp %x : tensor<?x?xf32>
  %1 = mlc.matmul %0, %w : tensor<?x?xf32>, tensor<4x2xf32> -> tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}

// -----

// Nothing is asked for that is known: extents of one name, whole slices, products that cancel.
// CHECK-LABEL: func.func @known
// CHECK-NOT: mlc.check
func.func @known(%x: tensor<?x?xf32> {mlc.dims = ["b", "n"]}, %y: tensor<?x?xf32> {mlc.dims = ["n", "k"]})
    -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %0 = mlc.matmul %x, %y : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
  %1 = mlc.reshape %x [%n, %b] : tensor<?x?xf32> -> tensor<?x?xf32>
  return %0, %1 : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// What the end of a slice is clamped to lies inside: a minimum is one of the two.
// CHECK-LABEL: func.func @clamped
// CHECK-NOT: mlc.check
func.func @clamped(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %end = arith.minsi %n, %c5 : index
  %0 = mlc.slice %x [0] [%end] [1] : tensor<?xf32> -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// CHECK-LABEL: func.func @slice
// CHECK: arith.cmpi sle, %c5{{.*}}, %[[N:.*]] : index
// CHECK-NEXT: mlc.check %{{.*}}, %[[N]], "a slice of dimension 0 must lie inside of its input"
func.func @slice(%x: tensor<?xf32>) -> tensor<3xf32> {
  %0 = mlc.slice %x [2] [3] [1] : tensor<?xf32> -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// As many elements, and windows that fit.
// CHECK-LABEL: func.func @image
// CHECK: mlc.check %{{.*}}, "dimension 2 of the result would be negative"
// CHECK: mlc.check %{{.*}}, "the input cannot be reshaped to 36 elements"
// CHECK: mlc.conv
func.func @image(%x: tensor<1x3x?x?xf32>, %w: tensor<4x3x5x1xf32>) -> tensor<36xf32> {
  %0 = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>,
      groups = 1, layout = "nchw"} : tensor<1x3x?x?xf32>, tensor<4x3x5x1xf32> -> tensor<1x4x?x?xf32>
  %1 = mlc.reshape %0 [36] : tensor<1x4x?x?xf32> -> tensor<36xf32>
  return %1 : tensor<36xf32>
}

// -----

// An extent may be 1 where it stretches.
// CHECK-LABEL: func.func @stretches
// CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[D:.*]], %c4{{.*}} : index
// CHECK: %[[ONE:.*]] = arith.cmpi eq, %[[D]], %c1{{.*}} : index
// CHECK: %[[OK:.*]] = arith.ori %[[SAME]], %[[ONE]] : i1
// CHECK: mlc.check %[[OK]], %[[D]], "shape ? does not broadcast to 3x4"
func.func @stretches(%x: tensor<?xf32>) -> tensor<3x4xf32> {
  %0 = mlc.broadcast %x [3, 4] : tensor<?xf32> -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

// Only the branch that is taken asks.
// CHECK-LABEL: func.func @branch
// CHECK: scf.if
// CHECK: mlc.check %{{.*}}, "contraction extents of ?x? and 4x2 differ: 4 is needed"
// CHECK-NEXT: mlc.matmul
func.func @branch(%c: i1, %x: tensor<?x?xf32>, %w: tensor<4x2xf32>, %z: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %0 = scf.if %c -> tensor<?x2xf32> {
    %1 = mlc.matmul %x, %w : tensor<?x?xf32>, tensor<4x2xf32> -> tensor<?x2xf32>
    scf.yield %1 : tensor<?x2xf32>
  } else {
    scf.yield %z : tensor<?x2xf32>
  }
  return %0 : tensor<?x2xf32>
}

// -----

// An extent that a loop carries is asked of what the loop gives.
// CHECK-LABEL: func.func @carried
// CHECK: %[[R:.*]] = scf.for
// CHECK: tensor.dim %[[R]]
// CHECK: mlc.check %{{.*}}, "contraction extents of ?x? and 4x2 differ: 4 is needed"
func.func @carried(%x: tensor<?x?xf32>, %n: index, %w: tensor<4x2xf32>) -> tensor<?x2xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%h = %x) -> (tensor<?x?xf32>) {
    %y = mlc.concat %h, %h {axis = 1 : i64} : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>
    scf.yield %y : tensor<?x?xf32>
  }
  %1 = mlc.matmul %0, %w : tensor<?x?xf32>, tensor<4x2xf32> -> tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}

// -----

// What no run can have is an error of the run: another branch may be taken.
// CHECK-LABEL: func.func @never
// CHECK: %[[NO:.*]] = arith.cmpi eq, %c1{{.*}}, %c0{{.*}} : index
// CHECK-NEXT: mlc.check %[[NO]], %{{.*}}, "contraction extents of 2x5 and 4x2 differ: 5 and 4"
func.func @never(%x: tensor<2x5xf32>, %w: tensor<4x2xf32>) -> tensor<?x2xf32> {
  %0 = tensor.cast %x : tensor<2x5xf32> to tensor<?x?xf32>
  %1 = mlc.matmul %0, %w : tensor<?x?xf32>, tensor<4x2xf32> -> tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}

// -----

// What the program asks for already is not asked for again.
// CHECK-LABEL: func.func @said
// CHECK-COUNT-1: mlc.check %{{.*}}, "four features"
// CHECK-NOT: mlc.check
func.func @said(%x: tensor<?x?xf32>, %w: tensor<4x2xf32>) -> tensor<?x2xf32> {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %d = tensor.dim %x, %c1 : tensor<?x?xf32>
  %ok = arith.cmpi eq, %c4, %d : index
  mlc.check %ok, %d, "four features"
  %1 = mlc.matmul %x, %w : tensor<?x?xf32>, tensor<4x2xf32> -> tensor<?x2xf32>
  return %1 : tensor<?x2xf32>
}

// -----

// A place that data decide, with extents that are known.
// CHECK-LABEL: func.func @place
// CHECK: %[[LOW:.*]] = arith.cmpi sle, %{{[^,]*}}, %[[I:[^ ]*]]
// CHECK: mlc.check %[[LOW]], %[[I]], "a slice of dimension 0 must lie inside of its input"
// CHECK: %[[END:.*]] = arith.addi %{{.*}}, %{{.*}}
// CHECK: %[[HIGH:.*]] = arith.cmpi sle, %[[END]], %{{.*}}
// CHECK: mlc.check %[[HIGH]], %[[END]], "a slice of dimension 0 must lie inside of its input"
// CHECK: mlc.slice
func.func @place(%x: tensor<8x4xf32>, %at: tensor<i64>) -> tensor<1x4xf32> {
  %number = tensor.extract %at[] : tensor<i64>
  %i = arith.index_cast %number : i64 to index
  %0 = mlc.slice %x [%i, 0] [1, 4] [1, 1] : tensor<8x4xf32> -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}
