// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-plan-arena)' | FileCheck %s

// Three static buffers, two at a time; the last one is the caller's.
// CHECK-LABEL: func.func @static(
// CHECK-SAME: mlc.arena = [{bytes = 192 : i64}], mlc.arena_formula = "192"
func.func @static(%x: memref<16xf32>) -> memref<16xf32> {
  // CHECK: memref.alloc() {mlc.place = {offset = 128 : i64, region = 0 : i64, where = "arena"}} : memref<16xf32>
  %a = memref.alloc() : memref<16xf32>
  mlc.launch @k(%x) outs(%a) : (memref<16xf32>) outs(memref<16xf32>)
  // CHECK: memref.alloc() {mlc.place = {offset = 0 : i64, region = 0 : i64, where = "arena"}} : memref<32xf32>
  %b = memref.alloc() : memref<32xf32>
  mlc.launch @k(%a) outs(%b) : (memref<16xf32>) outs(memref<32xf32>)
  // CHECK: memref.alloc() {mlc.place = {offset = 128 : i64, region = 0 : i64, where = "arena"}} : memref<1xi8>
  %c = memref.alloc() : memref<1xi8>
  mlc.launch @k(%b) outs(%c) : (memref<32xf32>) outs(memref<1xi8>)
  // CHECK: memref.alloc() {mlc.place = {number = 0 : i64, where = "output"}} : memref<16xf32>
  %d = memref.alloc() : memref<16xf32>
  mlc.launch @k(%c) outs(%d) : (memref<1xi8>) outs(memref<16xf32>)
  return %d : memref<16xf32>
}

// -----

// Large buffers begin at pages; a small one lies behind what they need.
// CHECK-LABEL: func.func @pages(
// CHECK-SAME: mlc.arena = [{bytes = 45184 : i64}], mlc.arena_formula = "45184"
func.func @pages(%x: memref<16xf32>) -> memref<16xf32> {
  // CHECK: memref.alloc() {mlc.place = {offset = 24576 : i64, region = 0 : i64, where = "arena"}} : memref<5001xf32>
  %a = memref.alloc() : memref<5001xf32>
  mlc.launch @k(%x) outs(%a) : (memref<16xf32>) outs(memref<5001xf32>)
  // CHECK: memref.alloc() {mlc.place = {offset = 0 : i64, region = 0 : i64, where = "arena"}} : memref<5200xf32>
  %b = memref.alloc() : memref<5200xf32>
  mlc.launch @k(%a) outs(%b) : (memref<5001xf32>) outs(memref<5200xf32>)
  // CHECK: memref.alloc() {mlc.place = {offset = 45056 : i64, region = 0 : i64, where = "arena"}} : memref<17xf32>
  %c = memref.alloc() : memref<17xf32>
  mlc.launch @k(%a, %b) outs(%c) : (memref<5001xf32>, memref<5200xf32>) outs(memref<17xf32>)
  %d = memref.alloc() : memref<16xf32>
  mlc.launch @k(%c) outs(%d) : (memref<17xf32>) outs(memref<16xf32>)
  return %d : memref<16xf32>
}

// -----

// Sizes that are a multiple of one product of dimensions share a region in units of it; dimensions of one name are
// one extent. A sum of different products gets a slot, which a buffer of another time shares.
// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME: mlc.arena = [{bytes = 128 : i64, unit = "batch*seq"}, {}]
// CHECK-SAME: mlc.arena_formula = "128*batch*seq + max(-(-(4*batch + 4*seq) // 64) * 64, -(-(4 + 4*seq) // 64) * 64)"
func.func @dynamic(%x: memref<?x?xf32> {mlc.dims = ["batch", "seq"]}, %y: memref<?xf32> {mlc.dims = ["seq"]}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = memref.dim %x, %c0 : memref<?x?xf32>
  %s = memref.dim %x, %c1 : memref<?x?xf32>
  %t = memref.dim %y, %c0 : memref<?xf32>
  // CHECK: memref.alloc(%{{.*}}, %{{.*}}) {mlc.place = {offset = 0 : i64, region = 0 : i64, where = "arena"}}
  %p = memref.alloc(%b, %s) : memref<?x?x16xf32>
  mlc.launch @k(%x) outs(%p) : (memref<?x?xf32>) outs(memref<?x?x16xf32>)
  // CHECK: memref.alloc(%{{.*}}, %{{.*}}) {mlc.place = {offset = 64 : i64, region = 0 : i64, where = "arena"}}
  %q = memref.alloc(%t, %b) : memref<?x?xf32>
  mlc.launch @k(%p) outs(%q) : (memref<?x?x16xf32>) outs(memref<?x?xf32>)
  %n = arith.addi %b, %t : index
  // CHECK: memref.alloc(%{{.*}}) {mlc.place = {offset = 0 : i64, region = 1 : i64, where = "arena"}}
  %r = memref.alloc(%n) : memref<?xf32>
  mlc.launch @k(%q) outs(%r) : (memref<?x?xf32>) outs(memref<?xf32>)
  mlc.launch @k(%r) outs(%q) : (memref<?xf32>) outs(memref<?x?xf32>)
  %m = arith.addi %s, %c1 : index
  // CHECK: memref.alloc(%{{.*}}) {mlc.place = {offset = 0 : i64, region = 1 : i64, where = "arena"}}
  %u = memref.alloc(%m) : memref<?xf32>
  mlc.launch @k(%q) outs(%u) : (memref<?x?xf32>) outs(memref<?xf32>)
  return
}

// -----

// `n` rounded up to a multiple of four is -4 * (-n // 4): that is no number of units, and gets a slot.
// CHECK-LABEL: func.func @rounded_up(
// CHECK-SAME: mlc.arena = [{}]
// CHECK-SAME: mlc.arena_formula = "-(-(-16*((-1*n) // (4))) // 64) * 64"
func.func @rounded_up(%x: memref<?xf32> {mlc.dims = ["n"]}, %y: memref<f32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %n = memref.dim %x, %c0 : memref<?xf32>
  %minus = arith.subi %c0, %n : index
  %quotient = arith.floordivsi %minus, %c4 : index
  %down = arith.muli %quotient, %c4 : index
  %missing = arith.subi %minus, %down : index
  %up = arith.addi %n, %missing : index
  // CHECK: memref.alloc(%{{.*}}) {mlc.place = {offset = 0 : i64, region = 0 : i64, where = "arena"}}
  %p = memref.alloc(%up) : memref<?xf32>
  mlc.launch @k(%x) outs(%p) : (memref<?xf32>) outs(memref<?xf32>)
  mlc.launch @k(%p) outs(%y) : (memref<?xf32>) outs(memref<f32>)
  return
}

// -----

// What a loop reads and did not make is in use until the loop ends; what it makes and drops is packed inside it.
// CHECK-LABEL: func.func @loop(
// CHECK-SAME: mlc.arena = [{bytes = 192 : i64}]
func.func @loop(%x: memref<16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: memref.alloc() {mlc.place = {offset = 0 : i64
  %a = memref.alloc() : memref<16xf32>
  mlc.launch @k(%x) outs(%a) : (memref<16xf32>) outs(memref<16xf32>)
  scf.for %i = %c0 to %n step %c1 {
    // CHECK: memref.alloc() {mlc.place = {offset = 64 : i64
    %b = memref.alloc() : memref<16xf32>
    mlc.launch @k(%a) outs(%b) : (memref<16xf32>) outs(memref<16xf32>)
    // CHECK: memref.alloc() {mlc.place = {offset = 128 : i64
    %c = memref.alloc() : memref<16xf32>
    mlc.launch @k(%b) outs(%c) : (memref<16xf32>) outs(memref<16xf32>)
    // CHECK: memref.alloc() {mlc.place = {offset = 64 : i64
    %d = memref.alloc() : memref<16xf32>
    mlc.launch @k(%c) outs(%d) : (memref<16xf32>) outs(memref<16xf32>)
  }
  // CHECK: memref.alloc() {mlc.place = {offset = 0 : i64
  %e = memref.alloc() : memref<16xf32>
  mlc.launch @k(%x) outs(%e) : (memref<16xf32>) outs(memref<16xf32>)
  return
}

// -----

// Sizes that only the data decide, and buffers that an iteration hands to the next one, come from the pool; a buffer
// that is returned twice, or is one of two that may be returned, is copied.
// CHECK-LABEL: func.func @pool(
// CHECK-SAME: mlc.arena = [{bytes = 64 : i64}]
func.func @pool(%x: memref<1xi64>, %a: memref<4xf32>, %n: index, %f: i1) -> (memref<?xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = memref.load %x[%c0] : memref<1xi64>
  %m = arith.index_cast %v : i64 to index
  // CHECK: memref.alloc(%{{.*}}) {mlc.place = {where = "pool"}} : memref<?xi8>
  %t = memref.alloc(%m) : memref<?xi8>
  mlc.launch @k(%x) outs(%t) : (memref<1xi64>) outs(memref<?xi8>)
  // CHECK: memref.alloc(%{{.*}}) {mlc.place = {number = 0 : i64, where = "output"}} : memref<?xf32>
  %o = memref.alloc(%m) : memref<?xf32>
  mlc.launch @k(%t) outs(%o) : (memref<?xi8>) outs(memref<?xf32>)
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a) -> memref<4xf32> {
    // CHECK: memref.alloc() {mlc.place = {where = "pool"}} : memref<4xf32>
    %q = memref.alloc() : memref<4xf32>
    mlc.launch @k(%p) outs(%q) : (memref<4xf32>) outs(memref<4xf32>)
    scf.yield %q : memref<4xf32>
  }
  // CHECK: memref.alloc() {mlc.place = {offset = 0 : i64, region = 0 : i64, where = "arena"}} : memref<4xf32>
  %w = memref.alloc() : memref<4xf32>
  mlc.launch @k(%a) outs(%w) : (memref<4xf32>) outs(memref<4xf32>)
  %s = arith.select %f, %r, %w : memref<4xf32>
  return %o, %w, %w, %s : memref<?xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>
}
