// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules)' | FileCheck %s

// Schedules where only a run knows how many images there are, or of which size.

#x = affine_map<(n, h, w, c) -> (n, h, w, c)>
#y = affine_map<(n, h, w, c) -> (h, c)>
#ia = affine_map<(n, h, w, c, k) -> (n, h, w, k)>
#kb = affine_map<(n, h, w, c, k) -> (k, c)>
#ic = affine_map<(n, h, w, c, k) -> (n, h, w, c)>
#i = affine_map<(n, h, w, c, y, x) -> (n, h + y, w + x, c)>
#g = affine_map<(n, h, w, c, y, x) -> (y, x, c)>
#d = affine_map<(n, h, w, c, y, x) -> (n, h, w, c)>
#j = affine_map<(n, h, w, f, y, x, c) -> (n, h + y, w + x, c)>
#h = affine_map<(n, h, w, f, y, x, c) -> (y, x, c, f)>
#e = affine_map<(n, h, w, f, y, x, c) -> (n, h, w, f)>

func.func @of_behind_sequence(%x: tensor<?x197x768xf32>, %n: index) -> tensor<197x?x2304xf32> {
  %w = mlc.weight "behind_sequence" : tensor<768x2304xf32>
  %e = tensor.empty(%n) : tensor<197x?x2304xf32>
  %r = mlc.launch @behind_sequence(%x, %w) outs(%e) : (tensor<?x197x768xf32>, tensor<768x2304xf32>) outs(tensor<197x?x2304xf32>) -> tensor<197x?x2304xf32>
  return %r : tensor<197x?x2304xf32>
}

func.func @of_pixels_of_images(%x: tensor<?x56x56x64xf32>, %n: index) -> tensor<?x56x56x256xf32> {
  %w = mlc.weight "pixels_of_images" : tensor<64x256xf32>
  %e = tensor.empty(%n) : tensor<?x56x56x256xf32>
  %r = mlc.launch @pixels_of_images(%x, %w) outs(%e) : (tensor<?x56x56x64xf32>, tensor<64x256xf32>) outs(tensor<?x56x56x256xf32>) -> tensor<?x56x56x256xf32>
  return %r : tensor<?x56x56x256xf32>
}

func.func @of_few_pixels(%x: tensor<?x7x7x1024xf32>, %n: index) -> tensor<?x7x7x512xf32> {
  %w = mlc.weight "few_pixels" : tensor<1024x512xf32>
  %e = tensor.empty(%n) : tensor<?x7x7x512xf32>
  %r = mlc.launch @few_pixels(%x, %w) outs(%e) : (tensor<?x7x7x1024xf32>, tensor<1024x512xf32>) outs(tensor<?x7x7x512xf32>) -> tensor<?x7x7x512xf32>
  return %r : tensor<?x7x7x512xf32>
}

func.func @of_window_of_images(%x: tensor<?x16x16x256xf32>, %n: index) -> tensor<?x14x14x256xf32> {
  %w = mlc.weight "window_of_images" : tensor<3x3x256x256xf32>
  %e = tensor.empty(%n) : tensor<?x14x14x256xf32>
  %r = mlc.launch @window_of_images(%x, %w) outs(%e) : (tensor<?x16x16x256xf32>, tensor<3x3x256x256xf32>) outs(tensor<?x14x14x256xf32>) -> tensor<?x14x14x256xf32>
  return %r : tensor<?x14x14x256xf32>
}

func.func @of_any_pixels(%x: tensor<?x?x?x64xf32>, %n: index) -> tensor<?x?x?x256xf32> {
  %w = mlc.weight "any_pixels" : tensor<64x256xf32>
  %e = tensor.empty(%n, %n, %n) : tensor<?x?x?x256xf32>
  %r = mlc.launch @any_pixels(%x, %w) outs(%e) : (tensor<?x?x?x64xf32>, tensor<64x256xf32>) outs(tensor<?x?x?x256xf32>) -> tensor<?x?x?x256xf32>
  return %r : tensor<?x?x?x256xf32>
}

func.func @of_any_depthwise(%x: tensor<?x?x?x192xf32>, %n: index) -> tensor<?x?x?x192xf32> {
  %w = mlc.weight "any_depthwise" : tensor<3x3x192xf32>
  %e = tensor.empty(%n, %n, %n) : tensor<?x?x?x192xf32>
  %r = mlc.launch @any_depthwise(%x, %w) outs(%e) : (tensor<?x?x?x192xf32>, tensor<3x3x192xf32>) outs(tensor<?x?x?x192xf32>) -> tensor<?x?x?x192xf32>
  return %r : tensor<?x?x?x192xf32>
}

func.func @of_any_window(%x: tensor<?x?x?x64xf32>, %n: index) -> tensor<?x?x?x192xf32> {
  %w = mlc.weight "any_window" : tensor<3x3x64x192xf32>
  %e = tensor.empty(%n, %n, %n) : tensor<?x?x?x192xf32>
  %r = mlc.launch @any_window(%x, %w) outs(%e) : (tensor<?x?x?x64xf32>, tensor<3x3x64x192xf32>) outs(tensor<?x?x?x192xf32>) -> tensor<?x?x?x192xf32>
  return %r : tensor<?x?x?x192xf32>
}

func.func @of_any_large_window(%x: tensor<?x?x?x512xf32>, %n: index) -> tensor<?x?x?x512xf32> {
  %w = mlc.weight "any_large_window" : tensor<3x3x512x512xf32>
  %e = tensor.empty(%n, %n, %n) : tensor<?x?x?x512xf32>
  %r = mlc.launch @any_large_window(%x, %w) outs(%e) : (tensor<?x?x?x512xf32>, tensor<3x3x512x512xf32>) outs(tensor<?x?x?x512xf32>) -> tensor<?x?x?x512xf32>
  return %r : tensor<?x?x?x512xf32>
}

// Of any number of images: what is best for one, whose pixels are the least there are.
// CHECK: module @pixels_of_images
// CHECK-SAME: block = 33 : i64
// CHECK-SAME: part = 4 : i64
// CHECK-SAME: rows = 6 : i64
module @pixels_of_images attributes {mlc.kernel} {
  func.func @pixels_of_images(%a: tensor<?x56x56x64xf32>, %b: tensor<64x256xf32>, %o: tensor<?x56x56x256xf32>) -> tensor<?x56x56x256xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?x56x56x256xf32>) -> tensor<?x56x56x256xf32>
    %m = linalg.generic {indexing_maps = [#ia, #kb, #ic], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<?x56x56x64xf32>, tensor<64x256xf32>) outs(%f : tensor<?x56x56x256xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %t = arith.mulf %x, %y : f32
      %s = arith.addf %z, %t : f32
      linalg.yield %s : f32
    } -> tensor<?x56x56x256xf32>
    return %m : tensor<?x56x56x256xf32>
  }
}

// Those of one image fetch the next panel.
// CHECK: module @few_pixels
// CHECK-SAME: ahead = 49 : i64
// CHECK-NOT: part =
// CHECK-SAME: rows = 6 : i64
module @few_pixels attributes {mlc.kernel} {
  func.func @few_pixels(%a: tensor<?x7x7x1024xf32>, %b: tensor<1024x512xf32>, %o: tensor<?x7x7x512xf32>) -> tensor<?x7x7x512xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?x7x7x512xf32>) -> tensor<?x7x7x512xf32>
    %m = linalg.generic {indexing_maps = [#ia, #kb, #ic], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<?x7x7x1024xf32>, tensor<1024x512xf32>) outs(%f : tensor<?x7x7x512xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %t = arith.mulf %x, %y : f32
      %s = arith.addf %z, %t : f32
      linalg.yield %s : f32
    } -> tensor<?x7x7x512xf32>
    return %m : tensor<?x7x7x512xf32>
  }
}

// CHECK: module @window_of_images
// CHECK-SAME: ahead = 196 : i64
// CHECK-SAME: rows = 6 : i64
module @window_of_images attributes {mlc.kernel} {
  func.func @window_of_images(%a: tensor<?x16x16x256xf32>, %b: tensor<3x3x256x256xf32>, %o: tensor<?x14x14x256xf32>) -> tensor<?x14x14x256xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?x14x14x256xf32>) -> tensor<?x14x14x256xf32>
    %m = linalg.generic {indexing_maps = [#j, #h, #e], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
        ins(%a, %b : tensor<?x16x16x256xf32>, tensor<3x3x256x256xf32>) outs(%f : tensor<?x14x14x256xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %t = arith.mulf %x, %y : f32
      %s = arith.addf %z, %t : f32
      linalg.yield %s : f32
    } -> tensor<?x14x14x256xf32>
    return %m : tensor<?x14x14x256xf32>
  }
}

// Images of any size: a run makes the parts.
// CHECK: module @any_pixels
// CHECK-SAME: part = -4 : i64
// CHECK-SAME: rows = 8 : i64
module @any_pixels attributes {mlc.kernel} {
  func.func @any_pixels(%a: tensor<?x?x?x64xf32>, %b: tensor<64x256xf32>, %o: tensor<?x?x?x256xf32>) -> tensor<?x?x?x256xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?x?x?x256xf32>) -> tensor<?x?x?x256xf32>
    %m = linalg.generic {indexing_maps = [#ia, #kb, #ic], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<?x?x?x64xf32>, tensor<64x256xf32>) outs(%f : tensor<?x?x?x256xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %t = arith.mulf %x, %y : f32
      %s = arith.addf %z, %t : f32
      linalg.yield %s : f32
    } -> tensor<?x?x?x256xf32>
    return %m : tensor<?x?x?x256xf32>
  }
}

// Pieces of a line meet all panels.
// CHECK: module @any_depthwise
// CHECK-SAME: part = 1 : i64
module @any_depthwise attributes {mlc.kernel} {
  func.func @any_depthwise(%a: tensor<?x?x?x192xf32>, %b: tensor<3x3x192xf32>, %o: tensor<?x?x?x192xf32>) -> tensor<?x?x?x192xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?x?x?x192xf32>) -> tensor<?x?x?x192xf32>
    %m = linalg.generic {indexing_maps = [#i, #g, #d], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
        ins(%a, %b : tensor<?x?x?x192xf32>, tensor<3x3x192xf32>) outs(%f : tensor<?x?x?x192xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %t = arith.mulf %x, %y : f32
      %s = arith.addf %z, %t : f32
      linalg.yield %s : f32
    } -> tensor<?x?x?x192xf32>
    return %m : tensor<?x?x?x192xf32>
  }
}

// CHECK: module @any_window
// CHECK-SAME: part = -4 : i64
module @any_window attributes {mlc.kernel} {
  func.func @any_window(%a: tensor<?x?x?x64xf32>, %b: tensor<3x3x64x192xf32>, %o: tensor<?x?x?x192xf32>) -> tensor<?x?x?x192xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?x?x?x192xf32>) -> tensor<?x?x?x192xf32>
    %m = linalg.generic {indexing_maps = [#j, #h, #e], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
        ins(%a, %b : tensor<?x?x?x64xf32>, tensor<3x3x64x192xf32>) outs(%f : tensor<?x?x?x192xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %t = arith.mulf %x, %y : f32
      %s = arith.addf %z, %t : f32
      linalg.yield %s : f32
    } -> tensor<?x?x?x192xf32>
    return %m : tensor<?x?x?x192xf32>
  }
}

// As many rows as a run has fetch the next panel; they are seven in tiles of two vectors, as lines are in such layers.
// CHECK: module @any_large_window
// CHECK-SAME: ahead = -28 : i64
// CHECK-NOT: part =
// CHECK-SAME: rows = 7 : i64
// CHECK-SAME: vectors = 2 : i64
module @any_large_window attributes {mlc.kernel} {
  func.func @any_large_window(%a: tensor<?x?x?x512xf32>, %b: tensor<3x3x512x512xf32>, %o: tensor<?x?x?x512xf32>) -> tensor<?x?x?x512xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?x?x?x512xf32>) -> tensor<?x?x?x512xf32>
    %m = linalg.generic {indexing_maps = [#j, #h, #e], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
        ins(%a, %b : tensor<?x?x?x512xf32>, tensor<3x3x512x512xf32>) outs(%f : tensor<?x?x?x512xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %t = arith.mulf %x, %y : f32
      %s = arith.addf %z, %t : f32
      linalg.yield %s : f32
    } -> tensor<?x?x?x512xf32>
    return %m : tensor<?x?x?x512xf32>
  }
}

// What is not computed by products: lines are work items where images have any size, not pixels, which take a few
// instructions each; rows of tokens are, and all their heads together.
// CHECK: module @any_image
// CHECK-SAME: first = 3 : i64, grid = 2 : i64
module @any_image attributes {mlc.kernel} {
  func.func @any_image(%a: tensor<?x?x?x96xf32>, %b: tensor<?x96xf32>, %o: tensor<?x?x?x96xf32>) -> tensor<?x?x?x96xf32> {
    %m = linalg.generic {indexing_maps = [#x, #y, #x], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%a, %b : tensor<?x?x?x96xf32>, tensor<?x96xf32>) outs(%o : tensor<?x?x?x96xf32>) {
    ^bb0(%p: f32, %q: f32, %z: f32):
      %t = arith.addf %p, %q : f32
      linalg.yield %t : f32
    } -> tensor<?x?x?x96xf32>
    return %m : tensor<?x?x?x96xf32>
  }
}

// CHECK: module @any_tokens
// CHECK-SAME: first = 3 : i64, grid = 2 : i64
module @any_tokens attributes {mlc.kernel} {
  func.func @any_tokens(%a: tensor<?x?x12x64xf32>, %b: tensor<12x?x64xf32>, %o: tensor<?x?x12x64xf32>) -> tensor<?x?x12x64xf32> {
    %m = linalg.generic {indexing_maps = [#x, affine_map<(n, h, w, c) -> (w, h, c)>, #x], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
        ins(%a, %b : tensor<?x?x12x64xf32>, tensor<12x?x64xf32>) outs(%o : tensor<?x?x12x64xf32>) {
    ^bb0(%p: f32, %q: f32, %z: f32):
      %t = arith.addf %p, %q : f32
      linalg.yield %t : f32
    } -> tensor<?x?x12x64xf32>
    return %m : tensor<?x?x12x64xf32>
  }
}

// A batch that comes behind the sequence may have one element: the rows of tiles are those of the sequence.
// CHECK: module @behind_sequence
// CHECK-SAME: row_first = 0 : i64, row_last = 0 : i64
module @behind_sequence attributes {mlc.kernel} {
  func.func @behind_sequence(%a: tensor<?x197x768xf32>, %b: tensor<768x2304xf32>, %o: tensor<197x?x2304xf32>) -> tensor<197x?x2304xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<197x?x2304xf32>) -> tensor<197x?x2304xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(s, b, n, k) -> (b, s, k)>, affine_map<(s, b, n, k) -> (k, n)>, affine_map<(s, b, n, k) -> (s, b, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<?x197x768xf32>, tensor<768x2304xf32>) outs(%f : tensor<197x?x2304xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %t = arith.mulf %x, %y : f32
      %s = arith.addf %z, %t : f32
      linalg.yield %s : f32
    } -> tensor<197x?x2304xf32>
    return %m : tensor<197x?x2304xf32>
  }
}
