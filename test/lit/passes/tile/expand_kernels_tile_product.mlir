// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{bf16-dot=true bf16-tiles=true int8-tiles=true},mlc-pack-weights,mlc-expand-kernels,canonicalize,cse)' | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

func.func @main(%x: tensor<48x64xbf16>, %z: tensor<48x70xi8>, %u: tensor<70x40xi8>, %y: tensor<48x40xf32>)
    -> (tensor<48x40xf32>, tensor<48x40xi32>) {
  %w = mlc.weight "w" : tensor<64x40xbf16>
  %e = tensor.empty() : tensor<48x40xf32>
  %i = tensor.empty() : tensor<48x40xi32>
  %0 = mlc.launch @k0(%x, %w, %y) outs(%e) : (tensor<48x64xbf16>, tensor<64x40xbf16>, tensor<48x40xf32>) outs(tensor<48x40xf32>) -> tensor<48x40xf32>
  %1 = mlc.launch @k1(%z, %u) outs(%i) : (tensor<48x70xi8>, tensor<70x40xi8>) outs(tensor<48x40xi32>) -> tensor<48x40xi32>
  return %0, %1 : tensor<48x40xf32>, tensor<48x40xi32>
}

// Calls would have to save all tiles: loops that fill or copy stay loops.
// Two by two tiles of sums go through the loop over the sum, and through the stack to the epilogue. Each tile is loaded
// right before the first product that takes it.
// CHECK: module @k0
// CHECK: attributes {passthrough = ["no-builtin-memcpy", "no-builtin-memmove", "no-builtin-memset"]}
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<1024xf32>
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tilezero.internal"
// CHECK: scf.for {{.*}} -> (!llvm.x86_amx, !llvm.x86_amx, !llvm.x86_amx, !llvm.x86_amx)
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.tileloadd64.internal"
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64.internal"
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64.internal"
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK: scf.yield
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.x86.tilestored64.internal"
// CHECK: vector.load {{.*}} {alignment = 64 : i64} : memref<1024xf32>, vector<16xf32>
// CHECK: arith.addf {{.*}} : vector<16xf32>
// CHECK: vector.store {{.*}} vector<16xf32>
module @k0 attributes {mlc.kernel} {
  func.func @k0(%a: tensor<48x64xbf16>, %b: tensor<64x40xbf16>, %y: tensor<48x40xf32>, %o: tensor<48x40xf32>) -> tensor<48x40xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<48x40xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<48x40xf32>) -> tensor<48x40xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<48x64xbf16>, tensor<64x40xbf16>) outs(%f : tensor<48x40xf32>) attrs = {mlc.contraction} {
    ^bb0(%p: bf16, %q: bf16, %s: f32):
      %l = arith.extf %p : bf16 to f32
      %r = arith.extf %q : bf16 to f32
      %t = arith.mulf %l, %r : f32
      %v = arith.addf %s, %t : f32
      linalg.yield %v : f32
    } -> tensor<48x40xf32>
    %n = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
        ins(%m, %y : tensor<48x40xf32>, tensor<48x40xf32>) outs(%o : tensor<48x40xf32>) {
    ^bb0(%p: f32, %q: f32, %s: f32):
      %v = arith.addf %p, %q : f32
      linalg.yield %v : f32
    } -> tensor<48x40xf32>
    return %n : tensor<48x40xf32>
  }
}

// Rows of the right operand are interleaved on the stack unless the panel is the one of the item before, with zeros behind
// the end of the sum. The last six elements of rows on the left, whose other bytes are of the next row, are copied with zeros.
// CHECK: module @k1
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<4096xi8>
// CHECK: %[[THERE:.*]] = memref.load {{.*}} : memref<1xindex>
// CHECK: %[[OTHER:.*]] = arith.cmpi ne, %{{.*}}, %[[THERE]]
// CHECK: scf.if %[[OTHER]]
// CHECK: vector.interleave {{.*}} : vector<32xi8> -> vector<64xi8>
// CHECK: vector.store {{.*}} : memref<4096xi8>, vector<128xi8>
// CHECK: memref.store {{.*}} : memref<1xindex>
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbusd.internal"
// CHECK: vector.constant_mask [6] : vector<64xi1>
// CHECK: vector.maskedload {{.*}} : memref<3360xi8>, vector<64xi1>, vector<64xi8> into vector<64xi8>
// CHECK: llvm.call_intrinsic "llvm.x86.tdpbusd.internal"
module @k1 attributes {mlc.kernel} {
  func.func @k1(%a: tensor<48x70xi8>, %b: tensor<70x40xi8>, %o: tensor<48x40xi32>) -> tensor<48x40xi32> {
    %zero = arith.constant 0 : i32
    %f = linalg.fill ins(%zero : i32) outs(%o : tensor<48x40xi32>) -> tensor<48x40xi32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<48x70xi8>, tensor<70x40xi8>) outs(%f : tensor<48x40xi32>) attrs = {mlc.contraction} {
    ^bb0(%p: i8, %q: i8, %s: i32):
      %l = arith.extui %p : i8 to i32
      %r = arith.extsi %q : i8 to i32
      %t = arith.muli %l, %r : i32
      %v = arith.addi %s, %t : i32
      linalg.yield %v : i32
    } -> tensor<48x40xi32>
    return %m : tensor<48x40xi32>
  }
}
