// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose{none=true},mlc-lower-to-linalg,canonicalize,cse,mlc-plan-fusion,mlc-outline-kernels)' | FileCheck %s

// Normalisations are one kernel: both reductions, the residual before them (which is a result too, whoever else reads
// it) and scale and bias after them.
// CHECK-LABEL: func.func @layer_norm
// CHECK: mlc.launch
// CHECK-SAME: -> (tensor<4x32xf32>, tensor<4x32xf32>)
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @layer_norm(%x: tensor<4x32xf32>, %y: tensor<4x32xf32>, %s: tensor<32xf32>) -> (tensor<4x32xf32>, tensor<4x32xf32>) {
  %r = mlc.binary add %x, %y : tensor<4x32xf32>, tensor<4x32xf32> -> tensor<4x32xf32>
  %n = mlc.layer_norm %r scale(%s : tensor<32xf32>) bias(%s : tensor<32xf32>) {axis = 1 : i64, epsilon = 1.0e-5 : f64} : tensor<4x32xf32>
  return %r, %n : tensor<4x32xf32>, tensor<4x32xf32>
}

// CHECK-LABEL: func.func @rms_norm
// CHECK: mlc.launch
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @rms_norm(%x: tensor<?x3x32xf32>, %s: tensor<32xf32>) -> tensor<?x3x32xf32> {
  %n = mlc.layer_norm %x scale(%s : tensor<32xf32>) {axis = 2 : i64, epsilon = 1.0e-5 : f64, rms = true} : tensor<?x3x32xf32>
  return %n : tensor<?x3x32xf32>
}

// CHECK-LABEL: func.func @group_norm
// CHECK: mlc.launch
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @group_norm(%x: tensor<2x8x5x7xf32>, %s: tensor<8xf32>) -> tensor<2x8x5x7xf32> {
  %n = mlc.group_norm %x, %s, %s {epsilon = 1.0e-5 : f64, groups = 2 : i64} : tensor<2x8x5x7xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<2x8x5x7xf32>
  return %n : tensor<2x8x5x7xf32>
}

// CHECK-LABEL: func.func @masked_softmax
// CHECK: mlc.launch
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @masked_softmax(%x: tensor<1x2x8x16xf32>, %mask: tensor<1x1x8x16xf32>, %scale: tensor<f32>) -> tensor<1x2x8x16xf32> {
  %a = mlc.binary mul %x, %scale : tensor<1x2x8x16xf32>, tensor<f32> -> tensor<1x2x8x16xf32>
  %b = mlc.binary add %a, %mask : tensor<1x2x8x16xf32>, tensor<1x1x8x16xf32> -> tensor<1x2x8x16xf32>
  %s = mlc.softmax %b {axis = 3 : i64, log = false} : tensor<1x2x8x16xf32>
  return %s : tensor<1x2x8x16xf32>
}

// What would be computed in every pass over a row stays a kernel of its own.
// CHECK-LABEL: func.func @expensive
// CHECK: mlc.launch
// CHECK: mlc.launch
// CHECK-SAME: mlc.refused = [{node = "", reason = "its functions would be computed in every pass over the row", role = "producer"}]
// CHECK: return
func.func @expensive(%x: tensor<4x32xf32>) -> tensor<4x32xf32> {
  %e = mlc.unary erf %x : tensor<4x32xf32>
  %s = mlc.softmax %e {axis = 1 : i64, log = false} : tensor<4x32xf32>
  return %s : tensor<4x32xf32>
}

// What spreads values per row over rows of the same length is part of it, though it reads nothing else of them: factors
// and shifts of a normalization.
// CHECK-LABEL: func.func @spread
// CHECK: mlc.launch
// CHECK-SAME: -> (tensor<4x32xf32>, tensor<4x32xf32>)
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @spread(%x: tensor<4x32xf32>, %s: tensor<1x32xf32>) -> (tensor<4x32xf32>, tensor<4x32xf32>) {
  %m = mlc.reduce max %x {axes = array<i64: 1>, keepdims = true} : tensor<4x32xf32> -> tensor<4x1xf32>
  %d = mlc.binary sub %x, %m : tensor<4x32xf32>, tensor<4x1xf32> -> tensor<4x32xf32>
  %t = mlc.reduce sum %d {axes = array<i64: 1>, keepdims = true} : tensor<4x32xf32> -> tensor<4x1xf32>
  %f = mlc.binary mul %t, %s : tensor<4x1xf32>, tensor<1x32xf32> -> tensor<4x32xf32>
  %g = mlc.binary sub %s, %m : tensor<1x32xf32>, tensor<4x1xf32> -> tensor<4x32xf32>
  return %f, %g : tensor<4x32xf32>, tensor<4x32xf32>
}

// Rows of another length are another kernel.
// CHECK-LABEL: func.func @spread_wider
// CHECK-COUNT-2: mlc.launch
// CHECK: return
func.func @spread_wider(%x: tensor<4x32xf32>, %s: tensor<1x33xf32>) -> tensor<4x33xf32> {
  %m = mlc.reduce max %x {axes = array<i64: 1>, keepdims = true} : tensor<4x32xf32> -> tensor<4x1xf32>
  %f = mlc.binary mul %m, %s : tensor<4x1xf32>, tensor<1x33xf32> -> tensor<4x33xf32>
  return %f : tensor<4x33xf32>
}
