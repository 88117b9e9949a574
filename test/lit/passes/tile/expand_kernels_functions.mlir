// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-expand-kernels,canonicalize,cse)' | FileCheck %s

// What a kernel computes of many vectors is a function of its own: once here, and in all of its places in the machine
// code. The whole vector and the masked tail of four have the same one. A sigmoid is one function, of which the
// exponential is a part; a power looks at its exponent, so it stays where it is.
// CHECK-LABEL: func.func @k0(
// CHECK: vector.load
// CHECK-NOT: math.
// CHECK: %[[S:.*]] = func.call @sigmoid_16xf32(%{{.*}}) : (vector<16xf32>) -> vector<16xf32>
// CHECK-NEXT: %[[L:.*]] = func.call @log1p_16xf32(%[[S]])
// CHECK-NEXT: arith.mulf %[[L]], %[[L]]
// CHECK: vector.store
// CHECK: vector.maskedload
// CHECK: func.call @sigmoid_16xf32
// CHECK: func.call @log1p_16xf32
// CHECK: vector.maskedstore
// CHECK: return
// CHECK: func.func private @sigmoid_16xf32(%{{.*}}: vector<16xf32>) -> vector<16xf32>
// CHECK: arith.divf
// CHECK: func.func private @log1p_16xf32(
// CHECK-NOT: func.func private
// CHECK: func.func @k0_grid
module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{block = 0 : i64, first = 1 : i64, grid = 1 : i64, lanes = 16 : i64, last = 1 : i64, template = "loops"}]} {
  func.func @k0(%a: tensor<?x20xf32>, %o: tensor<?x20xf32>) -> tensor<?x20xf32> {
    %one = arith.constant 1.0 : f32
    %two = arith.constant 2.0 : f32
    %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<?x20xf32>) outs(%o : tensor<?x20xf32>) {
    ^bb0(%x: f32, %y: f32):
      %n = arith.negf %x : f32
      %e = math.exp %n : f32
      %d = arith.addf %e, %one : f32
      %q = arith.divf %one, %d : f32
      %l = math.log1p %q : f32
      %p = math.powf %l, %two : f32
      linalg.yield %p : f32
    } -> tensor<?x20xf32>
    return %s : tensor<?x20xf32>
  }
}
}
