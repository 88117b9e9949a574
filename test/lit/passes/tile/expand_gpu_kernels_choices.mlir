// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-expand-gpu-kernels,canonicalize,cse)' | FileCheck %s

// Parts side by side of whole vectors are one load of a chosen address: all lanes of a vector are in one part, and the
// threads of a warp take no branches.
#id = affine_map<(i, j) -> (i, j)>
// CHECK-LABEL: module @even
// CHECK-NOT: scf.if
// CHECK: [[A:%.+]] = arith.cmpi ult, [[C:%.+]], %c32
// CHECK: [[B:%.+]] = arith.cmpi ult, [[C]], %c48
// CHECK: [[M:%.+]] = arith.select [[B]], %{{.+}}, %{{.+}} : memref<?xbf16>
// CHECK: [[N:%.+]] = arith.select [[A]], %{{.+}}, [[M]] : memref<?xbf16>
// CHECK: [[P:%.+]] = arith.select [[A]], {{.*}} : index
// CHECK: [[L:%.+]] = vector.load [[N]]{{\[}}[[P]]] {alignment = 16 : i64} : memref<?xbf16>, vector<8xbf16>
// CHECK: arith.extf [[L]] : vector<8xbf16> to vector<8xf32>
// CHECK-NOT: scf.if
// CHECK: func.func @even_grid
module {
module @even attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{template = "elementwise", lanes = 8 : i64, first = 1 : i64, last = 1 : i64, rows = 1 : i64, threads = 256 : i64, early = 1 : i64}]} {
  func.func @even(%x: tensor<40x32xbf16>, %y: tensor<40x16xbf16>, %z: tensor<40x24xbf16>, %o: tensor<40x72xbf16>) -> tensor<40x72xbf16> {
    %c32 = arith.constant 32 : index
    %c48 = arith.constant 48 : index
    %e = tensor.empty() : tensor<40x72xf32>
    %w = tensor.empty() : tensor<40x32xf32>
    %v = tensor.empty() : tensor<40x16xf32>
    %u = tensor.empty() : tensor<40x24xf32>
    %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<40x32xbf16>) outs(%w : tensor<40x32xf32>) {
    ^bb0(%p: bf16, %q: f32):
      %r = arith.extf %p : bf16 to f32
      linalg.yield %r : f32
    } -> tensor<40x32xf32>
    %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<40x16xbf16>) outs(%v : tensor<40x16xf32>) {
    ^bb0(%p: bf16, %q: f32):
      %r = arith.extf %p : bf16 to f32
      linalg.yield %r : f32
    } -> tensor<40x16xf32>
    %c = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%z : tensor<40x24xbf16>) outs(%u : tensor<40x24xf32>) {
    ^bb0(%p: bf16, %q: f32):
      %r = arith.extf %p : bf16 to f32
      linalg.yield %r : f32
    } -> tensor<40x24xf32>
    %f = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<40x72xf32>) {
    ^bb0(%q: f32):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %first = arith.cmpi ult, %j, %c32 : index
      %s = scf.if %first -> (f32) {
        %t = tensor.extract %a[%i, %j] : tensor<40x32xf32>
        scf.yield %t : f32
      } else {
        %second = arith.cmpi ult, %j, %c48 : index
        %t = scf.if %second -> (f32) {
          %k = arith.subi %j, %c32 : index
          %n = tensor.extract %b[%i, %k] : tensor<40x16xf32>
          scf.yield %n : f32
        } else {
          %k = arith.subi %j, %c48 : index
          %n = tensor.extract %c[%i, %k] : tensor<40x24xf32>
          scf.yield %n : f32
        }
        scf.yield %t : f32
      }
      linalg.yield %s : f32
    } -> tensor<40x72xf32>
    %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%f : tensor<40x72xf32>) outs(%o : tensor<40x72xbf16>) {
    ^bb0(%p: f32, %q: bf16):
      %n = arith.negf %p : f32
      %r = arith.truncf %n : f32 to bf16
      linalg.yield %r : bf16
    } -> tensor<40x72xbf16>
    return %g : tensor<40x72xbf16>
  }
}
}
