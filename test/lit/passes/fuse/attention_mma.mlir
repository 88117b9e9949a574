// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-decompose,mlc-lower-to-linalg,canonicalize,cse,mlc-fold-views{target=cuda-mma},mlc-plan-fusion{target=cuda-mma},mlc-outline-kernels)' | FileCheck %s

module attributes {mlc.target = "nvidia:sm_80"} {

// One kernel on these chips, too.
// CHECK-LABEL: func.func @plain
// CHECK: mlc.launch @k0(%arg0, %arg1, %arg2)
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @plain(%q: tensor<1x4x32x64xbf16>, %k: tensor<1x4x48x64xbf16>, %v: tensor<1x4x48x64xbf16>) -> tensor<1x4x32x64xbf16> {
  %r = mlc.attention %q, %k, %v : tensor<1x4x32x64xbf16>, tensor<1x4x48x64xbf16>, tensor<1x4x48x64xbf16> -> tensor<1x4x32x64xbf16>
  return %r : tensor<1x4x32x64xbf16>
}

// Few queries with many keys stay three kernels.
// CHECK-LABEL: func.func @few
// CHECK-COUNT-3: mlc.launch
// CHECK-SAME: reason = "no attention in one kernel: few queries do not fill tiles, and keys are not split between them"
func.func @few(%q: tensor<1x4x8x64xbf16>, %k: tensor<1x4x2048x64xbf16>, %v: tensor<1x4x2048x64xbf16>) -> tensor<1x4x8x64xbf16> {
  %r = mlc.attention %q, %k, %v : tensor<1x4x8x64xbf16>, tensor<1x4x2048x64xbf16>, tensor<1x4x2048x64xbf16> -> tensor<1x4x8x64xbf16>
  return %r : tensor<1x4x8x64xbf16>
}

// Heads of 256 columns leave no registers for more than a scale and a causal mask.
// CHECK-LABEL: func.func @wide
// CHECK: mlc.launch
// CHECK-NOT: mlc.launch
// CHECK: return
func.func @wide(%q: tensor<1x4x64x256xbf16>, %k: tensor<1x4x64x256xbf16>, %v: tensor<1x4x64x256xbf16>) -> tensor<1x4x64x256xbf16> {
  %r = mlc.attention %q, %k, %v {causal = true} : tensor<1x4x64x256xbf16>, tensor<1x4x64x256xbf16>, tensor<1x4x64x256xbf16> -> tensor<1x4x64x256xbf16>
  return %r : tensor<1x4x64x256xbf16>
}

// CHECK-LABEL: func.func @wide_mask
// CHECK-COUNT-3: mlc.launch
// CHECK-SAME: reason = "no attention in one kernel: a mask on heads as wide as this takes more registers than there are"
func.func @wide_mask(%q: tensor<1x4x64x256xbf16>, %k: tensor<1x4x64x256xbf16>, %v: tensor<1x4x64x256xbf16>, %m: tensor<1x1x64x64xf32>) -> tensor<1x4x64x256xbf16> {
  %r = mlc.attention %q, %k, %v mask(%m : tensor<1x1x64x64xf32>) : tensor<1x4x64x256xbf16>, tensor<1x4x64x256xbf16>, tensor<1x4x64x256xbf16> -> tensor<1x4x64x256xbf16>
  return %r : tensor<1x4x64x256xbf16>
}
}
