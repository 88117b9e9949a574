// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-plan-joins)' | FileCheck %s

#p = affine_map<(i) -> (i)>

// Small kernels that do not depend on each other are one launch, with the last of those in front.
// CHECK-LABEL: func.func @independent(
func.func @independent(%x: tensor<64xf32>, %y: tensor<32xf32>) -> (tensor<64xf32>, tensor<32xf32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<64xf32>
  %f = tensor.empty() : tensor<32xf32>
  // CHECK: mlc.launch @k0(%arg0) {{.*}} {mlc.placement = "device"}
  %a = mlc.launch @k0(%x) outs(%e) {mlc.placement = "device"} : (tensor<64xf32>) outs(tensor<64xf32>) -> tensor<64xf32>
  // CHECK: mlc.launch @k0(%{{[0-9]+}}) {{.*}} {mlc.joined = 0 : i64, mlc.placement = "device"}
  %b = mlc.launch @k0(%a) outs(%e) {mlc.placement = "device"} : (tensor<64xf32>) outs(tensor<64xf32>) -> tensor<64xf32>
  // CHECK: mlc.launch @host({{.*}} {mlc.placement = "host"}
  %h = mlc.launch @host(%y) outs(%f) {mlc.placement = "host"} : (tensor<32xf32>) outs(tensor<32xf32>) -> tensor<32xf32>
  // CHECK: mlc.launch @k1({{.*}} {mlc.joined = 0 : i64, mlc.placement = "device"}
  %c = mlc.launch @k1(%y) outs(%f) {mlc.placement = "device"} : (tensor<32xf32>) outs(tensor<32xf32>) -> tensor<32xf32>
  // CHECK: mlc.launch @sum({{.*}} {mlc.placement = "device"}
  %s = mlc.launch @sum(%y) outs(%f) {mlc.placement = "device"} : (tensor<32xf32>) outs(tensor<32xf32>) -> tensor<32xf32>
  return %b, %c, %a : tensor<64xf32>, tensor<32xf32>, tensor<64xf32>
}
module @k0 attributes {mlc.kernel} {
  func.func @k0(%x: tensor<64xf32>, %o: tensor<64xf32>) -> tensor<64xf32> {
    %r = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%o : tensor<64xf32>) {
    ^bb0(%a: f32, %b: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    } -> tensor<64xf32>
    return %r : tensor<64xf32>
  }
}
module @k1 attributes {mlc.kernel} {
  func.func @k1(%x: tensor<32xf32>, %o: tensor<32xf32>) -> tensor<32xf32> {
    %r = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel"]} ins(%x : tensor<32xf32>) outs(%o : tensor<32xf32>) {
    ^bb0(%a: f32, %b: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    } -> tensor<32xf32>
    return %r : tensor<32xf32>
  }
}
module @host attributes {mlc.kernel} {
  func.func @host(%x: tensor<32xf32>, %o: tensor<32xf32>) -> tensor<32xf32> {
    %r = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel"]} ins(%x : tensor<32xf32>) outs(%o : tensor<32xf32>) {
    ^bb0(%a: f32, %b: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    } -> tensor<32xf32>
    return %r : tensor<32xf32>
  }
}
// Kernels with reductions stay on their own.
module @sum attributes {mlc.kernel} {
  func.func @sum(%x: tensor<32xf32>, %o: tensor<32xf32>) -> tensor<32xf32> {
    %z = arith.constant 0.0 : f32
    %i = linalg.fill ins(%z : f32) outs(%o : tensor<32xf32>) -> tensor<32xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<32xf32>) outs(%i : tensor<32xf32>) {
    ^bb0(%a: f32, %b: f32):
      %n = arith.addf %a, %b : f32
      linalg.yield %n : f32
    } -> tensor<32xf32>
    return %r : tensor<32xf32>
  }
}

// -----

#p = affine_map<(i) -> (i)>

// A kernel with a thread for every place of the chip has nothing to gain; a path by way of another launch counts.
// CHECK-LABEL: func.func @large_and_dependent(
func.func @large_and_dependent(%x: tensor<2097152xf32>, %y: tensor<32xf32>) -> (tensor<2097152xf32>, tensor<32xf32>, tensor<32xf32>) {
  %e = tensor.empty() : tensor<2097152xf32>
  %f = tensor.empty() : tensor<32xf32>
  // CHECK-NOT: mlc.joined
  %a = mlc.launch @large(%x) outs(%e) {mlc.placement = "device"} : (tensor<2097152xf32>) outs(tensor<2097152xf32>) -> tensor<2097152xf32>
  %b = mlc.launch @k1(%y) outs(%f) {mlc.placement = "device"} : (tensor<32xf32>) outs(tensor<32xf32>) -> tensor<32xf32>
  %v = tensor.expand_shape %b [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>
  %w = tensor.collapse_shape %v [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  %c = mlc.launch @k1(%w) outs(%f) {mlc.placement = "device"} : (tensor<32xf32>) outs(tensor<32xf32>) -> tensor<32xf32>
  return %a, %b, %c : tensor<2097152xf32>, tensor<32xf32>, tensor<32xf32>
}
module @large attributes {mlc.kernel} {
  func.func @large(%x: tensor<2097152xf32>, %o: tensor<2097152xf32>) -> tensor<2097152xf32> {
    %r = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel"]} ins(%x : tensor<2097152xf32>) outs(%o : tensor<2097152xf32>) {
    ^bb0(%a: f32, %b: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    } -> tensor<2097152xf32>
    return %r : tensor<2097152xf32>
  }
}
module @k1 attributes {mlc.kernel} {
  func.func @k1(%x: tensor<32xf32>, %o: tensor<32xf32>) -> tensor<32xf32> {
    %r = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel"]} ins(%x : tensor<32xf32>) outs(%o : tensor<32xf32>) {
    ^bb0(%a: f32, %b: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    } -> tensor<32xf32>
    return %r : tensor<32xf32>
  }
}

// -----

#p = affine_map<(i) -> (i)>

// What is read before a launch writes over it is not read behind that: the first two readers may be one launch, but not
// with a reader of what has been written.
// CHECK-LABEL: func.func @overwritten(
func.func @overwritten(%x: tensor<64xf32>, %u: tensor<8xf32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %e = tensor.empty() : tensor<64xf32>
  // CHECK: mlc.launch @k0(%arg0) {{.*}} {mlc.placement = "device"}
  %a = mlc.launch @k0(%x) outs(%e) {mlc.placement = "device"} : (tensor<64xf32>) outs(tensor<64xf32>) -> tensor<64xf32>
  // CHECK: mlc.launch @k0(%{{[0-9]+}}) {{.*}} {mlc.joined = 0 : i64, mlc.placement = "device"}
  %b = mlc.launch @k0(%a) outs(%e) {mlc.placement = "device"} : (tensor<64xf32>) outs(tensor<64xf32>) -> tensor<64xf32>
  %v = tensor.expand_shape %a [[0, 1]] output_shape [8, 8] : tensor<64xf32> into tensor<8x8xf32>
  %w = tensor.collapse_shape %v [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  // CHECK: mlc.launch @k0(%{{.*}}) {{.*}} {mlc.joined = 0 : i64, mlc.placement = "device"}
  %c = mlc.launch @k0(%w) outs(%e) {mlc.placement = "device"} : (tensor<64xf32>) outs(tensor<64xf32>) -> tensor<64xf32>
  // CHECK: mlc.launch @over(
  %o = mlc.launch @over(%u) outs(%a) {mlc.in_place, mlc.inout = array<i64: 0>, mlc.placement = "device"} : (tensor<8xf32>) outs(tensor<64xf32>) -> tensor<64xf32>
  // CHECK: mlc.launch @k0(%{{[0-9]+}}) {{.*}} {mlc.placement = "device"}
  %d = mlc.launch @k0(%o) outs(%e) {mlc.placement = "device"} : (tensor<64xf32>) outs(tensor<64xf32>) -> tensor<64xf32>
  return %b, %c, %d : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}
module @k0 attributes {mlc.kernel} {
  func.func @k0(%x: tensor<64xf32>, %o: tensor<64xf32>) -> tensor<64xf32> {
    %r = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%o : tensor<64xf32>) {
    ^bb0(%a: f32, %b: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    } -> tensor<64xf32>
    return %r : tensor<64xf32>
  }
}
module @over attributes {mlc.kernel} {
  func.func @over(%u: tensor<8xf32>, %o: tensor<64xf32>) -> tensor<64xf32> {
    %r = tensor.insert_slice %u into %o[0] [8] [1] : tensor<8xf32> into tensor<64xf32>
    return %r : tensor<64xf32>
  }
}

// -----

#p = affine_map<(i) -> (i)>

// Loops keep their order: what the first one takes is not in one launch with what the second one gives.
// CHECK-LABEL: func.func @around_loops(
// CHECK-NOT: mlc.joined
func.func @around_loops(%x: tensor<64xf32>, %y: tensor<64xf32>, %n: index) -> (tensor<64xf32>, tensor<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<64xf32>
  %a = mlc.launch @k0(%x) outs(%e) {mlc.placement = "device"} : (tensor<64xf32>) outs(tensor<64xf32>) -> tensor<64xf32>
  %first = scf.for %i = %c0 to %n step %c1 iter_args(%s = %a) -> (tensor<64xf32>) {
    scf.yield %s : tensor<64xf32>
  }
  %second = scf.for %i = %c0 to %n step %c1 iter_args(%s = %y) -> (tensor<64xf32>) {
    scf.yield %s : tensor<64xf32>
  }
  %b = mlc.launch @k0(%second) outs(%e) {mlc.placement = "device"} : (tensor<64xf32>) outs(tensor<64xf32>) -> tensor<64xf32>
  return %first, %b : tensor<64xf32>, tensor<64xf32>
}
module @k0 attributes {mlc.kernel} {
  func.func @k0(%x: tensor<64xf32>, %o: tensor<64xf32>) -> tensor<64xf32> {
    %r = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%o : tensor<64xf32>) {
    ^bb0(%a: f32, %b: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    } -> tensor<64xf32>
    return %r : tensor<64xf32>
  }
}
