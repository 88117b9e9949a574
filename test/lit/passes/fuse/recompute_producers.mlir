// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-recompute-producers)' | FileCheck %s

#all = affine_map<(i, j, k) -> (i, j, k)>
#across = affine_map<(i, j, k) -> (i, k)>

// A softmax over a middle that nobody keeps: the sum and the quotient get an exponential each, and a difference each for
// those.
// CHECK-LABEL: func.func @middle
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<8x9000x64xf32>, %[[M:[a-z0-9]+]]: tensor<8x64xf32>
// CHECK: %[[D0:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[M]] :
// CHECK: %[[E0:.*]] = linalg.generic {{.*}} ins(%[[D0]] :
// CHECK: math.exp
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[E0]] :
// CHECK: arith.addf
// CHECK: %[[D1:.*]] = linalg.generic {{.*}} ins(%[[X]], %[[M]] :
// CHECK: %[[E1:.*]] = linalg.generic {{.*}} ins(%[[D1]] :
// CHECK: math.exp
// CHECK: linalg.generic {{.*}} ins(%[[E1]], %[[S]] :
// CHECK: arith.divf
func.func @middle(%x: tensor<8x9000x64xf32>, %m: tensor<8x64xf32>, %o: tensor<8x9000x64xf32>, %z: tensor<8x64xf32>) -> tensor<8x9000x64xf32> {
  %d = linalg.generic {indexing_maps = [#all, #across, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %m : tensor<8x9000x64xf32>, tensor<8x64xf32>) outs(%o : tensor<8x9000x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<8x9000x64xf32>
  %e = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%d : tensor<8x9000x64xf32>) outs(%o : tensor<8x9000x64xf32>) {
  ^bb0(%a: f32, %c: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<8x9000x64xf32>
  %s = linalg.generic {indexing_maps = [#all, #across], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%e : tensor<8x9000x64xf32>) outs(%z : tensor<8x64xf32>) {
  ^bb0(%a: f32, %c: f32):
    %r = arith.addf %c, %a : f32
    linalg.yield %r : f32
  } -> tensor<8x64xf32>
  %y = linalg.generic {indexing_maps = [#all, #across, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e, %s : tensor<8x9000x64xf32>, tensor<8x64xf32>) outs(%o : tensor<8x9000x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<8x9000x64xf32>
  return %y : tensor<8x9000x64xf32>
}

// -----

#all = affine_map<(i, j, k) -> (i, j, k)>
#across = affine_map<(i, j, k) -> (i, k)>

// Threads keep shorter columns: all of it is one kernel.
// CHECK-LABEL: func.func @kept
// CHECK-COUNT-1: math.exp
// CHECK-NOT: math.exp
func.func @kept(%x: tensor<8x100x64xf32>, %m: tensor<8x64xf32>, %o: tensor<8x100x64xf32>, %z: tensor<8x64xf32>) -> tensor<8x100x64xf32> {
  %d = linalg.generic {indexing_maps = [#all, #across, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %m : tensor<8x100x64xf32>, tensor<8x64xf32>) outs(%o : tensor<8x100x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<8x100x64xf32>
  %e = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%d : tensor<8x100x64xf32>) outs(%o : tensor<8x100x64xf32>) {
  ^bb0(%a: f32, %c: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<8x100x64xf32>
  %s = linalg.generic {indexing_maps = [#all, #across], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%e : tensor<8x100x64xf32>) outs(%z : tensor<8x64xf32>) {
  ^bb0(%a: f32, %c: f32):
    %r = arith.addf %c, %a : f32
    linalg.yield %r : f32
  } -> tensor<8x64xf32>
  %y = linalg.generic {indexing_maps = [#all, #across, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e, %s : tensor<8x100x64xf32>, tensor<8x64xf32>) outs(%o : tensor<8x100x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<8x100x64xf32>
  return %y : tensor<8x100x64xf32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Along rows all of it is one kernel, which reads a row once.
// CHECK-LABEL: func.func @rows
// CHECK-COUNT-1: math.exp
// CHECK-NOT: math.exp
func.func @rows(%x: tensor<64x100xf32>, %o: tensor<64x100xf32>, %z: tensor<64xf32>) -> tensor<64x100xf32> {
  %e = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x100xf32>) outs(%o : tensor<64x100xf32>) {
  ^bb0(%a: f32, %c: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<64x100xf32>
  %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%e : tensor<64x100xf32>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: f32, %c: f32):
    %r = arith.addf %c, %a : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
      ins(%e, %s : tensor<64x100xf32>, tensor<64xf32>) outs(%o : tensor<64x100xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<64x100xf32>
  return %y : tensor<64x100xf32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// A product of two tensors for four readers costs more than its result: it is written once.
// CHECK-LABEL: func.func @many
// CHECK-COUNT-1: arith.mulf
// CHECK-NOT: arith.mulf
func.func @many(%x: tensor<64x100xf32>, %w: tensor<64x100xf32>, %o: tensor<64x100xf32>, %z: tensor<100xf32>) -> (tensor<100xf32>, tensor<64x100xf32>, tensor<64x100xf32>, tensor<64x100xf32>) {
  %e = linalg.generic {indexing_maps = [#all, #all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x, %w : tensor<64x100xf32>, tensor<64x100xf32>) outs(%o : tensor<64x100xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.mulf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<64x100xf32>
  %s = linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%e : tensor<64x100xf32>) outs(%z : tensor<100xf32>) {
  ^bb0(%a: f32, %c: f32):
    %r = arith.addf %c, %a : f32
    linalg.yield %r : f32
  } -> tensor<100xf32>
  %y0 = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]}
      ins(%e, %s : tensor<64x100xf32>, tensor<100xf32>) outs(%o : tensor<64x100xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.divf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<64x100xf32>
  %y1 = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]}
      ins(%e, %s : tensor<64x100xf32>, tensor<100xf32>) outs(%o : tensor<64x100xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<64x100xf32>
  %y2 = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]}
      ins(%e, %s : tensor<64x100xf32>, tensor<100xf32>) outs(%o : tensor<64x100xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %r = arith.maximumf %a, %b : f32
    linalg.yield %r : f32
  } -> tensor<64x100xf32>
  return %s, %y0, %y1, %y2 : tensor<100xf32>, tensor<64x100xf32>, tensor<64x100xf32>, tensor<64x100xf32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
#left = affine_map<(i, j, k) -> (i, k)>
#right = affine_map<(i, j, k) -> (k, j)>
#out = affine_map<(i, j, k) -> (i, j)>

// The end of a product is part of its kernel, whoever reads it.
// CHECK-LABEL: func.func @epilogue
// CHECK-COUNT-1: math.exp
// CHECK-NOT: math.exp
func.func @epilogue(%a: tensor<64x32xf32>, %b: tensor<32x100xf32>, %o: tensor<64x100xf32>, %z: tensor<100xf32>) -> tensor<64x100xf32> {
  %p = linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<64x32xf32>, tensor<32x100xf32>) outs(%o : tensor<64x100xf32>) attrs = {mlc.contraction} {
  ^bb0(%u: f32, %v: f32, %w: f32):
    %m = arith.mulf %u, %v : f32
    %r = arith.addf %w, %m : f32
    linalg.yield %r : f32
  } -> tensor<64x100xf32>
  %e = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%p : tensor<64x100xf32>) outs(%o : tensor<64x100xf32>) {
  ^bb0(%u: f32, %c: f32):
    %r = math.exp %u : f32
    linalg.yield %r : f32
  } -> tensor<64x100xf32>
  %s = linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%e : tensor<64x100xf32>) outs(%z : tensor<100xf32>) {
  ^bb0(%u: f32, %c: f32):
    %r = arith.addf %c, %u : f32
    linalg.yield %r : f32
  } -> tensor<100xf32>
  %y = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]}
      ins(%e, %s : tensor<64x100xf32>, tensor<100xf32>) outs(%o : tensor<64x100xf32>) {
  ^bb0(%u: f32, %v: f32, %c: f32):
    %r = arith.divf %u, %v : f32
    linalg.yield %r : f32
  } -> tensor<64x100xf32>
  return %y : tensor<64x100xf32>
}

// -----

#all = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// What is returned is read by nothing that sums up; the sum behind it decides.
// CHECK-LABEL: func.func @returned
// CHECK-COUNT-2: math.exp
// CHECK-NOT: math.exp
func.func @returned(%x: tensor<64x100xf32>, %o: tensor<64x100xf32>, %z: tensor<100xf32>) -> (tensor<64x100xf32>, tensor<100xf32>) {
  %e = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x100xf32>) outs(%o : tensor<64x100xf32>) {
  ^bb0(%u: f32, %c: f32):
    %r = math.exp %u : f32
    linalg.yield %r : f32
  } -> tensor<64x100xf32>
  %n = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%e : tensor<64x100xf32>) outs(%o : tensor<64x100xf32>) {
  ^bb0(%u: f32, %c: f32):
    %r = arith.negf %u : f32
    linalg.yield %r : f32
  } -> tensor<64x100xf32>
  %s = linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]}
      ins(%e : tensor<64x100xf32>) outs(%z : tensor<100xf32>) {
  ^bb0(%u: f32, %c: f32):
    %r = arith.addf %c, %u : f32
    linalg.yield %r : f32
  } -> tensor<100xf32>
  return %n, %s : tensor<64x100xf32>, tensor<100xf32>
}
