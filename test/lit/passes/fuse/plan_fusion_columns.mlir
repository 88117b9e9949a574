// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose{none=true},mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views{target=cuda},mlc-recompute-producers,mlc-plan-fusion{target=cuda},mlc-outline-kernels)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose{none=true},mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views,mlc-plan-fusion,mlc-outline-kernels)' | FileCheck %s --check-prefix=CPU

// Threads of a GPU keep columns: both reductions and the quotient are one kernel. CPUs have none for that.
// CHECK-LABEL: func.func @softmax
// CHECK: mlc.launch
// CHECK-NOT: mlc.launch
// CHECK: return
// CPU-LABEL: func.func @softmax
// CPU-COUNT-3: mlc.launch
func.func @softmax(%x: tensor<8x100x64xf32>) -> tensor<8x100x64xf32> {
  %s = mlc.softmax %x {axis = 1 : i64, log = false} : tensor<8x100x64xf32>
  return %s : tensor<8x100x64xf32>
}

// Over pixels, with what is added in front and the weights of the channels behind; however many images there are.
// CHECK-LABEL: func.func @pixels
// CHECK: mlc.launch
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @pixels(%x: tensor<?x14x14x32xf32>, %y: tensor<?x14x14x32xf32>, %s: tensor<32xf32>) -> tensor<?x14x14x32xf32> {
  %a = mlc.binary add %x, %y : tensor<?x14x14x32xf32>
  %m = mlc.reduce sum %a {axes = array<i64: 1, 2>, keepdims = true} : tensor<?x14x14x32xf32> -> tensor<?x1x1x32xf32>
  %d = mlc.binary sub %a, %m : tensor<?x14x14x32xf32>, tensor<?x1x1x32xf32> -> tensor<?x14x14x32xf32>
  %q = mlc.binary mul %d, %d : tensor<?x14x14x32xf32>
  %v = mlc.reduce sum %q {axes = array<i64: 1, 2>, keepdims = true} : tensor<?x14x14x32xf32> -> tensor<?x1x1x32xf32>
  %r = mlc.unary rsqrt %v : tensor<?x1x1x32xf32>
  %n = mlc.binary mul %d, %r : tensor<?x14x14x32xf32>, tensor<?x1x1x32xf32> -> tensor<?x14x14x32xf32>
  %w = mlc.binary mul %n, %s : tensor<?x14x14x32xf32>, tensor<32xf32> -> tensor<?x14x14x32xf32>
  return %w : tensor<?x14x14x32xf32>
}

// Columns that are too long, and those of a length that only a run knows.
// CHECK-LABEL: func.func @long
// CHECK-COUNT-3: mlc.launch
// CHECK: return
func.func @long(%x: tensor<100000x64xf32>) -> tensor<100000x64xf32> {
  %s = mlc.softmax %x {axis = 0 : i64, log = false} : tensor<100000x64xf32>
  return %s : tensor<100000x64xf32>
}

// Elements of two bytes are kept as four: nothing but halves is read and written where that is too much.
// CHECK-LABEL: func.func @long_half
// CHECK-COUNT-2: mlc.launch {{.*}} -> tensor<8x64xf32>
// CHECK: mlc.launch {{.*}} -> tensor<8x4000x64xbf16>
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @long_half(%x: tensor<8x4000x64xbf16>) -> tensor<8x4000x64xbf16> {
  %f = mlc.cast %x : tensor<8x4000x64xbf16> -> tensor<8x4000x64xf32>
  %s = mlc.softmax %f {axis = 1 : i64, log = false} : tensor<8x4000x64xf32>
  %h = mlc.cast %s : tensor<8x4000x64xf32> -> tensor<8x4000x64xbf16>
  return %h : tensor<8x4000x64xbf16>
}

// A function in front is computed once, as what it gives is kept.
// CHECK-LABEL: func.func @function
// CHECK: mlc.launch
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @function(%x: tensor<8x100x64xf32>) -> tensor<8x100x64xf32> {
  %e = mlc.unary erf %x : tensor<8x100x64xf32>
  %s = mlc.softmax %e {axis = 1 : i64, log = false} : tensor<8x100x64xf32>
  return %s : tensor<8x100x64xf32>
}

// CHECK-LABEL: func.func @dynamic
// CHECK-COUNT-3: mlc.launch
// CHECK: return
func.func @dynamic(%x: tensor<8x?x64xf32>) -> tensor<8x?x64xf32> {
  %s = mlc.softmax %x {axis = 1 : i64, log = false} : tensor<8x?x64xf32>
  return %s : tensor<8x?x64xf32>
}

// What is read per column outside is no result of such a kernel.
// CHECK-LABEL: func.func @sums
// CHECK-COUNT-2: mlc.launch
// CHECK: return
func.func @sums(%x: tensor<8x100x64xf32>) -> (tensor<8x1x64xf32>, tensor<8x100x64xf32>) {
  %m = mlc.reduce sum %x {axes = array<i64: 1>, keepdims = true} : tensor<8x100x64xf32> -> tensor<8x1x64xf32>
  %d = mlc.binary sub %x, %m : tensor<8x100x64xf32>, tensor<8x1x64xf32> -> tensor<8x100x64xf32>
  return %m, %d : tensor<8x1x64xf32>, tensor<8x100x64xf32>
}
