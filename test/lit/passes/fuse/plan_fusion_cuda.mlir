// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose{none=true},mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views{target=cuda},mlc-plan-fusion{target=cuda},mlc-outline-kernels)' | FileCheck %s

// The norm widens and squares what it reads: the product writes the sum alone, in 16 bits.
// CHECK-LABEL: func.func @normed_sum
// CHECK: mlc.launch @{{.*}} -> tensor<16x64xbf16>
// CHECK: mlc.launch @{{.*}} (tensor<16x64xbf16>, tensor<64xf32>) outs
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @normed_sum(%x: tensor<16x32xbf16>, %w: tensor<32x64xbf16>, %r: tensor<16x64xbf16>, %s: tensor<64xf32>) -> (tensor<16x64xbf16>, tensor<16x64xbf16>) {
  %m = mlc.matmul %x, %w {widen} : tensor<16x32xbf16>, tensor<32x64xbf16> -> tensor<16x64xf32>
  %c = mlc.cast %m : tensor<16x64xf32> -> tensor<16x64xbf16>
  %a = mlc.binary add %r, %c : tensor<16x64xbf16>
  %f = mlc.cast %a : tensor<16x64xbf16> -> tensor<16x64xf32>
  %n = mlc.layer_norm %f scale(%s : tensor<64xf32>) {axis = 1 : i64, epsilon = 1.0e-5 : f64, rms = true} : tensor<16x64xf32>
  %h = mlc.cast %n : tensor<16x64xf32> -> tensor<16x64xbf16>
  return %a, %h : tensor<16x64xbf16>, tensor<16x64xbf16>
}

// Rotary positions are one kernel that reads both halves of every head where the product has written them.
// CHECK-LABEL: func.func @rotated
// CHECK: mlc.launch @{{.*}} : (tensor<1x16x6x2x32xbf16>, tensor<16x1x32xbf16>, tensor<1x16x6x2x32xbf16>, tensor<16x1x32xbf16>) outs
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @rotated(%x: tensor<1x16x384xbf16>, %cos: tensor<16x1x32xbf16>, %sin: tensor<16x1x32xbf16>) -> tensor<1x4x16x2x32xbf16> {
  %q = mlc.slice %x [0, 0, 128] [1, 16, 256] [1, 1, 1] : tensor<1x16x384xbf16> -> tensor<1x16x256xbf16>
  %r = mlc.reshape %q [1, 16, 4, 64] : tensor<1x16x256xbf16> -> tensor<1x16x4x64xbf16>
  %t = mlc.transpose %r {permutation = array<i64: 0, 2, 1, 3>} : tensor<1x16x4x64xbf16> -> tensor<1x4x16x64xbf16>
  %h = mlc.reshape %t [1, 4, 16, 2, 32] : tensor<1x4x16x64xbf16> -> tensor<1x4x16x2x32xbf16>
  %o = mlc.slice %h [0, 0, 0, 1, 0] [1, 4, 16, 2, 32] [1, 1, 1, -1, 1] : tensor<1x4x16x2x32xbf16> -> tensor<1x4x16x2x32xbf16>
  %a = mlc.binary mul %h, %cos : tensor<1x4x16x2x32xbf16>, tensor<16x1x32xbf16> -> tensor<1x4x16x2x32xbf16>
  %b = mlc.binary mul %o, %sin : tensor<1x4x16x2x32xbf16>, tensor<16x1x32xbf16> -> tensor<1x4x16x2x32xbf16>
  %c = mlc.binary add %a, %b : tensor<1x4x16x2x32xbf16>
  return %c : tensor<1x4x16x2x32xbf16>
}

// Positions, and the vectors of a table at them, cost no more than the load of a tensor that has them: they are computed
// for each text again.
// CHECK-LABEL: func.func @embedded
// CHECK: mlc.launch @{{.*}} : (tensor<?x?xi64>, tensor<100x64xbf16>, tensor<512x64xbf16>, index, index{{.*}}) outs(
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @embedded(%ids: tensor<?x?xi64>, %words: tensor<100x64xbf16>, %places: tensor<512x64xbf16>) -> tensor<?x?x64xbf16> {
  %c1 = arith.constant 1 : index
  %tokens = tensor.dim %ids, %c1 : tensor<?x?xi64>
  %at = mlc.iota [%tokens] {axis = 0 : i64} : tensor<?xi64>
  %w = mlc.gather %words, %ids {axis = 0 : i64} : tensor<100x64xbf16>, tensor<?x?xi64> -> tensor<?x?x64xbf16>
  %p = mlc.gather %places, %at {axis = 0 : i64} : tensor<512x64xbf16>, tensor<?xi64> -> tensor<?x64xbf16>
  %s = mlc.binary add %w, %p : tensor<?x?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?x64xbf16>
  return %s : tensor<?x?x64xbf16>
}

// What is computed by a function stays a tensor of its own.
// CHECK-LABEL: func.func @scaled
// CHECK: mlc.launch
// CHECK: mlc.launch
// CHECK: return
func.func @scaled(%x: tensor<?x64xf32>, %s: tensor<64xf32>) -> tensor<?x64xf32> {
  %e = mlc.unary exp %s : tensor<64xf32>
  %r = mlc.binary mul %x, %e : tensor<?x64xf32>, tensor<64xf32> -> tensor<?x64xf32>
  return %r : tensor<?x64xf32>
}

// Vectors of words are looked up by the norm that reads them, which writes them for others too.
// CHECK-LABEL: func.func @looked_up
// CHECK: mlc.launch @{{.*}} : (tensor<16xi64>, tensor<100x64xf32>, tensor<64xf32>) outs(tensor<16x64xf32>, tensor<16x64xf32>)
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @looked_up(%ids: tensor<16xi64>, %words: tensor<100x64xf32>, %s: tensor<64xf32>) -> (tensor<16x64xf32>, tensor<16x64xf32>) {
  %w = mlc.gather %words, %ids {axis = 0 : i64} : tensor<100x64xf32>, tensor<16xi64> -> tensor<16x64xf32>
  %n = mlc.layer_norm %w scale(%s : tensor<64xf32>) {axis = 1 : i64, epsilon = 1.0e-5 : f64, rms = true} : tensor<16x64xf32>
  return %w, %n : tensor<16x64xf32>, tensor<16x64xf32>
}

// A mean over pixels keeps their dimensions with one element each: what is computed of it is one kernel with the sum.
// CHECK-LABEL: func.func @pooled
// CHECK: mlc.launch @{{.*}} : (tensor<2x7x7x64xf32>) outs(tensor<2x1x1x64xbf16>)
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @pooled(%x: tensor<2x7x7x64xf32>) -> tensor<2x1x1x64xbf16> {
  %s = mlc.reduce sum %x {axes = array<i64: 1, 2>, keepdims = true} : tensor<2x7x7x64xf32> -> tensor<2x1x1x64xf32>
  %r = mlc.unary sqrt %s : tensor<2x1x1x64xf32>
  %h = mlc.cast %r : tensor<2x1x1x64xf32> -> tensor<2x1x1x64xbf16>
  return %h : tensor<2x1x1x64xbf16>
}

// Rows whose length only a run knows are read several times.
// CHECK-LABEL: func.func @looked_up_rows
// CHECK: mlc.launch
// CHECK: mlc.launch
// CHECK: return
func.func @looked_up_rows(%ids: tensor<16xi64>, %words: tensor<100x?xf32>, %s: tensor<?xf32>) -> tensor<16x?xf32> {
  %w = mlc.gather %words, %ids {axis = 0 : i64} : tensor<100x?xf32>, tensor<16xi64> -> tensor<16x?xf32>
  %n = mlc.layer_norm %w scale(%s : tensor<?xf32>) {axis = 1 : i64, epsilon = 1.0e-5 : f64, rms = true} : tensor<16x?xf32>
  return %n : tensor<16x?xf32>
}

// What has fewer dimensions than the maxima is a kernel of its own: results of one kernel have one domain.
// CHECK-LABEL: func.func @fewer_dimensions
// CHECK: mlc.launch @{{.*}} outs(tensor<1x8x8x1xf32>)
// CHECK: mlc.launch @{{.*}} outs(tensor<1x8x8xf32>)
// CHECK: mlc.launch @{{.*}} outs(tensor<8x8xf32>)
// CHECK: return
func.func @fewer_dimensions(%x: tensor<1x8x8x1xf32>) -> (tensor<1x8x8xf32>, tensor<8x8xf32>) {
  %p = mlc.pool max %x {kernel = array<i64: 3, 3>, dilations = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>, layout = "nhwc"} : tensor<1x8x8x1xf32> -> tensor<1x8x8x1xf32>
  %a = tensor.empty() : tensor<1x8x8xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (0, b, c, 0)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%p : tensor<1x8x8x1xf32>) outs(%a : tensor<1x8x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %0 = math.exp %i : f32
    linalg.yield %0 : f32
  } -> tensor<1x8x8xf32>
  %b = tensor.empty() : tensor<8x8xf32>
  %t = linalg.generic {indexing_maps = [affine_map<(a, b) -> (0, a, b)>, affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]} ins(%s : tensor<1x8x8xf32>) outs(%b : tensor<8x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %0 = math.exp %i : f32
    linalg.yield %0 : f32
  } -> tensor<8x8xf32>
  return %s, %t : tensor<1x8x8xf32>, tensor<8x8xf32>
}
