// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules)' | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#p = affine_map<(b, m, n, k) -> (b, m, k)>
#q = affine_map<(b, m, n, k) -> (b, k, n)>
#r = affine_map<(b, m, n, k) -> (b, m, n)>
#i = affine_map<(n, h, w, c, y, x) -> (n, h + y, w + x, c)>
#g = affine_map<(n, h, w, c, y, x) -> (y, x, c)>
#d = affine_map<(n, h, w, c, y, x) -> (n, h, w, c)>
#j = affine_map<(n, h, w, f, y, x, c) -> (n, h + y, w + x, c)>
#h = affine_map<(n, h, w, f, y, x, c) -> (y, x, c, f)>
#e = affine_map<(n, h, w, f, y, x, c) -> (n, h, w, f)>

// Four parts of 131 tiles of rows meet all panels: halves of the work items are halves of the rows.
// CHECK: module @pixels
// CHECK-SAME: block = 44 : i64
// CHECK-SAME: part = 3 : i64
// CHECK-SAME: rows = 6 : i64
module @pixels attributes {mlc.kernel} {
  func.func @pixels(%a: tensor<3136x64xf32>, %b: tensor<64x256xf32>, %o: tensor<3136x256xf32>) -> tensor<3136x256xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<3136x256xf32>) -> tensor<3136x256xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<3136x64xf32>, tensor<64x256xf32>) outs(%f : tensor<3136x256xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %t = arith.mulf %x, %y : f32
      %s = arith.addf %z, %t : f32
      linalg.yield %s : f32
    } -> tensor<3136x256xf32>
    return %m : tensor<3136x256xf32>
  }
}

// Panels of other channels read pieces of the same lines of the cache: each line of the image meets all of them.
// CHECK: module @depthwise
// CHECK-SAME: block = 7 : i64
// CHECK-SAME: part = 1 : i64
module @depthwise attributes {mlc.kernel} {
  func.func @depthwise(%a: tensor<?x30x30x192xf32>, %b: tensor<3x3x192xf32>, %o: tensor<?x28x28x192xf32>) -> tensor<?x28x28x192xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<?x28x28x192xf32>) -> tensor<?x28x28x192xf32>
    %m = linalg.generic {indexing_maps = [#i, #g, #d], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
        ins(%a, %b : tensor<?x30x30x192xf32>, tensor<3x3x192xf32>) outs(%f : tensor<?x28x28x192xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %t = arith.mulf %x, %y : f32
      %s = arith.addf %z, %t : f32
      linalg.yield %s : f32
    } -> tensor<?x28x28x192xf32>
    return %m : tensor<?x28x28x192xf32>
  }
}

// Seven of the 28 lines.
// CHECK: module @window
// CHECK-SAME: block = 5 : i64
// CHECK-SAME: part = 7 : i64
module @window attributes {mlc.kernel} {
  func.func @window(%a: tensor<1x30x30x64xf32>, %b: tensor<3x3x64x192xf32>, %o: tensor<1x28x28x192xf32>) -> tensor<1x28x28x192xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1x28x28x192xf32>) -> tensor<1x28x28x192xf32>
    %m = linalg.generic {indexing_maps = [#j, #h, #e], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
        ins(%a, %b : tensor<1x30x30x64xf32>, tensor<3x3x64x192xf32>) outs(%f : tensor<1x28x28x192xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %t = arith.mulf %x, %y : f32
      %s = arith.addf %z, %t : f32
      linalg.yield %s : f32
    } -> tensor<1x28x28x192xf32>
    return %m : tensor<1x28x28x192xf32>
  }
}

// Each product of a batch has a right side of its own, and 128 rows are too few to read a panel for each part of them.
// CHECK: module @batch
// CHECK-NOT: part =
// CHECK: func.func @batch
module @batch attributes {mlc.kernel} {
  func.func @batch(%a: tensor<4x512x64xf32>, %b: tensor<4x64x256xf32>, %o: tensor<4x512x256xf32>) -> tensor<4x512x256xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<4x512x256xf32>) -> tensor<4x512x256xf32>
    %m = linalg.generic {indexing_maps = [#p, #q, #r], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<4x512x64xf32>, tensor<4x64x256xf32>) outs(%f : tensor<4x512x256xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %t = arith.mulf %x, %y : f32
      %s = arith.addf %z, %t : f32
      linalg.yield %s : f32
    } -> tensor<4x512x256xf32>
    return %m : tensor<4x512x256xf32>
  }
}

// CHECK: module @few_rows
// CHECK-NOT: part =
// CHECK: func.func @few_rows
module @few_rows attributes {mlc.kernel} {
  func.func @few_rows(%a: tensor<128x256xf32>, %b: tensor<256x256xf32>, %o: tensor<128x256xf32>) -> tensor<128x256xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<128x256xf32>) -> tensor<128x256xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<128x256xf32>, tensor<256x256xf32>) outs(%f : tensor<128x256xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %t = arith.mulf %x, %y : f32
      %s = arith.addf %z, %t : f32
      linalg.yield %s : f32
    } -> tensor<128x256xf32>
    return %m : tensor<128x256xf32>
  }
}
