// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-fold-positions,mlc-hide-keys,canonicalize,cse)' | FileCheck %s

// CHECK-LABEL: func.func @causal
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x8xf32>)
// CHECK-DAG: %[[LOW:.*]] = mlc.constant dense<0xFF800000> : tensor<f32>
// CHECK: %[[SHOWN:.*]] = mlc.compare le
// CHECK: %[[Y:.*]] = mlc.select %[[SHOWN]], %[[X]], %[[LOW]]
// CHECK: mlc.softmax %[[Y]]
func.func @causal(%x: tensor<2x8x8xf32>) -> tensor<2x8x8xf32> {
  %zero = mlc.constant dense<0.0> : tensor<f32>
  %lowest = mlc.constant dense<-3.40282347E+38> : tensor<f32>
  %i = mlc.iota [8, 1] {axis = 0 : i64} : tensor<8x1xi64>
  %j = mlc.iota [1, 8] {axis = 1 : i64} : tensor<1x8xi64>
  %shown = mlc.compare le %j, %i : tensor<1x8xi64>, tensor<8x1xi64> -> tensor<8x8xi1>
  %m = mlc.select %shown, %zero, %lowest : tensor<8x8xi1>, tensor<f32>, tensor<f32> -> tensor<8x8xf32>
  %s = mlc.binary add %x, %m : tensor<2x8x8xf32>, tensor<8x8xf32> -> tensor<2x8x8xf32>
  %y = mlc.softmax %s {axis = 2 : i64} : tensor<2x8x8xf32>
  return %y : tensor<2x8x8xf32>
}

// -----

// The other way round, as `triu` of a full matrix makes it; rounded; behind a shift by the largest; with a sink.
// CHECK-LABEL: func.func @turned
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x8xbf16>
// CHECK: %[[SHOWN:.*]] = mlc.compare le
// CHECK: %[[Y:.*]] = mlc.select %[[SHOWN]], %[[X]]
// CHECK: mlc.concat %[[Y]]
func.func @turned(%x: tensor<2x8x8xbf16>, %sink: tensor<2x8x1xbf16>) -> tensor<2x8x9xbf16> {
  %zero = mlc.constant dense<0.0> : tensor<bf16>
  %lowest = mlc.constant dense<-3.38953139E+38> : tensor<bf16>
  %i = mlc.iota [8, 1] {axis = 0 : i64} : tensor<8x1xi64>
  %j = mlc.iota [1, 8] {axis = 1 : i64} : tensor<1x8xi64>
  %hidden = mlc.compare gt %j, %i : tensor<1x8xi64>, tensor<8x1xi64> -> tensor<8x8xi1>
  %m = mlc.select %hidden, %lowest, %zero : tensor<8x8xi1>, tensor<bf16>, tensor<bf16> -> tensor<8x8xbf16>
  %s = mlc.binary add %x, %m : tensor<2x8x8xbf16>, tensor<8x8xbf16> -> tensor<2x8x8xbf16>
  %c = mlc.concat %s, %sink {axis = 2 : i64} : tensor<2x8x8xbf16>, tensor<2x8x1xbf16> -> tensor<2x8x9xbf16>
  %top = mlc.reduce max %c {axes = array<i64: 2>, keepdims = true} : tensor<2x8x9xbf16> -> tensor<2x8x1xbf16>
  %d = mlc.binary sub %c, %top : tensor<2x8x9xbf16>, tensor<2x8x1xbf16> -> tensor<2x8x9xbf16>
  %y = mlc.softmax %d {axis = 2 : i64} : tensor<2x8x9xbf16>
  return %y : tensor<2x8x9xbf16>
}

// -----

// A selection of the lowest number, and the mask of PyTorch's fused attention, of any extents.
// CHECK-LABEL: func.func @others
// CHECK: mlc.select %[[SHOWN:.*]], %{{.*}}, %{{.*}} : tensor<?x?xi1>, tensor<?x?xf16>, tensor<f16>
// CHECK: mlc.attention %{{.*}}, %{{.*}}, %{{.*}} mask(%[[SHOWN]] : tensor<?x?xi1>)
func.func @others(%x: tensor<?x?xf16>, %q: tensor<1x2x?x8xf16>) -> (tensor<?x?xf16>, tensor<1x2x?x8xf16>) {
  %zero = mlc.constant dense<0.0> : tensor<f16>
  %lowest = mlc.constant dense<-65504.0> : tensor<f16>
  %c2 = arith.constant 2 : index
  %n = tensor.dim %q, %c2 : tensor<1x2x?x8xf16>
  %i = mlc.iota [%n, 1] {axis = 0 : i64} : tensor<?x1xi64>
  %j = mlc.iota [1, %n] {axis = 1 : i64} : tensor<1x?xi64>
  %shown = mlc.compare ge %i, %j : tensor<?x1xi64>, tensor<1x?xi64> -> tensor<?x?xi1>
  %w = mlc.broadcast %x [%n, %n] : tensor<?x?xf16> -> tensor<?x?xf16>
  %s = mlc.select %shown, %w, %lowest : tensor<?x?xi1>, tensor<?x?xf16>, tensor<f16> -> tensor<?x?xf16>
  %y = mlc.softmax %s {axis = 1 : i64} : tensor<?x?xf16>
  %m = mlc.select %shown, %zero, %lowest : tensor<?x?xi1>, tensor<f16>, tensor<f16> -> tensor<?x?xf16>
  %a = mlc.attention %q, %q, %q mask(%m : tensor<?x?xf16>) : tensor<1x2x?x8xf16>, tensor<1x2x?x8xf16>, tensor<1x2x?x8xf16> -> tensor<1x2x?x8xf16>
  return %y, %a : tensor<?x?xf16>, tensor<1x2x?x8xf16>
}

// -----

// Rows without a key have equal shares of all: here the first one has none, there the last one.
// CHECK-LABEL: func.func @without_keys
// CHECK-COUNT-2: mlc.binary add %{{.*}}, %{{.*}} : tensor<8x6xf32>
func.func @without_keys(%x: tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
  %zero = mlc.constant dense<0.0> : tensor<f32>
  %lowest = mlc.constant dense<-3.40282347E+38> : tensor<f32>
  %two = mlc.constant dense<2> : tensor<i64>
  %i = mlc.iota [8, 1] {axis = 0 : i64} : tensor<8x1xi64>
  %j = mlc.iota [1, 6] {axis = 1 : i64} : tensor<1x6xi64>
  %a = mlc.compare lt %j, %i : tensor<1x6xi64>, tensor<8x1xi64> -> tensor<8x6xi1>
  %m = mlc.select %a, %zero, %lowest : tensor<8x6xi1>, tensor<f32>, tensor<f32> -> tensor<8x6xf32>
  %s = mlc.binary add %x, %m : tensor<8x6xf32>
  %y = mlc.softmax %s {axis = 1 : i64} : tensor<8x6xf32>
  %k = mlc.binary add %j, %two : tensor<1x6xi64>, tensor<i64> -> tensor<1x6xi64>
  %b = mlc.compare gt %k, %i : tensor<1x6xi64>, tensor<8x1xi64> -> tensor<8x6xi1>
  %n = mlc.select %b, %zero, %lowest : tensor<8x6xi1>, tensor<f32>, tensor<f32> -> tensor<8x6xf32>
  %t = mlc.binary add %x, %n : tensor<8x6xf32>
  %z = mlc.softmax %t {axis = 1 : i64} : tensor<8x6xf32>
  return %y, %z : tensor<8x6xf32>, tensor<8x6xf32>
}

// -----

// Who else reads the sums sees the numbers themselves; a number that scores may outweigh hides nothing.
// CHECK-LABEL: func.func @seen
// CHECK-COUNT-2: mlc.binary add %{{.*}}, %{{.*}} : tensor<8x8xf32>
func.func @seen(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %zero = mlc.constant dense<0.0> : tensor<f32>
  %lowest = mlc.constant dense<-3.40282347E+38> : tensor<f32>
  %low = mlc.constant dense<-10000.0> : tensor<f32>
  %i = mlc.iota [8, 1] {axis = 0 : i64} : tensor<8x1xi64>
  %j = mlc.iota [1, 8] {axis = 1 : i64} : tensor<1x8xi64>
  %shown = mlc.compare le %j, %i : tensor<1x8xi64>, tensor<8x1xi64> -> tensor<8x8xi1>
  %m = mlc.select %shown, %zero, %lowest : tensor<8x8xi1>, tensor<f32>, tensor<f32> -> tensor<8x8xf32>
  %s = mlc.binary add %x, %m : tensor<8x8xf32>
  %y = mlc.softmax %s {axis = 1 : i64} : tensor<8x8xf32>
  %n = mlc.select %shown, %zero, %low : tensor<8x8xi1>, tensor<f32>, tensor<f32> -> tensor<8x8xf32>
  %t = mlc.binary add %x, %n : tensor<8x8xf32>
  %z = mlc.softmax %t {axis = 1 : i64} : tensor<8x8xf32>
  return %s, %y, %z : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// A mask whose rows and keys changed places on the way is another one.
// CHECK-LABEL: func.func @reshaped
// CHECK: mlc.binary add
func.func @reshaped(%x: tensor<1x?x?xf32>, %m: tensor<?x?xi1>) -> tensor<1x?x?xf32> {
  %zero = mlc.constant dense<0.0> : tensor<f32>
  %low = mlc.constant dense<0xFF800000> : tensor<f32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %m, %c0 : tensor<?x?xi1>
  %k = tensor.dim %m, %c1 : tensor<?x?xi1>
  %s = mlc.select %m, %zero, %low : tensor<?x?xi1>, tensor<f32>, tensor<f32> -> tensor<?x?xf32>
  %r = mlc.reshape %s [1, %k, %n] : tensor<?x?xf32> -> tensor<1x?x?xf32>
  %a = mlc.binary add %x, %r : tensor<1x?x?xf32>
  %y = mlc.softmax %a {axis = 2 : i64} : tensor<1x?x?xf32>
  return %y : tensor<1x?x?xf32>
}
