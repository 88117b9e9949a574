// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{bf16-dot=true},mlc-pack-weights)' | FileCheck %s --check-prefix=SCHEDULE
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{bf16-dot=true},mlc-pack-weights,mlc-expand-kernels,canonicalize,cse)' | FileCheck %s --check-prefix=NATIVE
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-schedules{vector-bits=256 vector-registers=16},mlc-pack-weights,mlc-expand-kernels,canonicalize,cse)' | FileCheck %s --check-prefix=WIDENED

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#t = affine_map<(m, n, k) -> (k, m)>
#c = affine_map<(m, n, k) -> (m, n)>

// A weight is stored in pairs along the reduction, with a zero behind an odd number of rows.
// SCHEDULE: #[[PAIRS:.*]] = affine_map<(d0, d1, d2) -> (d1 floordiv 64, d2 floordiv 2, d1 mod 64, d2 mod 2)>
// SCHEDULE-LABEL: func.func @main
// SCHEDULE: %[[P:.*]] = mlc.pad constant %{{.*}} low [0, 0] high [1, 28]
// SCHEDULE: %[[R:.*]] = mlc.reshape %[[P]] [8, 2, 2, 64]
// SCHEDULE: mlc.transpose %[[R]] {permutation = array<i64: 2, 0, 3, 1>} : tensor<8x2x2x64xbf16> -> tensor<2x8x64x2xbf16>
func.func @main(%x: tensor<12x15xbf16>, %z: tensor<15x100xbf16>, %u: tensor<15x12xbf16>)
    -> (tensor<12x100xf32>, tensor<12x100xf32>, tensor<12x100xf32>) {
  %w = mlc.weight "w" : tensor<15x100xbf16>
  %e = tensor.empty() : tensor<12x100xf32>
  %0 = mlc.launch @k0(%x, %w) outs(%e) : (tensor<12x15xbf16>, tensor<15x100xbf16>) outs(tensor<12x100xf32>) -> tensor<12x100xf32>
  %1 = mlc.launch @k1(%x, %z) outs(%e) : (tensor<12x15xbf16>, tensor<15x100xbf16>) outs(tensor<12x100xf32>) -> tensor<12x100xf32>
  %2 = mlc.launch @k2(%u, %z) outs(%e) : (tensor<15x12xbf16>, tensor<15x100xbf16>) outs(tensor<12x100xf32>) -> tensor<12x100xf32>
  return %0, %1, %2 : tensor<12x100xf32>, tensor<12x100xf32>, tensor<12x100xf32>
}

// SCHEDULE: module @k0
// SCHEDULE-SAME: instruction = "vdpbf16ps", lanes = 16 : i64, packed_operand = 1 : i64, panel = 64 : i64
// SCHEDULE-SAME: stored = "pairs", template = "dot_product", unroll = 1 : i64, vector_dim = 1 : i64, vector_operand = 1 : i64
// SCHEDULE: indexing_maps = [#{{.*}}, #[[PAIRS]], #{{.*}}]

// Six rows by four vectors, seven pairs in a loop, then the last row of the weight with its zero.
// NATIVE: module @k0
// NATIVE: scf.for {{.*}} = %c0 to %c7
// NATIVE: vector.load {{.*}} vector<2xbf16>
// NATIVE: vector.broadcast {{.*}} : f32 to vector<16xf32>
// NATIVE: vector.load {{.*}} vector<32xbf16>
// NATIVE-COUNT-24: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// NATIVE: arith.extui
// NATIVE-COUNT-24: llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"

// Without the instruction: both halves of a pair widened, two multiply-adds.
// WIDENED: module @k0
// WIDENED: vector.load {{.*}} vector<2xbf16>
// WIDENED: vector.broadcast {{.*}} : f32 to vector<8xf32>
// WIDENED: arith.shli {{.*}} : vector<8xi32>
// WIDENED: arith.andi {{.*}} : vector<8xi32>
// WIDENED: vector.load {{.*}} vector<16xbf16>
// WIDENED-COUNT-24: vector.fma
// WIDENED-NOT: call_intrinsic
module @k0 attributes {mlc.kernel} {
  func.func @k0(%a: tensor<12x15xbf16>, %b: tensor<15x100xbf16>, %o: tensor<12x100xf32>) -> tensor<12x100xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<12x100xf32>) -> tensor<12x100xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<12x15xbf16>, tensor<15x100xbf16>) outs(%f : tensor<12x100xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<12x100xf32>
    return %m : tensor<12x100xf32>
  }
}

// An operand of the program: two of its rows at a time are interleaved.
// SCHEDULE: module @k1
// SCHEDULE-SAME: instruction = "vdpbf16ps"
// SCHEDULE-SAME: stored = "rows", template = "dot_product"
// NATIVE: module @k1
// NATIVE: vector.load {{.*}} vector<16xbf16>
// NATIVE: vector.load {{.*}} vector<16xbf16>
// NATIVE: vector.interleave {{.*}} : vector<16xbf16> -> vector<32xbf16>
module @k1 attributes {mlc.kernel} {
  func.func @k1(%a: tensor<12x15xbf16>, %b: tensor<15x100xbf16>, %o: tensor<12x100xf32>) -> tensor<12x100xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<12x100xf32>) -> tensor<12x100xf32>
    %m = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<12x15xbf16>, tensor<15x100xbf16>) outs(%f : tensor<12x100xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<12x100xf32>
    return %m : tensor<12x100xf32>
  }
}

// No operand is contiguous along the reduction: elements are widened one by one.
// SCHEDULE: module @k2
// SCHEDULE-SAME: template = "contraction"
module @k2 attributes {mlc.kernel} {
  func.func @k2(%a: tensor<15x12xbf16>, %b: tensor<15x100xbf16>, %o: tensor<12x100xf32>) -> tensor<12x100xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<12x100xf32>) -> tensor<12x100xf32>
    %m = linalg.generic {indexing_maps = [#t, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<15x12xbf16>, tensor<15x100xbf16>) outs(%f : tensor<12x100xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: bf16, %y: bf16, %z: f32):
      %l = arith.extf %x : bf16 to f32
      %r = arith.extf %y : bf16 to f32
      %p = arith.mulf %l, %r : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<12x100xf32>
    return %m : tensor<12x100xf32>
  }
}
