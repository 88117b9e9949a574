// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-integers)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-integers{tiles=true})' | FileCheck %s --check-prefix=TILES
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-integers{words=true})' | FileCheck %s --check-prefix=WORDS

// CHECK: module attributes {mlc.kept_float = [
// CHECK-SAME: {node = "blocks", reason = "of its right operand, its scales are those of blocks"}
// CHECK-SAME: {node = "rows", reason = "the scale of its right operand changes along what is summed"}
// CHECK-SAME: {node = "activations", reason = "its right operand is no weight"}
// CHECK-SAME: {node = "half", reason = "its left operand is not quantized"}

// CHECK-LABEL: func.func @planned
// CHECK: mlc.matmul %{{.*}}, %{{.*}} {mlc.integers}
// CHECK: mlc.conv %{{.*}}, %{{.*}} {{{.*}}mlc.integers
// CHECK: mlc.matmul %{{.*}}, %{{.*}} {mlc.integers} : tensor<4x8xi32>
func.func @planned(%x: tensor<4x8xi8>, %i: tensor<1x3x8x8xi8>, %s: tensor<f32>)
    -> (tensor<4x16xf32>, tensor<1x4x6x6xf32>, tensor<4x16xi32>) {
  %w = mlc.weight "w" : tensor<8x16xi8>
  %t = mlc.weight "t" : tensor<16xf32>
  %a = mlc.dequantize %x, %s {unsigned} : tensor<4x8xi8>, tensor<f32> -> tensor<4x8xf32>
  %b = mlc.dequantize %w, %t {axis = 1 : i64} : tensor<8x16xi8>, tensor<16xf32> -> tensor<8x16xf32>
  %0 = mlc.matmul %a, %b : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %f = mlc.weight "f" : tensor<4x3x3x3xi8>
  %u = mlc.weight "u" : tensor<4xf32>
  %c = mlc.dequantize %i, %s {unsigned} : tensor<1x3x8x8xi8>, tensor<f32> -> tensor<1x3x8x8xf32>
  %d = mlc.dequantize %f, %u {axis = 0 : i64} : tensor<4x3x3x3xi8>, tensor<4xf32> -> tensor<4x3x3x3xf32>
  %1 = mlc.conv %c, %d {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>}
    : tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x6x6xf32>
  %p = mlc.cast %x : tensor<4x8xi8> -> tensor<4x8xi32>
  %q = mlc.cast %w : tensor<8x16xi8> -> tensor<8x16xi32>
  %2 = mlc.matmul %p, %q : tensor<4x8xi32>, tensor<8x16xi32> -> tensor<4x16xi32>
  return %0, %1, %2 : tensor<4x16xf32>, tensor<1x4x6x6xf32>, tensor<4x16xi32>
}

// CHECK-LABEL: func.func @kept
// CHECK-NOT: mlc.integers
func.func @kept(%x: tensor<4x8xi8>, %y: tensor<8x16xi8>, %z: tensor<4x8xf32>, %s: tensor<f32>) -> (tensor<4x16xf32>,
    tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>) {
  %w = mlc.weight "w" : tensor<8x16xi8>
  %a = mlc.dequantize %x, %s : tensor<4x8xi8>, tensor<f32> -> tensor<4x8xf32>
  %t = mlc.weight "blocks" : tensor<2x16xf32>
  %b = mlc.dequantize %w, %t {axis = 0 : i64, block_size = 4 : i64} : tensor<8x16xi8>, tensor<2x16xf32> -> tensor<8x16xf32>
  %0 = mlc.matmul %a, %b : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32> loc("blocks")
  %u = mlc.weight "rows" : tensor<8xf32>
  %c = mlc.dequantize %w, %u {axis = 0 : i64} : tensor<8x16xi8>, tensor<8xf32> -> tensor<8x16xf32>
  %1 = mlc.matmul %a, %c : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32> loc("rows")
  %d = mlc.dequantize %y, %s : tensor<8x16xi8>, tensor<f32> -> tensor<8x16xf32>
  %2 = mlc.matmul %a, %d : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32> loc("activations")
  %3 = mlc.matmul %z, %d : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32> loc("half")
  %v = mlc.weight "v" : tensor<8x16xf32>
  %4 = mlc.matmul %z, %v : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  return %0, %1, %2, %3, %4 : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>
}

// Operands that matrix tiles will multiply keep their signs: sums of 16 products that lie side by side, four rows.
// CHECK-LABEL: func.func @tiles
// CHECK-NOT: mlc.own_signs
// TILES-LABEL: func.func @planned
// TILES-NOT: mlc.own_signs
// TILES-LABEL: func.func @tiles
// TILES: mlc.matmul {{.*}} {mlc.integers, mlc.own_signs} : tensor<4x16xi32>
// TILES: mlc.matmul {{.*}} {mlc.integers, mlc.own_signs} : tensor<?x16xi32>
// TILES: mlc.matmul {{.*}} {mlc.integers} : tensor<3x16xi32>
// TILES: mlc.conv {{.*}}mlc.own_signs
// TILES: mlc.conv {{.*}}dilations = array<i64: 1, 2>, mlc.integers, padding
func.func @tiles(%x: tensor<4x16xi8>, %y: tensor<?x16xi8>, %z: tensor<3x16xi8>)
    -> (tensor<4x8xi32>, tensor<?x8xi32>, tensor<3x8xi32>, tensor<1x8x7x7xi32>, tensor<1x8x7x5xi32>) {
  %w = mlc.weight "w" : tensor<16x8xi8>
  %q = mlc.cast %w : tensor<16x8xi8> -> tensor<16x8xi32>
  %a = mlc.cast %x : tensor<4x16xi8> -> tensor<4x16xi32>
  %b = mlc.cast %y : tensor<?x16xi8> -> tensor<?x16xi32>
  %c = mlc.cast %z : tensor<3x16xi8> -> tensor<3x16xi32>
  %0 = mlc.matmul %a, %q : tensor<4x16xi32>, tensor<16x8xi32> -> tensor<4x8xi32>
  %1 = mlc.matmul %b, %q : tensor<?x16xi32>, tensor<16x8xi32> -> tensor<?x8xi32>
  %2 = mlc.matmul %c, %q : tensor<3x16xi32>, tensor<16x8xi32> -> tensor<3x8xi32>
  %j = mlc.weight "j" : tensor<1x6x9x9xi8>
  %d = mlc.cast %j : tensor<1x6x9x9xi8> -> tensor<1x6x9x9xi32>
  %f = mlc.weight "f" : tensor<8x6x3x3xi8>
  %g = mlc.cast %f : tensor<8x6x3x3xi8> -> tensor<8x6x3x3xi32>
  %3 = mlc.conv %d, %g {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>}
    : tensor<1x6x9x9xi32>, tensor<8x6x3x3xi32> -> tensor<1x8x7x7xi32>
  %4 = mlc.conv %d, %g {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 2>}
    : tensor<1x6x9x9xi32>, tensor<8x6x3x3xi32> -> tensor<1x8x7x5xi32>
  return %0, %1, %2, %3, %4 : tensor<4x8xi32>, tensor<?x8xi32>, tensor<3x8xi32>, tensor<1x8x7x7xi32>, tensor<1x8x7x5xi32>
}

// Codes of what is never negative do not use their sign: through a pooling whose windows all have elements, and views.
// With a zero point, a
// scale that may be negative, and after sums with something negative, they do. Products of words keep all signs.
// CHECK-LABEL: func.func @never_negative
// CHECK: mlc.matmul {{.*}} {mlc.integers, mlc.never_negative}
// CHECK: mlc.conv {{.*}}mlc.integers, mlc.never_negative
// CHECK: mlc.matmul {{.*}} {mlc.integers} : tensor<4x8xf32>
// CHECK: mlc.matmul {{.*}} {mlc.integers} : tensor<4x8xf32>
// CHECK: mlc.conv {{.*}}dilations = array<i64: 1, 1>, mlc.integers, padding
// CHECK: mlc.matmul {{.*}} {mlc.integers} : tensor<4x8xf32>
// TILES-LABEL: func.func @never_negative
// WORDS-LABEL: func.func @never_negative
// WORDS: mlc.matmul {{.*}} {mlc.integers, mlc.never_negative, mlc.own_signs}
// WORDS: mlc.conv {{.*}}mlc.integers, mlc.never_negative, mlc.own_signs
// WORDS: mlc.matmul {{.*}} {mlc.integers, mlc.own_signs} : tensor<4x8xf32>
func.func @never_negative(%x: tensor<4x8xf32>, %i: tensor<1x3x8x8xf32>, %u: tensor<f32>)
    -> (tensor<4x16xf32>, tensor<1x4x3x3xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<1x4x7x7xf32>, tensor<4x16xf32>) {
  %s = mlc.constant dense<0.05> : tensor<f32>
  %w = mlc.weight "w" : tensor<8x16xi8>
  %b = mlc.dequantize %w, %s : tensor<8x16xi8>, tensor<f32> -> tensor<8x16xf32>
  %f = mlc.weight "f" : tensor<4x3x3x3xi8>
  %d = mlc.dequantize %f, %s : tensor<4x3x3x3xi8>, tensor<f32> -> tensor<4x3x3x3xf32>
  %r = mlc.activation relu %x : tensor<4x8xf32>
  %q0 = mlc.quantize %r, %s : tensor<4x8xf32>, tensor<f32> -> tensor<4x8xi8>
  %a0 = mlc.dequantize %q0, %s : tensor<4x8xi8>, tensor<f32> -> tensor<4x8xf32>
  %0 = mlc.matmul %a0, %b : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %low = mlc.constant dense<0.0> : tensor<f32>
  %c = mlc.clamp %i low(%low : tensor<f32>) : tensor<1x3x8x8xf32>
  %q1 = mlc.quantize %c, %s : tensor<1x3x8x8xf32>, tensor<f32> -> tensor<1x3x8x8xi8>
  %a1 = mlc.dequantize %q1, %s : tensor<1x3x8x8xi8>, tensor<f32> -> tensor<1x3x8x8xf32>
  %p = mlc.pool max %a1 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nchw"}
    : tensor<1x3x8x8xf32> -> tensor<1x3x5x5xf32>
  %q2 = mlc.quantize %p, %s : tensor<1x3x5x5xf32>, tensor<f32> -> tensor<1x3x5x5xi8>
  %a2 = mlc.dequantize %q2, %s : tensor<1x3x5x5xi8>, tensor<f32> -> tensor<1x3x5x5xf32>
  %1 = mlc.conv %a2, %d {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>}
    : tensor<1x3x5x5xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x3x3xf32>
  %z = mlc.constant dense<-3> : tensor<i8>
  %q3 = mlc.quantize %r, %s zero_point(%z : tensor<i8>) : tensor<4x8xf32>, tensor<f32> -> tensor<4x8xi8>
  %a3 = mlc.dequantize %q3, %s zero_point(%z : tensor<i8>) : tensor<4x8xi8>, tensor<f32> -> tensor<4x8xf32>
  %2 = mlc.matmul %a3, %b : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %t = mlc.binary add %r, %x : tensor<4x8xf32>
  %q4 = mlc.quantize %t, %s : tensor<4x8xf32>, tensor<f32> -> tensor<4x8xi8>
  %a4 = mlc.dequantize %q4, %s : tensor<4x8xi8>, tensor<f32> -> tensor<4x8xf32>
  %3 = mlc.matmul %a4, %b : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %e = mlc.pool max %a1 {kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, padding = array<i64: 2, 2, 0, 0>, dilations = array<i64: 1, 1>, layout = "nchw"}
    : tensor<1x3x8x8xf32> -> tensor<1x3x9x9xf32>
  %q5 = mlc.quantize %e, %s : tensor<1x3x9x9xf32>, tensor<f32> -> tensor<1x3x9x9xi8>
  %a5 = mlc.dequantize %q5, %s : tensor<1x3x9x9xi8>, tensor<f32> -> tensor<1x3x9x9xf32>
  %4 = mlc.conv %a5, %d {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>}
    : tensor<1x3x9x9xf32>, tensor<4x3x3x3xf32> -> tensor<1x4x7x7xf32>
  %q6 = mlc.quantize %r, %u : tensor<4x8xf32>, tensor<f32> -> tensor<4x8xi8>
  %a6 = mlc.dequantize %q6, %u : tensor<4x8xi8>, tensor<f32> -> tensor<4x8xf32>
  %5 = mlc.matmul %a6, %b : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<4x16xf32>, tensor<1x4x3x3xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<1x4x7x7xf32>, tensor<4x16xf32>
}
