// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-scalarize-shapes,canonicalize,cse)' | FileCheck %s

// The usual chain: reshape to [batch, seq, heads, -1 computed].
// CHECK-LABEL: func.func @split_heads
// CHECK-SAME: (%[[X:.*]]: tensor<?x?x64xf32>)
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[B:.*]] = tensor.dim %[[X]], %[[C0]]
// CHECK-DAG: %[[S:.*]] = tensor.dim %[[X]], %[[C1]]
// CHECK: mlc.reshape %[[X]] [%[[B]], %[[S]], 8, 8]
// CHECK-NEXT: return
func.func @split_heads(%x: tensor<?x?x64xf32>) -> tensor<?x?x?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %shape = mlc.shape_of %x : tensor<?x?x64xf32> -> tensor<3xi64>
  %i2 = mlc.constant dense<2> : tensor<i64>
  %hidden = mlc.gather %shape, %i2 {axis = 0 : i64} : tensor<3xi64>, tensor<i64> -> tensor<i64>
  %heads = mlc.constant dense<8> : tensor<i64>
  %d = mlc.binary div %hidden, %heads : tensor<i64>
  %d1 = mlc.reshape %d [1] : tensor<i64> -> tensor<1xi64>
  %h1 = mlc.reshape %heads [1] : tensor<i64> -> tensor<1xi64>
  %front = mlc.slice %shape [0] [2] [1] : tensor<3xi64> -> tensor<2xi64>
  %all = mlc.concat %front, %h1, %d1 {axis = 0 : i64} : tensor<2xi64>, tensor<1xi64>, tensor<1xi64> -> tensor<4xi64>
  %e0 = tensor.extract %all[%c0] : tensor<4xi64>
  %e1 = tensor.extract %all[%c1] : tensor<4xi64>
  %e2 = tensor.extract %all[%c2] : tensor<4xi64>
  %e3 = tensor.extract %all[%c3] : tensor<4xi64>
  %n0 = arith.index_cast %e0 : i64 to index
  %n1 = arith.index_cast %e1 : i64 to index
  %n2 = arith.index_cast %e2 : i64 to index
  %n3 = arith.index_cast %e3 : i64 to index
  %r = mlc.reshape %x [%n0, %n1, %n2, %n3] : tensor<?x?x64xf32> -> tensor<?x?x?x?xf32>
  return %r : tensor<?x?x?x?xf32>
}

// CHECK-LABEL: func.func @arithmetic
// CHECK-SAME: (%[[X:.*]]: tensor<?x?xf32>)
// CHECK-DAG: %[[N:.*]] = tensor.dim %[[X]], %c0
// CHECK-DAG: %[[M:.*]] = tensor.dim %[[X]], %c1
// CHECK-DAG: %[[P:.*]] = arith.muli %[[N]], %[[M]]
// CHECK-DAG: %[[IS:.*]] = arith.cmpi sgt, %[[N]], %[[M]]
// CHECK-DAG: %[[SEL:.*]] = arith.select %[[IS]], %[[N]], %[[M]]
// CHECK: return %[[P]], %[[SEL]]
func.func @arithmetic(%x: tensor<?x?xf32>) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %shape = mlc.shape_of %x : tensor<?x?xf32> -> tensor<2xi64>
  %p = mlc.reduce prod %shape {axes = array<i64: 0>} : tensor<2xi64> -> tensor<i64>
  %s32 = mlc.cast %shape : tensor<2xi64> -> tensor<2xi32>
  %r = mlc.constant dense<[1, 0]> : tensor<2xi64>
  %swapped = mlc.gather %s32, %r {axis = 0 : i64} : tensor<2xi32>, tensor<2xi64> -> tensor<2xi32>
  %gt = mlc.compare gt %s32, %swapped : tensor<2xi32>, tensor<2xi32> -> tensor<2xi1>
  %m = mlc.select %gt, %s32, %swapped : tensor<2xi1>, tensor<2xi32>, tensor<2xi32> -> tensor<2xi32>
  %a = tensor.extract %p[] : tensor<i64>
  %b = tensor.extract %m[%c0] : tensor<2xi32>
  %ai = arith.index_cast %a : i64 to index
  %bi = arith.index_cast %b : i32 to index
  return %ai, %bi : index, index
}

// Resize sizes: floor(extent * scale).
// CHECK-LABEL: func.func @scaled
// CHECK: %[[I:.*]] = arith.index_cast %{{.*}} : index to i64
// CHECK: %[[F:.*]] = arith.sitofp %[[I]] : i64 to f32
// CHECK: %[[P:.*]] = arith.mulf %[[F]], %{{.*}} : f32
// CHECK: %[[L:.*]] = math.floor %[[P]] : f32
// CHECK: arith.fptosi %[[L]] : f32 to i64
func.func @scaled(%x: tensor<?xf32>) -> index {
  %c0 = arith.constant 0 : index
  %shape = mlc.shape_of %x : tensor<?xf32> -> tensor<1xi64>
  %f = mlc.cast %shape : tensor<1xi64> -> tensor<1xf32>
  %scale = mlc.constant dense<1.5> : tensor<1xf32>
  %p = mlc.binary mul %f, %scale : tensor<1xf32>
  %l = mlc.unary floor %p : tensor<1xf32>
  %i = mlc.cast %l : tensor<1xf32> -> tensor<1xi64>
  %e = tensor.extract %i[%c0] : tensor<1xi64>
  %n = arith.index_cast %e : i64 to index
  return %n : index
}

// A condition on shapes decides a branch.
// CHECK-LABEL: func.func @branch
// CHECK-NOT: scf.if
// CHECK: mlc.unary exp
func.func @branch(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %shape = mlc.shape_of %x : tensor<4x?xf32> -> tensor<2xi64>
  %four = mlc.constant dense<[4]> : tensor<1xi64>
  %first = mlc.slice %shape [0] [1] [1] : tensor<2xi64> -> tensor<1xi64>
  %eq = mlc.compare eq %first, %four : tensor<1xi64>, tensor<1xi64> -> tensor<1xi1>
  %s = mlc.reshape %eq [] : tensor<1xi1> -> tensor<i1>
  %c = tensor.extract %s[] : tensor<i1>
  %r = scf.if %c -> (tensor<4x?xf32>) {
    %y = mlc.unary exp %x : tensor<4x?xf32>
    scf.yield %y : tensor<4x?xf32>
  } else {
    scf.yield %x : tensor<4x?xf32>
  }
  return %r : tensor<4x?xf32>
}

// The data decide: the chain ends at the argument and at the operation without a rule.
// CHECK-LABEL: func.func @data
// CHECK-SAME: (%[[N:.*]]: tensor<2xi64>, %[[X:.*]]: tensor<3xi64>)
// CHECK-DAG: tensor.extract %[[N]][%c1]
// CHECK-DAG: %[[V:.*]], %{{.*}} = mlc.sort %[[X]]
// CHECK-DAG: tensor.extract %[[V]][%c0]
// CHECK: arith.addi
func.func @data(%n: tensor<2xi64>, %x: tensor<3xi64>) -> index {
  %c1 = arith.constant 1 : index
  %v, %i = mlc.sort %x {axis = 0 : i64} : tensor<3xi64> -> tensor<3xi64>, tensor<3xi64>
  %two = mlc.slice %v [0] [1] [1] : tensor<3xi64> -> tensor<1xi64>
  %sum = mlc.binary add %n, %two : tensor<2xi64>, tensor<1xi64> -> tensor<2xi64>
  %e = tensor.extract %sum[%c1] : tensor<2xi64>
  %r = arith.index_cast %e : i64 to index
  return %r : index
}
