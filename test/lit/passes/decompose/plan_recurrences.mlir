// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-recurrences{bytes=16384 alone=4096})' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-recurrences{bytes=8192 alone=4096 narrow=true multiple=16})' | FileCheck %s --check-prefix=TILES
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-recurrences{bytes=16384 alone=4096 work=20000})' | FileCheck %s --check-prefix=WORK
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-recurrences{bytes=16384 alone=16384 f32=false})' | FileCheck %s --check-prefix=NONE
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-recurrences{bytes=16384 alone=4096},mlc-decompose)' | FileCheck %s --check-prefix=DONE
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-recurrences{bytes=16384 alone=4096 f32=false f16=true})' | FileCheck %s --check-prefix=HALVES

// NONE-NOT: mlc.whole

// Elements of 16 bits are half of the bytes.
// HALVES-COUNT-1: mlc.whole
// HALVES-NOT: mlc.whole
func.func @halves(%x: tensor<9x2x8xf16>) -> tensor<9x1x2x40xf16> {
  %w = mlc.weight "w0" : tensor<1x160x8xf16>
  %r = mlc.weight "r0" : tensor<1x160x40xf16>
  %0, %1, %2 = mlc.recurrent lstm %x, %w, %r {activations = []} : tensor<9x2x8xf16>, tensor<1x160x8xf16>, tensor<1x160x40xf16> -> tensor<9x1x2x40xf16>, tensor<1x2x40xf16>, tensor<1x2x40xf16>
  return %0 : tensor<9x1x2x40xf16>
}

// 4 gates of 32 by 32 elements are 16 KB, 8 KB when they are rounded.
// CHECK-LABEL: func.func @rows
// CHECK: mlc.recurrent lstm {{.*}}mlc.whole}
// TILES-LABEL: func.func @rows
// TILES: mlc.recurrent lstm {{.*}}mlc.whole}
// Two sequences read 32 KB in a step.
// WORK-LABEL: func.func @rows
// WORK: mlc.recurrent
// WORK-NOT: mlc.whole
// The steps of all gates are one operation behind one product; its rows come before its direction, as in memory.
// DONE-LABEL: func.func @rows
// DONE: %[[W:.*]] = mlc.reshape %{{.*}} [128, 8]
// DONE: %[[P:.*]] = mlc.matmul %{{.*}}, %[[W]] {transpose_rhs}
// DONE: %y, %y_h, %y_c = mlc.recurrence lstm %[[P]], %{{.*}} : tensor<9x2x128xf32>, tensor<1x128x32xf32> -> tensor<9x2x1x32xf32>
// DONE: mlc.transpose %y {permutation = array<i64: 0, 2, 1, 3>}
func.func @rows(%x: tensor<9x2x8xf32>) -> tensor<9x1x2x32xf32> {
  %w = mlc.weight "w" : tensor<1x128x8xf32>
  %r = mlc.weight "r" : tensor<1x128x32xf32>
  %0, %1, %2 = mlc.recurrent lstm %x, %w, %r {activations = []} : tensor<9x2x8xf32>, tensor<1x128x8xf32>, tensor<1x128x32xf32> -> tensor<9x1x2x32xf32>, tensor<1x2x32xf32>, tensor<1x2x32xf32>
  return %0 : tensor<9x1x2x32xf32>
}

// Directions are work items of their own; the bias of what the reset gate scales stays beside the product of the state.
// CHECK-LABEL: func.func @directions
// CHECK: mlc.recurrent gru {{.*}}mlc.whole}
// TILES-LABEL: func.func @directions
// TILES: mlc.recurrent gru {{.*}}mlc.whole}
// WORK-LABEL: func.func @directions
// WORK: mlc.recurrent gru {{.*}}mlc.whole}
// DONE-LABEL: func.func @directions
// DONE: mlc.pad constant %{{.*}} low [0, 0] high [0, 32] : tensor<2x64xf32> -> tensor<2x96xf32>
// DONE: mlc.recurrence gru {{.*}} bias(%{{.*}} : tensor<2x32xf32>) {direction = "bidirectional"}
func.func @directions(%x: tensor<9x1x8xf32>) -> tensor<9x2x1x32xf32> {
  %w = mlc.weight "w2" : tensor<2x96x8xf32>
  %r = mlc.weight "r2" : tensor<2x96x32xf32>
  %b = mlc.weight "b2" : tensor<2x192xf32>
  %0, %1, %2 = mlc.recurrent gru %x, %w, %r bias(%b : tensor<2x192xf32>) {activations = [], direction = "bidirectional", linear_before_reset = true} : tensor<9x1x8xf32>, tensor<2x96x8xf32>, tensor<2x96x32xf32> -> tensor<9x2x1x32xf32>, tensor<2x1x32xf32>, tensor<2x1x32xf32>
  return %0 : tensor<9x2x1x32xf32>
}

// One row, or perhaps one, is one work item: threads would wait for each other sooner than share it.
// CHECK-LABEL: func.func @alone
// CHECK-NOT: mlc.whole
// CHECK: mlc.recurrent rnn {{.*}}activations = ["Relu"], mlc.whole}
// DONE-LABEL: func.func @alone
// DONE: scf.for
// DONE: mlc.recurrence relu
func.func @alone(%x: tensor<9x?x8xf32>) -> (tensor<9x1x?x32xf32>, tensor<9x1x?x32xf32>) {
  %w = mlc.weight "w" : tensor<1x128x8xf32>
  %r = mlc.weight "r" : tensor<1x128x32xf32>
  %0, %1, %2 = mlc.recurrent lstm %x, %w, %r {activations = []} : tensor<9x?x8xf32>, tensor<1x128x8xf32>, tensor<1x128x32xf32> -> tensor<9x1x?x32xf32>, tensor<1x?x32xf32>, tensor<1x?x32xf32>
  %w1 = mlc.weight "w1" : tensor<1x32x8xf32>
  %r1 = mlc.weight "r1" : tensor<1x32x32xf32>
  %3, %4, %5 = mlc.recurrent rnn %x, %w1, %r1 {activations = ["Relu"]} : tensor<9x?x8xf32>, tensor<1x32x8xf32>, tensor<1x32x32xf32> -> tensor<9x1x?x32xf32>, tensor<1x?x32xf32>, tensor<1x?x32xf32>
  return %0, %3 : tensor<9x1x?x32xf32>, tensor<9x1x?x32xf32>
}

// Gates that reset the state before its product, clipping, other functions, and weights of the run.
// CHECK-LABEL: func.func @others
// CHECK-NOT: mlc.whole
// TILES-LABEL: func.func @others
// TILES-NOT: mlc.whole
func.func @others(%x: tensor<9x2x8xf32>, %given: tensor<1x96x32xf32>) -> tensor<9x1x2x32xf32> {
  %w = mlc.weight "w3" : tensor<1x96x8xf32>
  %r = mlc.weight "r3" : tensor<1x96x32xf32>
  %0, %1, %2 = mlc.recurrent gru %x, %w, %r {activations = []} : tensor<9x2x8xf32>, tensor<1x96x8xf32>, tensor<1x96x32xf32> -> tensor<9x1x2x32xf32>, tensor<1x2x32xf32>, tensor<1x2x32xf32>
  %3, %4, %5 = mlc.recurrent gru %x, %w, %r {activations = [], clip = 0.5 : f64, linear_before_reset = true} : tensor<9x2x8xf32>, tensor<1x96x8xf32>, tensor<1x96x32xf32> -> tensor<9x1x2x32xf32>, tensor<1x2x32xf32>, tensor<1x2x32xf32>
  %6, %7, %8 = mlc.recurrent gru %x, %w, %r {activations = ["HardSigmoid", "Tanh"], linear_before_reset = true} : tensor<9x2x8xf32>, tensor<1x96x8xf32>, tensor<1x96x32xf32> -> tensor<9x1x2x32xf32>, tensor<1x2x32xf32>, tensor<1x2x32xf32>
  %9, %10, %11 = mlc.recurrent gru %x, %w, %given {activations = [], linear_before_reset = true} : tensor<9x2x8xf32>, tensor<1x96x8xf32>, tensor<1x96x32xf32> -> tensor<9x1x2x32xf32>, tensor<1x2x32xf32>, tensor<1x2x32xf32>
  return %9 : tensor<9x1x2x32xf32>
}
