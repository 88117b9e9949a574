// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose{none=true},mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose{none=true},mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views{target=cuda})' | FileCheck %s --check-prefix=CUDA

// CHECK-DAG: #[[QUERY:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, 0, d1, d4)>
// CHECK-DAG: #[[VALUE:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d4, 2, d1, d3)>
// CHECK-DAG: #[[OUT:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3)>
// CHECK-DAG: #[[QUERY_APART:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, 0, d4)>
// CHECK-DAG: #[[KEY_APART:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, d1, 1, d4)>
// CHECK-DAG: #[[KEY:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d3, 1, d1, d4)>

// Of an attention over one tensor of queries, keys and values nothing is put in another order: keys, like queries, are
// read along the sum.
// CHECK-LABEL: func.func @attention
// CHECK-SAME: %[[X:.*]]: tensor<2x16x96xf32>
// CHECK: tensor.expand_shape %[[X]] {{.*}} output_shape [2, 16, 3, 2, 16]
// CHECK: linalg.generic {indexing_maps = [#[[QUERY]], #[[KEY]], #{{.*}}]{{.*}}mlc.contraction
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[VALUE]], #[[OUT]]]{{.*}}mlc.contraction
// CHECK-NOT: linalg.generic
// CHECK: return
// CUDA-LABEL: func.func @attention
// CUDA-COUNT-7: linalg.generic
func.func @attention(%x: tensor<2x16x96xf32>) -> tensor<2x16x32xf32> {
  %q0 = mlc.slice %x [0, 0, 0] [2, 16, 32] [1, 1, 1] : tensor<2x16x96xf32> -> tensor<2x16x32xf32>
  %k0 = mlc.slice %x [0, 0, 32] [2, 16, 32] [1, 1, 1] : tensor<2x16x96xf32> -> tensor<2x16x32xf32>
  %v0 = mlc.slice %x [0, 0, 64] [2, 16, 32] [1, 1, 1] : tensor<2x16x96xf32> -> tensor<2x16x32xf32>
  %q1 = mlc.reshape %q0 [2, 16, 2, 16] : tensor<2x16x32xf32> -> tensor<2x16x2x16xf32>
  %k1 = mlc.reshape %k0 [2, 16, 2, 16] : tensor<2x16x32xf32> -> tensor<2x16x2x16xf32>
  %v1 = mlc.reshape %v0 [2, 16, 2, 16] : tensor<2x16x32xf32> -> tensor<2x16x2x16xf32>
  %q = mlc.transpose %q1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x16x2x16xf32> -> tensor<2x2x16x16xf32>
  %k = mlc.transpose %k1 {permutation = array<i64: 0, 2, 3, 1>} : tensor<2x16x2x16xf32> -> tensor<2x2x16x16xf32>
  %v = mlc.transpose %v1 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x16x2x16xf32> -> tensor<2x2x16x16xf32>
  %s = mlc.matmul %q, %k : tensor<2x2x16x16xf32>, tensor<2x2x16x16xf32> -> tensor<2x2x16x16xf32>
  %o = mlc.matmul %s, %v : tensor<2x2x16x16xf32>, tensor<2x2x16x16xf32> -> tensor<2x2x16x16xf32>
  %t = mlc.transpose %o {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x2x16x16xf32> -> tensor<2x16x2x16xf32>
  %r = mlc.reshape %t [2, 16, 32] : tensor<2x16x2x16xf32> -> tensor<2x16x32xf32>
  return %r : tensor<2x16x32xf32>
}

// A vector by itself: one of the two must go on saying that the sum has one element.
// CHECK-LABEL: func.func @outer_product
// CHECK: linalg.generic {indexing_maps = {{.*}}mlc.contraction
// CHECK: return
func.func @outer_product(%x: tensor<2x5xf32>) -> (tensor<2x5x5xf32>, tensor<2x1x5xf32>) {
  %u = mlc.reshape %x [2, 5, 1] : tensor<2x5xf32> -> tensor<2x5x1xf32>
  %t = mlc.transpose %u {permutation = array<i64: 0, 2, 1>} : tensor<2x5x1xf32> -> tensor<2x1x5xf32>
  %p = mlc.matmul %u, %t : tensor<2x5x1xf32>, tensor<2x1x5xf32> -> tensor<2x5x5xf32>
  return %p, %t : tensor<2x5x5xf32>, tensor<2x1x5xf32>
}

// The transpose in front of a padded convolution moves behind the padding.
// CHECK-LABEL: func.func @padding
// CHECK-SAME: %[[X:.*]]: tensor<1x3x9x9xf32>
// CHECK: outs(%{{.*}} : tensor<1x3x11x11xf32>)
// CHECK: tensor.extract %[[X]]
// CHECK: ins(%{{.*}} : tensor<1x3x11x11xf32>, tensor<3x3x3x16xf32>){{.*}}mlc.contraction
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @padding(%x: tensor<1x3x9x9xf32>, %w: tensor<3x3x3x16xf32>) -> tensor<1x9x9x16xf32> {
  %t = mlc.transpose %x {permutation = array<i64: 0, 2, 3, 1>} : tensor<1x3x9x9xf32> -> tensor<1x9x9x3xf32>
  %r = mlc.conv %t, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc"} : tensor<1x9x9x3xf32>, tensor<3x3x3x16xf32> -> tensor<1x9x9x16xf32>
  return %r : tensor<1x9x9x16xf32>
}

// Windows over many channels would read across memory for every tap: the transpose stays, and the padding behind it.
// CHECK-LABEL: func.func @windows
// CHECK-SAME: %[[X:.*]]: tensor<1x48x9x9xf32>
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<1x48x9x9xf32>)
// CHECK: %[[P:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1x11x11x48xf32>)
// CHECK: tensor.extract %[[T]]
// CHECK: ins(%[[P]], %{{.*}} : tensor<1x11x11x48xf32>, tensor<3x3x48x16xf32>){{.*}}mlc.contraction
func.func @windows(%x: tensor<1x48x9x9xf32>, %w: tensor<3x3x48x16xf32>) -> tensor<1x9x9x16xf32> {
  %t = mlc.transpose %x {permutation = array<i64: 0, 2, 3, 1>} : tensor<1x48x9x9xf32> -> tensor<1x9x9x48xf32>
  %r = mlc.conv %t, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc"} : tensor<1x9x9x48xf32>, tensor<3x3x48x16xf32> -> tensor<1x9x9x16xf32>
  return %r : tensor<1x9x9x16xf32>
}

// What is cut out along the sum is read where it lies, however many pieces the sum has.
// CHECK-LABEL: func.func @pieces
// CHECK-SAME: %[[X:.*]]: tensor<16x96x32xf32>
// CHECK-NOT: linalg.generic {{.*}} ins(%[[X]] :
// CHECK: mlc.contraction
func.func @pieces(%x: tensor<16x96x32xf32>, %w: tensor<96x16x64xf32>) -> tensor<96x16x64xf32> {
  %s = mlc.slice %x [0, 0, 8] [16, 96, 16] [1, 1, 1] : tensor<16x96x32xf32> -> tensor<16x96x16xf32>
  %t = mlc.transpose %s {permutation = array<i64: 1, 0, 2>} : tensor<16x96x16xf32> -> tensor<96x16x16xf32>
  %r = mlc.matmul %t, %w : tensor<96x16x16xf32>, tensor<96x16x64xf32> -> tensor<96x16x64xf32>
  return %r : tensor<96x16x64xf32>
}

// A result whose vectors would be scattered, and rows that would be read across memory, stay.
// CHECK-LABEL: func.func @refused
// CHECK-COUNT-3: linalg.generic
// CHECK: return
func.func @refused(%x: tensor<128x16xf32>, %w: tensor<128x32xf32>) -> tensor<32x16xf32> {
  %t = mlc.transpose %x {permutation = array<i64: 1, 0>} : tensor<128x16xf32> -> tensor<16x128xf32>
  %m = mlc.matmul %t, %w : tensor<16x128xf32>, tensor<128x32xf32> -> tensor<16x32xf32>
  %r = mlc.transpose %m {permutation = array<i64: 1, 0>} : tensor<16x32xf32> -> tensor<32x16xf32>
  return %r : tensor<32x16xf32>
}

// bf16 is read in pairs along the reduction: rows may be anywhere, but their elements stand together.
// CHECK-LABEL: func.func @pairs
// CHECK-SAME: %[[X:.*]]: tensor<1x3x9x9xbf16>, %{{.*}}: tensor<1x1x3x16xbf16>, %[[Y:.*]]: tensor<16x2x32xbf16>
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<1x3x9x9xbf16>)
// CHECK: linalg.generic {{.*}} ins(%[[T]], {{.*}}mlc.contraction
// CHECK: linalg.generic {{.*}} ins(%[[Y]], {{.*}}mlc.contraction
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @pairs(%x: tensor<1x3x9x9xbf16>, %w: tensor<1x1x3x16xbf16>, %y: tensor<16x2x32xbf16>, %v: tensor<2x32x64xbf16>)
    -> (tensor<1x9x9x16xf32>, tensor<2x16x64xf32>) {
  %t = mlc.transpose %x {permutation = array<i64: 0, 2, 3, 1>} : tensor<1x3x9x9xbf16> -> tensor<1x9x9x3xbf16>
  %c = mlc.conv %t, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, layout = "nhwc", widen} : tensor<1x9x9x3xbf16>, tensor<1x1x3x16xbf16> -> tensor<1x9x9x16xf32>
  %u = mlc.transpose %y {permutation = array<i64: 1, 0, 2>} : tensor<16x2x32xbf16> -> tensor<2x16x32xbf16>
  %m = mlc.matmul %u, %v {widen} : tensor<2x16x32xbf16>, tensor<2x32x64xbf16> -> tensor<2x16x64xf32>
  return %c, %m : tensor<1x9x9x16xf32>, tensor<2x16x64xf32>
}

// A right side is read along the sum, as it lies, for few rows, and for many where a panel of it fits onto the stack;
// else it is transposed first.
// CHECK-LABEL: func.func @along_sum
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<8x2048xf32>, %[[M:[a-z0-9]*]]: tensor<64x2048xf32>, %[[Y:[a-z0-9]*]]: tensor<300x2048xf32>, %[[Z:[a-z0-9]*]]: tensor<300x100xf32>, %[[N:[a-z0-9]*]]: tensor<64x100xf32>
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[M]] : tensor<64x2048xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[M]] : {{.*}}mlc.contraction
// CHECK: linalg.generic {{.*}} ins(%[[Y]], %[[T]] : {{.*}}mlc.contraction
// CHECK: linalg.generic {{.*}} ins(%[[Z]], %[[N]] : {{.*}}mlc.contraction
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @along_sum(%x: tensor<8x2048xf32>, %m: tensor<64x2048xf32>, %y: tensor<300x2048xf32>, %z: tensor<300x100xf32>, %n: tensor<64x100xf32>)
    -> (tensor<8x64xf32>, tensor<300x64xf32>, tensor<300x64xf32>) {
  %t = mlc.transpose %m {permutation = array<i64: 1, 0>} : tensor<64x2048xf32> -> tensor<2048x64xf32>
  %a = mlc.matmul %x, %t : tensor<8x2048xf32>, tensor<2048x64xf32> -> tensor<8x64xf32>
  %b = mlc.matmul %y, %t : tensor<300x2048xf32>, tensor<2048x64xf32> -> tensor<300x64xf32>
  %u = mlc.transpose %n {permutation = array<i64: 1, 0>} : tensor<64x100xf32> -> tensor<100x64xf32>
  %c = mlc.matmul %z, %u : tensor<300x100xf32>, tensor<100x64xf32> -> tensor<300x64xf32>
  return %a, %b, %c : tensor<8x64xf32>, tensor<300x64xf32>, tensor<300x64xf32>
}

// A padding reads the tensor that its input is cut out of.
// CHECK-LABEL: func.func @padded_slice
// CHECK-SAME: %[[X:.*]]: tensor<4x3x8x8xf32>
// CHECK: linalg.generic
// CHECK: tensor.extract %[[X]][%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}]
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @padded_slice(%x: tensor<4x3x8x8xf32>) -> tensor<4x1x10x8xf32> {
  %s = mlc.slice %x [0, 1, 0, 2] [4, 1, 8, 6] [1, 1, 1, 1] : tensor<4x3x8x8xf32> -> tensor<4x1x8x6xf32>
  %p = mlc.pad constant %s low [0, 0, 1, 1] high [0, 0, 1, 1] : tensor<4x1x8x6xf32> -> tensor<4x1x10x8xf32>
  return %p : tensor<4x1x10x8xf32>
}

// What turns the result of a product and gives it one more dimension stays as it is: the product has none to write.
// CHECK-LABEL: func.func @more_dimensions
// CHECK: linalg.generic {{.*}} ins({{.*}}mlc.contraction
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<1x64x4x16xf32>)
// CHECK: return
func.func @more_dimensions(%x: tensor<4x64x32xf32>, %w: tensor<4x32x16xf32>) -> tensor<1x64x4x16xf32> {
  %m = mlc.matmul %x, %w : tensor<4x64x32xf32>, tensor<4x32x16xf32> -> tensor<4x64x16xf32>
  %e = tensor.empty() : tensor<1x64x4x16xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (c, b, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%m : tensor<4x64x16xf32>) outs(%e : tensor<1x64x4x16xf32>) {
  ^bb0(%p: f32, %q: f32):
    linalg.yield %p : f32
  } -> tensor<1x64x4x16xf32>
  return %t : tensor<1x64x4x16xf32>
}

// Queries, keys and values of a head that lie side by side are parts of one dimension, the first one too.
// CHECK-LABEL: func.func @heads_apart
// CHECK: tensor.expand_shape %{{.*}} output_shape [2, 16, 3, 3, 32]
// CHECK: linalg.generic {indexing_maps = [#[[QUERY_APART]], #[[KEY_APART]], #{{.*}}]{{.*}}mlc.contraction
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @heads_apart(%x: tensor<2x16x3x96xf32>) -> tensor<2x3x16x16xf32> {
  %q0 = mlc.slice %x [0, 0, 0, 0] [2, 16, 3, 32] [1, 1, 1, 1] : tensor<2x16x3x96xf32> -> tensor<2x16x3x32xf32>
  %k0 = mlc.slice %x [0, 0, 0, 32] [2, 16, 3, 32] [1, 1, 1, 1] : tensor<2x16x3x96xf32> -> tensor<2x16x3x32xf32>
  %q = mlc.transpose %q0 {permutation = array<i64: 0, 2, 1, 3>} : tensor<2x16x3x32xf32> -> tensor<2x3x16x32xf32>
  %k = mlc.transpose %k0 {permutation = array<i64: 0, 2, 3, 1>} : tensor<2x16x3x32xf32> -> tensor<2x3x32x16xf32>
  %s = mlc.matmul %q, %k : tensor<2x3x16x32xf32>, tensor<2x3x32x16xf32> -> tensor<2x3x16x16xf32>
  return %s : tensor<2x3x16x16xf32>
}

// Lines of an image lie along the rows of a product with the pixels in order, not of one with lines and columns in each
// other's place: its transpose is another kernel.
// CUDA-LABEL: func.func @lines
// CUDA: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<4x64x16x16xbf16>, tensor<64x32xbf16>)
// CUDA: linalg.generic {{.*}} ins(%{{.*}} : tensor<4x16x16x32xf32>) outs(%{{.*}} : tensor<4x16x16x32xf32>)
// CUDA: return
func.func @lines(%x: tensor<4x64x16x16xbf16>, %w: tensor<64x32xbf16>) -> (tensor<4x16x16x32xf32>) {
  %t = mlc.transpose %x {permutation = array<i64: 0, 2, 3, 1>} : tensor<4x64x16x16xbf16> -> tensor<4x16x16x64xbf16>
  %p = mlc.matmul %t, %w {widen} : tensor<4x16x16x64xbf16>, tensor<64x32xbf16> -> tensor<4x16x16x32xf32>
  %r = mlc.transpose %p {permutation = array<i64: 0, 2, 1, 3>} : tensor<4x16x16x32xf32> -> tensor<4x16x16x32xf32>
  return %r : tensor<4x16x16x32xf32>
}
