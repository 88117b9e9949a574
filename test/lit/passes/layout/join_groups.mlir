// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-join-groups)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-join-groups{f32=true})' | FileCheck %s --check-prefix=TF32
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-join-groups{line=64 apart=true})' | FileCheck %s --check-prefix=TILES

// 32 groups of four channels become two of 64: 128 bytes of a pixel.
// For tiles there are four of 32, which stay a dimension.
// TILES-LABEL: func.func @four
// TILES: mlc.concat {{.*}} -> tensor<3x3x32x128xbf16>
// TILES: mlc.conv {{.*}}groups = 4 : i64, layout = "nhwc", padding
// CHECK-LABEL: func.func @four
// CHECK-DAG: [[C:%.+]] = mlc.constant dense<{{.*}}> : tensor<64x1xi64>
// CHECK-DAG: [[F:%.+]] = mlc.constant dense<{{.*}}> : tensor<1x128xi64>
// CHECK: [[R:%.+]] = mlc.concat %arg1, %arg1, {{.*}} -> tensor<3x3x64x128xbf16>
// CHECK: [[O:%.+]] = mlc.compare eq [[C]], [[F]]
// CHECK: [[W:%.+]] = mlc.select [[O]], [[R]],
// CHECK: mlc.conv %arg0, [[W]] {{.*}}groups = 2 : i64, layout = "nhwc", mlc.joined
func.func @four(%x: tensor<1x9x9x128xbf16>, %w: tensor<3x3x4x128xbf16>) -> tensor<1x9x9x128xf32> {
  %r = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 32 : i64, layout = "nhwc", widen} : tensor<1x9x9x128xbf16>, tensor<3x3x4x128xbf16> -> tensor<1x9x9x128xf32>
  return %r : tensor<1x9x9x128xf32>
}

// Too few channels for two groups: one is left.
// Tiles have room for one of three, and for one that is large.
// TILES-LABEL: func.func @few
// TILES: mlc.conv %arg0, %arg1 {{.*}}groups = 3 : i64
// TILES-LABEL: func.func @large
// TILES: mlc.conv %arg0, %arg1 {{.*}}groups = 2 : i64
// CHECK-LABEL: func.func @few
// CHECK: mlc.conv %arg0, %{{.+}} {dilations = array<i64: 1, 1>, layout = "nhwc", padding
// CHECK-SAME: tensor<3x3x48x96xbf16>
func.func @few(%x: tensor<1x9x9x48xbf16>, %w: tensor<3x3x16x96xbf16>) -> tensor<1x9x9x96xf32> {
  %r = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 3 : i64, layout = "nhwc", widen} : tensor<1x9x9x48xbf16>, tensor<3x3x16x96xbf16> -> tensor<1x9x9x96xf32>
  return %r : tensor<1x9x9x96xf32>
}

// Groups that are large enough stay.
// CHECK-LABEL: func.func @large
// CHECK-NOT: mlc.select
// CHECK: mlc.conv %arg0, %arg1 {{.*}}groups = 2 : i64, layout = "nhwc", mlc.joined
func.func @large(%x: tensor<1x9x9x128xbf16>, %w: tensor<3x3x64x64xbf16>) -> tensor<1x9x9x64xf32> {
  %r = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 2 : i64, layout = "nhwc", widen} : tensor<1x9x9x128xbf16>, tensor<3x3x64x64xbf16> -> tensor<1x9x9x64xf32>
  return %r : tensor<1x9x9x64xf32>
}

// A channel a group is another template's, and f32 is for tensor cores only where it may be rounded.
// CHECK-LABEL: func.func @others
// CHECK-NOT: mlc.joined
// CHECK: return
// TF32-LABEL: func.func @others
// TF32: groups = 64 : i64
// TF32: groups = 2 : i64, layout = "nhwc", mlc.joined
func.func @others(%x: tensor<1x9x9x64xbf16>, %w: tensor<3x3x1x64xbf16>, %y: tensor<1x9x9x64xf32>, %v: tensor<3x3x16x64xf32>) -> (tensor<1x9x9x64xf32>, tensor<1x9x9x64xf32>) {
  %r = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 64 : i64, layout = "nhwc", widen} : tensor<1x9x9x64xbf16>, tensor<3x3x1x64xbf16> -> tensor<1x9x9x64xf32>
  %s = mlc.conv %y, %v {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 4 : i64, layout = "nhwc"} : tensor<1x9x9x64xf32>, tensor<3x3x16x64xf32> -> tensor<1x9x9x64xf32>
  return %r, %s : tensor<1x9x9x64xf32>, tensor<1x9x9x64xf32>
}

// Of 46 groups two are joined: 23 would have no room.
// TILES-LABEL: func.func @prime
// TILES: mlc.concat %arg1, %arg1 {{.*}} -> tensor<3x3x16x368xbf16>
// TILES: mlc.conv {{.*}}groups = 23 : i64
func.func @prime(%x: tensor<1x7x7x368xbf16>, %w: tensor<3x3x8x368xbf16>) -> tensor<1x7x7x368xf32> {
  %r = mlc.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 46 : i64, layout = "nhwc", widen} : tensor<1x7x7x368xbf16>, tensor<3x3x8x368xbf16> -> tensor<1x7x7x368xf32>
  return %r : tensor<1x7x7x368xf32>
}
