// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-propagate-layout,cse)' | FileCheck %s

// One transposition in, one out; the filters are transposed as weights.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[X:.*]]: tensor<1x3x8x8xf32>)
// CHECK: %[[IN:.*]] = mlc.transpose %[[X]] {mlc.relayout, permutation = array<i64: 0, 2, 3, 1>}
// CHECK: %[[A:.*]] = mlc.conv %[[IN]], {{.*}} layout = "nhwc"
// CHECK: %[[B:.*]] = mlc.unary tanh %[[A]] : tensor<1x8x8x3xf32>
// CHECK: %[[C:.*]] = mlc.concat %[[A]], %[[B]] {axis = 3 : i64}
// CHECK: %[[P:.*]] = mlc.pool max %[[C]] {{.*}} layout = "nhwc"
// CHECK: %[[OUT:.*]] = mlc.transpose %[[P]] {mlc.relayout, permutation = array<i64: 0, 3, 1, 2>}
// CHECK: return %[[OUT]]
func.func @chain(%x: tensor<1x3x8x8xf32>) -> tensor<1x6x4x4xf32> {
  %w = mlc.weight "w" : tensor<3x3x1x1xf32>
  %0 = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : tensor<1x3x8x8xf32>, tensor<3x3x1x1xf32> -> tensor<1x3x8x8xf32>
  %1 = mlc.unary tanh %0 : tensor<1x3x8x8xf32>
  %2 = mlc.concat %0, %1 {axis = 1 : i64} : tensor<1x3x8x8xf32>, tensor<1x3x8x8xf32> -> tensor<1x6x8x8xf32>
  %3 = mlc.pool max %2 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : tensor<1x6x8x8xf32> -> tensor<1x6x4x4xf32>
  return %3 : tensor<1x6x4x4xf32>
}

// Without a convolution nothing changes.
// CHECK-LABEL: func.func @pool_only
// CHECK-NOT: mlc.transpose
// CHECK: mlc.pool
func.func @pool_only(%x: tensor<1x6x8x8xf32>) -> tensor<1x6x4x4xf32> {
  %0 = mlc.pool max %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : tensor<1x6x8x8xf32> -> tensor<1x6x4x4xf32>
  return %0 : tensor<1x6x4x4xf32>
}

// A depthwise convolution that stands alone stays as it is: a CPU has a kernel for planes.
// CHECK-LABEL: func.func @depthwise_alone
// CHECK-NOT: mlc.transpose
// CHECK: mlc.conv
// CHECK-NOT: nhwc
// CHECK: mlc.unary
func.func @depthwise_alone(%x: tensor<1x6x8x8xf32>) -> tensor<1x6x6x6xf32> {
  %w = mlc.weight "d" : tensor<6x1x3x3xf32>
  %0 = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 6 : i64} : tensor<1x6x8x8xf32>, tensor<6x1x3x3xf32> -> tensor<1x6x6x6xf32>
  %1 = mlc.unary tanh %0 : tensor<1x6x6x6xf32>
  return %1 : tensor<1x6x6x6xf32>
}

// Before another convolution it is channels-last with that.
// CHECK-LABEL: func.func @depthwise_before_another
// CHECK: mlc.conv {{.*}} layout = "nhwc"
// CHECK: mlc.conv {{.*}} layout = "nhwc"
func.func @depthwise_before_another(%x: tensor<1x6x8x8xf32>) -> tensor<1x6x6x6xf32> {
  %w = mlc.weight "d" : tensor<6x1x3x3xf32>
  %v = mlc.weight "p" : tensor<6x6x1x1xf32>
  %0 = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 6 : i64} : tensor<1x6x8x8xf32>, tensor<6x1x3x3xf32> -> tensor<1x6x6x6xf32>
  %1 = mlc.unary tanh %0 : tensor<1x6x6x6xf32>
  %2 = mlc.conv %1, %v {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : tensor<1x6x6x6xf32>, tensor<6x6x1x1xf32> -> tensor<1x6x6x6xf32>
  return %2 : tensor<1x6x6x6xf32>
}

// So does one of 1x1 over a large image, as a product.
// CHECK-LABEL: func.func @pointwise_alone
// CHECK-NOT: mlc.transpose
// CHECK: %[[W:.*]] = mlc.reshape {{.*}} -> tensor<128x8xf32>
// CHECK: mlc.matmul %[[W]], {{.*}} -> tensor<1x128x1024xf32>
// CHECK-NOT: mlc.conv
func.func @pointwise_alone(%x: tensor<1x8x32x32xf32>) -> tensor<1x128x32x32xf32> {
  %w = mlc.weight "q" : tensor<128x8x1x1xf32>
  %0 = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : tensor<1x8x32x32xf32>, tensor<128x8x1x1xf32> -> tensor<1x128x32x32xf32>
  return %0 : tensor<1x128x32x32xf32>
}

// With strides the points that it reads are copied.
// CHECK-LABEL: func.func @pointwise_strided
// CHECK: %[[S:.*]] = mlc.slice %arg0 [0, 0, 0, 0] [1, 40, 27, 20] [1, 1, 2, 3]
// CHECK: %[[X:.*]] = mlc.reshape %[[S]] {{.*}} -> tensor<1x40x540xf32>
// CHECK: mlc.matmul %{{.*}}, %[[X]]
// CHECK-NOT: mlc.transpose
func.func @pointwise_strided(%x: tensor<1x40x53x60xf32>) -> tensor<1x130x27x20xf32> {
  %f = mlc.weight "g" : tensor<130x40x1x1xf32>
  %y = mlc.conv %x, %f {strides = array<i64: 2, 3>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw"} : tensor<1x40x53x60xf32>, tensor<130x40x1x1xf32> -> tensor<1x130x27x20xf32>
  return %y : tensor<1x130x27x20xf32>
}

// Of a small image only those points are transposed.
// CHECK-LABEL: func.func @pointwise_few_points
// CHECK: %[[S:.*]] = mlc.slice %arg0 [0, 0, 0, 0] [1, 40, 7, 10] [1, 1, 2, 2]
// CHECK: %[[T:.*]] = mlc.transpose %[[S]] {{.*}} -> tensor<1x7x10x40xf32>
// CHECK: mlc.conv %[[T]], {{.*}}strides = array<i64: 1, 1>
func.func @pointwise_few_points(%x: tensor<1x40x13x20xf32>) -> tensor<1x130x7x10xf32> {
  %f = mlc.weight "g" : tensor<130x40x1x1xf32>
  %y = mlc.conv %x, %f {strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw"} : tensor<1x40x13x20xf32>, tensor<130x40x1x1xf32> -> tensor<1x130x7x10xf32>
  return %y : tensor<1x130x7x10xf32>
}

// Tokens become an image, which is enlarged and joined with another one in front of a convolution: no transposition.
// CHECK-LABEL: func.func @images_of_tokens
// CHECK-NOT: mlc.transpose
// CHECK: mlc.reshape {{.*}} -> tensor<1x4x4x16xf32>
// CHECK: mlc.gather {{.*}}axis = 1 : i64{{.*}} -> tensor<1x8x4x16xf32>
// CHECK: mlc.gather {{.*}}axis = 2 : i64{{.*}} -> tensor<1x8x8x16xf32>
// CHECK: mlc.concat {{.*}}axis = 3 : i64
// CHECK: mlc.conv {{.*}}layout = "nhwc"
// CHECK: mlc.transpose {{.*}} -> tensor<1x5x8x8xf32>
func.func @images_of_tokens(%a: tensor<1x16x16xf32>, %b: tensor<1x64x16xf32>, %i: tensor<8xi64>) -> tensor<1x5x8x8xf32> {
  %w = mlc.weight "h" : tensor<5x32x1x1xf32>
  %0 = mlc.transpose %a {permutation = array<i64: 0, 2, 1>} : tensor<1x16x16xf32> -> tensor<1x16x16xf32>
  %1 = mlc.reshape %0 [1, 16, 4, 4] : tensor<1x16x16xf32> -> tensor<1x16x4x4xf32>
  %2 = mlc.gather %1, %i {axis = 2 : i64} : tensor<1x16x4x4xf32>, tensor<8xi64> -> tensor<1x16x8x4xf32>
  %3 = mlc.gather %2, %i {axis = 3 : i64} : tensor<1x16x8x4xf32>, tensor<8xi64> -> tensor<1x16x8x8xf32>
  %4 = mlc.transpose %b {permutation = array<i64: 0, 2, 1>} : tensor<1x64x16xf32> -> tensor<1x16x64xf32>
  %5 = mlc.reshape %4 [1, 16, 8, 8] : tensor<1x16x64xf32> -> tensor<1x16x8x8xf32>
  %6 = mlc.concat %3, %5 {axis = 1 : i64} : tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32> -> tensor<1x32x8x8xf32>
  %7 = mlc.conv %6, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : tensor<1x32x8x8xf32>, tensor<5x32x1x1xf32> -> tensor<1x5x8x8xf32>
  return %7 : tensor<1x5x8x8xf32>
}

// So do heads of tokens: a transpose puts them together, channels last.
// CHECK-LABEL: func.func @images_of_heads
// CHECK: [[T:%.+]] = mlc.transpose %arg0 {mlc.relayout, permutation = array<i64: 0, 2, 1, 3>} : tensor<1x2x16x8xf32> -> tensor<1x16x2x8xf32>
// CHECK: mlc.reshape [[T]] {{.*}} -> tensor<1x4x4x16xf32>
// CHECK: mlc.conv {{.*}}layout = "nhwc"
func.func @images_of_heads(%a: tensor<1x2x16x8xf32>) -> tensor<1x5x4x4xf32> {
  %w = mlc.weight "h" : tensor<5x16x3x3xf32>
  %0 = mlc.transpose %a {permutation = array<i64: 0, 1, 3, 2>} : tensor<1x2x16x8xf32> -> tensor<1x2x8x16xf32>
  %1 = mlc.reshape %0 [1, 16, 4, 4] : tensor<1x2x8x16xf32> -> tensor<1x16x4x4xf32>
  %2 = mlc.conv %1, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : tensor<1x16x4x4xf32>, tensor<5x16x3x3xf32> -> tensor<1x5x4x4xf32>
  return %2 : tensor<1x5x4x4xf32>
}

// A product takes the tokens of an image as they are, either way round; other transpositions begin nothing.
// CHECK-LABEL: func.func @tokens_of_images
// CHECK: mlc.conv {{.*}}layout = "nhwc"
// CHECK: %[[T:.*]] = mlc.reshape {{.*}} -> tensor<1x64x16xf32>
// CHECK: mlc.matmul %[[T]], %arg1 : tensor<1x64x16xf32>, tensor<16x3xf32>
// CHECK: mlc.matmul %arg2, %[[T]] {transpose_rhs} : tensor<1x2x16xf32>, tensor<1x64x16xf32>
// CHECK: %[[K:.*]] = mlc.transpose %arg2 {permutation = array<i64: 0, 2, 1>}
// CHECK: mlc.unary tanh %[[K]] : tensor<1x16x2xf32>
func.func @tokens_of_images(%x: tensor<1x4x8x8xf32>, %m: tensor<16x3xf32>, %n: tensor<1x2x16xf32>) -> (tensor<1x64x3xf32>, tensor<1x2x64xf32>, tensor<1x16x2xf32>) {
  %w = mlc.weight "i" : tensor<16x4x1x1xf32>
  %0 = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : tensor<1x4x8x8xf32>, tensor<16x4x1x1xf32> -> tensor<1x16x8x8xf32>
  %1 = mlc.reshape %0 [1, 16, 64] : tensor<1x16x8x8xf32> -> tensor<1x16x64xf32>
  %2 = mlc.matmul %1, %m {transpose_lhs} : tensor<1x16x64xf32>, tensor<16x3xf32> -> tensor<1x64x3xf32>
  %3 = mlc.matmul %n, %1 : tensor<1x2x16xf32>, tensor<1x16x64xf32> -> tensor<1x2x64xf32>
  %4 = mlc.transpose %n {permutation = array<i64: 0, 2, 1>} : tensor<1x2x16xf32> -> tensor<1x16x2xf32>
  %5 = mlc.unary tanh %4 : tensor<1x16x2xf32>
  return %2, %3, %5 : tensor<1x64x3xf32>, tensor<1x2x64xf32>, tensor<1x16x2xf32>
}

// Pixels that are shuffled into an image for a convolution are so with channels last: a transposition of lines.
// CHECK-LABEL: func.func @shuffle
// CHECK: %[[C:.*]] = mlc.conv {{.*}}layout = "nhwc"{{.*}} -> tensor<1x6x8x64xf32>
// CHECK: %[[R:.*]] = mlc.reshape %[[C]] [1, 6, 8, 2, 2, 16]
// CHECK: %[[T:.*]] = mlc.transpose %[[R]] {mlc.relayout, permutation = array<i64: 0, 1, 3, 2, 4, 5>}
// CHECK: %[[I:.*]] = mlc.reshape %[[T]] [1, 12, 16, 16]
// CHECK: %[[U:.*]] = mlc.unary tanh %[[I]] : tensor<1x12x16x16xf32>
// CHECK: mlc.conv %[[U]]
func.func @shuffle(%x: tensor<1x16x6x8xf32>, %w: tensor<64x16x1x1xf32>, %v: tensor<8x16x3x3xf32>) -> tensor<1x8x12x16xf32> {
  %a = mlc.conv %x, %w {dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x16x6x8xf32>, tensor<64x16x1x1xf32> -> tensor<1x64x6x8xf32>
  %r = mlc.reshape %a [1, 2, 2, 16, 6, 8] : tensor<1x64x6x8xf32> -> tensor<1x2x2x16x6x8xf32>
  %t = mlc.transpose %r {permutation = array<i64: 0, 3, 4, 1, 5, 2>} : tensor<1x2x2x16x6x8xf32> -> tensor<1x16x6x2x8x2xf32>
  %i = mlc.reshape %t [1, 16, 12, 16] : tensor<1x16x6x2x8x2xf32> -> tensor<1x16x12x16xf32>
  %u = mlc.unary tanh %i : tensor<1x16x12x16xf32>
  %b = mlc.conv %u, %v {dilations = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : tensor<1x16x12x16xf32>, tensor<8x16x3x3xf32> -> tensor<1x8x12x16xf32>
  return %b : tensor<1x8x12x16xf32>
}

// For nobody but the caller they are put where he wants them, at once.
// CHECK-LABEL: func.func @shuffled_result
// CHECK: mlc.conv
// CHECK: mlc.transpose {{.*}} -> tensor<1x3x6x2x8x2xf32>
// CHECK-NEXT: mlc.reshape {{.*}} -> tensor<1x3x12x16xf32>
// CHECK-NEXT: return
func.func @shuffled_result(%x: tensor<1x16x6x8xf32>, %w: tensor<12x16x1x1xf32>) -> tensor<1x3x12x16xf32> {
  %a = mlc.conv %x, %w {dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : tensor<1x16x6x8xf32>, tensor<12x16x1x1xf32> -> tensor<1x12x6x8xf32>
  %r = mlc.reshape %a [1, 2, 2, 3, 6, 8] : tensor<1x12x6x8xf32> -> tensor<1x2x2x3x6x8xf32>
  %t = mlc.transpose %r {permutation = array<i64: 0, 3, 4, 1, 5, 2>} : tensor<1x2x2x3x6x8xf32> -> tensor<1x3x6x2x8x2xf32>
  %i = mlc.reshape %t [1, 3, 12, 16] : tensor<1x3x6x2x8x2xf32> -> tensor<1x3x12x16xf32>
  return %i : tensor<1x3x12x16xf32>
}
