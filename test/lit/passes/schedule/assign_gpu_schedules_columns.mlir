// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-gpu-schedules)' | FileCheck %s

#all = affine_map<(i, j, k) -> (i, j, k)>
#across = affine_map<(i, j, k) -> (i, k)>

module {
// Short columns are a thread's where there are many, two of them where it has the registers.
// CHECK: module @alone
// CHECK-SAME: blocks = 4 : i64, early = 1 : i64, first = 1 : i64, kept = 21 : i64, lanes = 2 : i64, last = 1 : i64, split = 1 : i64, template = "whole_columns", threads = 128 : i64, width = 131072 : i64
module @alone attributes {mlc.kernel} {
  func.func @alone(%a: tensor<8x21x262144xf32>, %o: tensor<8x21x262144xf32>) -> tensor<8x21x262144xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8x262144xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x262144xf32>) -> tensor<8x262144xf32>
    %s = linalg.generic {indexing_maps = [#all, #across], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%a : tensor<8x21x262144xf32>) outs(%f : tensor<8x262144xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<8x262144xf32>
    %d = linalg.generic {indexing_maps = [#all, #across, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a, %s : tensor<8x21x262144xf32>, tensor<8x262144xf32>) outs(%o : tensor<8x21x262144xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %r = arith.divf %x, %y : f32
      linalg.yield %r : f32
    } -> tensor<8x21x262144xf32>
    return %d : tensor<8x21x262144xf32>
  }
}

// Four threads of a warp share four columns: eight of them side by side read a line of 128 bytes.
// CHECK: module @warp
// CHECK-SAME: blocks = 4 : i64, early = 1 : i64, first = 1 : i64, kept = 16 : i64, lanes = 4 : i64, last = 1 : i64, split = 4 : i64, template = "whole_columns", threads = 128 : i64, width = 8 : i64
module @warp attributes {mlc.kernel} {
  func.func @warp(%a: tensor<2048x64x256xf32>, %o: tensor<2048x64x256xf32>) -> tensor<2048x64x256xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<2048x256xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2048x256xf32>) -> tensor<2048x256xf32>
    %s = linalg.generic {indexing_maps = [#all, #across], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%a : tensor<2048x64x256xf32>) outs(%f : tensor<2048x256xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<2048x256xf32>
    %d = linalg.generic {indexing_maps = [#all, #across, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a, %s : tensor<2048x64x256xf32>, tensor<2048x256xf32>) outs(%o : tensor<2048x64x256xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %r = arith.divf %x, %y : f32
      linalg.yield %r : f32
    } -> tensor<2048x64x256xf32>
    return %d : tensor<2048x64x256xf32>
  }
}

// There are only two side by side.
// CHECK: module @narrow
// CHECK-SAME: blocks = 6 : i64, early = 1 : i64, first = 1 : i64, kept = 4 : i64, lanes = 4 : i64, last = 1 : i64, split = 16 : i64, template = "whole_columns", threads = 128 : i64, width = 2 : i64
module @narrow attributes {mlc.kernel} {
  func.func @narrow(%a: tensor<2048x64x8xf32>, %o: tensor<2048x64x8xf32>) -> tensor<2048x64x8xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<2048x8xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2048x8xf32>) -> tensor<2048x8xf32>
    %s = linalg.generic {indexing_maps = [#all, #across], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%a : tensor<2048x64x8xf32>) outs(%f : tensor<2048x8xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<2048x8xf32>
    %d = linalg.generic {indexing_maps = [#all, #across, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a, %s : tensor<2048x64x8xf32>, tensor<2048x8xf32>) outs(%o : tensor<2048x64x8xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %r = arith.divf %x, %y : f32
      linalg.yield %r : f32
    } -> tensor<2048x64x8xf32>
    return %d : tensor<2048x64x8xf32>
  }
}

// 64 threads share longer ones, as many as a block has registers for.
// CHECK: module @block
// CHECK-SAME: blocks = 1 : i64, early = 1 : i64, first = 1 : i64, kept = 16 : i64, lanes = 4 : i64, last = 1 : i64, split = 64 : i64, template = "whole_columns", threads = 512 : i64, width = 8 : i64
module @block attributes {mlc.kernel} {
  func.func @block(%a: tensor<64x1000x512xf32>, %o: tensor<64x1000x512xf32>) -> tensor<64x1000x512xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<64x512xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x512xf32>) -> tensor<64x512xf32>
    %s = linalg.generic {indexing_maps = [#all, #across], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%a : tensor<64x1000x512xf32>) outs(%f : tensor<64x512xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<64x512xf32>
    %d = linalg.generic {indexing_maps = [#all, #across, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a, %s : tensor<64x1000x512xf32>, tensor<64x512xf32>) outs(%o : tensor<64x1000x512xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %r = arith.divf %x, %y : f32
      linalg.yield %r : f32
    } -> tensor<64x1000x512xf32>
    return %d : tensor<64x1000x512xf32>
  }
}

// Elements of two bytes are kept as four: half a line of each row.
// CHECK: module @half
// CHECK-SAME: blocks = 1 : i64, early = 1 : i64, first = 1 : i64, kept = 8 : i64, lanes = 8 : i64, last = 1 : i64, split = 128 : i64, template = "whole_columns", threads = 512 : i64, width = 4 : i64
module @half attributes {mlc.kernel} {
  func.func @half(%a: tensor<64x1000x512xbf16>, %o: tensor<64x1000x512xbf16>) -> tensor<64x1000x512xbf16> {
    %zero = arith.constant 0.0 : bf16
    %e = tensor.empty() : tensor<64x512xbf16>
    %f = linalg.fill ins(%zero : bf16) outs(%e : tensor<64x512xbf16>) -> tensor<64x512xbf16>
    %s = linalg.generic {indexing_maps = [#all, #across], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%a : tensor<64x1000x512xbf16>) outs(%f : tensor<64x512xbf16>) {
    ^bb0(%x: bf16, %y: bf16):
      %r = arith.addf %y, %x : bf16
      linalg.yield %r : bf16
    } -> tensor<64x512xbf16>
    %d = linalg.generic {indexing_maps = [#all, #across, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a, %s : tensor<64x1000x512xbf16>, tensor<64x512xbf16>) outs(%o : tensor<64x1000x512xbf16>) {
    ^bb0(%x: bf16, %y: bf16, %z: bf16):
      %r = arith.divf %x, %y : bf16
      linalg.yield %r : bf16
    } -> tensor<64x1000x512xbf16>
    return %d : tensor<64x1000x512xbf16>
  }
}

// A sector of each row: longer columns are not kept.
// CHECK: module @long
// CHECK-SAME: blocks = 1 : i64, early = 1 : i64, first = 1 : i64, kept = 16 : i64, lanes = 4 : i64, last = 1 : i64, split = 256 : i64, template = "whole_columns", threads = 512 : i64, width = 2 : i64
module @long attributes {mlc.kernel} {
  func.func @long(%a: tensor<8x4000x64xf32>, %o: tensor<8x4000x64xf32>) -> tensor<8x4000x64xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8x64xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
    %s = linalg.generic {indexing_maps = [#all, #across], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%a : tensor<8x4000x64xf32>) outs(%f : tensor<8x64xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<8x64xf32>
    %d = linalg.generic {indexing_maps = [#all, #across, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a, %s : tensor<8x4000x64xf32>, tensor<8x64xf32>) outs(%o : tensor<8x4000x64xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %r = arith.divf %x, %y : f32
      linalg.yield %r : f32
    } -> tensor<8x4000x64xf32>
    return %d : tensor<8x4000x64xf32>
  }
}

// Three tensors are in registers at a time, more of them where warps are few.
// CHECK: module @three
// CHECK-SAME: blocks = 1 : i64, early = 1 : i64, first = 1 : i64, kept = 8 : i64, lanes = 4 : i64, last = 1 : i64, split = 128 : i64, template = "whole_columns", threads = 256 : i64, width = 2 : i64
module @three attributes {mlc.kernel} {
  func.func @three(%a: tensor<64x1000x512xf32>, %b0: tensor<64x1000x512xf32>, %b1: tensor<64x1000x512xf32>, %o: tensor<64x1000x512xf32>) -> tensor<64x1000x512xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<64x512xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x512xf32>) -> tensor<64x512xf32>
    %s = linalg.generic {indexing_maps = [#all, #across], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%a : tensor<64x1000x512xf32>) outs(%f : tensor<64x512xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<64x512xf32>
    %d = linalg.generic {indexing_maps = [#all, #across, #all, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a, %s, %b0, %b1 : tensor<64x1000x512xf32>, tensor<64x512xf32>, tensor<64x1000x512xf32>, tensor<64x1000x512xf32>) outs(%o : tensor<64x1000x512xf32>) {
    ^bb0(%x: f32, %y: f32, %v0: f32, %v1: f32, %z: f32):
      %r = arith.divf %x, %y : f32
      %w0 = arith.addf %r, %v0 : f32
      %w1 = arith.addf %w0, %v1 : f32
      linalg.yield %w1 : f32
    } -> tensor<64x1000x512xf32>
    return %d : tensor<64x1000x512xf32>
  }
}

// Of more than fits in registers a part is kept.
// CHECK: module @longest
// CHECK-SAME: blocks = 1 : i64, early = 1 : i64, first = 1 : i64, kept = 5 : i64, lanes = 4 : i64, last = 1 : i64, split = 256 : i64, template = "whole_columns", threads = 512 : i64, width = 2 : i64
module @longest attributes {mlc.kernel} {
  func.func @longest(%a: tensor<64x4000x64xf32>, %b0: tensor<64x4000x64xf32>, %b1: tensor<64x4000x64xf32>, %o: tensor<64x4000x64xf32>) -> tensor<64x4000x64xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<64x64xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
    %s = linalg.generic {indexing_maps = [#all, #across], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%a : tensor<64x4000x64xf32>) outs(%f : tensor<64x64xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<64x64xf32>
    %d = linalg.generic {indexing_maps = [#all, #across, #all, #all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a, %s, %b0, %b1 : tensor<64x4000x64xf32>, tensor<64x64xf32>, tensor<64x4000x64xf32>, tensor<64x4000x64xf32>) outs(%o : tensor<64x4000x64xf32>) {
    ^bb0(%x: f32, %y: f32, %v0: f32, %v1: f32, %z: f32):
      %r = arith.divf %x, %y : f32
      %w0 = arith.addf %r, %v0 : f32
      %w1 = arith.addf %w0, %v1 : f32
      linalg.yield %w1 : f32
    } -> tensor<64x4000x64xf32>
    return %d : tensor<64x4000x64xf32>
  }
}
}
