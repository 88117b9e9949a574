// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-expand-kernels,canonicalize,cse)' | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>

// CHECK: module @k0 attributes {mlc.kernel, mlc.schedule
// CHECK: func.func @k0(%[[A:.*]]: memref<f32> {llvm.noalias}, %[[O:.*]]: memref<f32> {llvm.noalias}, %[[NA:.*]]: index, %[[NO:.*]]: index, %{{.*}}: memref<2xi64>, %[[B:.*]]: index, %[[E:.*]]: index)
// CHECK: scf.for %{{.*}} = %[[B]] to %[[E]]
// CHECK: vector.load {{.*}} vector<16xf32>
// CHECK: vector.store
// A row of 20 is one vector and a masked tail of four.
// CHECK: vector.maskedload
// CHECK: vector.maskedstore
// CHECK: func.func @k0_grid(%{{.*}}: index, %[[N:.*]]: index) -> index
// CHECK: return %[[N]]
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{block = 0 : i64, first = 1 : i64, grid = 1 : i64, lanes = 16 : i64, last = 1 : i64, template = "loops"}]} {
  func.func @k0(%a: tensor<?x20xf32>, %o: tensor<?x20xf32>) -> tensor<?x20xf32> {
    %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<?x20xf32>) outs(%o : tensor<?x20xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.negf %x : f32
      linalg.yield %r : f32
    } -> tensor<?x20xf32>
    return %s : tensor<?x20xf32>
  }
}
}

// -----

// Two rows by two vectors of accumulators are carried through the reduction, and the epilogue runs before the store.
// CHECK: module @k1 attributes {mlc.kernel, mlc.laid_out, mlc.schedule
// CHECK: scf.for
// CHECK: %[[SUM:.*]]:4 = scf.for {{.*}} iter_args
// CHECK-COUNT-4: vector.fma
// CHECK: scf.yield
// CHECK: arith.negf %[[SUM]]#0
// CHECK: vector.store
module {
module @k1 attributes {mlc.kernel, mlc.schedule = [{block = 1 : i64, lanes = 16 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 2 : i64, template = "contraction", unroll = 1 : i64, vector_dim = 1 : i64, vectors = 2 : i64}]} {
  func.func @k1(%a: tensor<4x5xf32>, %b: tensor<5x32xf32>, %o: tensor<4x32xf32>) -> tensor<4x32xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4x32xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32xf32>) -> tensor<4x32xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<4x5xf32>, tensor<5x32xf32>) outs(%f : tensor<4x32xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<4x32xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        ins(%m : tensor<4x32xf32>) outs(%o : tensor<4x32xf32>) {
    ^bb0(%x: f32, %y: f32):
      %n = arith.negf %x : f32
      linalg.yield %n : f32
    } -> tensor<4x32xf32>
    return %r : tensor<4x32xf32>
  }
}
}

// -----

// What is fetched is the last element of a piece: an input that begins within a line of the cache has each piece in two,
// of which the piece before fetches the first one.
// CHECK: module @fetching
// CHECK: %[[LAST:.*]] = arith.constant 15 : index
// CHECK: %[[COLUMN:.*]] = arith.addi %{{.*}}, %[[LAST]] overflow<nsw> : index
// CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[COLUMN]] overflow<nsw> : index
// CHECK: memref.prefetch %{{.*}}[%[[AT]]], read
module {
module @fetching attributes {mlc.kernel, mlc.schedule = [{ahead = 1 : i64, argument = 0 : i64, block = 64 : i64, down = 1 : i64, height = 64 : i64, lanes = 16 : i64, line = 16 : i64, piece = 4 : i64, read_dim = 0 : i64, read_first = 0 : i64, stream = 0 : i64, template = "transpose", write_dim = 1 : i64, write_first = 1 : i64}]} {
  func.func @fetching(%a: tensor<64x64xf32>, %o: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<64x64xf32>) outs(%o : tensor<64x64xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<64x64xf32>
    return %s : tensor<64x64xf32>
  }
}
}

// -----

// Lines of the result are fetched to be written: of the next square's, which begin anywhere, the later ones of the two
// that a vector lies in.
// CHECK: module @claiming
// CHECK-COUNT-16: memref.prefetch %{{.*}}[%{{.*}}], write, locality<3>, data
// CHECK-NOT: memref.prefetch
module {
module @claiming attributes {mlc.kernel, mlc.schedule = [{ahead = 0 : i64, argument = 0 : i64, block = 0 : i64, claim = 1 : i64, down = 0 : i64, height = 0 : i64, lanes = 16 : i64, line = 16 : i64, piece = 4 : i64, read_dim = 0 : i64, read_first = 0 : i64, stream = 0 : i64, template = "transpose", write_dim = 1 : i64, write_first = 1 : i64}]} {
  func.func @claiming(%a: tensor<66x64xf32>, %o: tensor<64x66xf32>) -> tensor<64x66xf32> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<66x64xf32>) outs(%o : tensor<64x66xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<64x66xf32>
    return %s : tensor<64x66xf32>
  }
}
}
