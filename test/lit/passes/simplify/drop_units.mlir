// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-drop-units,canonicalize)' | FileCheck %s

// The mask of windows, with a dimension for a batch of one: scores are added to as they are.
// CHECK-LABEL: func.func @windows
// CHECK: %[[W:.*]] = mlc.weight "mask" : tensor<1x4x1x49x49xf32>
// CHECK: %[[M:.*]] = mlc.reshape %[[W]] [4, 1, 49, 49] : tensor<1x4x1x49x49xf32> -> tensor<4x1x49x49xf32>
// CHECK: %[[S:.*]] = mlc.binary add %arg0, %[[M]] : tensor<4x12x49x49xf32>, tensor<4x1x49x49xf32> -> tensor<4x12x49x49xf32>
// CHECK: return %[[S]]
func.func @windows(%x: tensor<4x12x49x49xf32>) -> tensor<4x12x49x49xf32> {
  %m = mlc.weight "mask" : tensor<1x4x1x49x49xf32>
  %r = mlc.reshape %x [1, 4, 12, 49, 49] : tensor<4x12x49x49xf32> -> tensor<1x4x12x49x49xf32>
  %s = mlc.binary add %r, %m : tensor<1x4x12x49x49xf32>, tensor<1x4x1x49x49xf32> -> tensor<1x4x12x49x49xf32>
  %y = mlc.reshape %s [4, 12, 49, 49] : tensor<1x4x12x49x49xf32> -> tensor<4x12x49x49xf32>
  return %y : tensor<4x12x49x49xf32>
}

// One after the other; numbers stay, and so does what the other operand has no dimension of.
// CHECK-LABEL: func.func @several
// CHECK-NOT: mlc.reshape
// CHECK: %[[A:.*]] = mlc.binary mul %arg0, %{{.*}} : tensor<3x5xf32>, tensor<f32> -> tensor<3x5xf32>
// CHECK: %[[B:.*]] = mlc.unary neg %[[A]] : tensor<3x5xf32>
// CHECK: mlc.compare lt %[[B]], %arg1 : tensor<3x5xf32>, tensor<5xf32> -> tensor<3x5xi1>
// CHECK-NOT: mlc.reshape
func.func @several(%x: tensor<3x5xf32>, %c: tensor<5xf32>) -> tensor<3x5xi1> {
  %half = mlc.constant dense<0.5> : tensor<f32>
  %r = mlc.reshape %x [3, 1, 5, 1] : tensor<3x5xf32> -> tensor<3x1x5x1xf32>
  %a = mlc.binary mul %r, %half : tensor<3x1x5x1xf32>, tensor<f32> -> tensor<3x1x5x1xf32>
  %ra = mlc.reshape %a [3, 5] : tensor<3x1x5x1xf32> -> tensor<3x5xf32>
  %rb = mlc.reshape %ra [1, 3, 5] : tensor<3x5xf32> -> tensor<1x3x5xf32>
  %b = mlc.unary neg %rb : tensor<1x3x5xf32>
  %bb = mlc.reshape %b [3, 5] : tensor<1x3x5xf32> -> tensor<3x5xf32>
  %rc = mlc.reshape %bb [1, 3, 5] : tensor<3x5xf32> -> tensor<1x3x5xf32>
  %s = mlc.compare lt %rc, %c : tensor<1x3x5xf32>, tensor<5xf32> -> tensor<1x3x5xi1>
  %y = mlc.reshape %s [3, 5] : tensor<1x3x5xi1> -> tensor<3x5xi1>
  return %y : tensor<3x5xi1>
}

// Nothing changes where other dimensions are joined, where others read the sum, where no reshape goes, where a tensor of
// the run would need one, and where extents are not known.
// CHECK-LABEL: func.func @kept
// CHECK-COUNT-8: mlc.reshape
// CHECK-NOT: mlc.reshape
func.func @kept(%x: tensor<6x4xf32>, %z: tensor<1x6x1xf32>, %n: tensor<?x4xf32>, %k: index) -> (tensor<24xf32>, tensor<1x6x4xf32>, tensor<6x4xf32>, tensor<1x6x4xf32>, tensor<6x4xf32>, tensor<?x4xf32>) {
  %m = mlc.weight "m" : tensor<1x6x4xf32>
  %r = mlc.reshape %x [1, 6, 4] : tensor<6x4xf32> -> tensor<1x6x4xf32>
  %a = mlc.binary add %r, %m : tensor<1x6x4xf32>, tensor<1x6x4xf32> -> tensor<1x6x4xf32>
  %joined = mlc.reshape %a [24] : tensor<1x6x4xf32> -> tensor<24xf32>
  %b = mlc.binary sub %r, %m : tensor<1x6x4xf32>, tensor<1x6x4xf32> -> tensor<1x6x4xf32>
  %read = mlc.reshape %b [6, 4] : tensor<1x6x4xf32> -> tensor<6x4xf32>
  %e = mlc.unary exp %x : tensor<6x4xf32>
  %wider = mlc.reshape %e [1, 6, 4] : tensor<6x4xf32> -> tensor<1x6x4xf32>
  %q = mlc.reshape %x [1, 6, 4] : tensor<6x4xf32> -> tensor<1x6x4xf32>
  %c = mlc.binary mul %q, %z : tensor<1x6x4xf32>, tensor<1x6x1xf32> -> tensor<1x6x4xf32>
  %run = mlc.reshape %c [6, 4] : tensor<1x6x4xf32> -> tensor<6x4xf32>
  %rn = mlc.reshape %n [1, %k, 4] : tensor<?x4xf32> -> tensor<1x?x4xf32>
  %en = mlc.unary exp %rn : tensor<1x?x4xf32>
  %unknown = mlc.reshape %en [%k, 4] : tensor<1x?x4xf32> -> tensor<?x4xf32>
  return %joined, %b, %read, %wider, %run, %unknown : tensor<24xf32>, tensor<1x6x4xf32>, tensor<6x4xf32>, tensor<1x6x4xf32>, tensor<6x4xf32>, tensor<?x4xf32>
}
