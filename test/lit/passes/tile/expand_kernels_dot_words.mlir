// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{vector-bits=256 vector-registers=16 int16-dot=true},mlc-pack-weights,mlc-expand-kernels,canonicalize,cse)' | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

func.func @main(%x: tensor<12x70xi8>, %o: tensor<12x100xi32>) -> (tensor<12x100xi32>, tensor<12x100xi32>) {
  %w = mlc.weight "w" : tensor<70x100xi8>
  %0 = mlc.launch @mixed(%x, %w) outs(%o) : (tensor<12x70xi8>, tensor<70x100xi8>) outs(tensor<12x100xi32>) -> tensor<12x100xi32>
  %1 = mlc.launch @bounded(%x, %w) outs(%o) : (tensor<12x70xi8>, tensor<70x100xi8>) outs(tensor<12x100xi32>) -> tensor<12x100xi32>
  return %0, %1 : tensor<12x100xi32>, tensor<12x100xi32>
}

// The rows of a tile are widened, sixteen bytes at a time and then six; pairs of the weight are where they are loaded.
// CHECK: module @mixed
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<420xi16>
// CHECK: scf.for {{.*}} = %c0 to %c64 step %c16
// CHECK-COUNT-6: vector.store {{.*}} : memref<420xi16>, vector<16xi16>
// CHECK: vector.store {{.*}} : memref<420xi16>, vector<4xi16>
// CHECK: vector.store {{.*}} : memref<420xi16>, vector<2xi16>
// CHECK: scf.for {{.*}} = %c0 to %c35 step %c1
// CHECK: vector.load {{.*}} vector<16xi8>
// CHECK: arith.extsi {{.*}} : vector<16xi8> to vector<16xi16>
// CHECK-COUNT-12: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// CHECK-NOT: llvm.call_intrinsic
// CHECK: scf.yield
module @mixed attributes {mlc.kernel} {
  func.func @mixed(%a: tensor<12x70xi8>, %b: tensor<70x100xi8>, %o: tensor<12x100xi32>) -> tensor<12x100xi32> {
    %zero = arith.constant 0 : i32
    %f = linalg.fill ins(%zero : i32) outs(%o : tensor<12x100xi32>) -> tensor<12x100xi32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<12x70xi8>, tensor<70x100xi8>) outs(%f : tensor<12x100xi32>) attrs = {mlc.contraction} {
    ^bb0(%x: i8, %y: i8, %z: i32):
      %l = arith.extui %x : i8 to i32
      %r = arith.extsi %y : i8 to i32
      %p = arith.muli %l, %r : i32
      %s = arith.addi %z, %p : i32
      linalg.yield %s : i32
    } -> tensor<12x100xi32>
    return %m : tensor<12x100xi32>
  }
}

// Bytes below 128 are multiplied as they are: a pair of products in 16 bits, and of these a pair by ones.
// CHECK: module @bounded
// CHECK-NOT: memref.alloca
// CHECK: scf.for {{.*}} = %c0 to %c17 step %c1
// CHECK: llvm.call_intrinsic "llvm.x86.avx2.pmadd.ub.sw"
// CHECK: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
module @bounded attributes {mlc.kernel} {
  func.func @bounded(%a: tensor<12x70xi8>, %b: tensor<70x100xi8>, %o: tensor<12x100xi32>) -> tensor<12x100xi32> {
    %zero = arith.constant 0 : i32
    %f = linalg.fill ins(%zero : i32) outs(%o : tensor<12x100xi32>) -> tensor<12x100xi32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<12x70xi8>, tensor<70x100xi8>) outs(%f : tensor<12x100xi32>) attrs = {mlc.contraction} {
    ^bb0(%x: i8, %y: i8, %z: i32):
      %l = arith.extui %x {mlc.never_negative} : i8 to i32
      %r = arith.extsi %y : i8 to i32
      %p = arith.muli %l, %r : i32
      %s = arith.addi %z, %p : i32
      linalg.yield %s : i32
    } -> tensor<12x100xi32>
    return %m : tensor<12x100xi32>
  }
}
