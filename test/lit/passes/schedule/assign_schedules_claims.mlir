// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{claims=true})' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules)' | FileCheck %s --check-prefix=PLAIN

// Where stores wait for the lines that they write to, transpositions fetch these before.

#turned = affine_map<(i, j) -> (j, i)>
#id = affine_map<(i, j) -> (i, j)>

// Strips of two lines of the cache, from the beginning of the results' lines to their ends.
// CHECK: module @anywhere
// CHECK-SAME: ahead = 0 : i64, argument = 0 : i64, block = 32 : i64, claim = 4 : i64, down = 0 : i64, height = 0 : i64, lanes = 16 : i64, line = 4 : i64
// PLAIN-NOT: claim
module @anywhere attributes {mlc.kernel} {
  func.func @anywhere(%a: tensor<197x700xf32>, %o: tensor<700x197xf32>) -> tensor<700x197xf32> {
    %r = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<197x700xf32>) outs(%o : tensor<700x197xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<700x197xf32>
    return %r : tensor<700x197xf32>
  }
}

// Large inputs in whole lines; nothing goes past the caches for the sake of lines that begin anywhere.
// CHECK: module @large
// CHECK-SAME: block = 32 : i64, claim = 1 : i64, down = 0 : i64, height = 752 : i64, lanes = 16 : i64, line = 16 : i64{{.*}}stream = 0
module @large attributes {mlc.kernel} {
  func.func @large(%a: tensor<1500x1500xf32>, %o: tensor<1500x1500xf32>) -> tensor<1500x1500xf32> {
    %r = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<1500x1500xf32>) outs(%o : tensor<1500x1500xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<1500x1500xf32>
    return %r : tensor<1500x1500xf32>
  }
}

// Lines of which more than a few drive each other out: as few of them side by side as stay, where all is near.
// CHECK: module @near
// CHECK-SAME: block = 16 : i64, claim = 1 : i64
module @near attributes {mlc.kernel} {
  func.func @near(%a: tensor<512x512xf32>, %o: tensor<512x512xf32>) -> tensor<512x512xf32> {
    %r = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<512x512xf32>) outs(%o : tensor<512x512xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<512x512xf32>
    return %r : tensor<512x512xf32>
  }
}

// Elsewhere many, which are read from neighbouring lines.
// CHECK: module @far
// CHECK-SAME: block = 64 : i64, claim = 1 : i64{{.*}}template = "transpose"
module @far attributes {mlc.kernel} {
  func.func @far(%a: tensor<1024x1024xf32>, %o: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
    %r = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<1024x1024xf32>) outs(%o : tensor<1024x1024xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<1024x1024xf32>
    return %r : tensor<1024x1024xf32>
  }
}

// Small elements keep their buffer, and take less of it.
// CHECK: module @bytes
// CHECK-SAME: ahead = 1 : i64, argument = 0 : i64, block = 128 : i64, claim = 1 : i64, down = 0 : i64, height = 128 : i64{{.*}}template = "staged_transpose"
module @bytes attributes {mlc.kernel} {
  func.func @bytes(%a: tensor<2048x2048xi8>, %o: tensor<2048x2048xi8>) -> tensor<2048x2048xi8> {
    %r = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<2048x2048xi8>) outs(%o : tensor<2048x2048xi8>) {
    ^bb0(%x: i8, %y: i8):
      linalg.yield %x : i8
    } -> tensor<2048x2048xi8>
    return %r : tensor<2048x2048xi8>
  }
}

// Extents that are known at run time only.
// CHECK: module @unknown
// CHECK-SAME: block = 32 : i64, claim = 4 : i64, down = 0 : i64, height = 256 : i64
module @unknown attributes {mlc.kernel} {
  func.func @unknown(%a: tensor<?x700xf32>, %o: tensor<700x?xf32>) -> tensor<700x?xf32> {
    %r = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<?x700xf32>) outs(%o : tensor<700x?xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<700x?xf32>
    return %r : tensor<700x?xf32>
  }
}

// As without: what goes past the caches, as its lines drive each other out of them; short lines; results that collide
// where the input does not.
// CHECK: module @past
// CHECK-NOT: claim
// CHECK-SAME: stream = 1
// CHECK: module @short
// CHECK-NOT: claim
// CHECK: module @runs
// CHECK-NOT: claim
module @past attributes {mlc.kernel} {
  func.func @past(%a: tensor<2048x2048xf32>, %o: tensor<2048x2048xf32>) -> tensor<2048x2048xf32> {
    %r = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<2048x2048xf32>) outs(%o : tensor<2048x2048xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<2048x2048xf32>
    return %r : tensor<2048x2048xf32>
  }
}
module @short attributes {mlc.kernel} {
  func.func @short(%a: tensor<24x3136xf32>, %o: tensor<3136x24xf32>) -> tensor<3136x24xf32> {
    %r = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<24x3136xf32>) outs(%o : tensor<3136x24xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<3136x24xf32>
    return %r : tensor<3136x24xf32>
  }
}
module @runs attributes {mlc.kernel} {
  func.func @runs(%a: tensor<2048x49xf32>, %o: tensor<49x2048xf32>) -> tensor<49x2048xf32> {
    %r = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<2048x49xf32>) outs(%o : tensor<49x2048xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<49x2048xf32>
    return %r : tensor<49x2048xf32>
  }
}

// Results that share one set of the first cache, and what comes from memory, are written as before: others gain from a
// buffer, from stores past the caches of one thread and from fetching far ahead.
// CHECK: module @one_set
// CHECK-NOT: turned
// CHECK-SAME: down = 1 : i64{{.*}}template = "transpose"
module @one_set attributes {mlc.kernel} {
  func.func @one_set(%a: tensor<1024x80xf32>, %o: tensor<80x1024xf32>) -> tensor<80x1024xf32> {
    %r = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<1024x80xf32>) outs(%o : tensor<80x1024xf32>) {
    ^bb0(%x: f32, %y: f32):
      linalg.yield %x : f32
    } -> tensor<80x1024xf32>
    return %r : tensor<80x1024xf32>
  }
}
// CHECK: module @from_memory
// CHECK-SAME: ahead = 0 : i64{{.*}}stream = 0 : i64
module @from_memory attributes {mlc.kernel} {
  func.func @from_memory(%a: tensor<4096x2001xi8>, %o: tensor<2001x4096xi8>) -> tensor<2001x4096xi8> {
    %r = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<4096x2001xi8>) outs(%o : tensor<2001x4096xi8>) {
    ^bb0(%x: i8, %y: i8):
      linalg.yield %x : i8
    } -> tensor<2001x4096xi8>
    return %r : tensor<2001x4096xi8>
  }
}
