// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules,mlc-pack-weights,mlc-expand-kernels,canonicalize,cse)' | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

func.func @main(%x: tensor<18x192xbf16>, %o: tensor<18x64xf32>, %y: tensor<18x34xbf16>) -> (tensor<18x64xf32>, tensor<18x64xf32>) {
  %w = mlc.weight "w" : tensor<192x64xbf16>
  %0 = mlc.launch @blocks(%x, %w) outs(%o) : (tensor<18x192xbf16>, tensor<192x64xbf16>) outs(tensor<18x64xf32>) -> tensor<18x64xf32>
  %v = mlc.weight "v" : tensor<34x64xbf16>
  %1 = mlc.launch @whole(%y, %v) outs(%o) : (tensor<18x34xbf16>, tensor<34x64xbf16>) outs(tensor<18x64xf32>) -> tensor<18x64xf32>
  return %0, %1 : tensor<18x64xf32>, tensor<18x64xf32>
}

// Two blocks of 96 steps: pairs of the weight become two lines of four vectors, then six rows at a time are widened and
// multiplied, with sums that wait in memory.
// CHECK: module @blocks
// CHECK-DAG: memref.alloca() {{.*}} : memref<1152xf32>
// CHECK-DAG: %[[ROWS:.*]] = memref.alloca() {{.*}} : memref<576xf32>
// CHECK-DAG: %[[WEIGHT:.*]] = memref.alloca() {{.*}} : memref<6144xf32>
// CHECK: scf.for {{.*}} = %c0 to %c192 step %c96
// CHECK: scf.for {{.*}} = %c0 to %c48 step %c1
// CHECK: vector.load {{.*}} vector<32xbf16>
// CHECK: arith.shli {{.*}} : vector<16xi32>
// CHECK: arith.andi {{.*}} : vector<16xi32>
// CHECK: vector.store {{.*}}, %[[WEIGHT]]
// CHECK: vector.store {{.*}}, %[[WEIGHT]]
// CHECK: scf.for {{.*}} = %c0 to %c18 step %c6
// CHECK: scf.for {{.*}} = %c0 to %c96 step %c16
// CHECK-COUNT-6: vector.store {{.*}}, %[[ROWS]]{{.*}} vector<16xf32>
// CHECK: scf.for {{.*}} = %c0 to %c96 step %c4
// CHECK: vector.load %[[WEIGHT]]
// CHECK: memref.load %[[ROWS]]
// CHECK-COUNT-96: vector.fma {{.*}} : vector<16xf32>
// CHECK-NOT: vector.fma
// CHECK: scf.yield
module @blocks attributes {mlc.kernel} {
  func.func @blocks(%a: tensor<18x192xbf16>, %b: tensor<192x64xbf16>, %o: tensor<18x64xf32>) -> tensor<18x64xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<18x64xf32>) -> tensor<18x64xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<18x192xbf16>, tensor<192x64xbf16>) outs(%f : tensor<18x64xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<18x64xf32>
    return %m : tensor<18x64xf32>
  }
}

// One block: sums stay in registers. Two elements of a row are left behind two vectors.
// CHECK: module @whole
// CHECK: memref<204xf32>
// CHECK: scf.for {{.*}} = %c0 to %c17 step %c1
// CHECK: scf.for {{.*}} = %c0 to %c32 step %c16
// CHECK-COUNT-6: vector.store {{.*}} memref<204xf32>, vector<2xf32>
// CHECK: scf.for {{.*}} = %c0 to %c34 step %c2
// CHECK-COUNT-48: vector.fma {{.*}} : vector<16xf32>
// CHECK: return
module @whole attributes {mlc.kernel} {
  func.func @whole(%a: tensor<18x34xbf16>, %b: tensor<34x64xbf16>, %o: tensor<18x64xf32>) -> tensor<18x64xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<18x64xf32>) -> tensor<18x64xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<18x34xbf16>, tensor<34x64xbf16>) outs(%f : tensor<18x64xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<18x64xf32>
    return %m : tensor<18x64xf32>
  }
}
