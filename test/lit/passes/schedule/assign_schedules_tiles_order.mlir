// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{bf16-dot=true bf16-tiles=true int8-tiles=true})' | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#e = affine_map<(m, n) -> (m, n)>
#i1 = affine_map<(n, h, w, o, y, x, c) -> (n, h + y, w + x, c)>
#i2 = affine_map<(n, h, w, o, y, x, c) -> (n, h * 2 + y, w * 2 + x, c)>
#g = affine_map<(n, h, w, o, y, x, c) -> (y, x, c, o)>
#d = affine_map<(n, h, w, o, y, x, c) -> (n, h, w, o)>
#h = affine_map<(n, h, w, o) -> (n, h, w, o)>

func.func @main(%x0: tensor<1024x3072xbf16>, %o0: tensor<1024x768xbf16>, %x1: tensor<1600x1024xbf16>, %o1: tensor<1600x256xbf16>, %x2: tensor<512x768xbf16>, %o2: tensor<512x3072xbf16>, %x3: tensor<?x1024xbf16>, %o3: tensor<?x1024xbf16>, %x4: tensor<1x80x80x256xbf16>, %o4: tensor<1x40x40x256xbf16>, %x5: tensor<1x20x20x64xbf16>, %o5: tensor<1x20x20x96xbf16>, %x6: tensor<1x16x16x64xbf16>, %o6: tensor<1x16x16x96xbf16>, %x7: tensor<1x40x40x256xbf16>, %o7: tensor<1x40x40x96xbf16>, %x8: tensor<1x13x13x48xbf16>, %o8: tensor<1x13x13x96xbf16>, %x9: tensor<1x13x13x16xbf16>, %o9: tensor<1x13x13x96xbf16>)
    -> (tensor<1024x768xbf16>, tensor<1600x256xbf16>, tensor<512x3072xbf16>, tensor<?x1024xbf16>, tensor<1x40x40x256xbf16>, tensor<1x20x20x96xbf16>, tensor<1x16x16x96xbf16>, tensor<1x40x40x96xbf16>, tensor<1x13x13x96xbf16>, tensor<1x13x13x96xbf16>) {
  %w0 = mlc.weight "w0" : tensor<3072x768xbf16>
  %0 = mlc.launch @deep(%x0, %w0) outs(%o0) : (tensor<1024x3072xbf16>, tensor<3072x768xbf16>) outs(tensor<1024x768xbf16>) -> tensor<1024x768xbf16>
  %w1 = mlc.weight "w1" : tensor<1024x256xbf16>
  %1 = mlc.launch @beside(%x1, %w1) outs(%o1) : (tensor<1600x1024xbf16>, tensor<1024x256xbf16>) outs(tensor<1600x256xbf16>) -> tensor<1600x256xbf16>
  %w2 = mlc.weight "w2" : tensor<768x3072xbf16>
  %2 = mlc.launch @near(%x2, %w2) outs(%o2) : (tensor<512x768xbf16>, tensor<768x3072xbf16>) outs(tensor<512x3072xbf16>) -> tensor<512x3072xbf16>
  %w3 = mlc.weight "w3" : tensor<1024x1024xbf16>
  %3 = mlc.launch @any_rows(%x3, %w3) outs(%o3) : (tensor<?x1024xbf16>, tensor<1024x1024xbf16>) outs(tensor<?x1024xbf16>) -> tensor<?x1024xbf16>
  %w4 = mlc.weight "w4" : tensor<3x3x256x256xbf16>
  %4 = mlc.launch @lines(%x4, %w4) outs(%o4) : (tensor<1x80x80x256xbf16>, tensor<3x3x256x256xbf16>) outs(tensor<1x40x40x256xbf16>) -> tensor<1x40x40x256xbf16>
  %w5 = mlc.weight "w5" : tensor<3x3x64x96xbf16>
  %5 = mlc.launch @flat(%x5, %w5) outs(%o5) : (tensor<1x20x20x64xbf16>, tensor<3x3x64x96xbf16>) outs(tensor<1x20x20x96xbf16>) -> tensor<1x20x20x96xbf16>
  %w6 = mlc.weight "w6" : tensor<3x3x64x96xbf16>
  %6 = mlc.launch @full_lines(%x6, %w6) outs(%o6) : (tensor<1x16x16x64xbf16>, tensor<3x3x64x96xbf16>) outs(tensor<1x16x16x96xbf16>) -> tensor<1x16x16x96xbf16>
  %w7 = mlc.weight "w7" : tensor<3x3x256x96xbf16>
  %7 = mlc.launch @too_large(%x7, %w7) outs(%o7) : (tensor<1x40x40x256xbf16>, tensor<3x3x256x96xbf16>) outs(tensor<1x40x40x96xbf16>) -> tensor<1x40x40x96xbf16>
  %w8 = mlc.weight "w8" : tensor<3x3x48x96xbf16>
  %8 = mlc.launch @in_taps(%x8, %w8) outs(%o8) : (tensor<1x13x13x48xbf16>, tensor<3x3x48x96xbf16>) outs(tensor<1x13x13x96xbf16>) -> tensor<1x13x13x96xbf16>
  %w9 = mlc.weight "w9" : tensor<3x3x16x96xbf16>
  %9 = mlc.launch @over_taps(%x9, %w9) outs(%o9) : (tensor<1x13x13x16xbf16>, tensor<3x3x16x96xbf16>) outs(tensor<1x13x13x96xbf16>) -> tensor<1x13x13x96xbf16>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 : tensor<1024x768xbf16>, tensor<1600x256xbf16>, tensor<512x3072xbf16>, tensor<?x1024xbf16>, tensor<1x40x40x256xbf16>, tensor<1x20x20x96xbf16>, tensor<1x16x16x96xbf16>, tensor<1x40x40x96xbf16>, tensor<1x13x13x96xbf16>, tensor<1x13x13x96xbf16>
}

// Rows that the second level of cache does not keep until the next panel: 128 of them meet the whole weight, and fetch
// its next panel.
// CHECK: module @deep
// CHECK-SAME: ahead = 1024 : i64, block = 4 : i64
// CHECK-SAME: part = 1 : i64, row_first
module @deep attributes {mlc.kernel} {
  func.func @deep(%a: tensor<1024x3072xbf16>, %b: tensor<3072x768xbf16>, %o: tensor<1024x768xbf16>) -> tensor<1024x768xbf16> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<1024x768xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1024x768xf32>) -> tensor<1024x768xf32>
    %s = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<1024x3072xbf16>, tensor<3072x768xbf16>) outs(%f : tensor<1024x768xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %t = arith.addf %z, %p : f32
      linalg.yield %t : f32
    } -> tensor<1024x768xf32>
    %d = linalg.generic {indexing_maps = [#e, #e], iterator_types = ["parallel", "parallel"]}
        ins(%s : tensor<1024x768xf32>) outs(%o : tensor<1024x768xbf16>) {
    ^bb0(%x: f32, %y: bf16):
      %v = arith.truncf %x : f32 to bf16
      linalg.yield %v : bf16
    } -> tensor<1024x768xbf16>
    return %d : tensor<1024x768xbf16>
  }
}

// Beside a weight that stays there are rows and their results.
// CHECK: module @beside
// CHECK-SAME: block = 4 : i64
// CHECK-SAME: part = 1 : i64, row_first
module @beside attributes {mlc.kernel} {
  func.func @beside(%a: tensor<1600x1024xbf16>, %b: tensor<1024x256xbf16>, %o: tensor<1600x256xbf16>) -> tensor<1600x256xbf16> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<1600x256xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1600x256xf32>) -> tensor<1600x256xf32>
    %s = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<1600x1024xbf16>, tensor<1024x256xbf16>) outs(%f : tensor<1600x256xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %t = arith.addf %z, %p : f32
      linalg.yield %t : f32
    } -> tensor<1600x256xf32>
    %d = linalg.generic {indexing_maps = [#e, #e], iterator_types = ["parallel", "parallel"]}
        ins(%s : tensor<1600x256xf32>) outs(%o : tensor<1600x256xbf16>) {
    ^bb0(%x: f32, %y: bf16):
      %v = arith.truncf %x : f32 to bf16
      linalg.yield %v : bf16
    } -> tensor<1600x256xbf16>
    return %d : tensor<1600x256xbf16>
  }
}

// These are kept.
// CHECK: module @near
// CHECK-SAME: ahead = 512 : i64
// CHECK-NOT: part =
// CHECK: func.func @near
module @near attributes {mlc.kernel} {
  func.func @near(%a: tensor<512x768xbf16>, %b: tensor<768x3072xbf16>, %o: tensor<512x3072xbf16>) -> tensor<512x3072xbf16> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<512x3072xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x3072xf32>) -> tensor<512x3072xf32>
    %s = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<512x768xbf16>, tensor<768x3072xbf16>) outs(%f : tensor<512x3072xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %t = arith.addf %z, %p : f32
      linalg.yield %t : f32
    } -> tensor<512x3072xf32>
    %d = linalg.generic {indexing_maps = [#e, #e], iterator_types = ["parallel", "parallel"]}
        ins(%s : tensor<512x3072xf32>) outs(%o : tensor<512x3072xbf16>) {
    ^bb0(%x: f32, %y: bf16):
      %v = arith.truncf %x : f32 to bf16
      linalg.yield %v : bf16
    } -> tensor<512x3072xbf16>
    return %d : tensor<512x3072xbf16>
  }
}

// Where a run counts rows there may be more than are kept.
// CHECK: module @any_rows
// CHECK-SAME: ahead = -128 : i64, block = 12 : i64
// CHECK-SAME: part = 1 : i64, row_first
module @any_rows attributes {mlc.kernel} {
  func.func @any_rows(%a: tensor<?x1024xbf16>, %b: tensor<1024x1024xbf16>, %o: tensor<?x1024xbf16>) -> tensor<?x1024xbf16> {
    %first = arith.constant 0 : index
    %m = tensor.dim %a, %first : tensor<?x1024xbf16>
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty(%m) : tensor<?x1024xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x1024xf32>) -> tensor<?x1024xf32>
    %s = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<?x1024xbf16>, tensor<1024x1024xbf16>) outs(%f : tensor<?x1024xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %t = arith.addf %z, %p : f32
      linalg.yield %t : f32
    } -> tensor<?x1024xf32>
    %d = linalg.generic {indexing_maps = [#e, #e], iterator_types = ["parallel", "parallel"]}
        ins(%s : tensor<?x1024xf32>) outs(%o : tensor<?x1024xbf16>) {
    ^bb0(%x: f32, %y: bf16):
      %v = arith.truncf %x : f32 to bf16
      linalg.yield %v : bf16
    } -> tensor<?x1024xbf16>
    return %d : tensor<?x1024xbf16>
  }
}

// Lines of an image, of an input of 3 MB: nine of them meet the whole weight.
// CHECK: module @lines
// CHECK-SAME: ahead = 1600 : i64, block = 2 : i64
// CHECK-SAME: part = 9 : i64, row_first = 2
module @lines attributes {mlc.kernel} {
  func.func @lines(%a: tensor<1x80x80x256xbf16>, %b: tensor<3x3x256x256xbf16>, %o: tensor<1x40x40x256xbf16>) -> tensor<1x40x40x256xbf16> {
    %zero = arith.constant 0.0 : f32
    %g = tensor.empty() : tensor<1x40x40x256xf32>
    %f = linalg.fill ins(%zero : f32) outs(%g : tensor<1x40x40x256xf32>) -> tensor<1x40x40x256xf32>
    %none = arith.constant 0.0 : bf16
    %n = arith.constant 1 : index
    %h = arith.constant 80 : index
    %w = arith.constant 80 : index
    %e = tensor.empty() : tensor<1x82x82x256xbf16>
    %i = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        outs(%e : tensor<1x82x82x256xbf16>) {
    ^bb0(%x: bf16):
      %d0 = linalg.index 0 : index
      %d1 = linalg.index 1 : index
      %d2 = linalg.index 2 : index
      %d3 = linalg.index 3 : index
      %r1 = arith.subi %d1, %n : index
      %r2 = arith.subi %d2, %n : index
      %t1 = arith.cmpi ult, %r1, %h : index
      %t2 = arith.cmpi ult, %r2, %w : index
      %t = arith.andi %t1, %t2 : i1
      %v = scf.if %t -> (bf16) {
        %u = tensor.extract %a[%d0, %r1, %r2, %d3] : tensor<1x80x80x256xbf16>
        scf.yield %u : bf16
      } else {
        scf.yield %none : bf16
      }
      linalg.yield %v : bf16
    } -> tensor<1x82x82x256xbf16>
    %m = linalg.generic {indexing_maps = [#i2, #g, #d], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
        ins(%i, %b : tensor<1x82x82x256xbf16>, tensor<3x3x256x256xbf16>) outs(%f : tensor<1x40x40x256xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %q = arith.addf %z, %p : f32
      linalg.yield %q : f32
    } -> tensor<1x40x40x256xf32>
    %y = linalg.generic {indexing_maps = [#h, #h], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%m : tensor<1x40x40x256xf32>) outs(%o : tensor<1x40x40x256xbf16>) {
    ^bb0(%x: f32, %z: bf16):
      %v = arith.truncf %x : f32 to bf16
      linalg.yield %v : bf16
    } -> tensor<1x40x40x256xbf16>
    return %y : tensor<1x40x40x256xbf16>
  }
}

// Rows go over the lines of a copied image, a zero between two of them: 27 tiles instead of 40.
// CHECK: module @flat
// CHECK-SAME: flat = 21 : i64, halo = 1 : i64
// CHECK-NOT: line_dim
// CHECK-SAME: row_first = 1 : i64, row_last = 2 : i64, rows = 32 : i64
module @flat attributes {mlc.kernel} {
  func.func @flat(%a: tensor<1x20x20x64xbf16>, %b: tensor<3x3x64x96xbf16>, %o: tensor<1x20x20x96xbf16>) -> tensor<1x20x20x96xbf16> {
    %zero = arith.constant 0.0 : f32
    %g = tensor.empty() : tensor<1x20x20x96xf32>
    %f = linalg.fill ins(%zero : f32) outs(%g : tensor<1x20x20x96xf32>) -> tensor<1x20x20x96xf32>
    %none = arith.constant 0.0 : bf16
    %n = arith.constant 1 : index
    %h = arith.constant 20 : index
    %w = arith.constant 20 : index
    %e = tensor.empty() : tensor<1x22x22x64xbf16>
    %i = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        outs(%e : tensor<1x22x22x64xbf16>) {
    ^bb0(%x: bf16):
      %d0 = linalg.index 0 : index
      %d1 = linalg.index 1 : index
      %d2 = linalg.index 2 : index
      %d3 = linalg.index 3 : index
      %r1 = arith.subi %d1, %n : index
      %r2 = arith.subi %d2, %n : index
      %t1 = arith.cmpi ult, %r1, %h : index
      %t2 = arith.cmpi ult, %r2, %w : index
      %t = arith.andi %t1, %t2 : i1
      %v = scf.if %t -> (bf16) {
        %u = tensor.extract %a[%d0, %r1, %r2, %d3] : tensor<1x20x20x64xbf16>
        scf.yield %u : bf16
      } else {
        scf.yield %none : bf16
      }
      linalg.yield %v : bf16
    } -> tensor<1x22x22x64xbf16>
    %m = linalg.generic {indexing_maps = [#i1, #g, #d], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
        ins(%i, %b : tensor<1x22x22x64xbf16>, tensor<3x3x64x96xbf16>) outs(%f : tensor<1x20x20x96xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %q = arith.addf %z, %p : f32
      linalg.yield %q : f32
    } -> tensor<1x20x20x96xf32>
    %y = linalg.generic {indexing_maps = [#h, #h], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%m : tensor<1x20x20x96xf32>) outs(%o : tensor<1x20x20x96xbf16>) {
    ^bb0(%x: f32, %z: bf16):
      %v = arith.truncf %x : f32 to bf16
      linalg.yield %v : bf16
    } -> tensor<1x20x20x96xbf16>
    return %y : tensor<1x20x20x96xbf16>
  }
}

// Lines of whole tiles stay lines.
// CHECK: module @full_lines
// CHECK-NOT: flat
// CHECK-SAME: halo = 1 : i64
// CHECK-SAME: line_dim = 1 : i64
module @full_lines attributes {mlc.kernel} {
  func.func @full_lines(%a: tensor<1x16x16x64xbf16>, %b: tensor<3x3x64x96xbf16>, %o: tensor<1x16x16x96xbf16>) -> tensor<1x16x16x96xbf16> {
    %zero = arith.constant 0.0 : f32
    %g = tensor.empty() : tensor<1x16x16x96xf32>
    %f = linalg.fill ins(%zero : f32) outs(%g : tensor<1x16x16x96xf32>) -> tensor<1x16x16x96xf32>
    %none = arith.constant 0.0 : bf16
    %n = arith.constant 1 : index
    %h = arith.constant 16 : index
    %w = arith.constant 16 : index
    %e = tensor.empty() : tensor<1x18x18x64xbf16>
    %i = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        outs(%e : tensor<1x18x18x64xbf16>) {
    ^bb0(%x: bf16):
      %d0 = linalg.index 0 : index
      %d1 = linalg.index 1 : index
      %d2 = linalg.index 2 : index
      %d3 = linalg.index 3 : index
      %r1 = arith.subi %d1, %n : index
      %r2 = arith.subi %d2, %n : index
      %t1 = arith.cmpi ult, %r1, %h : index
      %t2 = arith.cmpi ult, %r2, %w : index
      %t = arith.andi %t1, %t2 : i1
      %v = scf.if %t -> (bf16) {
        %u = tensor.extract %a[%d0, %r1, %r2, %d3] : tensor<1x16x16x64xbf16>
        scf.yield %u : bf16
      } else {
        scf.yield %none : bf16
      }
      linalg.yield %v : bf16
    } -> tensor<1x18x18x64xbf16>
    %m = linalg.generic {indexing_maps = [#i1, #g, #d], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
        ins(%i, %b : tensor<1x18x18x64xbf16>, tensor<3x3x64x96xbf16>) outs(%f : tensor<1x16x16x96xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %q = arith.addf %z, %p : f32
      linalg.yield %q : f32
    } -> tensor<1x16x16x96xf32>
    %y = linalg.generic {indexing_maps = [#h, #h], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%m : tensor<1x16x16x96xf32>) outs(%o : tensor<1x16x16x96xbf16>) {
    ^bb0(%x: f32, %z: bf16):
      %v = arith.truncf %x : f32 to bf16
      linalg.yield %v : bf16
    } -> tensor<1x16x16x96xbf16>
    return %y : tensor<1x16x16x96xbf16>
  }
}

// An image that has no room on the stack is read where it lies.
// CHECK: module @too_large
// CHECK-NOT: flat
// CHECK-NOT: halo
// CHECK: func.func @too_large
module @too_large attributes {mlc.kernel} {
  func.func @too_large(%a: tensor<1x40x40x256xbf16>, %b: tensor<3x3x256x96xbf16>, %o: tensor<1x40x40x96xbf16>) -> tensor<1x40x40x96xbf16> {
    %zero = arith.constant 0.0 : f32
    %g = tensor.empty() : tensor<1x40x40x96xf32>
    %f = linalg.fill ins(%zero : f32) outs(%g : tensor<1x40x40x96xf32>) -> tensor<1x40x40x96xf32>
    %none = arith.constant 0.0 : bf16
    %n = arith.constant 1 : index
    %h = arith.constant 40 : index
    %w = arith.constant 40 : index
    %e = tensor.empty() : tensor<1x42x42x256xbf16>
    %i = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        outs(%e : tensor<1x42x42x256xbf16>) {
    ^bb0(%x: bf16):
      %d0 = linalg.index 0 : index
      %d1 = linalg.index 1 : index
      %d2 = linalg.index 2 : index
      %d3 = linalg.index 3 : index
      %r1 = arith.subi %d1, %n : index
      %r2 = arith.subi %d2, %n : index
      %t1 = arith.cmpi ult, %r1, %h : index
      %t2 = arith.cmpi ult, %r2, %w : index
      %t = arith.andi %t1, %t2 : i1
      %v = scf.if %t -> (bf16) {
        %u = tensor.extract %a[%d0, %r1, %r2, %d3] : tensor<1x40x40x256xbf16>
        scf.yield %u : bf16
      } else {
        scf.yield %none : bf16
      }
      linalg.yield %v : bf16
    } -> tensor<1x42x42x256xbf16>
    %m = linalg.generic {indexing_maps = [#i1, #g, #d], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
        ins(%i, %b : tensor<1x42x42x256xbf16>, tensor<3x3x256x96xbf16>) outs(%f : tensor<1x40x40x96xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %q = arith.addf %z, %p : f32
      linalg.yield %q : f32
    } -> tensor<1x40x40x96xf32>
    %y = linalg.generic {indexing_maps = [#h, #h], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%m : tensor<1x40x40x96xf32>) outs(%o : tensor<1x40x40x96xbf16>) {
    ^bb0(%x: f32, %z: bf16):
      %v = arith.truncf %x : f32 to bf16
      linalg.yield %v : bf16
    } -> tensor<1x40x40x96xbf16>
    return %y : tensor<1x40x40x96xbf16>
  }
}

// Two steps of 24 channels leave no rest in a tap. Those of 16 are joined over the taps of a line.
// CHECK: module @in_taps
// CHECK-SAME: flat = 14 : i64
// CHECK-NOT: joined
// CHECK-SAME: stored = "tiles"
module @in_taps attributes {mlc.kernel} {
  func.func @in_taps(%a: tensor<1x13x13x48xbf16>, %b: tensor<3x3x48x96xbf16>, %o: tensor<1x13x13x96xbf16>) -> tensor<1x13x13x96xbf16> {
    %zero = arith.constant 0.0 : f32
    %g = tensor.empty() : tensor<1x13x13x96xf32>
    %f = linalg.fill ins(%zero : f32) outs(%g : tensor<1x13x13x96xf32>) -> tensor<1x13x13x96xf32>
    %none = arith.constant 0.0 : bf16
    %n = arith.constant 1 : index
    %h = arith.constant 13 : index
    %w = arith.constant 13 : index
    %e = tensor.empty() : tensor<1x15x15x48xbf16>
    %i = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        outs(%e : tensor<1x15x15x48xbf16>) {
    ^bb0(%x: bf16):
      %d0 = linalg.index 0 : index
      %d1 = linalg.index 1 : index
      %d2 = linalg.index 2 : index
      %d3 = linalg.index 3 : index
      %r1 = arith.subi %d1, %n : index
      %r2 = arith.subi %d2, %n : index
      %t1 = arith.cmpi ult, %r1, %h : index
      %t2 = arith.cmpi ult, %r2, %w : index
      %t = arith.andi %t1, %t2 : i1
      %v = scf.if %t -> (bf16) {
        %u = tensor.extract %a[%d0, %r1, %r2, %d3] : tensor<1x13x13x48xbf16>
        scf.yield %u : bf16
      } else {
        scf.yield %none : bf16
      }
      linalg.yield %v : bf16
    } -> tensor<1x15x15x48xbf16>
    %m = linalg.generic {indexing_maps = [#i1, #g, #d], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
        ins(%i, %b : tensor<1x15x15x48xbf16>, tensor<3x3x48x96xbf16>) outs(%f : tensor<1x13x13x96xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %q = arith.addf %z, %p : f32
      linalg.yield %q : f32
    } -> tensor<1x13x13x96xf32>
    %y = linalg.generic {indexing_maps = [#h, #h], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%m : tensor<1x13x13x96xf32>) outs(%o : tensor<1x13x13x96xbf16>) {
    ^bb0(%x: f32, %z: bf16):
      %v = arith.truncf %x : f32 to bf16
      linalg.yield %v : bf16
    } -> tensor<1x13x13x96xbf16>
    return %y : tensor<1x13x13x96xbf16>
  }
}

// CHECK: module @over_taps
// CHECK-SAME: joined = 1 : i64
module @over_taps attributes {mlc.kernel} {
  func.func @over_taps(%a: tensor<1x13x13x16xbf16>, %b: tensor<3x3x16x96xbf16>, %o: tensor<1x13x13x96xbf16>) -> tensor<1x13x13x96xbf16> {
    %zero = arith.constant 0.0 : f32
    %g = tensor.empty() : tensor<1x13x13x96xf32>
    %f = linalg.fill ins(%zero : f32) outs(%g : tensor<1x13x13x96xf32>) -> tensor<1x13x13x96xf32>
    %none = arith.constant 0.0 : bf16
    %n = arith.constant 1 : index
    %h = arith.constant 13 : index
    %w = arith.constant 13 : index
    %e = tensor.empty() : tensor<1x15x15x16xbf16>
    %i = linalg.generic {indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        outs(%e : tensor<1x15x15x16xbf16>) {
    ^bb0(%x: bf16):
      %d0 = linalg.index 0 : index
      %d1 = linalg.index 1 : index
      %d2 = linalg.index 2 : index
      %d3 = linalg.index 3 : index
      %r1 = arith.subi %d1, %n : index
      %r2 = arith.subi %d2, %n : index
      %t1 = arith.cmpi ult, %r1, %h : index
      %t2 = arith.cmpi ult, %r2, %w : index
      %t = arith.andi %t1, %t2 : i1
      %v = scf.if %t -> (bf16) {
        %u = tensor.extract %a[%d0, %r1, %r2, %d3] : tensor<1x13x13x16xbf16>
        scf.yield %u : bf16
      } else {
        scf.yield %none : bf16
      }
      linalg.yield %v : bf16
    } -> tensor<1x15x15x16xbf16>
    %m = linalg.generic {indexing_maps = [#i1, #g, #d], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
        ins(%i, %b : tensor<1x15x15x16xbf16>, tensor<3x3x16x96xbf16>) outs(%f : tensor<1x13x13x96xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %q = arith.addf %z, %p : f32
      linalg.yield %q : f32
    } -> tensor<1x13x13x96xf32>
    %y = linalg.generic {indexing_maps = [#h, #h], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%m : tensor<1x13x13x96xf32>) outs(%o : tensor<1x13x13x96xbf16>) {
    ^bb0(%x: f32, %z: bf16):
      %v = arith.truncf %x : f32 to bf16
      linalg.yield %v : bf16
    } -> tensor<1x13x13x96xbf16>
    return %y : tensor<1x13x13x96xbf16>
  }
}
