// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{vector-bits=256 vector-registers=16})' | FileCheck %s --check-prefix=AVX2
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{bf16-dot=true})' | FileCheck %s --check-prefix=FAST

// Contractions of bf16 where no fast instruction multiplies pairs.
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#i = affine_map<(n, h, w, o, y, x, c) -> (n, h + y, w + x, c)>
#g = affine_map<(n, h, w, o, y, x, c) -> (y, x, c, o)>
#d = affine_map<(n, h, w, o, y, x, c) -> (n, h, w, o)>

func.func @main(%x0: tensor<128x768xbf16>, %o0: tensor<128x768xf32>, %x1: tensor<8x768xbf16>, %o1: tensor<8x768xf32>, %x2: tensor<?x48xbf16>, %o2: tensor<?x40xf32>, %x3: tensor<128x1031xbf16>, %o3: tensor<128x768xf32>, %x4: tensor<1x16x16x64xbf16>, %o4: tensor<1x14x14x128xf32>, %x5: tensor<1x16x16x16xbf16>, %o5: tensor<1x14x14x64xf32>)
    -> (tensor<128x768xf32>, tensor<8x768xf32>, tensor<?x40xf32>, tensor<128x768xf32>, tensor<1x14x14x128xf32>, tensor<1x14x14x64xf32>) {
  %w0 = mlc.weight "w0" : tensor<768x768xbf16>
  %0 = mlc.launch @many_rows(%x0, %w0) outs(%o0) : (tensor<128x768xbf16>, tensor<768x768xbf16>) outs(tensor<128x768xf32>) -> tensor<128x768xf32>
  %w1 = mlc.weight "w1" : tensor<768x768xbf16>
  %1 = mlc.launch @few_rows(%x1, %w1) outs(%o1) : (tensor<8x768xbf16>, tensor<768x768xbf16>) outs(tensor<8x768xf32>) -> tensor<8x768xf32>
  %w2 = mlc.weight "w2" : tensor<48x40xbf16>
  %2 = mlc.launch @any_rows(%x2, %w2) outs(%o2) : (tensor<?x48xbf16>, tensor<48x40xbf16>) outs(tensor<?x40xf32>) -> tensor<?x40xf32>
  %w3 = mlc.weight "w3" : tensor<1031x768xbf16>
  %3 = mlc.launch @odd(%x3, %w3) outs(%o3) : (tensor<128x1031xbf16>, tensor<1031x768xbf16>) outs(tensor<128x768xf32>) -> tensor<128x768xf32>
  %w4 = mlc.weight "w4" : tensor<3x3x64x128xbf16>
  %4 = mlc.launch @window(%x4, %w4) outs(%o4) : (tensor<1x16x16x64xbf16>, tensor<3x3x64x128xbf16>) outs(tensor<1x14x14x128xf32>) -> tensor<1x14x14x128xf32>
  %w5 = mlc.weight "w5" : tensor<3x3x16x64xbf16>
  %5 = mlc.launch @few_channels(%x5, %w5) outs(%o5) : (tensor<1x16x16x16xbf16>, tensor<3x3x16x64xbf16>) outs(tensor<1x14x14x64xf32>) -> tensor<1x14x14x64xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<128x768xf32>, tensor<8x768xf32>, tensor<?x40xf32>, tensor<128x768xf32>, tensor<1x14x14x128xf32>, tensor<1x14x14x64xf32>
}

// A block of 96 steps of four vectors is 24 kB in f32; with sixteen registers it is 64 steps of two sides of three.
// CHECK: module @many_rows
// CHECK-SAME: ahead = 128 : i64, block = 22 : i64, depth = 96 : i64, lanes = 16 : i64, outer = 0 : i64, packed_operand = 1 : i64, panel = 64 : i64
// CHECK-SAME: rows = 6 : i64, side = 4 : i64, stored = "pairs", template = "dot_floats", unroll = 4 : i64
// CHECK-SAME: vector_operand = 1 : i64, vectors = 4 : i64
// AVX2: module @many_rows
// AVX2-SAME: depth = 64 : i64, lanes = 8 : i64{{.*}} panel = 48 : i64{{.*}} rows = 4 : i64, side = 3 : i64, {{.*}} vectors = 6 : i64
// FAST: module @many_rows
// FAST-SAME: instruction = "vdpbf16ps"
module @many_rows attributes {mlc.kernel} {
  func.func @many_rows(%a: tensor<128x768xbf16>, %b: tensor<768x768xbf16>, %o: tensor<128x768xf32>) -> tensor<128x768xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<128x768xf32>) -> tensor<128x768xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<128x768xbf16>, tensor<768x768xbf16>) outs(%f : tensor<128x768xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<128x768xf32>
    return %m : tensor<128x768xf32>
  }
}

// Few rows do not pay for widening a weight.
// CHECK: module @few_rows
// CHECK-SAME: instruction = "fma"{{.*}} template = "dot_product"
module @few_rows attributes {mlc.kernel} {
  func.func @few_rows(%a: tensor<8x768xbf16>, %b: tensor<768x768xbf16>, %o: tensor<8x768xf32>) -> tensor<8x768xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<8x768xf32>) -> tensor<8x768xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<8x768xbf16>, tensor<768x768xbf16>) outs(%f : tensor<8x768xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<8x768xf32>
    return %m : tensor<8x768xf32>
  }
}

// The whole sum is one block; of columns there are three vectors. A run may have too few rows.
// CHECK: module @any_rows
// CHECK-SAME: block = 16 : i64, depth = 48 : i64{{.*}} least = 16 : i64{{.*}} panel = 48 : i64{{.*}} rows = 8 : i64, side = 3 : i64, {{.*}} vectors = 3 : i64
module @any_rows attributes {mlc.kernel} {
  func.func @any_rows(%a: tensor<?x48xbf16>, %b: tensor<48x40xbf16>, %o: tensor<?x40xf32>) -> tensor<?x40xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?x40xf32>) -> tensor<?x40xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<?x48xbf16>, tensor<48x40xbf16>) outs(%f : tensor<?x40xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<?x40xf32>
    return %m : tensor<?x40xf32>
  }
}

// No block of an odd sum has whole pairs.
// CHECK: module @odd
// CHECK-SAME: template = "dot_product"
module @odd attributes {mlc.kernel} {
  func.func @odd(%a: tensor<128x1031xbf16>, %b: tensor<1031x768xbf16>, %o: tensor<128x768xf32>) -> tensor<128x768xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<128x768xf32>) -> tensor<128x768xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<128x1031xbf16>, tensor<1031x768xbf16>) outs(%f : tensor<128x768xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<128x768xf32>
    return %m : tensor<128x768xf32>
  }
}

// A block is one tap; eight lines of the image together have 112 rows, and four leave items enough.
// CHECK: module @window
// CHECK-SAME: block = 3 : i64, depth = 64 : i64, lanes = 16 : i64, line_dim = 1 : i64, lines = 4 : i64, outer = 2 : i64
// CHECK-SAME: template = "dot_floats"
module @window attributes {mlc.kernel} {
  func.func @window(%a: tensor<1x16x16x64xbf16>, %b: tensor<3x3x64x128xbf16>, %o: tensor<1x14x14x128xf32>) -> tensor<1x14x14x128xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x14x14x128xf32>) -> tensor<1x14x14x128xf32>
    %m = linalg.generic {indexing_maps = [#i, #g, #d],
        iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
        ins(%a, %b : tensor<1x16x16x64xbf16>, tensor<3x3x64x128xbf16>) outs(%f : tensor<1x14x14x128xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<1x14x14x128xf32>
    return %m : tensor<1x14x14x128xf32>
  }
}

// A line of taps of few channels is a block.
// CHECK: module @few_channels
// CHECK-SAME: depth = 1 : i64, {{.*}} outer = 0 : i64{{.*}} template = "dot_floats", unroll = 4 : i64
module @few_channels attributes {mlc.kernel} {
  func.func @few_channels(%a: tensor<1x16x16x16xbf16>, %b: tensor<3x3x16x64xbf16>, %o: tensor<1x14x14x64xf32>) -> tensor<1x14x14x64xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x14x14x64xf32>) -> tensor<1x14x14x64xf32>
    %m = linalg.generic {indexing_maps = [#i, #g, #d],
        iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
        ins(%a, %b : tensor<1x16x16x16xbf16>, tensor<3x3x16x64xbf16>) outs(%f : tensor<1x14x14x64xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<1x14x14x64xf32>
    return %m : tensor<1x14x14x64xf32>
  }
}
