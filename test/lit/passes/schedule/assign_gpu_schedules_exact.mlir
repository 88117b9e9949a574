// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-assign-gpu-schedules)' | FileCheck %s

module attributes {mlc.target = "nvidia:h200"} {
// Many tiles of f32 are copied to shared memory.
// CHECK: module @k0
// CHECK-SAME: element = "f32"
// CHECK-SAME: template = "ampere_contraction"
module @k0 attributes {mlc.kernel} {
  func.func @k0(%a: tensor<1000x264xf32>, %b: tensor<1100x264xf32>, %o: tensor<1000x1100xf32>) -> tensor<1000x1100xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1000x1100xf32>) -> tensor<1000x1100xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<1000x264xf32>, tensor<1100x264xf32>) outs(%f : tensor<1000x1100xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<1000x1100xf32>
    return %m : tensor<1000x1100xf32>
  }
}

// Few rows, and what does not lie along the sum, are not.
// CHECK: module @k1
// CHECK-NOT: ampere_contraction
// CHECK: module @k2
// CHECK-SAME: template = "contraction"
module @k1 attributes {mlc.kernel} {
  func.func @k1(%a: tensor<8x264xf32>, %b: tensor<1100x264xf32>, %o: tensor<8x1100xf32>) -> tensor<8x1100xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<8x1100xf32>) -> tensor<8x1100xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<8x264xf32>, tensor<1100x264xf32>) outs(%f : tensor<8x1100xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<8x1100xf32>
    return %m : tensor<8x1100xf32>
  }
}
module @k2 attributes {mlc.kernel} {
  func.func @k2(%a: tensor<1000x264xf32>, %b: tensor<264x1100xf32>, %o: tensor<1000x1100xf32>) -> tensor<1000x1100xf32> {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<1000x1100xf32>) -> tensor<1000x1100xf32>
    %m = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<1000x264xf32>, tensor<264x1100xf32>) outs(%f : tensor<1000x1100xf32>) attrs = {mlc.contraction} {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %z, %p : f32
      linalg.yield %s : f32
    } -> tensor<1000x1100xf32>
    return %m : tensor<1000x1100xf32>
  }
}
}
