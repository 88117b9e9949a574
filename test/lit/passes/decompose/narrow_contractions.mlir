// RUN: mlc-opt %s --mlc-narrow-contractions | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-narrow-contractions{bytes=true})' | FileCheck %s --check-prefix=BYTES
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-narrow-contractions{weights-only=true})' | FileCheck %s --check-prefix=WEIGHTS
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-narrow-contractions,mlc-hoist-weights,canonicalize,cse)' | FileCheck %s --check-prefix=HOIST

// CHECK-LABEL: func.func @product
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
// CHECK-DAG: %[[A:.*]] = mlc.cast %[[X]] : tensor<4x8xf32> -> tensor<4x8xbf16>
// CHECK-DAG: %[[W:.*]] = mlc.weight "w" : tensor<8x16xf32>
// CHECK-DAG: %[[B:.*]] = mlc.cast %[[W]] : tensor<8x16xf32> -> tensor<8x16xbf16>
// CHECK: %[[R:.*]] = mlc.matmul %[[A]], %[[B]] {widen} : tensor<4x8xbf16>, tensor<8x16xbf16> -> tensor<4x16xf32>
// CHECK-NEXT: return %[[R]]
// HOIST-LABEL: func.func @product
// HOIST: mlc.weight "w#{{[0-9a-f]+}}" : tensor<8x16xbf16>
// HOIST: mlc.cast
// HOIST-NOT: mlc.cast
// HOIST: return
func.func @product(%x: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %w = mlc.weight "w" : tensor<8x16xf32>
  %0 = mlc.matmul %x, %w : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

// One cast for all readers; the bias is added in f32.
// CHECK-LABEL: func.func @convolution
// CHECK: mlc.cast %{{.*}} : tensor<?x3x8x8xf32> -> tensor<?x3x8x8xbf16>
// CHECK-NOT: mlc.cast %{{.*}} : tensor<?x3x8x8xf32>
// CHECK-COUNT-2: mlc.conv %{{.*}}, %{{.*}} bias(%{{.*}} : tensor<4xf32>) {{.*}}widen{{.*}} -> tensor<?x4x6x6xf32>
func.func @convolution(%x: tensor<?x3x8x8xf32>, %b: tensor<4xf32>) -> (tensor<?x4x6x6xf32>, tensor<?x4x6x6xf32>) {
  %v = mlc.weight "v" : tensor<4x3x3x3xf32>
  %w = mlc.weight "w" : tensor<4x3x3x3xf32>
  %0 = mlc.conv %x, %v bias(%b : tensor<4xf32>) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilations = array<i64: 1, 1>} : tensor<?x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<?x4x6x6xf32>
  %1 = mlc.conv %x, %w bias(%b : tensor<4xf32>) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>,
    dilations = array<i64: 1, 1>} : tensor<?x3x8x8xf32>, tensor<4x3x3x3xf32> -> tensor<?x4x6x6xf32>
  return %0, %1 : tensor<?x4x6x6xf32>, tensor<?x4x6x6xf32>
}

// Elements are rounded where they are computed, in front of what moves them.
// CHECK-LABEL: func.func @early
// CHECK: %[[E:.*]] = mlc.unary exp
// CHECK-NEXT: %[[C:.*]] = mlc.cast %[[E]] : tensor<2x16x12xf32> -> tensor<2x16x12xbf16>
// CHECK-NEXT: mlc.reshape %[[C]] [2, 4, 4, 12] : tensor<2x16x12xbf16> -> tensor<2x4x4x12xbf16>
// CHECK-NEXT: mlc.transpose {{.*}} -> tensor<2x12x4x4xbf16>
// CHECK: mlc.slice {{.*}} -> tensor<2x12x2x2xbf16>
// CHECK-NOT: mlc.cast %{{.*}} : tensor<2x12
// CHECK: mlc.conv {{.*}}widen
func.func @early(%x: tensor<2x16x12xf32>) -> tensor<2x4x2x2xf32> {
  %w = mlc.weight "w" : tensor<4x12x1x1xf32>
  %0 = mlc.unary exp %x : tensor<2x16x12xf32>
  %1 = mlc.reshape %0 [2, 4, 4, 12] : tensor<2x16x12xf32> -> tensor<2x4x4x12xf32>
  %2 = mlc.transpose %1 {permutation = array<i64: 0, 3, 1, 2>} : tensor<2x4x4x12xf32> -> tensor<2x12x4x4xf32>
  %3 = mlc.slice %2 [0, 0, 1, 1] [2, 12, 2, 2] [1, 1, 1, 1] : tensor<2x12x4x4xf32> -> tensor<2x12x2x2xf32>
  %4 = mlc.conv %3, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>}
    : tensor<2x12x2x2xf32>, tensor<4x12x1x1xf32> -> tensor<2x4x2x2xf32>
  return %4 : tensor<2x4x2x2xf32>
}

// The f32 elements are needed as well: they move as they are.
// CHECK-LABEL: func.func @both
// CHECK: mlc.transpose %{{.*}} : tensor<8x4xf32> -> tensor<4x8xf32>
// CHECK-NEXT: mlc.cast %{{.*}} : tensor<4x8xf32> -> tensor<4x8xbf16>
func.func @both(%x: tensor<8x4xf32>) -> (tensor<4x16xf32>, tensor<4x8xf32>) {
  %w = mlc.weight "w" : tensor<8x16xf32>
  %0 = mlc.unary exp %x : tensor<8x4xf32>
  %1 = mlc.transpose %0 {permutation = array<i64: 1, 0>} : tensor<8x4xf32> -> tensor<4x8xf32>
  %2 = mlc.matmul %1, %w : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  return %2, %1 : tensor<4x16xf32>, tensor<4x8xf32>
}

// A pool is no move; few products, depthwise convolutions and other types stay.
// CHECK-LABEL: func.func @stays
// CHECK: mlc.pool avg {{.*}} -> tensor<2x12x2x2xf32>
// CHECK: mlc.conv {{.*}} : tensor<2x12x2x2xf32>, tensor<12x1x2x2xf32> -> tensor<2x12x1x1xf32>
// CHECK: mlc.matmul {{.*}} : tensor<5x3xf32>, tensor<3x5xf32> -> tensor<5x5xf32>
// CHECK: mlc.matmul {{.*}} : tensor<5x30xf64>, tensor<30x5xf64> -> tensor<5x5xf64>
// CHECK: mlc.matmul {{.*}} : tensor<5x30xbf16>, tensor<30x5xbf16> -> tensor<5x5xbf16>
func.func @stays(%x: tensor<2x12x4x4xf32>, %a: tensor<5x3xf32>, %b: tensor<3x5xf32>, %c: tensor<5x30xf64>,
                 %d: tensor<30x5xf64>, %e: tensor<5x30xbf16>, %f: tensor<30x5xbf16>)
    -> (tensor<2x12x1x1xf32>, tensor<5x5xf32>, tensor<5x5xf64>, tensor<5x5xbf16>) {
  %w = mlc.weight "w" : tensor<12x1x2x2xf32>
  %0 = mlc.pool avg %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>,
    dilations = array<i64: 1, 1>} : tensor<2x12x4x4xf32> -> tensor<2x12x2x2xf32>
  %1 = mlc.conv %0, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>,
    groups = 12 : i64} : tensor<2x12x2x2xf32>, tensor<12x1x2x2xf32> -> tensor<2x12x1x1xf32>
  %2 = mlc.matmul %a, %b : tensor<5x3xf32>, tensor<3x5xf32> -> tensor<5x5xf32>
  %3 = mlc.matmul %c, %d : tensor<5x30xf64>, tensor<30x5xf64> -> tensor<5x5xf64>
  %4 = mlc.matmul %e, %f : tensor<5x30xbf16>, tensor<30x5xbf16> -> tensor<5x5xbf16>
  return %1, %2, %3, %4 : tensor<2x12x1x1xf32>, tensor<5x5xf32>, tensor<5x5xf64>, tensor<5x5xbf16>
}

// A left operand is read along its rows, and so is an activation on the right; a weight is packed anyway.
// CHECK-LABEL: func.func @order
// CHECK: %[[L:.*]] = mlc.transpose %{{.*}} {permutation = array<i64: 0, 2, 1>} : tensor<2x16x12xbf16> -> tensor<2x12x16xbf16>
// CHECK: %[[R:.*]] = mlc.transpose %{{.*}} {permutation = array<i64: 0, 2, 1>} : tensor<2x9x16xbf16> -> tensor<2x16x9xbf16>
// CHECK: mlc.matmul %[[L]], %[[R]] {widen} : tensor<2x12x16xbf16>, tensor<2x16x9xbf16> -> tensor<2x12x9xf32>
// CHECK: mlc.matmul %{{.*}}, %{{.*}} {transpose_rhs, widen} : tensor<2x12x16xbf16>, tensor<5x16xbf16> -> tensor<2x12x5xf32>
// Of two activations nothing is stored in half the room.
// WEIGHTS-LABEL: func.func @order
// WEIGHTS: mlc.matmul %{{.*}}, %{{.*}} {transpose_lhs, transpose_rhs} : tensor<2x16x12xf32>, tensor<2x9x16xf32> -> tensor<2x12x9xf32>
// WEIGHTS: mlc.matmul %{{.*}}, %{{.*}} {transpose_rhs, widen} : tensor<2x12x16xbf16>, tensor<5x16xbf16> -> tensor<2x12x5xf32>
func.func @order(%x: tensor<2x16x12xf32>, %y: tensor<2x9x16xf32>, %z: tensor<2x12x16xf32>)
    -> (tensor<2x12x9xf32>, tensor<2x12x5xf32>) {
  %w = mlc.weight "w" : tensor<5x16xf32>
  %0 = mlc.matmul %x, %y {transpose_lhs, transpose_rhs} : tensor<2x16x12xf32>, tensor<2x9x16xf32> -> tensor<2x12x9xf32>
  %1 = mlc.matmul %z, %w {transpose_rhs} : tensor<2x12x16xf32>, tensor<5x16xf32> -> tensor<2x12x5xf32>
  return %0, %1 : tensor<2x12x9xf32>, tensor<2x12x5xf32>
}

// One row times an activation takes as long as rounding it; a weight is rounded once and for all.
// CHECK-LABEL: func.func @row
// CHECK: mlc.matmul %{{.*}}, %{{.*}} : tensor<1x64xf32>, tensor<64x32xf32> -> tensor<1x32xf32>
// CHECK: mlc.matmul %{{.*}}, %{{.*}} {widen} : tensor<1x64xbf16>, tensor<64x32xbf16> -> tensor<1x32xf32>
func.func @row(%x: tensor<1x64xf32>, %y: tensor<64x32xf32>) -> (tensor<1x32xf32>, tensor<1x32xf32>) {
  %w = mlc.weight "w" : tensor<64x32xf32>
  %0 = mlc.matmul %x, %y : tensor<1x64xf32>, tensor<64x32xf32> -> tensor<1x32xf32>
  %1 = mlc.matmul %x, %w : tensor<1x64xf32>, tensor<64x32xf32> -> tensor<1x32xf32>
  return %0, %1 : tensor<1x32xf32>, tensor<1x32xf32>
}

// A depthwise convolution has no products to pair: it is rounded where that is asked for.
// CHECK-LABEL: func.func @depthwise
// CHECK-NOT: mlc.cast
// CHECK: return
// BYTES-LABEL: func.func @depthwise
// BYTES: mlc.conv {{.*}} : tensor<1x6x6x8xbf16>, tensor<3x3x1x8xbf16> -> tensor<1x4x4x8xf32>
func.func @depthwise(%x: tensor<1x6x6x8xf32>) -> tensor<1x4x4x8xf32> {
  %w = mlc.weight "w" : tensor<3x3x1x8xf32>
  %r = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 8 : i64, layout = "nhwc"} : tensor<1x6x6x8xf32>, tensor<3x3x1x8xf32> -> tensor<1x4x4x8xf32>
  return %r : tensor<1x4x4x8xf32>
}

// The largest of rounded elements is the largest, rounded.
// CHECK-LABEL: func.func @largest
// CHECK: %[[P:.*]] = mlc.pool max %{{.*}} : tensor<1x16x8x8xf32>
// CHECK: mlc.cast %[[P]]
// BYTES-LABEL: func.func @largest
// BYTES: %[[C:.*]] = mlc.cast %arg0 : tensor<1x16x8x8xf32> -> tensor<1x16x8x8xbf16>
// BYTES: mlc.pool max %[[C]] {{.*}} : tensor<1x16x8x8xbf16> -> tensor<1x16x4x4xbf16>
func.func @largest(%x: tensor<1x16x8x8xf32>) -> tensor<1x8x4x4xf32> {
  %w = mlc.weight "w" : tensor<8x16x1x1xf32>
  %p = mlc.pool max %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : tensor<1x16x8x8xf32> -> tensor<1x16x4x4xf32>
  %r = mlc.conv %p, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : tensor<1x16x4x4xf32>, tensor<8x16x1x1xf32> -> tensor<1x8x4x4xf32>
  return %r : tensor<1x8x4x4xf32>
}

// A table that is looked up in and multiplied by is rounded once, for both.
// CHECK-LABEL: func.func @tied
// CHECK: %[[T:.*]] = mlc.weight "t" : tensor<100x8xf32>
// CHECK: %[[N:.*]] = mlc.cast %[[T]] : tensor<100x8xf32> -> tensor<100x8xbf16>
// CHECK: %[[G:.*]] = mlc.gather %[[N]], %{{.*}} {axis = 0 : i64} : tensor<100x8xbf16>, tensor<4xi64> -> tensor<4x8xbf16>
// CHECK: %[[F:.*]] = mlc.cast %[[G]] : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK: mlc.unary exp %[[F]]
// CHECK: mlc.matmul %{{.*}}, %[[N]] {transpose_rhs, widen}
func.func @tied(%i: tensor<4xi64>) -> tensor<4x100xf32> {
  %t = mlc.weight "t" : tensor<100x8xf32>
  %x = mlc.gather %t, %i {axis = 0 : i64} : tensor<100x8xf32>, tensor<4xi64> -> tensor<4x8xf32>
  %e = mlc.unary exp %x : tensor<4x8xf32>
  %0 = mlc.matmul %e, %t {transpose_rhs} : tensor<4x8xf32>, tensor<100x8xf32> -> tensor<4x100xf32>
  return %0 : tensor<4x100xf32>
}

// Not where something else reads the table as it was, and not where it is no weight.
// CHECK-LABEL: func.func @tied_no_more
// CHECK-COUNT-2: mlc.gather {{.*}} -> tensor<4x8xf32>
func.func @tied_no_more(%i: tensor<4xi64>, %u: tensor<100x8xf32>) -> (tensor<4x100xf32>, tensor<4x100xf32>, tensor<100x8xf32>) {
  %t = mlc.weight "t" : tensor<100x8xf32>
  %x = mlc.gather %t, %i {axis = 0 : i64} : tensor<100x8xf32>, tensor<4xi64> -> tensor<4x8xf32>
  %0 = mlc.matmul %x, %t {transpose_rhs} : tensor<4x8xf32>, tensor<100x8xf32> -> tensor<4x100xf32>
  %y = mlc.gather %u, %i {axis = 0 : i64} : tensor<100x8xf32>, tensor<4xi64> -> tensor<4x8xf32>
  %1 = mlc.matmul %y, %u {transpose_rhs} : tensor<4x8xf32>, tensor<100x8xf32> -> tensor<4x100xf32>
  %2 = mlc.unary exp %t : tensor<100x8xf32>
  return %0, %1, %2 : tensor<4x100xf32>, tensor<4x100xf32>, tensor<100x8xf32>
}

// Small products of activations are not worth rounding, hundreds of them are worth their bytes.
// CHECK-LABEL: func.func @small_products
// CHECK: mlc.matmul {{.*}} : tensor<300x4x16xf32>, tensor<300x16x4xf32> -> tensor<300x4x4xf32>
// BYTES-LABEL: func.func @small_products
// BYTES: mlc.matmul {{.*}} {widen} : tensor<300x4x16xbf16>, tensor<300x16x4xbf16> -> tensor<300x4x4xf32>
// BYTES: mlc.matmul {{.*}} : tensor<30x4x16xf32>, tensor<30x16x4xf32> -> tensor<30x4x4xf32>
func.func @small_products(%x: tensor<300x4x16xf32>, %y: tensor<300x16x4xf32>, %a: tensor<30x4x16xf32>, %b: tensor<30x16x4xf32>)
    -> (tensor<300x4x4xf32>, tensor<30x4x4xf32>) {
  %0 = mlc.matmul %x, %y : tensor<300x4x16xf32>, tensor<300x16x4xf32> -> tensor<300x4x4xf32>
  %1 = mlc.matmul %a, %b : tensor<30x4x16xf32>, tensor<30x16x4xf32> -> tensor<30x4x4xf32>
  return %0, %1 : tensor<300x4x4xf32>, tensor<30x4x4xf32>
}
