// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-narrow-contractions,cse,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views,mlc-plan-fusion{target=cuda},mlc-narrow-stores,mlc-outline-kernels)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-narrow-contractions,cse,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views,mlc-plan-fusion{target=cuda},mlc-narrow-stores{fewest=1000000},mlc-outline-kernels)' | FileCheck %s --check-prefix=FEW

// A residual stream: the first sum is added to and normalised, the result of the model is f32.
// CHECK-LABEL: func.func @residual
// CHECK: mlc.launch {{.*}} -> tensor<128x256xbf16>
// CHECK: %[[S:.*]] = mlc.launch {{.*}} -> tensor<128x256xbf16>
// CHECK: mlc.launch @{{.*}}(%[[S]]) {{.*}} -> tensor<128x256xbf16>
// CHECK: %[[Y:.*]] = mlc.launch @{{.*}}, %[[S]]) {{.*}} -> tensor<128x256xf32>
// CHECK: return %[[Y]]
// FEW-LABEL: func.func @residual
// FEW: %[[S:.*]] = mlc.launch {{.*}} -> tensor<128x256xf32>
// FEW: return
func.func @residual(%x: tensor<128x256xf32>, %w: tensor<256x256xf32>) -> tensor<128x256xf32> {
  %e = mlc.constant dense<1.0e-05> : tensor<f32>
  %a = mlc.matmul %x, %w : tensor<128x256xf32>, tensor<256x256xf32> -> tensor<128x256xf32>
  %s = mlc.binary add %a, %x : tensor<128x256xf32>
  %q = mlc.binary mul %s, %s : tensor<128x256xf32>
  %m = mlc.reduce sum %q {axes = array<i64: 1>, keepdims = true} : tensor<128x256xf32> -> tensor<128x1xf32>
  %p = mlc.binary add %m, %e : tensor<128x1xf32>, tensor<f32> -> tensor<128x1xf32>
  %r = mlc.unary rsqrt %p : tensor<128x1xf32>
  %n = mlc.binary mul %s, %r : tensor<128x256xf32>, tensor<128x1xf32> -> tensor<128x256xf32>
  %b = mlc.matmul %n, %w : tensor<128x256xf32>, tensor<256x256xf32> -> tensor<128x256xf32>
  %y = mlc.binary add %b, %s : tensor<128x256xf32>
  return %y : tensor<128x256xf32>
}

// What a contraction reads rounded is stored once; the other reader gets it through a view.
// CHECK-LABEL: func.func @once
// CHECK: %[[S:.*]] = mlc.launch @[[K:[a-z0-9]+]]({{.*}} -> tensor<128x256xbf16>
// CHECK-NOT: tensor<128x256xf32>
// CHECK: %[[V:.*]] = tensor.expand_shape %[[S]]
// CHECK: return
func.func @once(%x: tensor<128x256xbf16>, %w: tensor<256x256xbf16>, %z: tensor<128x16x16xf32>) -> (tensor<128x16x1xf32>, tensor<128x256xbf16>) {
  %a = mlc.matmul %x, %w {widen} : tensor<128x256xbf16>, tensor<256x256xbf16> -> tensor<128x256xf32>
  %s = mlc.unary abs %a : tensor<128x256xf32>
  %c = mlc.cast %s : tensor<128x256xf32> -> tensor<128x256xbf16>
  %v = mlc.reshape %s [128, 16, 16] : tensor<128x256xf32> -> tensor<128x16x16xf32>
  %t = mlc.binary add %v, %z : tensor<128x16x16xf32>
  %y = mlc.reduce sum %t {axes = array<i64: 2>, keepdims = true} : tensor<128x16x16xf32> -> tensor<128x16x1xf32>
  %b = mlc.matmul %c, %w {widen} : tensor<128x256xbf16>, tensor<256x256xbf16> -> tensor<128x256xf32>
  %d = mlc.cast %b : tensor<128x256xf32> -> tensor<128x256xbf16>
  return %y, %d : tensor<128x16x1xf32>, tensor<128x256xbf16>
}

// Logits of a softmax stay, and so does what is a result.
// CHECK-LABEL: func.func @logits
// CHECK: mlc.launch {{.*}} -> tensor<128x256xf32>
// CHECK: mlc.launch {{.*}} -> tensor<128x256xf32>
func.func @logits(%x: tensor<128x256xbf16>, %w: tensor<256x256xbf16>) -> tensor<128x256xf32> {
  %a = mlc.matmul %x, %w {widen} : tensor<128x256xbf16>, tensor<256x256xbf16> -> tensor<128x256xf32>
  %m = mlc.reduce max %a {axes = array<i64: 1>, keepdims = true} : tensor<128x256xf32> -> tensor<128x1xf32>
  %d = mlc.binary sub %a, %m : tensor<128x256xf32>, tensor<128x1xf32> -> tensor<128x256xf32>
  %e = mlc.unary exp %d : tensor<128x256xf32>
  %s = mlc.reduce sum %e {axes = array<i64: 1>, keepdims = true} : tensor<128x256xf32> -> tensor<128x1xf32>
  %y = mlc.binary div %e, %s : tensor<128x256xf32>, tensor<128x1xf32> -> tensor<128x256xf32>
  return %y : tensor<128x256xf32>
}

// Extents that only a run knows count 16.
// CHECK-LABEL: func.func @run_time
// CHECK: mlc.launch {{.*}} -> tensor<?x?x256xbf16>
// CHECK: return
func.func @run_time(%x: tensor<?x?x256xbf16>, %w: tensor<256x256xbf16>, %z: tensor<?x?x256xf32>) -> tensor<?x?x1xf32> {
  %a = mlc.matmul %x, %w {widen} : tensor<?x?x256xbf16>, tensor<256x256xbf16> -> tensor<?x?x256xf32>
  %m = mlc.reduce sum %a {axes = array<i64: 2>, keepdims = true} : tensor<?x?x256xf32> -> tensor<?x?x1xf32>
  return %m : tensor<?x?x1xf32>
}

// What a loop reads in its body stays.
// CHECK-LABEL: func.func @loop
// CHECK: mlc.launch {{.*}} -> tensor<128x256xf32>
// CHECK: scf.for
// CHECK: mlc.launch {{.*}} -> tensor<128x256xf32>
func.func @loop(%x: tensor<128x256xbf16>, %w: tensor<256x256xbf16>, %n: index) -> tensor<128x256xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = mlc.matmul %x, %w {widen} : tensor<128x256xbf16>, tensor<256x256xbf16> -> tensor<128x256xf32>
  %z = mlc.constant dense<0.0> : tensor<128x256xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %z) -> (tensor<128x256xf32>) {
    %t = mlc.binary add %s, %a : tensor<128x256xf32>
    scf.yield %t : tensor<128x256xf32>
  }
  return %r : tensor<128x256xf32>
}

// So does what a kernel only completes, element by element.
// CHECK-LABEL: func.func @moved
// CHECK: mlc.launch {{.*}} -> tensor<128x256xf32>
// CHECK: mlc.launch {{.*}} -> tensor<256x128xf32>
func.func @moved(%x: tensor<128x256xbf16>, %w: tensor<256x256xbf16>) -> tensor<256x128xf32> {
  %a = mlc.matmul %x, %w {widen} : tensor<128x256xbf16>, tensor<256x256xbf16> -> tensor<128x256xf32>
  %b = mlc.unary exp %a : tensor<128x256xf32>
  %t = mlc.transpose %b {permutation = array<i64: 1, 0>} : tensor<128x256xf32> -> tensor<256x128xf32>
  return %t : tensor<256x128xf32>
}

// The largest of rounded elements, also of padded ones, is the rounded largest, where nothing else reads that.
// CHECK-LABEL: func.func @rounded_largest
// CHECK: mlc.launch {{.*}} -> tensor<4096x64xbf16>
// CHECK: mlc.launch {{.*}} -> tensor<1x32x32x64xbf16>
func.func @rounded_largest(%x: tensor<4096x32xbf16>, %w: tensor<32x64xbf16>) -> tensor<1x32x32x64xbf16> {
  %a = mlc.matmul %x, %w {widen} : tensor<4096x32xbf16>, tensor<32x64xbf16> -> tensor<4096x64xf32>
  %v = mlc.reshape %a [1, 64, 64, 64] : tensor<4096x64xf32> -> tensor<1x64x64x64xf32>
  %p = mlc.pool max %v {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc"} : tensor<1x64x64x64xf32> -> tensor<1x32x32x64xf32>
  %y = mlc.cast %p : tensor<1x32x32x64xf32> -> tensor<1x32x32x64xbf16>
  return %y : tensor<1x32x32x64xbf16>
}

// A pool of few elements reads rounded ones whoever reads what it gives, and what it gives to others is stored rounded.
// CHECK-LABEL: func.func @pooled
// CHECK: mlc.launch {{.*}} -> tensor<4096x64xbf16>
// CHECK: mlc.launch {{.*}} -> tensor<1x32x32x64xbf16>
// CHECK: mlc.launch {{.*}} -> tensor<1x32x32x64xf32>
func.func @pooled(%x: tensor<4096x32xbf16>, %w: tensor<32x64xbf16>) -> tensor<1x32x32x64xf32> {
  %a = mlc.matmul %x, %w {widen} : tensor<4096x32xbf16>, tensor<32x64xbf16> -> tensor<4096x64xf32>
  %v = mlc.reshape %a [1, 64, 64, 64] : tensor<4096x64xf32> -> tensor<1x64x64x64xf32>
  %p = mlc.pool max %v {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, layout = "nhwc"} : tensor<1x64x64x64xf32> -> tensor<1x32x32x64xf32>
  %s = mlc.reduce sum %p {axes = array<i64: 3>, keepdims = true} : tensor<1x32x32x64xf32> -> tensor<1x32x32x1xf32>
  %d = mlc.binary sub %p, %s : tensor<1x32x32x64xf32>, tensor<1x32x32x1xf32> -> tensor<1x32x32x64xf32>
  return %d : tensor<1x32x32x64xf32>
}

// What another kernel would round, behind a view, is what is stored.
// CHECK-LABEL: func.func @rounded_behind
// CHECK: %[[S:.*]] = mlc.launch {{.*}} -> tensor<128x256xbf16>
// CHECK: %[[V:.*]] = tensor.expand_shape %[[S]] {{.*}} into tensor<128x16x16xbf16>
// CHECK-NOT: -> tensor<128x16x16xbf16>
// CHECK: return
func.func @rounded_behind(%x: tensor<128x256xbf16>, %w: tensor<256x256xbf16>, %z: tensor<16x8xbf16>) -> (tensor<128x16x1xf32>, tensor<128x16x8xf32>) {
  %a = mlc.matmul %x, %w {widen} : tensor<128x256xbf16>, tensor<256x256xbf16> -> tensor<128x256xf32>
  %v = mlc.reshape %a [128, 16, 16] : tensor<128x256xf32> -> tensor<128x16x16xf32>
  %c = mlc.cast %v : tensor<128x16x16xf32> -> tensor<128x16x16xbf16>
  %q = mlc.binary mul %v, %v : tensor<128x16x16xf32>
  %y = mlc.reduce sum %q {axes = array<i64: 2>, keepdims = true} : tensor<128x16x16xf32> -> tensor<128x16x1xf32>
  %b = mlc.matmul %c, %z {widen} : tensor<128x16x16xbf16>, tensor<16x8xbf16> -> tensor<128x16x8xf32>
  return %y, %b : tensor<128x16x1xf32>, tensor<128x16x8xf32>
}

// The largest of a whole row stays exact: of what is subtracted from it, the exponential may follow.
// CHECK-LABEL: func.func @largest_of_rows
// CHECK: mlc.launch {{.*}} -> tensor<128x256xf32>
func.func @largest_of_rows(%x: tensor<128x256xbf16>, %w: tensor<256x256xbf16>) -> tensor<128x1xf32> {
  %a = mlc.matmul %x, %w {widen} : tensor<128x256xbf16>, tensor<256x256xbf16> -> tensor<128x256xf32>
  %p = mlc.reduce max %a {axes = array<i64: 1>, keepdims = true} : tensor<128x256xf32> -> tensor<128x1xf32>
  return %p : tensor<128x1xf32>
}
