// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-lower-to-linalg,canonicalize,cse)' | FileCheck %s

// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[LHS:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK-DAG: #[[RHS:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
// CHECK-DAG: #[[WINDOW:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 * 2 + d4, d2 * 2 + d5, d6)>
// CHECK-DAG: #[[PIXELS:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>
// CHECK-DAG: #[[ONE_TAP:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (0, 0, d4, d3)>
// CHECK-DAG: #[[CUBE:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[WORDS:.*]] = affine_map<(d0, d1, d2) -> (d0, d1 floordiv 8, d2, d1 mod 4)>
// CHECK-DAG: #[[BLOCKS:.*]] = affine_map<(d0, d1, d2) -> (d0, d1 floordiv 32, d2)>
// CHECK-DAG: #[[SLICE:.*]] = affine_map<(d0, d1) -> (d0, d1 * 2 + 1)>

// Sizes come from the arguments, the bias is read through its map, splat constants are in the body.
// CHECK-LABEL: func.func @elementwise
// CHECK-SAME: (%[[X:.*]]: tensor<?x8xf32>, %[[B:.*]]: tensor<8xf32>)
// CHECK: %[[N:.*]] = tensor.dim %[[X]]
// CHECK: tensor.empty(%[[N]])
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[ROW]], #[[ID]]]
// CHECK-SAME: ins(%[[X]], %[[B]]
// CHECK: arith.addf
// CHECK: linalg.generic
// CHECK: arith.maximumf %{{.*}}, %cst
func.func @elementwise(%x: tensor<?x8xf32>, %b: tensor<8xf32>) -> tensor<?x8xf32> {
  %0 = mlc.binary add %x, %b : tensor<?x8xf32>, tensor<8xf32> -> tensor<?x8xf32>
  %c = mlc.constant dense<0.0> : tensor<f32>
  %1 = mlc.binary max %0, %c : tensor<?x8xf32>, tensor<f32> -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// Extents that are known to be equal are one value, which every result has: nothing is asked of them at run time.
// CHECK-LABEL: func.func @residual
// CHECK: %[[N:.*]] = tensor.dim %arg0
// CHECK-NOT: arith.select
// CHECK: tensor.empty(%[[N]])
// CHECK: linalg.generic
// CHECK-NOT: arith.select
// CHECK: return
// CHECK-LABEL: func.func @unknown_residual
// CHECK: arith.select
func.func @residual(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = mlc.unary exp %x : tensor<?x8xf32>
  %1 = mlc.binary add %0, %x : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  %2 = mlc.binary mul %1, %x : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}
func.func @unknown_residual(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = mlc.binary add %x, %y : tensor<?x8xf32>, tensor<?x8xf32> -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// What is computed at run time and read along the summed dimension is transposed first, unless there are few rows.
// CHECK-LABEL: func.func @scores
// CHECK: %[[KT:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<2x9x8xf32>) outs(%{{.*}} : tensor<2x8x9xf32>)
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[KT]] : tensor<2x7x8xf32>, tensor<2x8x9xf32>) {{.*}}{mlc.contraction}
// CHECK-LABEL: func.func @scores_of_a_row
// CHECK-NOT: tensor<2x8x9xf32>
// CHECK: return
func.func @scores(%q: tensor<2x7x8xf32>, %k: tensor<2x9x8xf32>) -> tensor<2x7x9xf32> {
  %0 = mlc.matmul %q, %k {transpose_rhs} : tensor<2x7x8xf32>, tensor<2x9x8xf32> -> tensor<2x7x9xf32>
  return %0 : tensor<2x7x9xf32>
}
func.func @scores_of_a_row(%q: tensor<2x1x8xf32>, %k: tensor<2x9x8xf32>) -> tensor<2x1x9xf32> {
  %0 = mlc.matmul %q, %k {transpose_rhs} : tensor<2x1x8xf32>, tensor<2x9x8xf32> -> tensor<2x1x9xf32>
  return %0 : tensor<2x1x9xf32>
}

// Transposition and a missing batch dimension are maps; bf16 accumulates in f32.
// CHECK-LABEL: func.func @matmul
// CHECK: linalg.fill {{.*}} -> tensor<?x4x16xf32>
// CHECK: linalg.generic {indexing_maps = [#[[LHS]], #[[RHS]], {{.*}}], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
// CHECK-SAME: attrs = {mlc.contraction}
// CHECK: arith.extf
// CHECK: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK: arith.truncf
func.func @matmul(%a: tensor<?x4x8xbf16>) -> tensor<?x4x16xbf16> {
  %b = mlc.weight "b" : tensor<16x8xbf16>
  %0 = mlc.matmul %a, %b {transpose_rhs} : tensor<?x4x8xbf16>, tensor<16x8xbf16> -> tensor<?x4x16xbf16>
  return %0 : tensor<?x4x16xbf16>
}

// The padded input is explicit: a bounds test around the load.
// A window of one tap is no dimension of the iteration space: rows and columns stay one contiguous range.
// CHECK-LABEL: func.func @pointwise_conv
// CHECK: linalg.generic {indexing_maps = [#[[PIXELS]], #[[ONE_TAP]], #{{.*}}], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
func.func @pointwise_conv(%x: tensor<1x8x8x3xf32>, %w: tensor<1x1x3x4xf32>) -> tensor<1x8x8x4xf32> {
  %0 = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, layout = "nhwc"} : tensor<1x8x8x3xf32>, tensor<1x1x3x4xf32> -> tensor<1x8x8x4xf32>
  return %0 : tensor<1x8x8x4xf32>
}

// CHECK-LABEL: func.func @conv
// CHECK: linalg.generic
// CHECK: scf.if
// CHECK: tensor.extract
// CHECK: -> tensor<1x10x10x3xf32>
// CHECK: linalg.generic {indexing_maps = [#[[WINDOW]]
// CHECK-SAME: attrs = {mlc.contraction}
func.func @conv(%x: tensor<1x8x8x3xf32>, %w: tensor<3x3x3x4xf32>) -> tensor<1x4x4x4xf32> {
  %0 = mlc.conv %x, %w {strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc"} : tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32> -> tensor<1x4x4x4xf32>
  return %0 : tensor<1x4x4x4xf32>
}

// Split heads: views only, and the transposition a map.
// CHECK-LABEL: func.func @heads
// CHECK-NOT: linalg.generic
// CHECK: tensor.expand_shape
// CHECK: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @heads(%x: tensor<?x16x64xf32>) -> tensor<?x4x16x16xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x16x64xf32>
  %0 = mlc.reshape %x [%n, 16, 4, 16] : tensor<?x16x64xf32> -> tensor<?x16x4x16xf32>
  %1 = mlc.transpose %0 {permutation = array<i64: 0, 2, 1, 3>} : tensor<?x16x4x16xf32> -> tensor<?x4x16x16xf32>
  return %1 : tensor<?x4x16x16xf32>
}

// CHECK-LABEL: func.func @slice
// CHECK: linalg.generic {indexing_maps = [#[[SLICE]]
func.func @slice(%x: tensor<?x9xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x9xf32>
  %0 = mlc.slice %x [0, 1] [%n, 4] [1, 2] : tensor<?x9xf32> -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// CHECK-LABEL: func.func @gather
// CHECK: linalg.generic
// CHECK: cf.assert %{{.*}}, "index out of range in node embed"
// CHECK: arith.maxsi
// CHECK: tensor.extract
func.func @gather(%x: tensor<30x8xf32>, %i: tensor<?xi64>) -> tensor<?x8xf32> {
  %0 = mlc.gather %x, %i {axis = 0 : i64} : tensor<30x8xf32>, tensor<?xi64> -> tensor<?x8xf32> loc("embed")
  return %0 : tensor<?x8xf32>
}

// Two unknown extents: whether one of them is 1 is decided in the body, a mismatch is an error of the run.
// CHECK-LABEL: func.func @unknown_broadcast
// CHECK-COUNT-2: mlc.check {{.*}} "shapes cannot be broadcast"
// CHECK: linalg.generic
// CHECK: arith.select
// CHECK: tensor.extract
func.func @unknown_broadcast(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %0 = mlc.binary add %a, %b : tensor<?xf32> loc("add")
  return %0 : tensor<?xf32>
}

// An extent of two or more is the other one, or the run stops.
// CHECK-LABEL: func.func @two_or_more
// CHECK-COUNT-2: mlc.check {{.*}} "shapes cannot be broadcast"
// CHECK: linalg.generic
// CHECK: tensor.extract
// CHECK-NOT: tensor.extract
func.func @two_or_more(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %c = mlc.pad constant %b low [2] high [0] : tensor<?xf32> -> tensor<?xf32>
  %0 = mlc.binary add %a, %c : tensor<?xf32> loc("add")
  return %0 : tensor<?xf32>
}

// So is one that is known, of a tensor whose type does not say it.
// CHECK-LABEL: func.func @five
// CHECK: mlc.check {{.*}} "shapes cannot be broadcast"
// CHECK-NOT: mlc.check
func.func @five(%a: tensor<?xf32>, %b: tensor<5xf32>) -> tensor<?xf32> {
  %c = tensor.cast %b : tensor<5xf32> to tensor<?xf32>
  %0 = mlc.binary add %a, %c : tensor<?xf32> loc("add")
  return %0 : tensor<?xf32>
}

// CHECK-LABEL: func.func @opaque
// CHECK: mlc.nonzero
// CHECK: mlc.topk
func.func @opaque(%x: tensor<4x8xf32>) -> (tensor<2x?xi64>, tensor<4x2xf32>) {
  %k = arith.constant 2 : index
  %0 = mlc.nonzero %x : tensor<4x8xf32> -> tensor<2x?xi64>
  %1, %2 = mlc.topk %x, %k {axis = 1 : i64} : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x2xi64>
  return %0, %1 : tensor<2x?xi64>, tensor<4x2xf32>
}

// A left operand whose sign is not used is widened as one without, which says so.
// CHECK-LABEL: func.func @never_negative
// CHECK: arith.extui %{{.*}} {mlc.never_negative} : i8 to i32
// CHECK: arith.extsi %{{.*}} : i8 to i32
func.func @never_negative(%x: tensor<4x8xi8>, %w: tensor<8x16xi8>) -> tensor<4x16xi32> {
  %0 = mlc.matmul %x, %w {mlc.never_negative, unsigned_lhs} : tensor<4x8xi8>, tensor<8x16xi8> -> tensor<4x16xi32>
  return %0 : tensor<4x16xi32>
}

// The codes of a streamed weight come out of words by a shift and a mask, and both operations say that they stay where
// they are read; a zero point that is one number has no map.
// CHECK-LABEL: func.func @streamed
// CHECK: linalg.generic {indexing_maps = [#[[WORDS]], #[[CUBE]]], iterator_types = ["parallel", "parallel", "parallel"]} ins(%{{.*}} : tensor<3x16x32x4xi8>)
// CHECK-SAME: {mlc.streamed}
// CHECK: arith.shrui
// CHECK: arith.andi
// CHECK: linalg.generic {indexing_maps = [#[[CUBE]], #[[BLOCKS]], #[[CUBE]]]
// CHECK-SAME: {mlc.streamed}
// CHECK: arith.extui
// CHECK: arith.subi %{{.*}}, %{{.*}} : i32
// CHECK: arith.sitofp
func.func @streamed(%w: tensor<3x16x32x4xi8>, %s: tensor<3x4x32xf32>) -> tensor<3x128x32xf32> {
  %z = mlc.constant dense<8> : tensor<i8>
  %c = mlc.unpack %w {bits = 4 : i64, mlc.streamed} : tensor<3x16x32x4xi8> -> tensor<3x128x32xi8>
  %d = mlc.dequantize %c, %s zero_point(%z : tensor<i8>) {axis = 1 : i64, block_size = 32 : i64, mlc.streamed, unsigned} : tensor<3x128x32xi8>, tensor<3x4x32xf32> -> tensor<3x128x32xf32>
  return %d : tensor<3x128x32xf32>
}

// Floats of eight bits are decoded before they are compared with zero: LLVM has no such type.
// CHECK-LABEL: func.func @truth_of_small_floats
// CHECK: linalg.generic
// CHECK: ^bb0(%[[X:.*]]: f8E4M3FN
// CHECK: arith.bitcast %[[X]] : f8E4M3FN to i8
// CHECK: arith.cmpf une, {{.*}} : f32
// CHECK-NOT: arith.cmpf {{.*}} : f8E4M3FN
func.func @truth_of_small_floats(%x: tensor<4xf8E4M3FN>) -> tensor<4xi1> {
  %0 = mlc.cast %x : tensor<4xf8E4M3FN> -> tensor<4xi1>
  return %0 : tensor<4xi1>
}
