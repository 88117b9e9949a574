// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-place-weights,mlc-bufferize-host,canonicalize,cse)' | FileCheck %s

// The signature outlives the tensors; one tensor.empty is two buffers; constants and weights are views of memory.
// CHECK: module attributes {mlc.entries = [{inputs = [{dims = ["n", ""], dtype = "float32", name = "x", shape = array<i64: -1, 4>}]
// CHECK-SAME: outputs = [{dims = ["n", ""], dtype = "uint8", name = "y", shape = array<i64: -1, 4>}]
// CHECK: memref.global "private" constant @[[C:.*]] : memref<4xf32> = dense<[1.000000e+00
// CHECK-LABEL: func.func @chain(
// CHECK-SAME: %[[X:.*]]: memref<?x4xf32>
func.func @chain(%x: tensor<?x4xf32> {mlc.name = "x", mlc.dims = ["n", ""]}) -> (tensor<?x4xi8> {mlc.name = "y", mlc.dtype = "uint8"}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %w = mlc.weight "w" : tensor<4xf32>
  %c = mlc.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  // CHECK: %[[N:.*]] = memref.dim %[[X]]
  // CHECK: %[[W:.*]] = mlc.buffer weights {static_offset = 0 : i64} : memref<4xf32>
  // CHECK: %[[K:.*]] = memref.get_global @[[C]]
  // CHECK: %[[A:.*]] = memref.alloc(%[[N]])
  // CHECK: mlc.launch @k0(%[[X]], %[[W]]) outs(%[[A]]) : (memref<?x4xf32>, memref<4xf32>) outs(memref<?x4xf32>)
  %a = mlc.launch @k0(%x, %w) outs(%e) : (tensor<?x4xf32>, tensor<4xf32>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: %[[B:.*]] = memref.alloc(%[[N]])
  // CHECK: mlc.launch @k0(%[[A]], %[[K]]) outs(%[[B]])
  %b = mlc.launch @k0(%a, %c) outs(%e) : (tensor<?x4xf32>, tensor<4xf32>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  %f = tensor.empty(%n) : tensor<?x4xi8>
  // CHECK: mlc.launch @k1(%[[B]]) outs(%[[R:.*]]) :
  %r = mlc.launch @k1(%b) outs(%f) : (tensor<?x4xf32>) outs(tensor<?x4xi8>) -> tensor<?x4xi8>
  // CHECK: return %[[R]] : memref<?x4xi8>
  return %r : tensor<?x4xi8>
}

// -----

// Views stay views, an index is an operand, a data-dependent extent is a load.
// CHECK-LABEL: func.func @views(
func.func @views(%x: tensor<2x?x4xf32>, %n: tensor<i64>) -> tensor<?xf32> {
  // CHECK: %[[C:.*]] = memref.collapse_shape %{{.*}} {{\[\[}}0, 1], [2]] : memref<2x?x4xf32> into memref<?x4xf32>
  %c = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x?x4xf32> into tensor<?x4xf32>
  // CHECK: %[[S:.*]] = memref.subview %[[C]][1, 0] [3, 4] [1, 1] : memref<?x4xf32> to memref<3x4xf32, strided<[4, 1], offset: 4>>
  %s = tensor.extract_slice %c[1, 0] [3, 4] [1, 1] : tensor<?x4xf32> to tensor<3x4xf32>
  // CHECK: %[[I:.*]] = memref.load %{{.*}}[] : memref<i64>
  %i = tensor.extract %n[] : tensor<i64>
  // CHECK: %[[N:.*]] = arith.index_cast %[[I]]
  %d = arith.index_cast %i : i64 to index
  // CHECK: %[[L:.*]] = memref.alloc() {{.*}} : memref<2xi64>
  // CHECK: memref.store %[[I]], %[[L]]
  // CHECK: memref.store %[[I]], %[[L]]
  %l = tensor.from_elements %i, %i : tensor<2xi64>
  %e = tensor.empty(%d) : tensor<?xf32>
  // CHECK: %[[O:.*]] = memref.alloc(%[[N]])
  // CHECK: mlc.launch @k(%[[S]], %[[L]], %[[N]]) outs(%[[O]])
  %r = mlc.launch @k(%s, %l, %d) outs(%e) : (tensor<3x4xf32>, tensor<2xi64>, index) outs(tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// A destination whose old contents are read begins as a copy of the tensor that is updated.
// CHECK-LABEL: func.func @updated(
// CHECK-SAME: %[[X:.*]]: memref<8xf32>, %[[U:.*]]: memref<2xf32>
func.func @updated(%x: tensor<8xf32>, %u: tensor<2xf32>) -> tensor<8xf32> {
  // CHECK: %[[A:.*]] = memref.alloc()
  // CHECK: memref.copy %[[X]], %[[A]]
  // CHECK: mlc.launch @k(%[[U]]) outs(%[[A]])
  %r = mlc.launch @k(%u) outs(%x) : (tensor<2xf32>) outs(tensor<8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
module @k attributes {mlc.kernel, mlc.inout = array<i64: 0>} {
}

// -----

// Carried tensors whose extents never change live in one buffer each; exchanging two of them goes through copies.
// CHECK-LABEL: func.func @exchange(
func.func @exchange(%a: tensor<?xf32>, %b: tensor<?xf32>, %n: tensor<index>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %times = tensor.extract %n[] : tensor<index>
  // CHECK: %[[A:.*]] = memref.alloc
  // CHECK: memref.copy %{{.*}}, %[[A]]
  // CHECK: %[[B:.*]] = memref.alloc
  // CHECK: memref.copy %{{.*}}, %[[B]]
  // CHECK: scf.for
  // CHECK-NOT: iter_args
  %r:2 = scf.for %i = %c0 to %times step %c1 iter_args(%p = %a, %q = %b) -> (tensor<?xf32>, tensor<?xf32>) {
    %d = tensor.dim %p, %c0 : tensor<?xf32>
    %e = tensor.empty(%d) : tensor<?xf32>
    // CHECK: %[[R:.*]] = memref.alloc
    // CHECK: mlc.launch @k(%[[A]]) outs(%[[R]])
    %s = mlc.launch @k(%p) outs(%e) : (tensor<?xf32>) outs(tensor<?xf32>) -> tensor<?xf32>
    // CHECK: memref.copy %[[R]], %[[A]]
    scf.yield %s, %q : tensor<?xf32>, tensor<?xf32>
  }
  %t:2 = scf.for %i = %c0 to %times step %c1 iter_args(%p = %r#0, %q = %r#0) -> (tensor<?xf32>, tensor<?xf32>) {
    // CHECK: scf.for
    // CHECK: %[[T:.*]] = memref.alloc
    // CHECK: memref.copy %[[Q:.*]], %[[T]]
    // CHECK: %[[U:.*]] = memref.alloc
    // CHECK: memref.copy %[[P:.*]], %[[U]]
    // CHECK: memref.copy %[[T]], %[[P]]
    // CHECK: memref.copy %[[U]], %[[Q]]
    scf.yield %q, %p : tensor<?xf32>, tensor<?xf32>
  }
  return %t#0 : tensor<?xf32>
}

// -----

// A carried tensor that grows is handed on; a branch hands out whichever buffer it took.
// CHECK-LABEL: func.func @grow(
func.func @grow(%a: tensor<?xf32>, %flag: tensor<i1>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: %[[R:.*]] = scf.while (%[[P:.*]] = %{{.*}}) : (memref<?xf32>) -> memref<?xf32>
  %r = scf.while (%p = %a) : (tensor<?xf32>) -> tensor<?xf32> {
    %f = tensor.extract %flag[] : tensor<i1>
    scf.condition(%f) %p : tensor<?xf32>
  } do {
  ^bb0(%p: tensor<?xf32>):
    %d = tensor.dim %p, %c0 : tensor<?xf32>
    %m = arith.addi %d, %c1 : index
    %e = tensor.empty(%m) : tensor<?xf32>
    // CHECK: mlc.launch @k(%[[Q:.*]]) outs(%[[S:.*]]) :
    %s = mlc.launch @k(%p) outs(%e) : (tensor<?xf32>) outs(tensor<?xf32>) -> tensor<?xf32>
    // CHECK-NEXT: scf.yield %[[S]]
    scf.yield %s : tensor<?xf32>
  }
  %f = tensor.extract %flag[] : tensor<i1>
  // CHECK: scf.if %{{.*}} -> (memref<?xf32>)
  %t = scf.if %f -> (tensor<?xf32>) {
    %d = tensor.dim %r, %c0 : tensor<?xf32>
    %e = tensor.empty(%d) : tensor<?xf32>
    %s = mlc.launch @k(%r) outs(%e) : (tensor<?xf32>) outs(tensor<?xf32>) -> tensor<?xf32>
    scf.yield %s : tensor<?xf32>
  } else {
    scf.yield %r : tensor<?xf32>
  }
  return %t : tensor<?xf32>
}

// -----

// Sequences and optionals are handles; a tensor is copied into one and read where the handle says.
// CHECK: inputs = [{dtype = "float32", kind = ["sequence", "tensor"], name = "s"}, {dims = [], dtype = "int64", name = "input1", shape = array<i64>}]
// CHECK-LABEL: func.func @handles(
// CHECK-SAME: %[[S:.*]]: !llvm.ptr {mlc.name = "s"}, %[[I:.*]]: memref<i64>) -> (!llvm.ptr, memref<?xf32>, memref<i8>)
func.func @handles(%s: !mlc.seq<tensor<?xf32>> {mlc.name = "s"}, %i: tensor<i64>) -> (!mlc.seq<tensor<?xf32>>, tensor<?xf32>, tensor<i1>) {
  // CHECK: %[[P:.*]] = memref.load %[[I]][]
  // CHECK: %[[H:.*]] = mlc.extern "mlc_rt_sequence_at"(%[[S]], %[[P]])
  // CHECK: %[[T:.*]] = mlc.extern "mlc_rt_data"(%[[H]]) : (!llvm.ptr) -> memref<?xf32>
  %t = mlc.sequence_at %s, %i : !mlc.seq<tensor<?xf32>>, tensor<i64> -> tensor<?xf32>
  // CHECK: %[[B:.*]] = mlc.extern "mlc_rt_tensor"(%[[T]]) {config = "float32"} : (memref<?xf32>) -> !llvm.ptr
  // CHECK: %[[N:.*]] = mlc.extern "mlc_rt_length"(%[[S]])
  // CHECK: %[[R:.*]] = mlc.extern "mlc_rt_sequence_insert"(%[[S]], %[[B]], %[[N]])
  %r = mlc.sequence_insert %s, %t : !mlc.seq<tensor<?xf32>>, tensor<?xf32>
  // CHECK: %[[O:.*]] = mlc.extern "mlc_rt_optional"(%[[S]]) : (!llvm.ptr) -> !llvm.ptr
  %o = mlc.optional_some %s : !mlc.seq<tensor<?xf32>>
  // CHECK: mlc.extern "mlc_rt_length"(%[[O]])
  %h = mlc.optional_has %o : !mlc.optional<!mlc.seq<tensor<?xf32>>>
  // CHECK: return %[[R]], %[[T]]
  return %r, %t, %h : !mlc.seq<tensor<?xf32>>, tensor<?xf32>, tensor<i1>
}

// -----

// One of a stack of weights lies at an offset that the run computes; insertions into what a loop carries, and views of
// that, update the loop's buffer.
// CHECK-LABEL: func.func @one_of_a_stack
// CHECK: %[[N:.*]] = arith.index_cast
// CHECK: %[[Y:.*]] = memref.alloc() {alignment = 64 : i64} : memref<1x8x16xf32>
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[N]]
// CHECK:   %[[AT:.*]] = arith.muli %[[I]], %c64
// CHECK:   %[[W:.*]] = mlc.buffer weights offset[%[[AT]]] : memref<16xf32>
// CHECK:   %[[V:.*]] = memref.collapse_shape %[[Y]]
// CHECK:   mlc.launch @update(%[[W]]) outs(%[[V]])
// CHECK-NOT: memref.copy
// CHECK: return
func.func @one_of_a_stack(%count: tensor<i64> {mlc.name = "n"}) -> (tensor<1x8x16xf32> {mlc.name = "y"}) {
  %number = tensor.extract %count[] : tensor<i64>
  %n = arith.index_cast %number : i64 to index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<1x8x16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %e) -> (tensor<1x8x16xf32>) {
    %w = mlc.weight "experts"[%i of 4] : tensor<16xf32>
    %v = tensor.collapse_shape %y [[0, 1], [2]] : tensor<1x8x16xf32> into tensor<8x16xf32>
    %u = mlc.launch @update(%w) outs(%v) {mlc.inout = array<i64: 0>, mlc.overwrite} : (tensor<16xf32>) outs(tensor<8x16xf32>) -> tensor<8x16xf32>
    %z = tensor.expand_shape %u [[0, 1], [2]] output_shape [1, 8, 16] : tensor<8x16xf32> into tensor<1x8x16xf32>
    scf.yield %z : tensor<1x8x16xf32>
  }
  return %r : tensor<1x8x16xf32>
}
