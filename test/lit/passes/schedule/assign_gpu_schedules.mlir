// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-gpu-schedules)' | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// A contiguous box is walked as one dimension, 16 bytes a thread.
// CHECK: module @box
// CHECK-SAME: first = 0 : i64, lanes = 4 : i64, last = 1 : i64, rows = 1 : i64, template = "elementwise", threads = 256 : i64
module @box attributes {mlc.kernel} {
  func.func @box(%a: tensor<?x6xf32>, %o: tensor<?x6xf32>) -> tensor<?x6xf32> {
    %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<?x6xf32>) outs(%o : tensor<?x6xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.negf %x : f32
      linalg.yield %r : f32
    } -> tensor<?x6xf32>
    return %s : tensor<?x6xf32>
  }
}

// Eight elements of f16 are 16 bytes; rows of 20 are multiples of four only, and a broadcast operand keeps them apart.
// CHECK: module @halves
// CHECK-SAME: first = 1 : i64, lanes = 4 : i64, last = 1 : i64, rows = 1 : i64, template = "elementwise"
module @halves attributes {mlc.kernel} {
  func.func @halves(%a: tensor<?x20xf16>, %b: tensor<20xf16>, %o: tensor<?x20xf16>) -> tensor<?x20xf16> {
    %s = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (j)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a, %b : tensor<?x20xf16>, tensor<20xf16>) outs(%o : tensor<?x20xf16>) {
    ^bb0(%x: f16, %y: f16, %z: f16):
      %r = arith.addf %x, %y : f16
      linalg.yield %r : f16
    } -> tensor<?x20xf16>
    return %s : tensor<?x20xf16>
  }
}

// As many numbers of words as rows are few beside their vectors, whatever their number: vectors have eight elements.
// CHECK: module @words
// CHECK-SAME: first = 1 : i64, lanes = 8 : i64, last = 1 : i64, rows = 1 : i64, template = "elementwise"
module @words attributes {mlc.kernel} {
  func.func @words(%a: tensor<?xi64>, %b: tensor<100x64xf16>, %o: tensor<?x64xf16>) -> tensor<?x64xf16> {
    %s = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<?xi64>) outs(%o : tensor<?x64xf16>) {
    ^bb0(%n: i64, %z: f16):
      %i = arith.index_cast %n : i64 to index
      %j = linalg.index 1 : index
      %r = tensor.extract %b[%i, %j] : tensor<100x64xf16>
      linalg.yield %r : f16
    } -> tensor<?x64xf16>
    return %s : tensor<?x64xf16>
  }
}

// Many rows of 1001: vectors go on in the next row, and elements of the broadcast operand are read one by one.
// CHECK: module @across
// CHECK-SAME: first = 0 : i64, flat = 1 : i64, lanes = 8 : i64, last = 1 : i64, template = "elementwise"
module @across attributes {mlc.kernel} {
  func.func @across(%a: tensor<4000x1001xf16>, %b: tensor<1001xf16>, %o: tensor<4000x1001xf16>) -> tensor<4000x1001xf16> {
    %s = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (j)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a, %b : tensor<4000x1001xf16>, tensor<1001xf16>) outs(%o : tensor<4000x1001xf16>) {
    ^bb0(%x: f16, %y: f16, %z: f16):
      %r = arith.addf %x, %y : f16
      linalg.yield %r : f16
    } -> tensor<4000x1001xf16>
    return %s : tensor<4000x1001xf16>
  }
}

// Rows of unknown length behind a broadcast start anywhere: no vectors.
// CHECK: module @ragged
// CHECK-SAME: first = 1 : i64, lanes = 1 : i64, last = 1 : i64, rows = 1 : i64, template = "elementwise"
module @ragged attributes {mlc.kernel} {
  func.func @ragged(%a: tensor<?x?xf32>, %b: tensor<?xf32>, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
    %s = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (j)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a, %b : tensor<?x?xf32>, tensor<?xf32>) outs(%o : tensor<?x?xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %r = arith.addf %x, %y : f32
      linalg.yield %r : f32
    } -> tensor<?x?xf32>
    return %s : tensor<?x?xf32>
  }
}

// A row of 64 has 16 accesses: with two for a thread, 8 threads share it. The row's dimension is an output dimension too.
// CHECK: module @centre
// CHECK-SAME: first = 1 : i64, group = 8 : i64, kept = 2 : i64, lanes = 4 : i64, template = "rows", threads = 128 : i64
module @centre attributes {mlc.kernel} {
  func.func @centre(%a: tensor<?x64xf32>, %n: index, %o: tensor<?x64xf32>) -> tensor<?x64xf32> {
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

// Few long rows: eight blocks share each.
// CHECK: module @few_rows
// CHECK-SAME: cluster = 8 : i64, early = 1 : i64, first = 1 : i64, group = 256 : i64, kept = 5 : i64, lanes = 4 : i64
module @few_rows attributes {mlc.kernel} {
  func.func @few_rows(%a: tensor<3x40000xf32>, %o: tensor<3x40000xf32>) -> tensor<3x40000xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<3xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
    %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<3x40000xf32>) outs(%f : tensor<3xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<3xf32>
    %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a, %s : tensor<3x40000xf32>, tensor<3xf32>) outs(%o : tensor<3x40000xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %r = arith.subf %x, %y : f32
      linalg.yield %r : f32
    } -> tensor<3x40000xf32>
    return %d : tensor<3x40000xf32>
  }
}

// Rows that no block keeps in registers: two blocks have one in shared memory.
// CHECK: module @long_rows
// CHECK-SAME: cluster = 2 : i64, early = 1 : i64, first = 1 : i64, group = 320 : i64, kept = 0 : i64, lanes = 4 : i64, odd = 1 : i64, staged = 1 : i64
module @long_rows attributes {mlc.kernel} {
  func.func @long_rows(%a: tensor<1000x50257xf32>, %o: tensor<1000x50257xf32>) -> tensor<1000x50257xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<1000xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1000xf32>) -> tensor<1000xf32>
    %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<1000x50257xf32>) outs(%f : tensor<1000xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<1000xf32>
    %d = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a, %s : tensor<1000x50257xf32>, tensor<1000xf32>) outs(%o : tensor<1000x50257xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %r = arith.subf %x, %y : f32
      linalg.yield %r : f32
    } -> tensor<1000x50257xf32>
    return %d : tensor<1000x50257xf32>
  }
}

// One row of unknown length gets a block.
// CHECK: module @total
// CHECK-SAME: first = 0 : i64, group = 1024 : i64, kept = 0 : i64, lanes = 1 : i64, template = "rows", threads = 1024 : i64
module @total attributes {mlc.kernel} {
  func.func @total(%a: tensor<?xf32>, %o: tensor<f32>) -> tensor<f32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<f32>) -> tensor<f32>
    %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
        ins(%a : tensor<?xf32>) outs(%f : tensor<f32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<f32>
    return %s : tensor<f32>
  }
}

// Nine threads for 36 columns leave the chip idle: 16 threads share them.
// CHECK: module @columns
// CHECK-SAME: first = 0 : i64, lanes = 4 : i64, last = 0 : i64, split = 16 : i64, template = "columns", threads = 256 : i64
module @columns attributes {mlc.kernel} {
  func.func @columns(%a: tensor<50x36xf32>, %o: tensor<36xf32>) -> tensor<36xf32> {
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

// Threads with a column each would be enough, but sixteen that share one read more of a row at a time.
// CHECK: module @many_columns
// CHECK-SAME: first = 0 : i64, lanes = 4 : i64, last = 0 : i64, split = 16 : i64, template = "columns", threads = 256 : i64
module @many_columns attributes {mlc.kernel} {
  func.func @many_columns(%a: tensor<64x1000000xf32>, %o: tensor<1000000xf32>) -> tensor<1000000xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1000000xf32>) -> tensor<1000000xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<64x1000000xf32>) outs(%f : tensor<1000000xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<1000000xf32>
    return %s : tensor<1000000xf32>
  }
}

// Short columns are a thread's.
// CHECK: module @short_columns
// CHECK-SAME: first = 0 : i64, lanes = 4 : i64, last = 0 : i64, rows = 1 : i64, template = "elementwise", threads = 256 : i64
module @short_columns attributes {mlc.kernel} {
  func.func @short_columns(%a: tensor<40x1000000xf32>, %o: tensor<1000000xf32>) -> tensor<1000000xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1000000xf32>) -> tensor<1000000xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<40x1000000xf32>) outs(%f : tensor<1000000xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<1000000xf32>
    return %s : tensor<1000000xf32>
  }
}

// Rows are whatever the right operand does not have. 16 rows do not fill the chip: 32 threads share a tile, eight columns wide.
// CHECK: module @product
// CHECK-SAME: block_columns = 8 : i64, blocks = 2 : i64, columns = 1 : i64, early = 1 : i64, lanes = 4 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 8 : i64, split = 32 : i64, template = "contraction", threads = 256 : i64, unroll = 4 : i64, vector_dim = 1 : i64
module @product attributes {mlc.kernel} {
  func.func @product(%a: tensor<16x4096xf32>, %b: tensor<4096x4096xf32>, %o: tensor<16x4096xf32>) -> tensor<16x4096xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<16x4096xf32>) -> tensor<16x4096xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<16x4096xf32>, tensor<4096x4096xf32>) outs(%f : tensor<16x4096xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<16x4096xf32>
    return %m : tensor<16x4096xf32>
  }
}

// Both operands are contiguous along the reduction, with few rows: two warps for every element of the result.
// CHECK: module @transposed
// CHECK-SAME: first = 2 : i64, group = 64 : i64, kept = 1 : i64, lanes = 4 : i64, template = "rows"
module @transposed attributes {mlc.kernel} {
  func.func @transposed(%a: tensor<8x256xf32>, %b: tensor<30x256xf32>, %o: tensor<8x30xf32>) -> tensor<8x30xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<8x30xf32>) -> tensor<8x30xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<8x256xf32>, tensor<30x256xf32>) outs(%f : tensor<8x30xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<8x30xf32>
    return %m : tensor<8x30xf32>
  }
}

// CHECK: module @places
// CHECK-SAME: mlc.schedule = [{early = 1 : i64, template = "nonzero", threads = 32 : i64}]
module @places attributes {mlc.kernel} {
  func.func @places(%a: tensor<4x8xf32>, %o: tensor<2x?xi64>) -> tensor<2x?xi64> {
    %0 = mlc.nonzero %a : tensor<4x8xf32> -> tensor<2x?xi64>
    return %0 : tensor<2x?xi64>
  }
}

// The input is contiguous along the results' first dimension: squares through shared memory.
// CHECK: module @turned
// CHECK-SAME: argument = 0 : i64, early = 1 : i64, lanes = 1 : i64, read_dim = 0 : i64, template = "transpose", threads = 256 : i64, tile = 64 : i64, write_dim = 1 : i64
module @turned attributes {mlc.kernel} {
  func.func @turned(%a: tensor<?x100xf32>, %b: tensor<100xf32>, %o: tensor<100x?xf32>) -> tensor<100x?xf32> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #row, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a, %b : tensor<?x100xf32>, tensor<100xf32>) outs(%o : tensor<100x?xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %r = arith.addf %x, %y : f32
      linalg.yield %r : f32
    } -> tensor<100x?xf32>
    return %s : tensor<100x?xf32>
  }
}

// Tensor cores: few tiles are small ones, with many stages.
// CHECK: module @small
// CHECK-SAME: element = "bf16", group = 256 : i64, lanes = 8 : i64, multiprocessors = 132 : i64, pairs = 2 : i64, raster = 8 : i64, stages = 9 : i64, template = "hopper_contraction", threads = 256 : i64, tile_columns = 32 : i64, tile_rows = 64 : i64
module @small attributes {mlc.kernel} {
  func.func @small(%arg0: tensor<128x768xbf16>, %arg1: tensor<768x768xbf16>, %arg2: tensor<768xf32>, %arg3: tensor<128x768xbf16>) -> tensor<128x768xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<128x768xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<128x768xf32>) -> tensor<128x768xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<128x768xbf16>, tensor<768x768xbf16>) outs(%1 : tensor<128x768xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<128x768xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<128x768xf32>, tensor<768xf32>) outs(%arg3 : tensor<128x768xbf16>) {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %4 = arith.addf %in, %in_0 : f32
      %5 = arith.truncf %4 : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<128x768xbf16>
    return %3 : tensor<128x768xbf16>
  }
}

// Of small matrices, of which there are many, a block has a warp whose threads have a small tile each.
// CHECK: module @small_matrices
// CHECK-SAME: block_columns = 4 : i64
// CHECK-SAME: rows = 2 : i64, split = 1 : i64
// CHECK-SAME: template = "contraction", threads = 32 : i64
module @small_matrices attributes {mlc.kernel} {
  func.func @small_matrices(%a: tensor<900x16x6xf32>, %b: tensor<900x6x16xf32>, %o: tensor<900x16x16xf32>) -> tensor<900x16x16xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<900x16x16xf32>) -> tensor<900x16x16xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<900x16x6xf32>, tensor<900x6x16xf32>) outs(%f : tensor<900x16x16xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<900x16x16xf32>
    return %m : tensor<900x16x16xf32>
  }
}

// Several tiles for a multiprocessor, whose operands both lie along the sum: two groups have them in turns.
// CHECK: module @several
// CHECK-SAME: consumers = 2 : i64
// CHECK-SAME: template = "hopper_contraction", threads = 384 : i64, tile_columns = 128 : i64, tile_rows = 192 : i64, turns = 2 : i64
module @several attributes {mlc.kernel} {
  func.func @several(%arg0: tensor<4096x768xbf16>, %arg1: tensor<2304x768xbf16>, %arg2: tensor<4096x2304xbf16>) -> tensor<4096x2304xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<4096x2304xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<4096x2304xf32>) -> tensor<4096x2304xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<4096x768xbf16>, tensor<2304x768xbf16>) outs(%1 : tensor<4096x2304xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<4096x2304xf32>
    %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<4096x2304xf32>) outs(%arg2 : tensor<4096x2304xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %4 = arith.truncf %in : f32 to bf16
      linalg.yield %4 : bf16
    } -> tensor<4096x2304xbf16>
    return %3 : tensor<4096x2304xbf16>
  }
}

// 431 rows are four times 112, but seven times 64: the operands change places. Rows begin within cache lines, so that two
// blocks copy for each other.
// CHECK: module @few_wide_rows
// CHECK-SAME: cluster_columns = 2 : i64
// CHECK-SAME: tile_columns = 112 : i64, tile_rows = 192 : i64, turned = 1 : i64
module @few_wide_rows attributes {mlc.kernel} {
  func.func @few_wide_rows(%arg0: tensor<431x1952xbf16>, %arg1: tensor<1952x6136xbf16>, %arg2: tensor<431x6136xbf16>) -> tensor<431x6136xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<431x6136xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<431x6136xf32>) -> tensor<431x6136xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<431x1952xbf16>, tensor<1952x6136xbf16>) outs(%1 : tensor<431x6136xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<431x6136xf32>
    %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<431x6136xf32>) outs(%arg2 : tensor<431x6136xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %4 = arith.truncf %in : f32 to bf16
      linalg.yield %4 : bf16
    } -> tensor<431x6136xbf16>
    return %3 : tensor<431x6136xbf16>
  }
}

// Long sums of whole lines: tiles of 80 columns are one for nearly every multiprocessor.
// CHECK: module @long_sums
// CHECK-SAME: tile_columns = 80 : i64, tile_rows = 128 : i64}
module @long_sums attributes {mlc.kernel} {
  func.func @long_sums(%arg0: tensor<505x5440xbf16>, %arg1: tensor<2560x5440xbf16>, %arg2: tensor<505x2560xbf16>) -> tensor<505x2560xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<505x2560xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<505x2560xf32>) -> tensor<505x2560xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<505x5440xbf16>, tensor<2560x5440xbf16>) outs(%1 : tensor<505x2560xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<505x2560xf32>
    %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<505x2560xf32>) outs(%arg2 : tensor<505x2560xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %4 = arith.truncf %in : f32 to bf16
      linalg.yield %4 : bf16
    } -> tensor<505x2560xbf16>
    return %3 : tensor<505x2560xbf16>
  }
}

// A tile is copied for the four blocks below each other; blocks of such a cluster share no tile.
// CHECK: module @many_rows
// CHECK-SAME: cluster_rows = 4 : i64
// CHECK-NOT: split
// CHECK-SAME: tile_columns = 128 : i64, tile_rows = 64 : i64
module @many_rows attributes {mlc.kernel} {
  func.func @many_rows(%arg0: tensor<2287x5488xbf16>, %arg1: tensor<384x5488xbf16>, %arg2: tensor<2287x384xbf16>) -> tensor<2287x384xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2287x384xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2287x384xf32>) -> tensor<2287x384xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<2287x5488xbf16>, tensor<384x5488xbf16>) outs(%1 : tensor<2287x384xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<2287x384xf32>
    %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<2287x384xf32>) outs(%arg2 : tensor<2287x384xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %4 = arith.truncf %in : f32 to bf16
      linalg.yield %4 : bf16
    } -> tensor<2287x384xbf16>
    return %3 : tensor<2287x384xbf16>
  }
}

// Few tiles with a long sum: the blocks of a cluster share one.
// CHECK: module @few
// CHECK-SAME: split = 2 : i64, stages = 9 : i64, template = "hopper_contraction", threads = 256 : i64, tile_columns = 32 : i64, tile_rows = 64 : i64
module @few attributes {mlc.kernel} {
  func.func @few(%arg0: tensor<16x8192xbf16>, %arg1: tensor<8192x2048xbf16>, %arg2: tensor<2048xf32>, %arg3: tensor<16x2048xbf16>) -> tensor<16x2048xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<16x2048xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<16x2048xf32>) -> tensor<16x2048xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<16x8192xbf16>, tensor<8192x2048xbf16>) outs(%1 : tensor<16x2048xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<16x2048xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<16x2048xf32>, tensor<2048xf32>) outs(%arg3 : tensor<16x2048xbf16>) {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %4 = arith.addf %in, %in_0 : f32
      %5 = arith.truncf %4 : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<16x2048xbf16>
    return %3 : tensor<16x2048xbf16>
  }
}

// Rows of 9,232 bytes begin within cache lines: eight blocks beside each other copy the left operand once.
// CHECK: module @broken
// CHECK-SAME: cluster_columns = 8 : i64, consumers = 2 : i64
// CHECK-SAME: tile_columns = 112 : i64, tile_rows = 128 : i64
module @broken attributes {mlc.kernel} {
  func.func @broken(%arg0: tensor<871x4616xbf16>, %arg1: tensor<1760x4616xbf16>, %arg2: tensor<1760xf32>, %arg3: tensor<871x1760xbf16>) -> tensor<871x1760xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<871x1760xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<871x1760xf32>) -> tensor<871x1760xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<871x4616xbf16>, tensor<1760x4616xbf16>) outs(%1 : tensor<871x1760xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<871x1760xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<871x1760xf32>, tensor<1760xf32>) outs(%arg3 : tensor<871x1760xbf16>) {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %4 = arith.addf %in, %in_0 : f32
      %5 = arith.truncf %4 : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<871x1760xbf16>
    return %3 : tensor<871x1760xbf16>
  }
}

// Many tiles are large ones.
// CHECK: module @large
// CHECK-SAME: consumers = 2 : i64
// CHECK-SAME: stages = 4 : i64, template = "hopper_contraction", threads = 384 : i64, tile_columns = 256 : i64, tile_rows = 128 : i64
module @large attributes {mlc.kernel} {
  func.func @large(%arg0: tensor<8192x8192xbf16>, %arg1: tensor<8192x8192xbf16>, %arg2: tensor<8192xf32>, %arg3: tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<8192x8192xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<8192x8192xf32>) -> tensor<8192x8192xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) outs(%1 : tensor<8192x8192xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<8192x8192xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<8192x8192xf32>, tensor<8192xf32>) outs(%arg3 : tensor<8192x8192xbf16>) {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %4 = arith.addf %in, %in_0 : f32
      %5 = arith.truncf %4 : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<8192x8192xbf16>
    return %3 : tensor<8192x8192xbf16>
  }
}

// A launch that multiplies for long is early, too; two blocks share a tile where smaller ones would copy more.
// CHECK: module @long
// CHECK-SAME: consumers = 2 : i64
// CHECK-SAME: early = 1 : i64
// CHECK-SAME: split = 2 : i64
module @long attributes {mlc.kernel} {
  func.func @long(%arg0: tensor<512x8192xbf16>, %arg1: tensor<8192x2048xbf16>, %arg2: tensor<2048xf32>, %arg3: tensor<512x2048xbf16>) -> tensor<512x2048xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<512x2048xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<512x2048xf32>) -> tensor<512x2048xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<512x8192xbf16>, tensor<8192x2048xbf16>) outs(%1 : tensor<512x2048xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<512x2048xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<512x2048xf32>, tensor<2048xf32>) outs(%arg3 : tensor<512x2048xbf16>) {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %4 = arith.addf %in, %in_0 : f32
      %5 = arith.truncf %4 : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<512x2048xbf16>
    return %3 : tensor<512x2048xbf16>
  }
}

// Rows that are no multiples of 16 bytes apart are not for the copy engine.
// CHECK: module @ragged_rows
// CHECK-SAME: template = "contraction"
module @ragged_rows attributes {mlc.kernel} {
  func.func @ragged_rows(%arg0: tensor<128x761xbf16>, %arg1: tensor<761x768xbf16>, %arg2: tensor<768xf32>, %arg3: tensor<128x768xbf16>) -> tensor<128x768xbf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<128x768xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<128x768xf32>) -> tensor<128x768xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<128x761xbf16>, tensor<761x768xbf16>) outs(%1 : tensor<128x768xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<128x768xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%2, %arg2 : tensor<128x768xf32>, tensor<768xf32>) outs(%arg3 : tensor<128x768xbf16>) {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %4 = arith.addf %in, %in_0 : f32
      %5 = arith.truncf %4 : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<128x768xbf16>
    return %3 : tensor<128x768xbf16>
  }
}

// A depthwise convolution has a template of its own.
// CHECK: module @depthwise
// CHECK-SAME: template = "depthwise"
module @depthwise attributes {mlc.kernel} {
  func.func @depthwise(%arg0: tensor<2x9x10x24xbf16>, %arg1: tensor<3x3x1x24xbf16>, %arg2: tensor<24xf32>, %arg3: tensor<2x9x10x24xbf16>) -> tensor<2x9x10x24xbf16> {
    %c1 = arith.constant 1 : index
    %c9 = arith.constant 9 : index
    %c10 = arith.constant 10 : index
    %zero = arith.constant 0.000000e+00 : bf16
    %e = tensor.empty() : tensor<2x11x12x24xbf16>
    %p = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%e : tensor<2x11x12x24xbf16>) {
    ^bb0(%out: bf16):
      %i0 = linalg.index 0 : index
      %i1 = linalg.index 1 : index
      %i2 = linalg.index 2 : index
      %i3 = linalg.index 3 : index
      %h = arith.subi %i1, %c1 : index
      %w = arith.subi %i2, %c1 : index
      %hin = arith.cmpi ult, %h, %c9 : index
      %win = arith.cmpi ult, %w, %c10 : index
      %in = arith.andi %hin, %win : i1
      %v = scf.if %in -> (bf16) {
        %x = tensor.extract %arg0[%i0, %h, %w, %i3] : tensor<2x9x10x24xbf16>
        scf.yield %x : bf16
      } else {
        scf.yield %zero : bf16
      }
      linalg.yield %v : bf16
    } -> tensor<2x11x12x24xbf16>
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x9x10x24xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x9x10x24xf32>) -> tensor<2x9x10x24xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 + d4, d2 + d5, d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5, 0, d3)>, affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%p, %arg1 : tensor<2x11x12x24xbf16>, tensor<3x3x1x24xbf16>) outs(%1 : tensor<2x9x10x24xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<2x9x10x24xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2, %arg2 : tensor<2x9x10x24xf32>, tensor<24xf32>) outs(%arg3 : tensor<2x9x10x24xbf16>) {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %4 = arith.addf %in, %in_0 : f32
      %5 = arith.truncf %4 : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<2x9x10x24xbf16>
    return %3 : tensor<2x9x10x24xbf16>
  }
}

// A block selects the best of a line, 1,024 threads that of a long one.
// CHECK: module @select
// CHECK-SAME: group = 1024 : i64, template = "block_select", threads = 1024 : i64
module @select attributes {mlc.kernel} {
  func.func @select(%a: tensor<2x5000xf32>, %v: tensor<2x9xf32>, %i: tensor<2x9xi64>) -> (tensor<2x9xf32>, tensor<2x9xi64>) {
    %k = arith.constant 9 : index
    %w, %j = mlc.topk %a, %k {axis = 1 : i64} : tensor<2x5000xf32> -> tensor<2x9xf32>, tensor<2x9xi64>
    return %w, %j : tensor<2x9xf32>, tensor<2x9xi64>
  }
}

// A short line of what was found in parts is a block's, too: a thread alone knows no places but its own.
// CHECK: module @found
// CHECK-SAME: group = 256 : i64, template = "block_select", threads = 256 : i64
module @found attributes {mlc.kernel} {
  func.func @found(%a: tensor<2x90xf32>, %p: tensor<2x90xi64>, %v: tensor<2x9xf32>, %i: tensor<2x9xi64>) -> (tensor<2x9xf32>, tensor<2x9xi64>) {
    %k = arith.constant 9 : index
    %w, %j = mlc.topk %a, %k places(%p : tensor<2x90xi64>) {axis = 1 : i64} : tensor<2x90xf32> -> tensor<2x9xf32>, tensor<2x9xi64>
    return %w, %j : tensor<2x9xf32>, tensor<2x9xi64>
  }
}

// The threads of a block have a part of a line, not all of it.
// CHECK: module @parts
// CHECK-SAME: accesses = 2 : i64, ahead = 0 : i64, early = 1 : i64, group = 1024 : i64, lanes = 4 : i64, template = "scan"
module @parts attributes {mlc.kernel} {
  func.func @parts(%a: tensor<1000000xf32>, %b: tensor<200xf32>, %o: tensor<1000000xf32>) -> tensor<1000000xf32> {
    %0 = mlc.scan sum %a before(%b : tensor<200xf32>) {axis = 0 : i64, part = 5000 : i64} : tensor<1000000xf32>
    return %0 : tensor<1000000xf32>
  }
}

// A thread alone selects from a short line.
// CHECK: module @short
// CHECK-SAME: template = "topk", threads = 32 : i64
module @short attributes {mlc.kernel} {
  func.func @short(%a: tensor<900x64xf32>, %v: tensor<900x2xf32>, %i: tensor<900x2xi64>) -> (tensor<900x2xf32>, tensor<900x2xi64>) {
    %k = arith.constant 2 : index
    %w, %j = mlc.topk %a, %k {axis = 1 : i64} : tensor<900x64xf32> -> tensor<900x2xf32>, tensor<900x2xi64>
    return %w, %j : tensor<900x2xf32>, tensor<900x2xi64>
  }
}

// A scatter in place: memory adds integers, threads add floats in order.
// CHECK: module @counted
// CHECK-SAME: atomic = 1 : i64, early = 0 : i64, template = "scatter", threads = 256 : i64
module @counted attributes {mlc.inout = array<i64: 0>, mlc.kernel} {
  func.func @counted(%i: tensor<70x1xi64>, %u: tensor<70x4xi32>, %o: tensor<90x4xi32>) -> tensor<90x4xi32> {
    %r = mlc.scatter_nd %o, %i, %u {reduction = "add"} : tensor<90x4xi32>, tensor<70x1xi64>, tensor<70x4xi32> -> tensor<90x4xi32>
    return %r : tensor<90x4xi32>
  }
}

// CHECK: module @summed
// CHECK-SAME: atomic = 0 : i64, early = 0 : i64, template = "scatter", threads = 256 : i64
module @summed attributes {mlc.inout = array<i64: 0>, mlc.kernel} {
  func.func @summed(%i: tensor<70x1xi64>, %u: tensor<70x4xf32>, %o: tensor<90x4xf32>) -> tensor<90x4xf32> {
    %r = mlc.scatter_nd %o, %i, %u {reduction = "add"} : tensor<90x4xf32>, tensor<70x1xi64>, tensor<70x4xf32> -> tensor<90x4xf32>
    return %r : tensor<90x4xf32>
  }
}

// A block for a long line, which reads a chunk ahead; a warp's threads for a short one. Columns are as wide as lines of
// the memory.
// CHECK: module @scanned_line
// CHECK-SAME: accesses = 2 : i64, ahead = 1 : i64, blocks = 1 : i64, early = 1 : i64, group = 1024 : i64, lanes = 4 : i64, template = "scan", threads = 1024 : i64, width = 0 : i64
module @scanned_line attributes {mlc.kernel} {
  func.func @scanned_line(%a: tensor<4x50000xf32>, %o: tensor<4x50000xf32>) -> tensor<4x50000xf32> {
    %r = mlc.scan sum %a {axis = 1 : i64} : tensor<4x50000xf32>
    return %r : tensor<4x50000xf32>
  }
}

// CHECK: module @scanned_lines
// CHECK-SAME: accesses = 1 : i64, ahead = 0 : i64, early = 1 : i64, group = 8 : i64, lanes = 2 : i64, template = "scan", threads = 256 : i64, width = 0 : i64
module @scanned_lines attributes {mlc.kernel} {
  func.func @scanned_lines(%a: tensor<900x14xf32>, %o: tensor<900x14xf32>) -> tensor<900x14xf32> {
    %r = mlc.scan sum %a {axis = 1 : i64} : tensor<900x14xf32>
    return %r : tensor<900x14xf32>
  }
}

// CHECK: module @scanned_columns
// CHECK-SAME: accesses = 2 : i64, ahead = 1 : i64, blocks = 1 : i64, early = 1 : i64, group = 512 : i64, lanes = 4 : i64, template = "scan", threads = 512 : i64, width = 8 : i64
module @scanned_columns attributes {mlc.kernel} {
  func.func @scanned_columns(%a: tensor<4096x4096xf32>, %o: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
    %r = mlc.scan sum %a {axis = 0 : i64} : tensor<4096x4096xf32>
    return %r : tensor<4096x4096xf32>
  }
}

// CHECK: module @scanned_short_columns
// CHECK-SAME: accesses = 4 : i64, ahead = 0 : i64, early = 1 : i64, group = 32 : i64, lanes = 1 : i64, template = "scan", threads = 256 : i64, width = 4 : i64
module @scanned_short_columns attributes {mlc.kernel} {
  func.func @scanned_short_columns(%a: tensor<20x3xf32>, %o: tensor<20x3xf32>) -> tensor<20x3xf32> {
    %r = mlc.scan sum %a {axis = 0 : i64} : tensor<20x3xf32>
    return %r : tensor<20x3xf32>
  }
}
