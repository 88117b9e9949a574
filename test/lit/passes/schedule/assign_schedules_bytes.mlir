// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{vector-bits=256 vector-registers=16 int16-dot=true})' | FileCheck %s --check-prefix=WORDS
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{vector-bits=256 vector-registers=16 int16-dot=true int8-dot=true})' | FileCheck %s --check-prefix=QUADS

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

func.func @main(%x: tensor<12x70xi8>, %o: tensor<12x100xi32>, %y: tensor<12x?xi8>, %z: tensor<?x100xi8>) -> (tensor<12x100xi32>, tensor<12x100xi32>, tensor<12x100xi32>) {
  %w = mlc.weight "w" : tensor<70x100xi8>
  %0 = mlc.launch @mixed(%x, %w) outs(%o) : (tensor<12x70xi8>, tensor<70x100xi8>) outs(tensor<12x100xi32>) -> tensor<12x100xi32>
  %1 = mlc.launch @run_time(%y, %z) outs(%o) : (tensor<12x?xi8>, tensor<?x100xi8>) outs(tensor<12x100xi32>) -> tensor<12x100xi32>
  %2 = mlc.launch @bounded(%x, %w) outs(%o) : (tensor<12x70xi8>, tensor<70x100xi8>) outs(tensor<12x100xi32>) -> tensor<12x100xi32>
  return %0, %1, %2 : tensor<12x100xi32>, tensor<12x100xi32>, tensor<12x100xi32>
}

// Without vpdpbusd a weight is multiplied by words; tiles of six rows leave registers for a product.
// WORDS: module @mixed
// WORDS-SAME: packed_operand = 1 : i64, panel = 16 : i64
// WORDS-SAME: rows = 6 : i64, stored = "pairs", template = "dot_words", unroll = 1 : i64, vector_dim = 1 : i64, vector_operand = 1 : i64, vectors = 2 : i64
// QUADS: module @mixed
// QUADS-SAME: instruction = "vpdpbusd"
// QUADS-SAME: rows = 4 : i64, stored = "quads", template = "dot_quads"
// QUADS-SAME: vectors = 3 : i64
module @mixed attributes {mlc.kernel} {
  func.func @mixed(%a: tensor<12x70xi8>, %b: tensor<70x100xi8>, %o: tensor<12x100xi32>) -> tensor<12x100xi32> {
    %zero = arith.constant 0 : i32
    %f = linalg.fill ins(%zero : i32) outs(%o : tensor<12x100xi32>) -> tensor<12x100xi32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<12x70xi8>, tensor<70x100xi8>) outs(%f : tensor<12x100xi32>) attrs = {mlc.contraction} {
    ^bb0(%x: i8, %y: i8, %z: i32):
      %l = arith.extui %x : i8 to i32
      %r = arith.extsi %y : i8 to i32
      %p = arith.muli %l, %r : i32
      %s = arith.addi %z, %p : i32
      linalg.yield %s : i32
    } -> tensor<12x100xi32>
    return %m : tensor<12x100xi32>
  }
}

// Of two operands of the run, rows of one are interleaved on the way.
// WORDS: module @run_time
// WORDS-SAME: instruction = "vpmaddwd"
// WORDS-SAME: stored = "rows", template = "dot_quads"
module @run_time attributes {mlc.kernel} {
  func.func @run_time(%a: tensor<12x?xi8>, %b: tensor<?x100xi8>, %o: tensor<12x100xi32>) -> tensor<12x100xi32> {
    %zero = arith.constant 0 : i32
    %f = linalg.fill ins(%zero : i32) outs(%o : tensor<12x100xi32>) -> tensor<12x100xi32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<12x?xi8>, tensor<?x100xi8>) outs(%f : tensor<12x100xi32>) attrs = {mlc.contraction} {
    ^bb0(%x: i8, %y: i8, %z: i32):
      %l = arith.extsi %x : i8 to i32
      %r = arith.extsi %y : i8 to i32
      %p = arith.muli %l, %r : i32
      %s = arith.addi %z, %p : i32
      linalg.yield %s : i32
    } -> tensor<12x100xi32>
    return %m : tensor<12x100xi32>
  }
}

// Where the left operand is below 128, sums of two products of bytes fit into 16 bits.
// WORDS: module @bounded
// WORDS-SAME: instruction = "vpmaddubsw"
// WORDS-SAME: rows = 6 : i64, stored = "quads", template = "dot_quads", unroll = 1 : i64
// QUADS: module @bounded
// QUADS-SAME: instruction = "vpdpbusd"
module @bounded attributes {mlc.kernel} {
  func.func @bounded(%a: tensor<12x70xi8>, %b: tensor<70x100xi8>, %o: tensor<12x100xi32>) -> tensor<12x100xi32> {
    %zero = arith.constant 0 : i32
    %f = linalg.fill ins(%zero : i32) outs(%o : tensor<12x100xi32>) -> tensor<12x100xi32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<12x70xi8>, tensor<70x100xi8>) outs(%f : tensor<12x100xi32>) attrs = {mlc.contraction} {
    ^bb0(%x: i8, %y: i8, %z: i32):
      %l = arith.extui %x {mlc.never_negative} : i8 to i32
      %r = arith.extsi %y : i8 to i32
      %p = arith.muli %l, %r : i32
      %s = arith.addi %z, %p : i32
      linalg.yield %s : i32
    } -> tensor<12x100xi32>
    return %m : tensor<12x100xi32>
  }
}
