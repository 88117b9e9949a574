// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{vector-bits=256 vector-registers=16})' | FileCheck %s --check-prefix=AVX2
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{tuned="%S/Inputs/assign_schedules.json"})' | FileCheck %s --check-prefix=TUNED
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{halves=true})' | FileCheck %s --check-prefix=HALVES

// With a file of measured schedules (`mlc-compile --tune`): one fits, one changes what tuning leaves alone, one is another kernel's.
// TUNED: module attributes {mlc.tuning = "{{[0-9a-f]+}}"}

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

func.func @main(%x: tensor<96x128xf32>) -> (tensor<96x256xf32>, tensor<96xf32>) {
  %w = mlc.weight "w" : tensor<128x256xf32>
  %e = tensor.empty() : tensor<96x256xf32>
  %er = tensor.empty() : tensor<96xf32>
  %a = mlc.launch @k0(%x, %w) outs(%e) : (tensor<96x128xf32>, tensor<128x256xf32>) outs(tensor<96x256xf32>) -> tensor<96x256xf32>
  %b = mlc.launch @k1(%x) outs(%er) : (tensor<96x128xf32>) outs(tensor<96xf32>) -> tensor<96xf32>
  return %a, %b : tensor<96x256xf32>, tensor<96xf32>
}

func.func @wide(%x: tensor<40x300xf32>) -> (tensor<40x100xf32>, tensor<40x64xf32>) {
  %w = mlc.weight "v" : tensor<300x100xf32>
  %v = mlc.weight "u" : tensor<300x64xf32>
  %e = tensor.empty() : tensor<40x100xf32>
  %d = tensor.empty() : tensor<40x64xf32>
  %a = mlc.launch @next_panel(%x, %w) outs(%e) : (tensor<40x300xf32>, tensor<300x100xf32>) outs(tensor<40x100xf32>) -> tensor<40x100xf32>
  %b = mlc.launch @only_panel(%x, %v) outs(%d) : (tensor<40x300xf32>, tensor<300x64xf32>) outs(tensor<40x64xf32>) -> tensor<40x64xf32>
  return %a, %b : tensor<40x100xf32>, tensor<40x64xf32>
}

func.func @sums(%x: tensor<96x64xf32>, %y: tensor<96x48xf32>) -> tensor<96x48xf32> {
  %w = mlc.weight "s" : tensor<64x48xf32>
  %e = tensor.empty() : tensor<96x48xf32>
  %a = mlc.launch @added(%x, %w, %y) outs(%e) : (tensor<96x64xf32>, tensor<64x48xf32>, tensor<96x48xf32>) outs(tensor<96x48xf32>) -> tensor<96x48xf32>
  return %a : tensor<96x48xf32>
}

func.func @many_steps(%x: tensor<40x3072xf32>) -> tensor<40x128xf32> {
  %w = mlc.weight "t" : tensor<3072x128xf32>
  %e = tensor.empty() : tensor<40x128xf32>
  %a = mlc.launch @blocks(%x, %w) outs(%e) : (tensor<40x3072xf32>, tensor<3072x128xf32>) outs(tensor<40x128xf32>) -> tensor<40x128xf32>
  return %a : tensor<40x128xf32>
}

func.func @odd(%x: tensor<7x5003xf32>) -> tensor<7x128xf32> {
  %w = mlc.weight "o" : tensor<5003x128xf32>
  %e = tensor.empty() : tensor<7x128xf32>
  %a = mlc.launch @taller(%x, %w) outs(%e) : (tensor<7x5003xf32>, tensor<5003x128xf32>) outs(tensor<7x128xf32>) -> tensor<7x128xf32>
  return %a : tensor<7x128xf32>
}

func.func @nine_vectors(%x: tensor<61x166xf32>) -> tensor<61x131xf32> {
  %w = mlc.weight "nine" : tensor<166x131xf32>
  %e = tensor.empty() : tensor<61x131xf32>
  %a = mlc.launch @threes(%x, %w) outs(%e) : (tensor<61x166xf32>, tensor<166x131xf32>) outs(tensor<61x131xf32>) -> tensor<61x131xf32>
  return %a : tensor<61x131xf32>
}

func.func @deep(%x: tensor<1x9x9x512xf32>) -> tensor<1x7x7x512xf32> {
  %w = mlc.weight "f" : tensor<3x3x512x512xf32>
  %e = tensor.empty() : tensor<1x7x7x512xf32>
  %a = mlc.launch @large_window(%x, %w) outs(%e) : (tensor<1x9x9x512xf32>, tensor<3x3x512x512xf32>) outs(tensor<1x7x7x512xf32>) -> tensor<1x7x7x512xf32>
  return %a : tensor<1x7x7x512xf32>
}

func.func @deeper(%x: tensor<1x30x30x2048xf32>) -> tensor<1x28x28x512xf32> {
  %w = mlc.weight "f" : tensor<3x3x2048x512xf32>
  %e = tensor.empty() : tensor<1x28x28x512xf32>
  %a = mlc.launch @huge_window(%x, %w) outs(%e) : (tensor<1x30x30x2048xf32>, tensor<3x3x2048x512xf32>) outs(tensor<1x28x28x512xf32>) -> tensor<1x28x28x512xf32>
  return %a : tensor<1x28x28x512xf32>
}

// The right operand is a weight everywhere: it is packed. Vectors run along n, rows along m.
// CHECK: module @k0
// CHECK-SAME: lanes = 16 : i64, packed_operand = 1 : i64, panel = 64 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 6 : i64, template = "contraction", unroll = 4 : i64, vector_dim = 1 : i64, vectors = 4 : i64
// AVX2: module @k0
// AVX2-SAME: lanes = 8 : i64, packed_operand = 1 : i64, panel = 24 : i64
// TUNED: module @k0
// TUNED-SAME: block = 7 : i64, lanes = 16 : i64, packed_operand = 1 : i64, panel = 64 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 5 : i64, template = "contraction"
module @k0 attributes {mlc.kernel} {
  func.func @k0(%a: tensor<96x128xf32>, %b: tensor<128x256xf32>, %o: tensor<96x256xf32>) -> tensor<96x256xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<96x256xf32>) -> tensor<96x256xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<96x128xf32>, tensor<128x256xf32>) outs(%f : tensor<96x256xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<96x256xf32>
    return %m : tensor<96x256xf32>
  }
}

// A reduction along the contiguous dimension has no vector loop over its results: it reduces across lanes.
// CHECK: module @k1
// CHECK-SAME: first = 1 : i64, grid = 1 : i64, lanes = 16 : i64, last = 0 : i64, template = "loops"
module @k1 attributes {mlc.kernel} {
  func.func @k1(%a: tensor<96x128xf32>, %o: tensor<96xf32>) -> tensor<96xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<96xf32>) -> tensor<96xf32>
    %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
        ins(%a : tensor<96x128xf32>) outs(%f : tensor<96xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<96xf32>
    return %s : tensor<96xf32>
  }
}

// An elementwise kernel over a contiguous box is one flat vector loop.
// CHECK: module @k2
// CHECK-SAME: first = 0 : i64, grid = 0 : i64, lanes = 16 : i64, last = 1 : i64, template = "loops"
// TUNED: module @k2
// TUNED-SAME: lanes = 16 : i64
module @k2 attributes {mlc.kernel} {
  func.func @k2(%a: tensor<4x6xf32>, %o: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<4x6xf32>) outs(%o : tensor<4x6xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.negf %x : f32
      linalg.yield %r : f32
    } -> tensor<4x6xf32>
    return %s : tensor<4x6xf32>
  }
}

// Copies that are larger than the caches go past them, and are fetched ahead where their lines are short.
// CHECK: module @copy
// CHECK-SAME: ahead = 8 : i64{{.*}}stream = 1 : i64, template = "loops"
module @copy attributes {mlc.kernel} {
  func.func @copy(%a: tensor<512x1024x64xf32>, %o: tensor<1024x512x64xf32>) -> tensor<1024x512x64xf32> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (j, i, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a : tensor<512x1024x64xf32>) outs(%o : tensor<1024x512x64xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<1024x512x64xf32>
    return %s : tensor<1024x512x64xf32>
  }
}

// Lines of few elements are put together in registers.
// CHECK: module @few
// CHECK-SAME: block = 2048 : i64, lanes = 16 : i64, read_dim = 0 : i64, read_first = 0 : i64, template = "interleave", write_dim = 1 : i64
module @few attributes {mlc.kernel} {
  func.func @few(%a: tensor<3x70xf32>, %o: tensor<70x3xf32>) -> tensor<70x3xf32> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<3x70xf32>) outs(%o : tensor<70x3xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<70x3xf32>
    return %s : tensor<70x3xf32>
  }
}

// So are those of an image that is padded on the way, where vectors of bytes have masks: beside it is one number.
// CHECK: module @padded_image
// CHECK-SAME: block = 8192 : i64, lanes = 64 : i64, read_dim = 1 : i64, read_first = 1 : i64, template = "interleave", write_dim = 2 : i64
// AVX2: module @padded_image
// AVX2-SAME: template = "loops"
module @padded_image attributes {mlc.kernel} {
  func.func @padded_image(%z: tensor<i8>, %a: tensor<3x224x224xi8>, %o: tensor<230x230x3xi8>) -> tensor<230x230x3xi8> {
    %c3 = arith.constant 3 : index
    %c224 = arith.constant 224 : index
    %e = tensor.empty() : tensor<3x230x230xi8>
    %p = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> ()>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%z : tensor<i8>) outs(%e : tensor<3x230x230xi8>) {
    ^bb0(%x: i8, %y: i8):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %k = linalg.index 2 : index
      %u = arith.subi %j, %c3 : index
      %v = arith.subi %k, %c3 : index
      %q = arith.cmpi ult, %u, %c224 : index
      %r = arith.cmpi ult, %v, %c224 : index
      %c = arith.andi %q, %r : i1
      %n = scf.if %c -> (i8) {
        %t = tensor.extract %a[%i, %u, %v] : tensor<3x224x224xi8>
        scf.yield %t : i8
      } else {
        scf.yield %x : i8
      }
      linalg.yield %n : i8
    } -> tensor<3x230x230xi8>
    %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (k, i, j)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%p : tensor<3x230x230xi8>) outs(%o : tensor<230x230x3xi8>) {
    ^bb0(%x: i8, %y: i8):
      linalg.yield %x : i8
    } -> tensor<230x230x3xi8>
    return %s : tensor<230x230x3xi8>
  }
}

// Small elements whose lines are a power of two apart go through a compact buffer, where vectors are lines of the cache.
// CHECK: module @staged
// CHECK-SAME: ahead = 1 : i64, argument = 0 : i64, block = 256 : i64, down = 0 : i64, height = 256 : i64, lanes = 64 : i64, line = 64 : i64, piece = 16 : i64, read_dim = 0 : i64, read_first = 0 : i64, stream = 0 : i64, template = "staged_transpose", write_dim = 1 : i64, write_first = 1 : i64
// AVX2: module @staged
// AVX2-SAME: back = 1 : i64, block = 256 : i64, down = 0 : i64, height = 256 : i64, lanes = 64 : i64, line = 64 : i64{{.*}}template = "staged_transpose"
module @staged attributes {mlc.kernel} {
  func.func @staged(%a: tensor<1024x2048xi8>, %o: tensor<2048x1024xi8>) -> tensor<2048x1024xi8> {
    %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]
    } ins(%a : tensor<1024x2048xi8>) outs(%o : tensor<2048x1024xi8>) {
    ^bb0(%x: i8, %y: i8):
      linalg.yield %x : i8
    } -> tensor<2048x1024xi8>
    return %r : tensor<2048x1024xi8>
  }
}

// Small elements that come from memory: large squares whose lines are fetched, to be read and to be written.
// CHECK: module @small_far
// CHECK-SAME: ahead = 4 : i64, argument = 0 : i64, block = 512 : i64, claim = 4 : i64, down = 1 : i64, height = 1024 : i64, lanes = 64 : i64, line = 16 : i64
module @small_far attributes {mlc.kernel} {
  func.func @small_far(%a: tensor<3001x2503xi8>, %o: tensor<2503x3001xi8>) -> tensor<2503x3001xi8> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<3001x2503xi8>) outs(%o : tensor<2503x3001xi8>) {
    ^bb0(%x: i8, %y: i8):
      linalg.yield %x : i8
    } -> tensor<2503x3001xi8>
    return %s : tensor<2503x3001xi8>
  }
}

// Results of 8 MB go past the caches where one thread has all of them.
// CHECK: module @alone
// CHECK-SAME: stream = 2 : i64
module @alone attributes {mlc.kernel} {
  func.func @alone(%a: tensor<1248x1601xf32>, %o: tensor<1601x1248xf32>) -> tensor<1601x1248xf32> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<1248x1601xf32>) outs(%o : tensor<1601x1248xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<1601x1248xf32>
    return %s : tensor<1601x1248xf32>
  }
}

// Vectors of elements of eight bytes are two registers, but where one of them, a line of the cache, goes past the caches.
// CHECK: module @doubles
// CHECK-SAME: lanes = 8 : i64, line = 8 : i64{{.*}}stream = 1 : i64
module @doubles attributes {mlc.kernel} {
  func.func @doubles(%a: tensor<1248x1601xf64>, %o: tensor<1601x1248xf64>) -> tensor<1601x1248xf64> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<1248x1601xf64>) outs(%o : tensor<1601x1248xf64>) {
    ^bb0(%x: f64, %y: f64):
      linalg.yield %x : f64
    } -> tensor<1601x1248xf64>
    return %s : tensor<1601x1248xf64>
  }
}

// Pieces of lines 512 bytes apart are taken from as many lines as the first cache holds of such ones before the next pieces.
// CHECK: module @sets
// CHECK-SAME: template = "staged_transpose"
// AVX2: module @sets
// AVX2-SAME: down = 1 : i64, height = 64 : i64, lanes = 32 : i64, line = 16 : i64
module @sets attributes {mlc.kernel} {
  func.func @sets(%a: tensor<512x512xi8>, %o: tensor<512x512xi8>) -> tensor<512x512xi8> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<512x512xi8>) outs(%o : tensor<512x512xi8>) {
    ^bb0(%x: i8, %y: i8):
      linalg.yield %x : i8
    } -> tensor<512x512xi8>
    return %s : tensor<512x512xi8>
  }
}

// Results that share few sets of the first cache are written in runs of lines, whatever the input's lines are, and by
// threads that have lines of their own.
// CHECK: module @runs
// CHECK-SAME: ahead = 0 : i64, argument = 0 : i64, block = 49 : i64, down = 1 : i64, height = 64 : i64, lanes = 16 : i64, line = 4 : i64
// CHECK-SAME: turned = 1 : i64
// AVX2: module @runs
// AVX2-SAME: ahead = 0 : i64, argument = 0 : i64, back = 1 : i64, block = 0 : i64, down = 1 : i64, height = 64 : i64, lanes = 16 : i64, line = 4 : i64
module @runs attributes {mlc.kernel} {
  func.func @runs(%a: tensor<512x49xf32>, %o: tensor<49x512xf32>) -> tensor<49x512xf32> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<512x49xf32>) outs(%o : tensor<49x512xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<49x512xf32>
    return %s : tensor<49x512xf32>
  }
}

// Results that share one set of the first cache go through a compact buffer; registers of half a line take pieces of the
// input's lines, and shorter runs.
// CHECK: module @beside
// CHECK-SAME: ahead = 0 : i64, argument = 0 : i64, block = 32 : i64, down = 0 : i64, height = 128 : i64, lanes = 16 : i64, line = 16 : i64
// CHECK-SAME: template = "staged_transpose", turned = 1 : i64
// AVX2: module @beside
// AVX2-SAME: ahead = 0 : i64, argument = 0 : i64, back = 1 : i64, block = 32 : i64, down = 1 : i64, height = 64 : i64, lanes = 16 : i64, line = 4 : i64
module @beside attributes {mlc.kernel} {
  func.func @beside(%a: tensor<1024x64xf32>, %o: tensor<64x1024xf32>) -> tensor<64x1024xf32> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<1024x64xf32>) outs(%o : tensor<64x1024xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<64x1024xf32>
    return %s : tensor<64x1024xf32>
  }
}

// Lines of results that begin anywhere are written from end to end, from the input's lines near by: registers of half a line take
// whole ones of what they read, and nothing is fetched ahead.
// CHECK: module @panel
// CHECK-SAME: ahead = 4 : i64, argument = 0 : i64, block = 64 : i64, down = 0 : i64, height = 256 : i64, lanes = 16 : i64, line = 4 : i64
// AVX2: module @panel
// AVX2-SAME: ahead = 0 : i64, argument = 0 : i64, back = 1 : i64, block = 64 : i64, down = 0 : i64, height = 128 : i64, lanes = 8 : i64, line = 8 : i64
module @panel attributes {mlc.kernel} {
  func.func @panel(%a: tensor<300x768xf32>, %o: tensor<768x300xf32>) -> tensor<768x300xf32> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<300x768xf32>) outs(%o : tensor<768x300xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<768x300xf32>
    return %s : tensor<768x300xf32>
  }
}

// Where a register is half a line of the cache, a vector is two; what would be cut begins earlier instead of being masked.
// CHECK: module @pairs
// CHECK-SAME: ahead = 4 : i64, argument = 0 : i64, block = 64 : i64, down = 0 : i64, height = 256 : i64, lanes = 16 : i64, line = 4 : i64, piece = 4 : i64
// AVX2: module @pairs
// AVX2-SAME: ahead = 4 : i64, argument = 0 : i64, back = 1 : i64, block = 64 : i64, down = 0 : i64, height = 256 : i64, lanes = 16 : i64, line = 4 : i64, piece = 4 : i64
module @pairs attributes {mlc.kernel} {
  func.func @pairs(%a: tensor<333x400xf32>, %o: tensor<400x333xf32>) -> tensor<400x333xf32> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<333x400xf32>) outs(%o : tensor<400x333xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<400x333xf32>
    return %s : tensor<400x333xf32>
  }
}

// An input that is contiguous along another dimension than the result is transposed in registers.
// With something to compute edges are masked: what is written twice might have been written in place.
// AVX2: module @k3
// AVX2-NOT: back
// AVX2-SAME: template = "transpose"
// CHECK: module @k3
// CHECK-SAME: ahead = 4 : i64, argument = 0 : i64, block = 0 : i64, down = 0 : i64, height = 0 : i64, lanes = 16 : i64, line = 4 : i64, piece = 4 : i64, read_dim = 0 : i64, read_first = 0 : i64, stream = 0 : i64, template = "transpose", write_dim = 1 : i64, write_first = 1 : i64
module @k3 attributes {mlc.kernel} {
  func.func @k3(%a: tensor<40x70xf32>, %o: tensor<70x40xf32>) -> tensor<70x40xf32> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<40x70xf32>) outs(%o : tensor<70x40xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.negf %x : f32
      linalg.yield %r : f32
    } -> tensor<70x40xf32>
    return %s : tensor<70x40xf32>
  }
}

// Lines of the result that begin anywhere are written from end to end; half vectors, as the input's lines share few sets.
// CHECK: module @long_panels
// CHECK-SAME: ahead = 4 : i64, argument = 0 : i64, block = 64 : i64, down = 0 : i64, height = 0 : i64, lanes = 8 : i64, line = 4 : i64, piece = 4 : i64
module @long_panels attributes {mlc.kernel} {
  func.func @long_panels(%a: tensor<49x1024xf32>, %o: tensor<1024x49xf32>) -> tensor<1024x49xf32> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<49x1024xf32>) outs(%o : tensor<1024x49xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.negf %x : f32
      linalg.yield %r : f32
    } -> tensor<1024x49xf32>
    return %s : tensor<1024x49xf32>
  }
}

// Large ones whose result's lines begin anywhere are joined to whole lines of the cache, which go past the caches.
// CHECK: module @long_joined
// CHECK-SAME: ahead = 4 : i64, argument = 0 : i64, beside = 4 : i64, block = 16 : i64, down = 1 : i64, height = 704 : i64, joined = 1 : i64, lanes = 16 : i64, line = 4 : i64, piece = 4 : i64, read_dim = 0 : i64, read_first = 0 : i64, stream = 1 : i64
// AVX2: module @long_joined
// AVX2-NOT: joined = 1
module @long_joined attributes {mlc.kernel} {
  func.func @long_joined(%a: tensor<2100x1100xf32>, %o: tensor<1100x2100xf32>) -> tensor<1100x2100xf32> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<2100x1100xf32>) outs(%o : tensor<1100x2100xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.negf %x : f32
      linalg.yield %r : f32
    } -> tensor<1100x2100xf32>
    return %s : tensor<1100x2100xf32>
  }
}

// Vectors run along a dimension of both operands: fewer rows, as nothing that is loaded serves several accumulators.
// CHECK: module @depthwise
// CHECK-SAME: rows = 4 : i64, template = "contraction"{{.*}} vectors = 4 : i64
// AVX2: module @depthwise
// AVX2-SAME: rows = 4 : i64, template = "contraction"{{.*}} vectors = 3 : i64
module @depthwise attributes {mlc.kernel} {
  func.func @depthwise(%a: tensor<1x58x58x128xf32>, %b: tensor<3x3x128xf32>, %o: tensor<1x56x56x128xf32>) -> tensor<1x56x56x128xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x56x56x128xf32>) -> tensor<1x56x56x128xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(n, h, w, c, y, x) -> (n, h + y, w + x, c)>, affine_map<(n, h, w, c, y, x) -> (y, x, c)>, affine_map<(n, h, w, c, y, x) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
        ins(%a, %b : tensor<1x58x58x128xf32>, tensor<3x3x128xf32>) outs(%f : tensor<1x56x56x128xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<1x56x56x128xf32>
    return %m : tensor<1x56x56x128xf32>
  }
}

// Few rows, and a right side that is stored by columns: vectors along the sum, where a vector has lanes enough.
// CHECK: module @columns
// CHECK-SAME: block = 2 : i64, lanes = 16 : i64, row_first = 1 : i64, row_last = 1 : i64, rows = 4 : i64, template = "inner_product", unroll = 1 : i64, vector_dim = 2 : i64, vectors = 1 : i64
// AVX2: module @columns
// AVX2-SAME: lanes = 8 : i64{{.*}}template = "inner_product"
module @columns attributes {mlc.kernel} {
  func.func @columns(%a: tensor<4x8x128xf32>, %b: tensor<4x512x128xf32>, %o: tensor<4x8x512xf32>) -> tensor<4x8x512xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<4x8x512xf32>) -> tensor<4x8x512xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(b, i, j, k) -> (b, i, k)>, affine_map<(b, i, j, k) -> (b, j, k)>, affine_map<(b, i, j, k) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<4x8x128xf32>, tensor<4x512x128xf32>) outs(%f : tensor<4x8x512xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<4x8x512xf32>
    return %m : tensor<4x8x512xf32>
  }
}

// Many rows: panels of it are transposed on the way.
// CHECK: module @panels
// CHECK-SAME: block = 6 : i64, lanes = 16 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 8 : i64, template = "panel_copy", unroll = 4 : i64, vector_dim = 1 : i64, vector_operand = 1 : i64, vectors = 3 : i64
module @panels attributes {mlc.kernel} {
  func.func @panels(%a: tensor<100x64xf32>, %b: tensor<48x64xf32>, %o: tensor<100x48xf32>) -> tensor<100x48xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<100x48xf32>) -> tensor<100x48xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<100x64xf32>, tensor<48x64xf32>) outs(%f : tensor<100x48xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<100x48xf32>
    return %m : tensor<100x48xf32>
  }
}

// A panel of weights that does not stay in the cache is read by one tile of seven rows, not by two of four and three.
// CHECK: module @taller
// CHECK-SAME: rows = 7 : i64, template = "contraction"{{.*}} vectors = 4 : i64
module @taller attributes {mlc.kernel} {
  func.func @taller(%a: tensor<7x5003xf32>, %b: tensor<5003x128xf32>, %o: tensor<7x128xf32>) -> tensor<7x128xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<7x128xf32>) -> tensor<7x128xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<7x5003xf32>, tensor<5003x128xf32>) outs(%f : tensor<7x128xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<7x128xf32>
    return %m : tensor<7x128xf32>
  }
}

// Nine vectors of columns are three panels of three: of two panels of four, one vector would be left.
// CHECK: module @threes
// CHECK-SAME: rows = 8 : i64, template = "contraction"{{.*}} vectors = 3 : i64
module @threes attributes {mlc.kernel} {
  func.func @threes(%a: tensor<61x166xf32>, %b: tensor<166x131xf32>, %o: tensor<61x131xf32>) -> tensor<61x131xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<61x131xf32>) -> tensor<61x131xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<61x166xf32>, tensor<166x131xf32>) outs(%f : tensor<61x131xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<61x131xf32>
    return %m : tensor<61x131xf32>
  }
}

// Of a large window the panel is half as wide: the next one has room beside it.
// CHECK: module @large_window
// CHECK-SAME: ahead = 49 : i64{{.*}} panel = 32 : i64, row_first = 2 : i64, row_last = 2 : i64, rows = 7 : i64, template = "contraction"{{.*}} vectors = 2 : i64
// With shorter vectors it goes in blocks of a line of taps, for four lines of the image at a time.
// AVX2: module @large_window
// AVX2-SAME: depth = 1 : i64, lanes = 8 : i64, line_dim = 1 : i64, lines = 4 : i64{{.*}} rows = 4 : i64, template = "deep_contraction"
module @large_window attributes {mlc.kernel} {
  func.func @large_window(%a: tensor<1x9x9x512xf32>, %b: tensor<3x3x512x512xf32>, %o: tensor<1x7x7x512xf32>) -> tensor<1x7x7x512xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x7x7x512xf32>) -> tensor<1x7x7x512xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(n, h, w, o, y, x, c) -> (n, h + y, w + x, c)>, affine_map<(n, h, w, o, y, x, c) -> (y, x, c, o)>, affine_map<(n, h, w, o, y, x, c) -> (n, h, w, o)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
        ins(%a, %b : tensor<1x9x9x512xf32>, tensor<3x3x512x512xf32>) outs(%f : tensor<1x7x7x512xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<1x7x7x512xf32>
    return %m : tensor<1x7x7x512xf32>
  }
}

// Half a panel of a huge one does not fit either: it goes in blocks of a line of taps, for seven lines of the image.
// CHECK: module @huge_window
// CHECK-SAME: depth = 1 : i64, lanes = 16 : i64, line_dim = 1 : i64, lines = 7 : i64{{.*}} panel = 32 : i64{{.*}} rows = 14 : i64, template = "deep_contraction"
module @huge_window attributes {mlc.kernel} {
  func.func @huge_window(%a: tensor<1x30x30x2048xf32>, %b: tensor<3x3x2048x512xf32>, %o: tensor<1x28x28x512xf32>) -> tensor<1x28x28x512xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x28x28x512xf32>) -> tensor<1x28x28x512xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(n, h, w, o, y, x, c) -> (n, h + y, w + x, c)>, affine_map<(n, h, w, o, y, x, c) -> (y, x, c, o)>, affine_map<(n, h, w, o, y, x, c) -> (n, h, w, o)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
        ins(%a, %b : tensor<1x30x30x2048xf32>, tensor<3x3x2048x512xf32>) outs(%f : tensor<1x28x28x512xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<1x28x28x512xf32>
    return %m : tensor<1x28x28x512xf32>
  }
}

// A work item is a line of the image, not a pixel: few elements are no work.
// CHECK: module @lines
// CHECK-SAME: first = 2 : i64, grid = 1 : i64, lanes = 16 : i64, last = 2 : i64, template = "loops"
module @lines attributes {mlc.kernel} {
  func.func @lines(%a: tensor<56x56x256xf32>, %b: tensor<56x1x256xf32>, %o: tensor<56x56x256xf32>) -> tensor<56x56x256xf32> {
    %s = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (i, 0, k)>, affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a, %b : tensor<56x56x256xf32>, tensor<56x1x256xf32>) outs(%o : tensor<56x56x256xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %r = arith.mulf %x, %y : f32
      linalg.yield %r : f32
    } -> tensor<56x56x256xf32>
    return %s : tensor<56x56x256xf32>
  }
}

// While a panel of weights is multiplied by 40 rows, these fetch the next one; a single panel has none behind it.
// CHECK: module @next_panel
// CHECK-SAME: mlc.schedule = [{ahead = 40 : i64, block
// Of 100 columns 4 remain behind six vectors: where half a vector takes half the time it is enough for them.
// HALVES: module @next_panel
// HALVES-SAME: rows = 6 : i64, tail = 8 : i64, template = "contraction", unroll = 4 : i64
// HALVES: module @only_panel
// HALVES-NOT: tail
// With sixteen registers thirteen vectors are six pairs and one, not four times three and one.
// AVX2: module @next_panel
// AVX2-SAME: panel = 16 : i64{{.*}}rows = 6 : i64{{.*}}vectors = 2 : i64
// CHECK: module @only_panel
// CHECK-SAME: mlc.schedule = [{block
module @next_panel attributes {mlc.kernel} {
  func.func @next_panel(%a: tensor<40x300xf32>, %b: tensor<300x100xf32>, %o: tensor<40x100xf32>) -> tensor<40x100xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<40x100xf32>) -> tensor<40x100xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<40x300xf32>, tensor<300x100xf32>) outs(%f : tensor<40x100xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<40x100xf32>
    return %m : tensor<40x100xf32>
  }
}
module @only_panel attributes {mlc.kernel} {
  func.func @only_panel(%a: tensor<40x300xf32>, %b: tensor<300x64xf32>, %o: tensor<40x64xf32>) -> tensor<40x64xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<40x64xf32>) -> tensor<40x64xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<40x300xf32>, tensor<300x64xf32>) outs(%f : tensor<40x64xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<40x64xf32>
    return %m : tensor<40x64xf32>
  }
}

// A panel that would fill the second level of cache is multiplied in blocks of the reduction.
// CHECK: module @blocks
// CHECK-SAME: mlc.schedule = [{ahead = 40 : i64, block = {{[0-9]+}} : i64, depth = 1024 : i64{{.*}} template = "deep_contraction"
module @blocks attributes {mlc.kernel} {
  func.func @blocks(%a: tensor<40x3072xf32>, %b: tensor<3072x128xf32>, %o: tensor<40x128xf32>) -> tensor<40x128xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<40x128xf32>) -> tensor<40x128xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<40x3072xf32>, tensor<3072x128xf32>) outs(%f : tensor<40x128xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<40x128xf32>
    return %m : tensor<40x128xf32>
  }
}

// With sixteen registers a tile fetches the matrix that is added to its sums before it begins with them.
// CHECK: module @added
// CHECK-NOT: early
// CHECK-SAME: template = "contraction"
// AVX2: module @added
// AVX2-SAME: early = 1 : i64{{.*}}template = "contraction"
module @added attributes {mlc.kernel} {
  func.func @added(%a: tensor<96x64xf32>, %b: tensor<64x48xf32>, %c: tensor<96x48xf32>, %o: tensor<96x48xf32>) -> tensor<96x48xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<96x48xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<96x48xf32>) -> tensor<96x48xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<96x64xf32>, tensor<64x48xf32>) outs(%f : tensor<96x48xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<96x48xf32>
    %r = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%m, %c : tensor<96x48xf32>, tensor<96x48xf32>) outs(%o : tensor<96x48xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %s = arith.addf %x, %y : f32
      linalg.yield %s : f32
    } -> tensor<96x48xf32>
    return %r : tensor<96x48xf32>
  }
}

// With vectors of half a line of the cache even a panel of few short lines is copied, and one of more lines than fit with wider ones.
// Lines are fetched ahead of the copy where they are not in the second level of cache. Tiles of six rows leave less over of thirteen vectors.
// CHECK: module @narrow
// CHECK-SAME: template = "contraction"
// AVX2: module @narrow
// AVX2-NOT: fetched
// HALVES: module @narrow
// AVX2-SAME: rows = 6 : i64, template = "panel_copy", unroll = 4 : i64, vector_dim = 1 : i64, vector_operand = 1 : i64, vectors = 2
module @narrow attributes {mlc.kernel} {
  func.func @narrow(%a: tensor<70x60xf32>, %b: tensor<60x101xf32>, %o: tensor<70x101xf32>) -> tensor<70x101xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<70x101xf32>) -> tensor<70x101xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<70x60xf32>, tensor<60x101xf32>) outs(%f : tensor<70x101xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<70x101xf32>
    return %m : tensor<70x101xf32>
  }
}

// With vectors of a whole line panels are copied while others are multiplied, in blocks of which two fit on the stack.
// CHECK: module @long
// CHECK-SAME: ahead = 300 : i64, block = 50 : i64, depth = 600 : i64, lanes = 16 : i64
// CHECK-SAME: template = "copy_ahead", unroll = 1 : i64, vector_dim = 1 : i64, vector_operand = 1 : i64
// AVX2: module @long
// AVX2-SAME: fetched = 16 : i64
// AVX2-SAME: template = "panel_copy"
module @long attributes {mlc.kernel} {
  func.func @long(%a: tensor<300x1800xf32>, %b: tensor<1800x540xf32>, %o: tensor<300x540xf32>) -> tensor<300x540xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<300x540xf32>) -> tensor<300x540xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<300x1800xf32>, tensor<1800x540xf32>) outs(%f : tensor<300x540xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<300x540xf32>
    return %m : tensor<300x540xf32>
  }
}

// A panel that is one block is copied by all of its work items together.
// CHECK: module @together
// CHECK-SAME: ahead = 197 : i64, block = 17 : i64, depth = 768 : i64
// CHECK-SAME: template = "copy_ahead"
module @together attributes {mlc.kernel} {
  func.func @together(%a: tensor<197x768xf32>, %b: tensor<768x512xf32>, %o: tensor<197x512xf32>) -> tensor<197x512xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<197x512xf32>) -> tensor<197x512xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<197x768xf32>, tensor<768x512xf32>) outs(%f : tensor<197x512xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<197x512xf32>
    return %m : tensor<197x512xf32>
  }
}

// Of lines that are too many for one copy and rows that are too many for one work item, blocks of rows meet all panels.
// CHECK: module @many
// CHECK-SAME: block = 21 : i64, depth = 567 : i64
// CHECK-SAME: part = 1 : i64
// CHECK-SAME: template = "copy_ahead"
module @many attributes {mlc.kernel} {
  func.func @many(%a: tensor<500x1700xf32>, %b: tensor<1700x540xf32>, %o: tensor<500x540xf32>) -> tensor<500x540xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<500x540xf32>) -> tensor<500x540xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<500x1700xf32>, tensor<1700x540xf32>) outs(%f : tensor<500x540xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<500x540xf32>
    return %m : tensor<500x540xf32>
  }
}

// Few rows do not pay for copies of a matrix that is near, and as many do of one that is not.
// CHECK: module @near
// CHECK-SAME: template = "contraction"
module @near attributes {mlc.kernel} {
  func.func @near(%a: tensor<128x256xf32>, %b: tensor<256x512xf32>, %o: tensor<128x512xf32>) -> tensor<128x512xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<128x512xf32>) -> tensor<128x512xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<128x256xf32>, tensor<256x512xf32>) outs(%f : tensor<128x512xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<128x512xf32>
    return %m : tensor<128x512xf32>
  }
}

// CHECK: module @far
// CHECK-SAME: template = "copy_ahead"
module @far attributes {mlc.kernel} {
  func.func @far(%a: tensor<128x768xf32>, %b: tensor<768x768xf32>, %o: tensor<128x768xf32>) -> tensor<128x768xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<128x768xf32>) -> tensor<128x768xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<128x768xf32>, tensor<768x768xf32>) outs(%f : tensor<128x768xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<128x768xf32>
    return %m : tensor<128x768xf32>
  }
}

// One column beyond whole vectors is a sum along the reduction, beside the panels.
// CHECK: module @one_left
// CHECK-NOT: beside
// AVX2: module @one_left
// AVX2-SAME: beside = 1 : i64, block = {{[0-9]+}} : i64, lanes = 8 : i64, row_first = 0 : i64, row_last = 0 : i64, rows = 6 : i64, template = "panel_copy", unroll = 4 : i64, vector_dim = 1 : i64, vector_operand = 1 : i64, vectors = 2
module @one_left attributes {mlc.kernel} {
  func.func @one_left(%a: tensor<319x36xf32>, %b: tensor<36x49xf32>, %o: tensor<319x49xf32>) -> tensor<319x49xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<319x49xf32>) -> tensor<319x49xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<319x36xf32>, tensor<36x49xf32>) outs(%f : tensor<319x49xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<319x49xf32>
    return %m : tensor<319x49xf32>
  }
}

// Six of 54 columns take as long either way, as the sums are short; they are stored in parts, as masks are slow there.
// CHECK: module @six_left
// CHECK-NOT: pieces
// AVX2: module @six_left
// AVX2-NOT: beside
// AVX2-SAME: pieces = 1 : i64
module @six_left attributes {mlc.kernel} {
  func.func @six_left(%a: tensor<319x36xf32>, %b: tensor<36x54xf32>, %o: tensor<319x54xf32>) -> tensor<319x54xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<319x54xf32>) -> tensor<319x54xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<319x36xf32>, tensor<36x54xf32>) outs(%f : tensor<319x54xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<319x54xf32>
    return %m : tensor<319x54xf32>
  }
}

// A single panel lies as the copy would.
// AVX2: module @one_panel
// AVX2-SAME: template = "contraction"
module @one_panel attributes {mlc.kernel} {
  func.func @one_panel(%a: tensor<40x60xf32>, %b: tensor<60x24xf32>, %o: tensor<40x24xf32>) -> tensor<40x24xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<40x24xf32>) -> tensor<40x24xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<40x60xf32>, tensor<60x24xf32>) outs(%f : tensor<40x24xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<40x24xf32>
    return %m : tensor<40x24xf32>
  }
}

// Where both operands are only known to a run, a matrix that no cache near holds is read line by line for one row. One
// that is near is by vectors of eight.
// CHECK: module @one_row attributes
// CHECK-SAME: lanes = 16 : i64, line = 4096 : i64
// CHECK-SAME: steps = 8 : i64, tail = 0 : i64, template = "line_product"
// CHECK: module @one_row_near
// CHECK-SAME: template = "contraction"
// AVX2: module @one_row attributes
// AVX2-SAME: item = 128 : i64, lanes = 8 : i64, line = 4096 : i64, row_first = -1 : i64, row_last = -2 : i64, rows = 1 : i64, steps = 8 : i64, tail = 0 : i64, template = "line_product", unroll = 1 : i64, vector_dim = 1 : i64, vectors = 2 : i64
// AVX2: module @one_row_near
// AVX2-SAME: template = "line_product"
module @one_row attributes {mlc.kernel} {
  func.func @one_row(%a: tensor<1x512xf32>, %b: tensor<512x2048xf32>, %o: tensor<1x2048xf32>) -> tensor<1x2048xf32> {
    %z = arith.constant 0.0 : f32
    %f = linalg.fill ins(%z : f32) outs(%o : tensor<1x2048xf32>) -> tensor<1x2048xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<1x512xf32>, tensor<512x2048xf32>) outs(%f : tensor<1x2048xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %s: f32):
      %m = arith.mulf %x, %y : f32
      %t = arith.addf %s, %m : f32
      linalg.yield %t : f32
    } -> tensor<1x2048xf32>
    return %r : tensor<1x2048xf32>
  }
}
module @one_row_near attributes {mlc.kernel} {
  func.func @one_row_near(%a: tensor<1x256xf32>, %b: tensor<256x1024xf32>, %o: tensor<1x1024xf32>) -> tensor<1x1024xf32> {
    %z = arith.constant 0.0 : f32
    %f = linalg.fill ins(%z : f32) outs(%o : tensor<1x1024xf32>) -> tensor<1x1024xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<1x256xf32>, tensor<256x1024xf32>) outs(%f : tensor<1x1024xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %s: f32):
      %m = arith.mulf %x, %y : f32
      %t = arith.addf %s, %m : f32
      linalg.yield %t : f32
    } -> tensor<1x1024xf32>
    return %r : tensor<1x1024xf32>
  }
}
