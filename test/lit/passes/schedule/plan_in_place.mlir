// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-plan-in-place)' | FileCheck %s

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#o = affine_map<(m, n, k) -> (m, n)>
#i = affine_map<(m, n) -> (m, n)>

// Nothing reads %a when the second launch is over: it may be written over, seen in another shape or not. An argument may
// not, nor what is read later or returned, nor what the launch reads in another place too.
// CHECK-LABEL: func.func @main
// CHECK: mlc.launch @sum({{.*}}) outs(%{{.*}}) :
// CHECK: mlc.launch @sum({{.*}}) outs(%{{.*}}) {mlc.over = 2 : i64}
// CHECK: mlc.launch @sum({{.*}}) outs(%{{.*}}) {mlc.over = 2 : i64}
// CHECK: mlc.launch @sum({{.*}}) outs(%{{.*}}) :
// CHECK: mlc.launch @sum({{.*}}) outs(%{{.*}}) :
// CHECK: mlc.launch @sum({{.*}}) outs(%{{.*}}) :
func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>, %r: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  %a = mlc.launch @sum(%x, %w, %r) outs(%e) : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) outs(tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = mlc.launch @sum(%x, %w, %a) outs(%e) : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) outs(tensor<8x8xf32>) -> tensor<8x8xf32>
  %flat = tensor.collapse_shape %b [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  %again = tensor.expand_shape %flat [[0, 1]] output_shape [8, 8] : tensor<64xf32> into tensor<8x8xf32>
  %c = mlc.launch @sum(%x, %w, %again) outs(%e) : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) outs(tensor<8x8xf32>) -> tensor<8x8xf32>
  %line = tensor.collapse_shape %c [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  %d = mlc.launch @sum(%x, %w, %c) outs(%e) : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) outs(tensor<8x8xf32>) -> tensor<8x8xf32>
  %later = tensor.expand_shape %line [[0, 1]] output_shape [8, 8] : tensor<64xf32> into tensor<8x8xf32>
  %f = mlc.launch @sum(%later, %w, %d) outs(%e) : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) outs(tensor<8x8xf32>) -> tensor<8x8xf32>
  %g = mlc.launch @sum(%f, %w, %f) outs(%e) : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) outs(tensor<8x8xf32>) -> tensor<8x8xf32>
  return %d, %g : tensor<8x8xf32>, tensor<8x8xf32>
}
module @sum attributes {mlc.kernel, mlc.schedule = [{block = 1 : i64, lanes = 8 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 4 : i64, template = "contraction", unroll = 4 : i64, vector_dim = 1 : i64, vectors = 1 : i64}]} {
  func.func @sum(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %r: tensor<8x8xf32>, %o: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<8x8xf32>) -> tensor<8x8xf32>
    %m = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) attrs = {mlc.contraction} {
    ^bb0(%p: f32, %q: f32, %z: f32):
      %1 = arith.mulf %p, %q : f32
      %2 = arith.addf %z, %1 : f32
      linalg.yield %2 : f32
    } -> tensor<8x8xf32>
    %s = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel", "parallel"]}
        ins(%m, %r : tensor<8x8xf32>, tensor<8x8xf32>) outs(%o : tensor<8x8xf32>) {
    ^bb0(%p: f32, %q: f32, %z: f32):
      %1 = arith.addf %p, %q : f32
      linalg.yield %1 : f32
    } -> tensor<8x8xf32>
    return %s : tensor<8x8xf32>
  }
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#o = affine_map<(m, n, k) -> (m, n)>
#i = affine_map<(m, n) -> (m, n)>
#t = affine_map<(m, n) -> (n, m)>

// An addend that is read at other elements than the one that is stored stays where it is.
// CHECK-LABEL: func.func @transposed
// CHECK-NOT: mlc.over
func.func @transposed(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>, %r: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %a = mlc.launch @turned(%x, %w, %r) outs(%e) : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) outs(tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = mlc.launch @turned(%x, %w, %a) outs(%e) : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) outs(tensor<8x8xf32>) -> tensor<8x8xf32>
  return %b : tensor<8x8xf32>
}
module @turned attributes {mlc.kernel, mlc.schedule = [{block = 1 : i64, lanes = 8 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 4 : i64, template = "contraction", unroll = 4 : i64, vector_dim = 1 : i64, vectors = 1 : i64}]} {
  func.func @turned(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %r: tensor<8x8xf32>, %o: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<8x8xf32>) -> tensor<8x8xf32>
    %m = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%f : tensor<8x8xf32>) attrs = {mlc.contraction} {
    ^bb0(%p: f32, %q: f32, %z: f32):
      %1 = arith.mulf %p, %q : f32
      %2 = arith.addf %z, %1 : f32
      linalg.yield %2 : f32
    } -> tensor<8x8xf32>
    %s = linalg.generic {indexing_maps = [#i, #t, #i], iterator_types = ["parallel", "parallel"]}
        ins(%m, %r : tensor<8x8xf32>, tensor<8x8xf32>) outs(%o : tensor<8x8xf32>) {
    ^bb0(%p: f32, %q: f32, %z: f32):
      %1 = arith.addf %p, %q : f32
      linalg.yield %1 : f32
    } -> tensor<8x8xf32>
    return %s : tensor<8x8xf32>
  }
}

// -----

#x = affine_map<(m, n, k) -> (m + k, n)>
#w = affine_map<(m, n, k) -> (k, n)>
#o = affine_map<(m, n, k) -> (m, n)>
#i = affine_map<(m, n) -> (m, n)>

// Nor is an addend that the product reads padded, from inside of a condition.
// CHECK-LABEL: func.func @padded
// CHECK-NOT: mlc.over
func.func @padded(%x: tensor<8x8xf32>, %w: tensor<3x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %a = mlc.launch @windows(%x, %w) outs(%e) : (tensor<8x8xf32>, tensor<3x8xf32>) outs(tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = mlc.launch @windows(%a, %w) outs(%e) : (tensor<8x8xf32>, tensor<3x8xf32>) outs(tensor<8x8xf32>) -> tensor<8x8xf32>
  return %b : tensor<8x8xf32>
}
module @windows attributes {mlc.kernel, mlc.schedule = [{block = 1 : i64, lanes = 8 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 4 : i64, template = "contraction", unroll = 4 : i64, vector_dim = 1 : i64, vectors = 1 : i64}]} {
  func.func @windows(%a: tensor<8x8xf32>, %b: tensor<3x8xf32>, %o: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %zero = arith.constant 0.0 : f32
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %e = tensor.empty() : tensor<10x8xf32>
    %p = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<10x8xf32>) {
    ^bb0(%z: f32):
      %0 = linalg.index 0 : index
      %1 = arith.subi %0, %c1 : index
      %2 = arith.cmpi ult, %1, %c8 : index
      %3 = linalg.index 1 : index
      %4 = scf.if %2 -> (f32) {
        %5 = tensor.extract %a[%1, %3] : tensor<8x8xf32>
        scf.yield %5 : f32
      } else {
        scf.yield %zero : f32
      }
      linalg.yield %4 : f32
    } -> tensor<10x8xf32>
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<8x8xf32>) -> tensor<8x8xf32>
    %m = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%p, %b : tensor<10x8xf32>, tensor<3x8xf32>) outs(%f : tensor<8x8xf32>) attrs = {mlc.contraction} {
    ^bb0(%q: f32, %r: f32, %z: f32):
      %0 = arith.mulf %q, %r : f32
      %1 = arith.addf %z, %0 : f32
      linalg.yield %1 : f32
    } -> tensor<8x8xf32>
    %s = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel", "parallel"]}
        ins(%m, %a : tensor<8x8xf32>, tensor<8x8xf32>) outs(%o : tensor<8x8xf32>) {
    ^bb0(%q: f32, %r: f32, %z: f32):
      %0 = arith.addf %q, %r : f32
      linalg.yield %0 : f32
    } -> tensor<8x8xf32>
    return %s : tensor<8x8xf32>
  }
}
