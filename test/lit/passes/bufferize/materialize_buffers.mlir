// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-materialize-buffers,func.func(canonicalize,cse))' | FileCheck %s

// One reservation before the first buffer; offsets inside a region of dynamic size are multiples of its unit.
// CHECK-LABEL: func.func @regions(
// CHECK-SAME: %[[X:.*]]: memref<?xf32>
func.func @regions(%x: memref<?xf32>) attributes {mlc.arena = [{bytes = 64 : i64}, {bytes = 128 : i64, unit = "n"}]} {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  // CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
  // CHECK-DAG: %[[C128:.*]] = arith.constant 128 : index
  // CHECK: %[[N:.*]] = memref.dim %[[X]]
  // CHECK: %[[DYN:.*]] = arith.muli %[[N]], %[[C128]]
  // CHECK: %[[HALF:.*]] = arith.muli %[[N]], %[[C64]]
  // CHECK: %[[ALL:.*]] = arith.addi %[[DYN]], %[[C64]]
  // CHECK: %[[ARENA:.*]] = mlc.buffer arena (%[[ALL]]) {static_offset = 0 : i64} : memref<?xi8>
  // CHECK: memref.view %[[ARENA]][%{{.*}}][] : memref<?xi8> to memref<4xf32>
  %a = memref.alloc() {mlc.place = {where = "arena", region = 0 : i64, offset = 0 : i64}} : memref<4xf32>
  mlc.launch @k(%x) outs(%a) : (memref<?xf32>) outs(memref<4xf32>)
  // CHECK: memref.view %[[ARENA]][%[[C64]]][%[[N]]] : memref<?xi8> to memref<?x16xf32>
  %b = memref.alloc(%n) {mlc.place = {where = "arena", region = 1 : i64, offset = 0 : i64}} : memref<?x16xf32>
  mlc.launch @k(%a) outs(%b) : (memref<4xf32>) outs(memref<?x16xf32>)
  // CHECK: %[[AT:.*]] = arith.addi %[[HALF]], %[[C64]]
  // CHECK: memref.view %[[ARENA]][%[[AT]]][%[[N]]] : memref<?xi8> to memref<?x16xf32>
  %c = memref.alloc(%n) {mlc.place = {where = "arena", region = 1 : i64, offset = 64 : i64}} : memref<?x16xf32>
  mlc.launch @k(%b) outs(%c) : (memref<?x16xf32>) outs(memref<?x16xf32>)
  return
}

// -----

// The caller's buffer has the result's shape and is written in the shape of the value that it replaces. A result
// that is not a buffer of its own is copied.
// CHECK-LABEL: func.func @results(
// CHECK-SAME: %[[X:.*]]: memref<?x4xf32>) {
func.func @results(%x: memref<?x4xf32>) -> (memref<?x2x2xf32>, memref<?x4xf32>, memref<?xi8>) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x4xf32>
  // CHECK: %[[OUT:.*]] = mlc.buffer output (%[[N:.*]]) {number = 0 : i64} : memref<?x2x2xf32>
  // CHECK: %[[SEEN:.*]] = memref.collapse_shape %[[OUT]] {{\[\[}}0], [1, 2]] : memref<?x2x2xf32> into memref<?x4xf32>
  %a = memref.alloc(%n) {mlc.place = {where = "output", number = 0 : i64}} : memref<?x4xf32>
  // CHECK: mlc.launch @k(%[[X]]) outs(%[[SEEN]])
  mlc.launch @k(%x) outs(%a) : (memref<?x4xf32>) outs(memref<?x4xf32>)
  %v = memref.expand_shape %a [[0], [1, 2]] output_shape [%n, 2, 2] : memref<?x4xf32> into memref<?x2x2xf32>
  // CHECK: %[[POOL:.*]] = mlc.buffer pool (%[[N]]) : memref<?xi8>
  %p = memref.alloc(%n) {mlc.place = {where = "pool"}} : memref<?xi8>
  mlc.launch @k(%x) outs(%p) : (memref<?x4xf32>) outs(memref<?xi8>)
  // CHECK: %[[COPY:.*]] = mlc.buffer output (%[[N]]) {number = 1 : i64} : memref<?x4xf32>
  // CHECK: memref.copy %[[X]], %[[COPY]]
  // CHECK: %[[LAST:.*]] = mlc.buffer output (%[[N]]) {number = 2 : i64} : memref<?xi8>
  // CHECK: memref.copy %[[POOL]], %[[LAST]]
  // CHECK: return
  // CHECK-NOT: :
  return %v, %x, %p : memref<?x2x2xf32>, memref<?x4xf32>, memref<?xi8>
}

// -----

// On a GPU the arena is its memory; the host's buffers come from its pool, and copies say what they lead across.
// CHECK-LABEL: func.func @placed(
func.func @placed(%x: memref<16xf32>) -> (memref<16xf32>, memref<1xi64>) attributes {mlc.placed, mlc.arena = [{bytes = 64 : i64}]} {
  // CHECK: %[[ARENA:.*]] = mlc.buffer arena {mlc.space = "device", static_offset = 0 : i64} : memref<64xi8>
  // CHECK: %[[A:.*]] = memref.view %[[ARENA]]
  %a = memref.alloc() {mlc.place = {offset = 0 : i64, region = 0 : i64, where = "arena"}} : memref<1xi64>
  // CHECK: %[[Y:.*]] = mlc.buffer output {mlc.space = "device", number = 0 : i64}
  %y = memref.alloc() {mlc.place = {number = 0 : i64, where = "output"}} : memref<16xf32>
  mlc.launch @k(%x) outs(%a, %y) {mlc.placement = "device"} : (memref<16xf32>) outs(memref<1xi64>, memref<16xf32>)
  // CHECK: %[[H:.*]] = mlc.buffer pool : memref<1xi64>
  %h = memref.alloc() {mlc.place = {where = "pool"}} : memref<1xi64>
  // CHECK: memref.copy %[[A]], %[[H]] {mlc.transfer = "host"}
  memref.copy %a, %h {mlc.transfer = "host"} : memref<1xi64> to memref<1xi64>
  // CHECK: %[[O:.*]] = mlc.buffer output {number = 1 : i64} : memref<1xi64>
  // CHECK: memref.copy %[[H]], %[[O]] : memref<1xi64>
  return %y, %h : memref<16xf32>, memref<1xi64>
}
