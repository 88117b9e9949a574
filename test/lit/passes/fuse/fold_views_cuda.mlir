// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-fold-views{target=cuda})' | FileCheck %s

// Tensor cores read an operand that is stored transposed.
// CHECK: [[TURNED:#map.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: func.func @turned
// CHECK-NOT: ins(%{{.*}} : tensor<24x32xbf16>) outs
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, [[TURNED]], #{{.*}}], {{.*}} ins(%arg0, %arg1 : tensor<16x32xbf16>, tensor<24x32xbf16>)
func.func @turned(%a: tensor<16x32xbf16>, %b: tensor<24x32xbf16>) -> tensor<16x24xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %e = tensor.empty() : tensor<32x24xbf16>
    %t = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<24x32xbf16>) outs(%e : tensor<32x24xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<32x24xbf16>
    %0 = tensor.empty() : tensor<16x24xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<16x24xf32>) -> tensor<16x24xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %t : tensor<16x32xbf16>, tensor<32x24xbf16>) outs(%1 : tensor<16x24xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<16x24xf32>
    return %r : tensor<16x24xf32>
}

// Its rows would be 50 bytes apart: the copy engine takes multiples of 16.
// CHECK-LABEL: func.func @odd
// CHECK: ins(%arg1 : tensor<32x25xbf16>)
// CHECK: mlc.contraction
func.func @odd(%a: tensor<16x25xbf16>, %b: tensor<32x25xbf16>) -> tensor<16x32xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %e = tensor.empty() : tensor<25x32xbf16>
    %t = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<32x25xbf16>) outs(%e : tensor<25x32xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<25x32xbf16>
    %0 = tensor.empty() : tensor<16x32xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<16x32xf32>) -> tensor<16x32xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %t : tensor<16x25xbf16>, tensor<25x32xbf16>) outs(%1 : tensor<16x32xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<16x32xf32>
    return %r : tensor<16x32xf32>
}
