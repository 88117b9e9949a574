// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{vector-bits=256 vector-registers=16})' | FileCheck %s --check-prefix=AVX2

// Every tile of rows reads the weight. Sixteen rows are two tiles of eight by three vectors, not three of six by four; twelve
// are two of six, and of more rows each weight is read from near by.
// CHECK: module @sixteen
// CHECK-SAME: panel = 48 : i64{{.*}} rows = 8 : i64, template = "contraction"{{.*}} vectors = 3 : i64
// CHECK: module @twelve
// CHECK-SAME: panel = 64 : i64{{.*}} rows = 6 : i64, template = "contraction"{{.*}} vectors = 4 : i64
// CHECK: module @twenty
// CHECK-SAME: panel = 64 : i64{{.*}} rows = 6 : i64, template = "contraction"{{.*}} vectors = 4 : i64
// Sixteen registers hold no more sums.
// AVX2: module @sixteen
// AVX2-SAME: rows = 4 : i64, template = "contraction"{{.*}} vectors = 3 : i64

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#o = affine_map<(m, n, k) -> (m, n)>

func.func @main(%x0: tensor<16x768xf32>, %x1: tensor<12x768xf32>, %x2: tensor<20x768xf32>) -> (tensor<16x1024xf32>, tensor<12x1024xf32>, tensor<20x1024xf32>) {
  %w = mlc.weight "w" : tensor<768x1024xf32>
  %e0 = tensor.empty() : tensor<16x1024xf32>
  %r0 = mlc.launch @sixteen(%x0, %w) outs(%e0) : (tensor<16x768xf32>, tensor<768x1024xf32>) outs(tensor<16x1024xf32>) -> tensor<16x1024xf32>
  %e1 = tensor.empty() : tensor<12x1024xf32>
  %r1 = mlc.launch @twelve(%x1, %w) outs(%e1) : (tensor<12x768xf32>, tensor<768x1024xf32>) outs(tensor<12x1024xf32>) -> tensor<12x1024xf32>
  %e2 = tensor.empty() : tensor<20x1024xf32>
  %r2 = mlc.launch @twenty(%x2, %w) outs(%e2) : (tensor<20x768xf32>, tensor<768x1024xf32>) outs(tensor<20x1024xf32>) -> tensor<20x1024xf32>
  return %r0, %r1, %r2 : tensor<16x1024xf32>, tensor<12x1024xf32>, tensor<20x1024xf32>
}
module @sixteen attributes {mlc.kernel} {
  func.func @sixteen(%a: tensor<16x768xf32>, %b: tensor<768x1024xf32>, %o: tensor<16x1024xf32>) -> tensor<16x1024xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<16x1024xf32>) -> tensor<16x1024xf32>
    %m = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<16x768xf32>, tensor<768x1024xf32>) outs(%f : tensor<16x1024xf32>) attrs = {mlc.contraction} {
    ^bb0(%p: f32, %q: f32, %z: f32):
      %0 = arith.mulf %p, %q : f32
      %1 = arith.addf %z, %0 : f32
      linalg.yield %1 : f32
    } -> tensor<16x1024xf32>
    return %m : tensor<16x1024xf32>
  }
}
module @twelve attributes {mlc.kernel} {
  func.func @twelve(%a: tensor<12x768xf32>, %b: tensor<768x1024xf32>, %o: tensor<12x1024xf32>) -> tensor<12x1024xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<12x1024xf32>) -> tensor<12x1024xf32>
    %m = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<12x768xf32>, tensor<768x1024xf32>) outs(%f : tensor<12x1024xf32>) attrs = {mlc.contraction} {
    ^bb0(%p: f32, %q: f32, %z: f32):
      %0 = arith.mulf %p, %q : f32
      %1 = arith.addf %z, %0 : f32
      linalg.yield %1 : f32
    } -> tensor<12x1024xf32>
    return %m : tensor<12x1024xf32>
  }
}
module @twenty attributes {mlc.kernel} {
  func.func @twenty(%a: tensor<20x768xf32>, %b: tensor<768x1024xf32>, %o: tensor<20x1024xf32>) -> tensor<20x1024xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<20x1024xf32>) -> tensor<20x1024xf32>
    %m = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<20x768xf32>, tensor<768x1024xf32>) outs(%f : tensor<20x1024xf32>) attrs = {mlc.contraction} {
    ^bb0(%p: f32, %q: f32, %z: f32):
      %0 = arith.mulf %p, %q : f32
      %1 = arith.addf %z, %0 : f32
      linalg.yield %1 : f32
    } -> tensor<20x1024xf32>
    return %m : tensor<20x1024xf32>
  }
}
