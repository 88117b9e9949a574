// RUN: mlc-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(mlc-expand-gpu-kernels,canonicalize,cse)' | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// An item is a vector of the flattened domain; what is left over is done by the last item, element by element.
// CHECK: module @k0
// CHECK: func.func @k0(%{{.*}}: memref<f32> {llvm.noalias}, %{{.*}}: memref<f32> {llvm.noalias}, %[[N:.*]]: index, %{{.*}}: index, %{{.*}}: memref<2xi64>, %[[B:.*]]: index, %[[E:.*]]: index)
// CHECK: scf.for %{{.*}} = %[[B]] to %[[E]]
// CHECK: scf.if
// CHECK: vector.load {{.*}} {alignment = 16 : i64} {{.*}} vector<4xf32>
// CHECK: vector.store {{.*}} {alignment = 16 : i64}
// CHECK: } else {
// CHECK: scf.for
// CHECK: memref.load
// CHECK: func.func @k0_grid
// CHECK: arith.divui
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{first = 0 : i64, lanes = 4 : i64, last = 1 : i64, template = "elementwise", threads = 256 : i64}]} {
  func.func @k0(%a: tensor<?x6xf32>, %o: tensor<?x6xf32>) -> tensor<?x6xf32> {
    %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<?x6xf32>) outs(%o : tensor<?x6xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.negf %x : f32
      linalg.yield %r : f32
    } -> tensor<?x6xf32>
    return %s : tensor<?x6xf32>
  }
}
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// Sixteen threads share a row: each has one vector, partial sums meet by shuffles at distances 1, 2, 4 and 8.
// CHECK: module @k1
// CHECK: nvvm.read.ptx.sreg.tid.x
// CHECK: vector.load {{.*}} {alignment = 16 : i64}
// CHECK: vector.reduction <add>
// CHECK-COUNT-4: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl.sync
// CHECK: arith.subf
// CHECK: vector.store {{.*}} {alignment = 16 : i64}
module {
module @k1 attributes {mlc.kernel, mlc.schedule = [{first = 1 : i64, group = 16 : i64, lanes = 4 : i64, template = "rows", threads = 128 : i64}]} {
  func.func @k1(%a: tensor<?x64xf32>, %n: index, %o: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty(%n) : tensor<?xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
    %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<?x64xf32>) outs(%f : tensor<?xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<?xf32>
    %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a, %s : tensor<?x64xf32>, tensor<?xf32>) outs(%o : tensor<?x64xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %r = arith.subf %x, %y : f32
      linalg.yield %r : f32
    } -> tensor<?x64xf32>
    return %d : tensor<?x64xf32>
  }
}
}

// -----

// A block of 512 threads: the sixteen warps meet in shared memory, and one thread writes. An i64 travels as two halves.
// CHECK: module @k2
// CHECK: memref.global "private" @[[SHARED:.*]] : memref<16xi64, 3>
// CHECK-COUNT-10: nvvm.shfl.sync bfly
// CHECK: %[[S:.*]] = memref.get_global @[[SHARED]]
// CHECK-NOT: nvvm.barrier0
// CHECK: memref.store %{{.*}}, %[[S]]
// CHECK: nvvm.barrier0
// CHECK-COUNT-16: memref.load %[[S]]
// CHECK: scf.if
// CHECK: memref.store
module {
module @k2 attributes {mlc.kernel, mlc.schedule = [{first = 0 : i64, group = 512 : i64, lanes = 1 : i64, template = "rows", threads = 512 : i64}]} {
  func.func @k2(%a: tensor<?xi64>, %o: tensor<i64>) -> tensor<i64> {
    %zero = arith.constant 0 : i64
    %f = linalg.fill ins(%zero : i64) outs(%o : tensor<i64>) -> tensor<i64>
    %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
        ins(%a : tensor<?xi64>) outs(%f : tensor<i64>) {
    ^bb0(%x: i64, %y: i64):
      %r = arith.addi %y, %x : i64
      linalg.yield %r : i64
    } -> tensor<i64>
    return %s : tensor<i64>
  }
}
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// Two rows and one access of four columns a thread; two threads share them, and the first adds the parts. Rows and columns
// beyond the output are its last ones: nothing is tested.
// CHECK: module @k4
// CHECK: memref.global "private" @[[PARTS:.*]] : memref<2048xf32, 3>
// CHECK: arith.minsi
// CHECK: %[[SUM:.*]]:2 = scf.for {{.*}} iter_args
// CHECK: vector.load {{.*}} {alignment = 16 : i64}
// CHECK-COUNT-2: arith.mulf {{.*}} vector<4xf32>
// CHECK: %[[S:.*]] = memref.get_global @[[PARTS]]
// CHECK-COUNT-2: vector.store %[[SUM]]#{{.}}, %[[S]]
// CHECK: nvvm.barrier0
// CHECK: scf.if
// CHECK-COUNT-4: vector.load %[[S]]
// CHECK: arith.negf
// CHECK: vector.store
module {
module @k4 attributes {mlc.kernel, mlc.schedule = [{block_columns = 32 : i64, columns = 1 : i64, lanes = 4 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 2 : i64, split = 2 : i64, template = "contraction", threads = 256 : i64, unroll = 1 : i64, vector_dim = 1 : i64}]} {
  func.func @k4(%a: tensor<5x7xf32>, %b: tensor<7x12xf32>, %o: tensor<5x12xf32>) -> tensor<5x12xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<5x12xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<5x12xf32>) -> tensor<5x12xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<5x7xf32>, tensor<7x12xf32>) outs(%f : tensor<5x12xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<5x12xf32>
    %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%m : tensor<5x12xf32>) outs(%o : tensor<5x12xf32>) {
    ^bb0(%x: f32, %y: f32):
      %n = arith.negf %x : f32
      linalg.yield %n : f32
    } -> tensor<5x12xf32>
    return %r : tensor<5x12xf32>
  }
}
}

// -----

#id = affine_map<(i, j) -> (i, j)>

// A block of 1024 threads does 32 x 32 elements, one a thread: read along the input's rows, written along the result's. What
// is read with them is read where it is needed.
// CHECK: module @k5
// CHECK: memref.global "private" @[[SQUARE:.*]] : memref<1056xf32, 3>
// CHECK: %[[S:.*]] = memref.get_global @[[SQUARE]]
// CHECK: %[[X:.*]] = memref.load %{{.*}} : memref<2000xf32>
// CHECK: memref.store %[[X]], %[[S]]
// CHECK: nvvm.barrier0
// CHECK: %[[T:.*]] = memref.load %[[S]]
// CHECK: %[[B:.*]] = memref.load %{{.*}} : memref<50xf32>
// CHECK: arith.addf %[[T]], %[[B]]
module {
module @k5 attributes {mlc.kernel, mlc.schedule = [{argument = 0 : i64, read_dim = 0 : i64, template = "transpose", threads = 1024 : i64, tile = 32 : i64, write_dim = 1 : i64}]} {
  func.func @k5(%a: tensor<40x50xf32>, %b: tensor<50xf32>, %o: tensor<50x40xf32>) -> tensor<50x40xf32> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a, %b : tensor<40x50xf32>, tensor<50xf32>) outs(%o : tensor<50x40xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %r = arith.addf %x, %y : f32
      linalg.yield %r : f32
    } -> tensor<50x40xf32>
    return %s : tensor<50x40xf32>
  }
}
}

// -----

#row = affine_map<(i, j) -> (i)>

// Four threads share four columns: every fourth row each, eight at a time, of which those behind the end do not count;
// then all of them combine the parts; the first writes.
// CHECK: module @k6
// CHECK: memref.global "private" @[[PARTS:.*]] : memref<1024xf32, 3>
// CHECK: scf.for %{{.*}} = %c0 to %c50 step %c28 iter_args
// CHECK: arith.cmpi ult, %{{.*}}, %c50
// CHECK: vector.load {{.*}} {alignment = 16 : i64} : memref<1800xf32>, vector<4xf32>
// CHECK: arith.select {{.*}} vector<4xf32>
// CHECK: nvvm.barrier0
// CHECK: vector.store {{.*}} memref<1024xf32, 3>
// CHECK: nvvm.barrier0
// CHECK-COUNT-4: vector.load {{.*}} memref<1024xf32, 3>
// CHECK: scf.if
// CHECK: vector.store {{.*}} memref<36xf32>
module {
module @k6 attributes {mlc.kernel, mlc.schedule = [{first = 0 : i64, lanes = 4 : i64, last = 0 : i64, split = 4 : i64, template = "columns", threads = 256 : i64}]} {
  func.func @k6(%a: tensor<50x36xf32>, %o: tensor<36xf32>) -> tensor<36xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<36xf32>) -> tensor<36xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<50x36xf32>) outs(%f : tensor<36xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<36xf32>
    return %s : tensor<36xf32>
  }
}
}

// -----

// expected-error@below {{node 'decoder/Exp': exp of float64 has no GPU kernel}}
module {
module @k3 attributes {mlc.kernel, mlc.schedule = [{first = 0 : i64, lanes = 2 : i64, last = 0 : i64, template = "elementwise", threads = 256 : i64}]} {
  func.func @k3(%a: tensor<8xf64>, %o: tensor<8xf64>) -> tensor<8xf64> {
    %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%a : tensor<8xf64>) outs(%o : tensor<8xf64>) {
    ^bb0(%x: f64, %y: f64):
      %r = math.exp %x : f64 loc("decoder/Exp")
      linalg.yield %r : f64
    } -> tensor<8xf64>
    return %s : tensor<8xf64>
  }
}
}
