// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{int8-dot=true})' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{vector-bits=256 vector-registers=16 int16-dot=true})' | FileCheck %s --check-prefix=AVX2

// A weight of words of codes with scales in blocks: sums of a block are integers where rows are codes, too, and of so many
// rows that a work item has several tiles it is taken apart on the stack first, in pieces that blocks divide.
// CHECK: module @codes
// CHECK-SAME: depth = 2560 : i64, distance = 16 : i64, instruction = "vpdpbusd"{{.*}} least = 12 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 6 : i64, template = "scaled_blocks", unroll = 4 : i64, vector_dim = 2 : i64, vector_operand = 1 : i64, vectors = 4 : i64
// CHECK: module @floats
// CHECK-SAME: depth = 1024 : i64, distance = 32 : i64, instruction = "lookup"{{.*}} least = 24 : i64{{.*}} rows = 12 : i64, template = "scaled_blocks"{{.*}} vectors = 2 : i64
// CHECK: module @one_row
// CHECK-SAME: depth = 5120 : i64{{.*}} instruction = "lookup", lanes = 16 : i64, row_first = -1 : i64, row_last = -2 : i64, rows = 1 : i64, template = "scaled_blocks"
// AVX2: module @codes
// AVX2-SAME: instruction = "vpmaddubsw"{{.*}} rows = 2 : i64, template = "scaled_blocks"{{.*}} vectors = 4 : i64
// AVX2: module @floats
// AVX2-SAME: instruction = "fma"

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#word = affine_map<(d0, d1, d2) -> (d0, d1 floordiv 8, d2, d1 mod 4)>
#columns = affine_map<(d0, d1, d2) -> (d0, d1 floordiv 32, d2)>
#rows = affine_map<(d0, d1) -> (d0, d1)>
#row_blocks = affine_map<(d0, d1) -> (d0, d1 floordiv 32)>
#x = affine_map<(p, m, n, k) -> (m, k)>
#x1 = affine_map<(p, m, n, k) -> (0, k)>
#w = affine_map<(p, m, n, k) -> (p, k, n)>
#o = affine_map<(p, m, n, k) -> (m, p, n)>

func.func @main() {
  return
}

module @codes attributes {mlc.kernel} {
  func.func @codes(%x: tensor<?x5120xi8>, %t: tensor<?x160xf32>, %w: tensor<4x640x64x4xi8>, %s: tensor<4x160x64xf32>, %dest: tensor<?x4x64xf32>) -> tensor<?x4x64xf32> {
    %u0 = tensor.empty() : tensor<4x5120x64xi8>
    %four = arith.constant 4 : index
    %two = arith.constant 2 : index
    %mask = arith.constant 15 : i8
    %u = linalg.generic {indexing_maps = [#word, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%w : tensor<4x640x64x4xi8>) outs(%u0 : tensor<4x5120x64xi8>) attrs = {mlc.streamed} {
    ^bb0(%a: i8, %b: i8):
      %i = linalg.index 1 : index
      %q = arith.divui %i, %four : index
      %r = arith.remui %q, %two : index
      %m = arith.muli %r, %four : index
      %s8 = arith.index_cast %m : index to i8
      %h = arith.shrui %a, %s8 : i8
      %c = arith.andi %h, %mask : i8
      linalg.yield %c : i8
    } -> tensor<4x5120x64xi8>
    %d0 = tensor.empty() : tensor<4x5120x64xf32>
    %eight = arith.constant 8 : i32
    %d = linalg.generic {indexing_maps = [#id, #columns, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%u, %s : tensor<4x5120x64xi8>, tensor<4x160x64xf32>) outs(%d0 : tensor<4x5120x64xf32>) attrs = {mlc.streamed} {
    ^bb0(%a: i8, %b: f32, %o: f32):
      %e = arith.extui %a : i8 to i32
      %z = arith.subi %e, %eight : i32
      %f = arith.sitofp %z : i32 to f32
      %c = arith.mulf %f, %b : f32
      linalg.yield %c : f32
    } -> tensor<4x5120x64xf32>
    %n = arith.constant 0 : index
    %dim = tensor.dim %x, %n : tensor<?x5120xi8>
    %x0 = tensor.empty(%dim) : tensor<?x5120xf32>
    %xf = linalg.generic {indexing_maps = [#rows, #row_blocks, #rows], iterator_types = ["parallel", "parallel"]} ins(%x, %t : tensor<?x5120xi8>, tensor<?x160xf32>) outs(%x0 : tensor<?x5120xf32>) attrs = {mlc.streamed} {
    ^bb0(%a: i8, %b: f32, %o: f32):
      %e = arith.extsi %a : i8 to i32
      %f = arith.sitofp %e : i32 to f32
      %c = arith.mulf %f, %b : f32
      linalg.yield %c : f32
    } -> tensor<?x5120xf32>
    %zero = arith.constant 0.0 : f32
    %init = linalg.fill ins(%zero : f32) outs(%dest : tensor<?x4x64xf32>) -> tensor<?x4x64xf32>
    %y = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%xf, %d : tensor<?x5120xf32>, tensor<4x5120x64xf32>) outs(%init : tensor<?x4x64xf32>) attrs = {mlc.contraction} {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %p = arith.mulf %a, %b : f32
      %q = arith.addf %o, %p : f32
      linalg.yield %q : f32
    } -> tensor<?x4x64xf32>
    return %y : tensor<?x4x64xf32>
  }
}
module @floats attributes {mlc.kernel} {
  func.func @floats(%x: tensor<?x5120xf32>, %w: tensor<4x640x32x4xi8>, %s: tensor<4x160x32xf32>, %dest: tensor<?x4x32xf32>) -> tensor<?x4x32xf32> {
    %u0 = tensor.empty() : tensor<4x5120x32xi8>
    %four = arith.constant 4 : index
    %two = arith.constant 2 : index
    %mask = arith.constant 15 : i8
    %u = linalg.generic {indexing_maps = [#word, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%w : tensor<4x640x32x4xi8>) outs(%u0 : tensor<4x5120x32xi8>) attrs = {mlc.streamed} {
    ^bb0(%a: i8, %b: i8):
      %i = linalg.index 1 : index
      %q = arith.divui %i, %four : index
      %r = arith.remui %q, %two : index
      %m = arith.muli %r, %four : index
      %s8 = arith.index_cast %m : index to i8
      %h = arith.shrui %a, %s8 : i8
      %c = arith.andi %h, %mask : i8
      linalg.yield %c : i8
    } -> tensor<4x5120x32xi8>
    %d0 = tensor.empty() : tensor<4x5120x32xf32>
    %eight = arith.constant 8 : i32
    %d = linalg.generic {indexing_maps = [#id, #columns, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%u, %s : tensor<4x5120x32xi8>, tensor<4x160x32xf32>) outs(%d0 : tensor<4x5120x32xf32>) attrs = {mlc.streamed} {
    ^bb0(%a: i8, %b: f32, %o: f32):
      %e = arith.extui %a : i8 to i32
      %z = arith.subi %e, %eight : i32
      %f = arith.sitofp %z : i32 to f32
      %c = arith.mulf %f, %b : f32
      linalg.yield %c : f32
    } -> tensor<4x5120x32xf32>
    %zero = arith.constant 0.0 : f32
    %init = linalg.fill ins(%zero : f32) outs(%dest : tensor<?x4x32xf32>) -> tensor<?x4x32xf32>
    %y = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %d : tensor<?x5120xf32>, tensor<4x5120x32xf32>) outs(%init : tensor<?x4x32xf32>) attrs = {mlc.contraction} {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %p = arith.mulf %a, %b : f32
      %q = arith.addf %o, %p : f32
      linalg.yield %q : f32
    } -> tensor<?x4x32xf32>
    return %y : tensor<?x4x32xf32>
  }
}
module @one_row attributes {mlc.kernel} {
  func.func @one_row(%x: tensor<1x5120xf32>, %w: tensor<4x640x32x4xi8>, %s: tensor<4x160x32xf32>, %dest: tensor<1x4x32xf32>) -> tensor<1x4x32xf32> {
    %u0 = tensor.empty() : tensor<4x5120x32xi8>
    %four = arith.constant 4 : index
    %two = arith.constant 2 : index
    %mask = arith.constant 15 : i8
    %u = linalg.generic {indexing_maps = [#word, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%w : tensor<4x640x32x4xi8>) outs(%u0 : tensor<4x5120x32xi8>) attrs = {mlc.streamed} {
    ^bb0(%a: i8, %b: i8):
      %i = linalg.index 1 : index
      %q = arith.divui %i, %four : index
      %r = arith.remui %q, %two : index
      %m = arith.muli %r, %four : index
      %s8 = arith.index_cast %m : index to i8
      %h = arith.shrui %a, %s8 : i8
      %c = arith.andi %h, %mask : i8
      linalg.yield %c : i8
    } -> tensor<4x5120x32xi8>
    %d0 = tensor.empty() : tensor<4x5120x32xf32>
    %eight = arith.constant 8 : i32
    %d = linalg.generic {indexing_maps = [#id, #columns, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%u, %s : tensor<4x5120x32xi8>, tensor<4x160x32xf32>) outs(%d0 : tensor<4x5120x32xf32>) attrs = {mlc.streamed} {
    ^bb0(%a: i8, %b: f32, %o: f32):
      %e = arith.extui %a : i8 to i32
      %z = arith.subi %e, %eight : i32
      %f = arith.sitofp %z : i32 to f32
      %c = arith.mulf %f, %b : f32
      linalg.yield %c : f32
    } -> tensor<4x5120x32xf32>
    %zero = arith.constant 0.0 : f32
    %init = linalg.fill ins(%zero : f32) outs(%dest : tensor<1x4x32xf32>) -> tensor<1x4x32xf32>
    %y = linalg.generic {indexing_maps = [#x1, #w, #o], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x, %d : tensor<1x5120xf32>, tensor<4x5120x32xf32>) outs(%init : tensor<1x4x32xf32>) attrs = {mlc.contraction} {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %p = arith.mulf %a, %b : f32
      %q = arith.addf %o, %p : f32
      linalg.yield %q : f32
    } -> tensor<1x4x32xf32>
    return %y : tensor<1x4x32xf32>
  }
}
