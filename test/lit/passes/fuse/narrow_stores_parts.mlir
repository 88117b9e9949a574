// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-narrow-contractions,cse,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views,mlc-plan-fusion{target=cuda},mlc-narrow-stores,mlc-outline-kernels)' | FileCheck %s

// What kernels read parts of, at places that they compute, is stored rounded: the halves of a gate, of which one is
// normalised, and the operands of a concatenation. A part that the epilogue of a product reads is no kernel of its own.
// CHECK-LABEL: func.func @gate
// CHECK: [[H:%.+]] = mlc.launch @k0({{.*}}) {{.*}} -> tensor<4x128x512xbf16>
// CHECK: [[N:%.+]] = mlc.launch @k1([[H]]) {{.*}} -> tensor<4x128x256xbf16>
// CHECK: [[Y:%.+]] = mlc.launch @k2([[H]], %arg2, [[N]]) {{.*}} -> tensor<4x128x256xf32>
// CHECK-NEXT: return [[Y]]
func.func @gate(%x: tensor<4x128x256xbf16>, %w: tensor<256x512xbf16>, %v: tensor<128x128xbf16>) -> tensor<4x128x256xf32> {
  %h = mlc.matmul %x, %w {widen} : tensor<4x128x256xbf16>, tensor<256x512xbf16> -> tensor<4x128x512xf32>
  %a = mlc.slice %h [0, 0, 0] [4, 128, 256] [1, 1, 1] : tensor<4x128x512xf32> -> tensor<4x128x256xf32>
  %b = mlc.slice %h [0, 0, 256] [4, 128, 256] [1, 1, 1] : tensor<4x128x512xf32> -> tensor<4x128x256xf32>
  %s = mlc.reduce sum %b {axes = array<i64: 2>, keepdims = true} : tensor<4x128x256xf32> -> tensor<4x128x1xf32>
  %d = mlc.binary sub %b, %s : tensor<4x128x256xf32>, tensor<4x128x1xf32> -> tensor<4x128x256xf32>
  %r = mlc.cast %d : tensor<4x128x256xf32> -> tensor<4x128x256xbf16>
  %m = mlc.matmul %v, %r {widen} : tensor<128x128xbf16>, tensor<4x128x256xbf16> -> tensor<4x128x256xf32>
  %y = mlc.binary mul %a, %m : tensor<4x128x256xf32>
  return %y : tensor<4x128x256xf32>
}
