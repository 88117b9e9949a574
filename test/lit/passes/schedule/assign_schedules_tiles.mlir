// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{bf16-dot=true bf16-tiles=true int8-tiles=true})' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{bf16-dot=true int8-tiles=true})' | FileCheck %s --check-prefix=BYTES

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#i1 = affine_map<(n, h, w, o, y, x, c) -> (n, h + y, w + x, c)>
#i2 = affine_map<(n, h, w, o, y, x, c) -> (n, h * 2 + y, w * 2 + x, c)>
#g = affine_map<(n, h, w, o, y, x, c) -> (y, x, c, o)>
#d = affine_map<(n, h, w, o, y, x, c) -> (n, h, w, o)>

func.func @main(%x0: tensor<?x64xbf16>, %o0: tensor<?x100xf32>, %x1: tensor<1x14x14x64xbf16>, %o1: tensor<1x14x14x48xf32>, %x2: tensor<1x64x64x3xbf16>, %o2: tensor<1x32x32x40xf32>, %x3: tensor<64x1024xbf16>, %o3: tensor<64x512xf32>, %x4: tensor<3136x64xbf16>, %o4: tensor<3136x256xf32>, %x5: tensor<784x128xbf16>, %o5: tensor<784x128xf32>)
    -> (tensor<?x100xf32>, tensor<1x14x14x48xf32>, tensor<1x32x32x40xf32>, tensor<64x512xf32>, tensor<3136x256xf32>, tensor<784x128xf32>) {
  %w0 = mlc.weight "w0" : tensor<64x100xbf16>
  %0 = mlc.launch @packed(%x0, %w0) outs(%o0) : (tensor<?x64xbf16>, tensor<64x100xbf16>) outs(tensor<?x100xf32>) -> tensor<?x100xf32>
  %w1 = mlc.weight "w1" : tensor<3x3x64x48xbf16>
  %1 = mlc.launch @window(%x1, %w1) outs(%o1) : (tensor<1x14x14x64xbf16>, tensor<3x3x64x48xbf16>) outs(tensor<1x14x14x48xf32>) -> tensor<1x14x14x48xf32>
  %w2 = mlc.weight "w2" : tensor<7x7x3x40xbf16>
  %2 = mlc.launch @first_layer(%x2, %w2) outs(%o2) : (tensor<1x64x64x3xbf16>, tensor<7x7x3x40xbf16>) outs(tensor<1x32x32x40xf32>) -> tensor<1x32x32x40xf32>
  %w3 = mlc.weight "w3" : tensor<1024x512xbf16>
  %3 = mlc.launch @large(%x3, %w3) outs(%o3) : (tensor<64x1024xbf16>, tensor<1024x512xbf16>) outs(tensor<64x512xf32>) -> tensor<64x512xf32>
  %w4 = mlc.weight "w4" : tensor<64x256xbf16>
  %4 = mlc.launch @many_rows(%x4, %w4) outs(%o4) : (tensor<3136x64xbf16>, tensor<64x256xbf16>) outs(tensor<3136x256xf32>) -> tensor<3136x256xf32>
  %w5 = mlc.weight "w5" : tensor<128x128xbf16>
  %5 = mlc.launch @in_parts(%x5, %w5) outs(%o5) : (tensor<784x128xbf16>, tensor<128x128xbf16>) outs(tensor<784x128xf32>) -> tensor<784x128xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<?x100xf32>, tensor<1x14x14x48xf32>, tensor<1x32x32x40xf32>, tensor<64x512xf32>, tensor<3136x256xf32>, tensor<784x128xf32>
}

// A weight is stored for tiles; two by two of them.
// CHECK: module @packed
// CHECK-SAME: instruction = "tdpbf16ps", lanes = 16 : i64, packed_operand = 1 : i64, panel = 32 : i64
// CHECK-NOT: mixed
// CHECK-SAME: rows = 32 : i64, stored = "tiles", template = "tile_product"
// CHECK-SAME: vector_operand = 1 : i64, vectors = 2 : i64
// BYTES: module @packed
// BYTES-SAME: stored = "pairs", template = "dot_product"
module @packed attributes {mlc.kernel} {
  func.func @packed(%a: tensor<?x64xbf16>, %b: tensor<64x100xbf16>, %o: tensor<?x100xf32>) -> tensor<?x100xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?x100xf32>) -> tensor<?x100xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<?x64xbf16>, tensor<64x100xbf16>) outs(%f : tensor<?x100xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<?x100xf32>
    return %m : tensor<?x100xf32>
  }
}

// What only a run knows is interleaved.
// CHECK: module @run_time
// CHECK-SAME: instruction = "tdpbusd"
// CHECK-SAME: stored = "rows", template = "tile_product"
// BYTES: module @run_time
// BYTES-SAME: template = "tile_product"
module @run_time attributes {mlc.kernel} {
  func.func @run_time(%a: tensor<40x64xi8>, %b: tensor<64x?xi8>, %o: tensor<40x?xi32>) -> tensor<40x?xi32> {
    %zero = arith.constant 0 : i32
    %f = linalg.fill ins(%zero : i32) outs(%o : tensor<40x?xi32>) -> tensor<40x?xi32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<40x64xi8>, tensor<64x?xi8>) outs(%f : tensor<40x?xi32>) attrs = {mlc.contraction} {
    ^bb0(%x: i8, %y: i8, %z: i32):
      %l = arith.extui %x : i8 to i32
      %r = arith.extsi %y : i8 to i32
      %p = arith.muli %l, %r : i32
      %s = arith.addi %z, %p : i32
      linalg.yield %s : i32
    } -> tensor<40x?xi32>
    return %m : tensor<40x?xi32>
  }
}

// There is an instruction for every pair of signs.
// CHECK: module @signs
// CHECK-SAME: instruction = "tdpbsud"
module @signs attributes {mlc.kernel} {
  func.func @signs(%a: tensor<40x64xi8>, %b: tensor<64x48xi8>, %o: tensor<40x48xi32>) -> tensor<40x48xi32> {
    %zero = arith.constant 0 : i32
    %f = linalg.fill ins(%zero : i32) outs(%o : tensor<40x48xi32>) -> tensor<40x48xi32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<40x64xi8>, tensor<64x48xi8>) outs(%f : tensor<40x48xi32>) attrs = {mlc.contraction} {
    ^bb0(%x: i8, %y: i8, %z: i32):
      %l = arith.extsi %x : i8 to i32
      %r = arith.extui %y : i8 to i32
      %p = arith.muli %l, %r : i32
      %s = arith.addi %z, %p : i32
      linalg.yield %s : i32
    } -> tensor<40x48xi32>
    return %m : tensor<40x48xi32>
  }
}

// Three rows are as slow as the weight is read.
// CHECK: module @few_rows
// CHECK-SAME: template = "dot_product"
module @few_rows attributes {mlc.kernel} {
  func.func @few_rows(%a: tensor<3x64xbf16>, %b: tensor<64x100xbf16>, %o: tensor<3x100xf32>) -> tensor<3x100xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<3x100xf32>) -> tensor<3x100xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<3x64xbf16>, tensor<64x100xbf16>) outs(%f : tensor<3x100xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<3x100xf32>
    return %m : tensor<3x100xf32>
  }
}

// CHECK: module @short_sum
// CHECK-SAME: template = "dot_product"
module @short_sum attributes {mlc.kernel} {
  func.func @short_sum(%a: tensor<40x7xbf16>, %b: tensor<7x100xbf16>, %o: tensor<40x100xf32>) -> tensor<40x100xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<40x100xf32>) -> tensor<40x100xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<40x7xbf16>, tensor<7x100xbf16>) outs(%f : tensor<40x100xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<40x100xf32>
    return %m : tensor<40x100xf32>
  }
}

// CHECK: module @any_sum
// CHECK-SAME: template = "dot_product"
module @any_sum attributes {mlc.kernel} {
  func.func @any_sum(%a: tensor<40x?xbf16>, %b: tensor<?x100xbf16>, %o: tensor<40x100xf32>) -> tensor<40x100xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<40x100xf32>) -> tensor<40x100xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<40x?xbf16>, tensor<?x100xbf16>) outs(%f : tensor<40x100xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<40x100xf32>
    return %m : tensor<40x100xf32>
  }
}

// Tiles are loaded from memory: what is turned over on the way is not there.
// CHECK: module @turned
// CHECK-SAME: template = "dot_quads"
module @turned attributes {mlc.kernel} {
  func.func @turned(%a: tensor<40x64xi8>, %b: tensor<64x48xi8>, %o: tensor<40x48xi32>) -> tensor<40x48xi32> {
    %zero = arith.constant 0 : i32
    %f = linalg.fill ins(%zero : i32) outs(%o : tensor<40x48xi32>) -> tensor<40x48xi32>
    %e = tensor.empty() : tensor<40x64xi8>
    %turned = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<40x64xi8>) outs(%e : tensor<40x64xi8>) {
    ^bb0(%v: i8, %w: i8):
      %high = arith.constant -128 : i8
      %u = arith.xori %v, %high : i8
      linalg.yield %u : i8
    } -> tensor<40x64xi8>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%turned, %b : tensor<40x64xi8>, tensor<64x48xi8>) outs(%f : tensor<40x48xi32>) attrs = {mlc.contraction} {
    ^bb0(%x: i8, %y: i8, %z: i32):
      %l = arith.extui %x : i8 to i32
      %r = arith.extsi %y : i8 to i32
      %p = arith.muli %l, %r : i32
      %s = arith.addi %z, %p : i32
      linalg.yield %s : i32
    } -> tensor<40x48xi32>
    return %m : tensor<40x48xi32>
  }
}

// Two lines of an image side by side where one has no more rows than a tile.
// CHECK: module @window
// CHECK-SAME: instruction = "tdpbf16ps"
// CHECK-SAME: line_dim = 1 : i64
// CHECK-SAME: rows = 16 : i64, stored = "tiles", template = "tile_product"
module @window attributes {mlc.kernel} {
  func.func @window(%a: tensor<1x14x14x64xbf16>, %b: tensor<3x3x64x48xbf16>, %o: tensor<1x14x14x48xf32>) -> tensor<1x14x14x48xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x14x14x48xf32>) -> tensor<1x14x14x48xf32>
    %none = arith.constant 0.0 : bf16
    %n = arith.constant 1 : index
    %h = arith.constant 14 : index
    %e = tensor.empty() : tensor<1x16x16x64xbf16>
    %i = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        outs(%e : tensor<1x16x16x64xbf16>) {
    ^bb0(%x: bf16):
      %d0 = linalg.index 0 : index
      %d1 = linalg.index 1 : index
      %d2 = linalg.index 2 : index
      %d3 = linalg.index 3 : index
      %r1 = arith.subi %d1, %n : index
      %r2 = arith.subi %d2, %n : index
      %t1 = arith.cmpi ult, %r1, %h : index
      %t2 = arith.cmpi ult, %r2, %h : index
      %t = arith.andi %t1, %t2 : i1
      %v = scf.if %t -> (bf16) {
        %u = tensor.extract %a[%d0, %r1, %r2, %d3] : tensor<1x14x14x64xbf16>
        scf.yield %u : bf16
      } else {
        scf.yield %none : bf16
      }
      linalg.yield %v : bf16
    } -> tensor<1x16x16x64xbf16>
    %m = linalg.generic {indexing_maps = [#i1, #g, #d], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
        ins(%i, %b : tensor<1x16x16x64xbf16>, tensor<3x3x64x48xbf16>) outs(%f : tensor<1x14x14x48xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<1x14x14x48xf32>
    return %m : tensor<1x14x14x48xf32>
  }
}

// Taps along a line and channels are one stretch of 21 elements, of which seven lines are kept in rows of whole steps.
// CHECK: module @first_layer
// CHECK-SAME: joined = 1 : i64
// CHECK-SAME: template = "tile_product", unfolded = 7 : i64
module @first_layer attributes {mlc.kernel} {
  func.func @first_layer(%a: tensor<1x64x64x3xbf16>, %b: tensor<7x7x3x40xbf16>, %o: tensor<1x32x32x40xf32>) -> tensor<1x32x32x40xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x32x32x40xf32>) -> tensor<1x32x32x40xf32>
    %none = arith.constant 0.0 : bf16
    %n = arith.constant 3 : index
    %h = arith.constant 64 : index
    %e = tensor.empty() : tensor<1x70x70x3xbf16>
    %i = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        outs(%e : tensor<1x70x70x3xbf16>) {
    ^bb0(%x: bf16):
      %d0 = linalg.index 0 : index
      %d1 = linalg.index 1 : index
      %d2 = linalg.index 2 : index
      %d3 = linalg.index 3 : index
      %r1 = arith.subi %d1, %n : index
      %r2 = arith.subi %d2, %n : index
      %t1 = arith.cmpi ult, %r1, %h : index
      %t2 = arith.cmpi ult, %r2, %h : index
      %t = arith.andi %t1, %t2 : i1
      %v = scf.if %t -> (bf16) {
        %u = tensor.extract %a[%d0, %r1, %r2, %d3] : tensor<1x64x64x3xbf16>
        scf.yield %u : bf16
      } else {
        scf.yield %none : bf16
      }
      linalg.yield %v : bf16
    } -> tensor<1x70x70x3xbf16>
    %m = linalg.generic {indexing_maps = [#i2, #g, #d], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
        ins(%i, %b : tensor<1x70x70x3xbf16>, tensor<7x7x3x40xbf16>) outs(%f : tensor<1x32x32x40xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<1x32x32x40xf32>
    return %m : tensor<1x32x32x40xf32>
  }
}

// The next panel of a large weight is fetched by 64 rows, of which the epilogue is with the steps of the next ones; two
// steps, as for the product above, have no room for it.
// CHECK: module @large
// CHECK-SAME: ahead = 64 : i64
// CHECK-SAME: mixed = 1 : i64
// CHECK-NOT: part =
// CHECK: func.func @large
module @large attributes {mlc.kernel} {
  func.func @large(%a: tensor<64x1024xbf16>, %b: tensor<1024x512xbf16>, %o: tensor<64x512xf32>) -> tensor<64x512xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<64x512xf32>) -> tensor<64x512xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<64x1024xbf16>, tensor<1024x512xbf16>) outs(%f : tensor<64x512xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<64x512xf32>
    return %m : tensor<64x512xf32>
  }
}

// Blocks of 32 rows meet all of a small weight: rows and results stay in no cache until the next panel.
// CHECK: module @many_rows
// CHECK-SAME: block = 1 : i64
// CHECK-SAME: part = 1 : i64
module @many_rows attributes {mlc.kernel} {
  func.func @many_rows(%a: tensor<3136x64xbf16>, %b: tensor<64x256xbf16>, %o: tensor<3136x256xf32>) -> tensor<3136x256xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<3136x256xf32>) -> tensor<3136x256xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<3136x64xbf16>, tensor<64x256xbf16>) outs(%f : tensor<3136x256xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<3136x256xf32>
    return %m : tensor<3136x256xf32>
  }
}

// A quarter of the rows meets all of a small weight, and is the part of a thread: what it wrote it reads.
// CHECK: module @in_parts
// CHECK-SAME: block = 7 : i64
// CHECK-SAME: part = 1 : i64
module @in_parts attributes {mlc.kernel} {
  func.func @in_parts(%a: tensor<784x128xbf16>, %b: tensor<128x128xbf16>, %o: tensor<784x128xf32>) -> tensor<784x128xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<784x128xf32>) -> tensor<784x128xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<784x128xbf16>, tensor<128x128xbf16>) outs(%f : tensor<784x128xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<784x128xf32>
    return %m : tensor<784x128xf32>
  }
}
