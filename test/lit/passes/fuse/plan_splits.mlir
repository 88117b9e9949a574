// RUN: mlc-opt %s --mlc-lower-to-linalg --mlc-plan-splits | FileCheck %s
// RUN: mlc-opt %s --mlc-lower-to-linalg --mlc-plan-splits=shortest=200000 | FileCheck %s --check-prefix=CLUSTERS
// RUN: mlc-opt %s --mlc-lower-to-linalg --mlc-plan-splits=threads=true | FileCheck %s --check-prefix=THREADS

// All of contiguous memory, and few rows of it.
// CHECK-LABEL: func.func @rows
// CHECK: mlc.parts = 1024
// CHECK: mlc.parts = 250
// What the blocks of a cluster hold is one reduction where there are clusters.
// CLUSTERS-LABEL: func.func @rows
// CLUSTERS: mlc.parts = 1024
// CLUSTERS-NOT: mlc.parts
// CLUSTERS-LABEL: func.func @columns
func.func @rows(%a: tensor<16384x4096xf32>, %b: tensor<3x100x1000xf32>) -> (tensor<f32>, tensor<3x1x1xf32>) {
  %0 = mlc.reduce max %a {axes = array<i64: 0, 1>, keepdims = false} : tensor<16384x4096xf32> -> tensor<f32>
  %1 = mlc.reduce sum %b {axes = array<i64: 1, 2>, keepdims = true} : tensor<3x100x1000xf32> -> tensor<3x1x1xf32>
  return %0, %1 : tensor<f32>, tensor<3x1x1xf32>
}

// Across memory: few columns, pixels of few channels; parts of a number that has no divisors are nearly all. The second
// step has no more than 264 lines to read, and the first one no more than 528 blocks.
// CHECK-LABEL: func.func @columns
// CHECK: mlc.arg_reduce = "maximumf", mlc.parts = 160
// CHECK: mlc.parts = 40 :
// CHECK: mlc.parts = 264
// CHECK: mlc.parts = 132 :
func.func @columns(%a: tensor<100000x4xf32>, %b: tensor<8x50x50x5xf32>, %c: tensor<1000003x4xf32>,
                   %d: tensor<1000003x64xf32>) -> (tensor<4xi64>, tensor<5xf32>, tensor<4xf32>, tensor<64xf32>) {
  %0 = mlc.arg_reduce max %a {axis = 0 : i64} : tensor<100000x4xf32> -> tensor<4xi64>
  %1 = mlc.reduce min %b {axes = array<i64: 0, 1, 2>, keepdims = false} : tensor<8x50x50x5xf32> -> tensor<5xf32>
  %2 = mlc.reduce prod %c {axes = array<i64: 0>, keepdims = false} : tensor<1000003x4xf32> -> tensor<4xf32>
  %3 = mlc.reduce sum %d {axes = array<i64: 0>, keepdims = false} : tensor<1000003x64xf32> -> tensor<64xf32>
  return %0, %1, %2, %3 : tensor<4xi64>, tensor<5xf32>, tensor<4xf32>, tensor<64xf32>
}

// Many results, short rows, what a few blocks read soon, dimensions that do not lie together, and unknown extents.
// CHECK-LABEL: func.func @others
// CHECK-NOT: mlc.parts
// CHECK: return
func.func @others(%a: tensor<4096x65536xf32>, %b: tensor<2x1000xf32>, %c: tensor<4096x64xf32>, %d: tensor<?x65536xf32>,
                  %e: tensor<1000x4x1000xf32>, %f: tensor<16384x4096xf32>)
    -> (tensor<4096xf32>, tensor<2xf32>, tensor<64xf32>, tensor<f32>, tensor<4xf32>, tensor<4096xf32>) {
  %0 = mlc.reduce sum %a {axes = array<i64: 1>, keepdims = false} : tensor<4096x65536xf32> -> tensor<4096xf32>
  %1 = mlc.reduce sum %b {axes = array<i64: 1>, keepdims = false} : tensor<2x1000xf32> -> tensor<2xf32>
  %2 = mlc.reduce sum %c {axes = array<i64: 0>, keepdims = false} : tensor<4096x64xf32> -> tensor<64xf32>
  %3 = mlc.reduce sum %d {axes = array<i64: 0, 1>, keepdims = false} : tensor<?x65536xf32> -> tensor<f32>
  %4 = mlc.reduce sum %e {axes = array<i64: 0, 2>, keepdims = false} : tensor<1000x4x1000xf32> -> tensor<4xf32>
  %5 = mlc.reduce sum %f {axes = array<i64: 0>, keepdims = false} : tensor<16384x4096xf32> -> tensor<4096xf32>
  return %0, %1, %2, %3, %4, %5
    : tensor<4096xf32>, tensor<2xf32>, tensor<64xf32>, tensor<f32>, tensor<4xf32>, tensor<4096xf32>
}

// What would have to be written to memory first stays one reduction: lines that are reduced together with others.
// CHECK-LABEL: func.func @lines
// CHECK-NOT: mlc.parts
// CHECK: return
func.func @lines(%x: tensor<150x300x4xf32>, %w: tensor<300x1xf32>) -> tensor<4xf32> {
  %0 = mlc.binary mul %x, %w : tensor<150x300x4xf32>, tensor<300x1xf32> -> tensor<150x300x4xf32>
  %1 = mlc.reduce sum %0 {axes = array<i64: 0, 1>, keepdims = false} : tensor<150x300x4xf32> -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// For threads: all of memory and a few long rows in parts of 128 KB or more, strips of columns in parts of 64 lines or
// of 64 KB, also where there are strips enough that are high. What only reductions read is no tensor that is written.
// THREADS-LABEL: func.func @threads
// THREADS: mlc.parts = 64
// THREADS: mlc.parts = 2 :
// THREADS: mlc.parts = 64
// THREADS: mlc.parts = 256
// THREADS: mlc.parts = 32
// THREADS: mlc.parts = 64
// THREADS: mlc.parts = 64
func.func @threads(%a: tensor<4096x1024xf32>, %b: tensor<8x100000xf32>, %c: tensor<65536x64xf32>,
                   %d: tensor<2048x8192xf32>, %e: tensor<4096x1024xf32>)
    -> (tensor<f32>, tensor<8xi64>, tensor<1024xf32>, tensor<64xf32>, tensor<8192xf32>, tensor<f32>) {
  %0 = mlc.reduce max %a {axes = array<i64: 0, 1>, keepdims = false} : tensor<4096x1024xf32> -> tensor<f32>
  %1 = mlc.arg_reduce max %b {axis = 1 : i64} : tensor<8x100000xf32> -> tensor<8xi64>
  %2 = mlc.reduce sum %a {axes = array<i64: 0>, keepdims = false} : tensor<4096x1024xf32> -> tensor<1024xf32>
  %3 = mlc.reduce sum %c {axes = array<i64: 0>, keepdims = false} : tensor<65536x64xf32> -> tensor<64xf32>
  %4 = mlc.reduce sum %d {axes = array<i64: 0>, keepdims = false} : tensor<2048x8192xf32> -> tensor<8192xf32>
  %5 = mlc.reduce max %e {axes = array<i64: 0, 1>, keepdims = true} : tensor<4096x1024xf32> -> tensor<1x1xf32>
  %6 = mlc.binary sub %e, %5 : tensor<4096x1024xf32>, tensor<1x1xf32> -> tensor<4096x1024xf32>
  %7 = mlc.unary exp %6 : tensor<4096x1024xf32>
  %8 = mlc.reduce sum %7 {axes = array<i64: 0, 1>, keepdims = false} : tensor<4096x1024xf32> -> tensor<f32>
  return %0, %1, %2, %3, %4, %8
    : tensor<f32>, tensor<8xi64>, tensor<1024xf32>, tensor<64xf32>, tensor<8192xf32>, tensor<f32>
}

// Sums of a tensor that was normalised and has got another shape.
// THREADS-LABEL: func.func @views
// THREADS: mlc.parts = 32
// THREADS: mlc.parts = 32
func.func @views(%x: tensor<4096x256xf32>) -> tensor<f32> {
  %0 = mlc.reduce max %x {axes = array<i64: 0, 1>, keepdims = true} : tensor<4096x256xf32> -> tensor<1x1xf32>
  %1 = mlc.binary sub %x, %0 : tensor<4096x256xf32>, tensor<1x1xf32> -> tensor<4096x256xf32>
  %2 = mlc.reshape %1 [2048, 512] : tensor<4096x256xf32> -> tensor<2048x512xf32>
  %3 = mlc.unary exp %2 : tensor<2048x512xf32>
  %4 = mlc.reduce sum %3 {axes = array<i64: 0, 1>, keepdims = false} : tensor<2048x512xf32> -> tensor<f32>
  return %4 : tensor<f32>
}

// Enough rows, enough strips that are low, what one thread has read soon, and a normalisation, which has at hand what it
// divides.
// THREADS-LABEL: func.func @whole
// THREADS-NOT: mlc.parts
// THREADS: return
func.func @whole(%a: tensor<16x65536xf32>, %b: tensor<512x8192xf32>, %c: tensor<500x512xf32>, %d: tensor<1x1048576xf32>)
    -> (tensor<16xf32>, tensor<8192xf32>, tensor<512xf32>, tensor<1x1048576xf32>) {
  %0 = mlc.reduce sum %a {axes = array<i64: 1>, keepdims = false} : tensor<16x65536xf32> -> tensor<16xf32>
  %1 = mlc.reduce sum %b {axes = array<i64: 0>, keepdims = false} : tensor<512x8192xf32> -> tensor<8192xf32>
  %2 = mlc.reduce sum %c {axes = array<i64: 0>, keepdims = false} : tensor<500x512xf32> -> tensor<512xf32>
  %3 = mlc.reduce sum %d {axes = array<i64: 1>, keepdims = true} : tensor<1x1048576xf32> -> tensor<1x1xf32>
  %4 = mlc.binary div %d, %3 : tensor<1x1048576xf32>, tensor<1x1xf32> -> tensor<1x1048576xf32>
  return %0, %1, %2, %4 : tensor<16xf32>, tensor<8192xf32>, tensor<512xf32>, tensor<1x1048576xf32>
}
