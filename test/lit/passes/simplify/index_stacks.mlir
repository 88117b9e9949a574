// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-index-stacks)' | FileCheck %s

// CHECK-LABEL: func.func @whole
// CHECK-SAME: (%[[I:.*]]: index)
// CHECK: %[[E:.*]] = mlc.weight "experts"[%[[I]] of 8] : tensor<64x32xf32>
// CHECK: %[[R:.*]] = mlc.reshape %[[E]] [1, 64, 32]
// CHECK: return %[[R]]
func.func @whole(%i: index) -> tensor<1x64x32xf32> {
  %w = mlc.weight "experts" : tensor<8x64x32xf32>
  %s = mlc.slice %w [%i, 0, 0] [1, 64, 32] [1, 1, 1] : tensor<8x64x32xf32> -> tensor<1x64x32xf32>
  return %s : tensor<1x64x32xf32>
}

// A part that is known stays a slice, of the one.
// CHECK-LABEL: func.func @every_second_row
// CHECK: %[[E:.*]] = mlc.weight "experts"[%{{.*}} of 8] : tensor<64x32xf32>
// CHECK: %[[S:.*]] = mlc.slice %[[E]] [1, 0] [32, 32] [2, 1] : tensor<64x32xf32> -> tensor<32x32xf32>
// CHECK: mlc.reshape %[[S]] [1, 32, 32]
func.func @every_second_row(%i: index) -> tensor<1x32x32xf32> {
  %w = mlc.weight "experts" : tensor<8x64x32xf32>
  %s = mlc.slice %w [%i, 1, 0] [1, 32, 32] [1, 2, 1] : tensor<8x64x32xf32> -> tensor<1x32x32xf32>
  return %s : tensor<1x32x32xf32>
}

// What is done to each tensor of a stack is done to the one.
// CHECK-LABEL: func.func @transposed
// CHECK: %[[E:.*]] = mlc.weight "experts"[%{{.*}} of 8] : tensor<64x32xf16>
// CHECK: %[[T:.*]] = mlc.transpose %[[E]] {permutation = array<i64: 1, 0>} : tensor<64x32xf16> -> tensor<32x64xf16>
// CHECK: %[[C:.*]] = mlc.cast %[[T]] : tensor<32x64xf16> -> tensor<32x64xf32>
// CHECK: mlc.reshape %[[C]] [1, 32, 64]
func.func @transposed(%i: index) -> tensor<1x32x64xf32> {
  %w = mlc.weight "experts" : tensor<8x64x32xf16>
  %t = mlc.transpose %w {permutation = array<i64: 0, 2, 1>} : tensor<8x64x32xf16> -> tensor<8x32x64xf16>
  %c = mlc.cast %t : tensor<8x32x64xf16> -> tensor<8x32x64xf32>
  %s = mlc.slice %c [%i, 0, 0] [1, 32, 64] [1, 1, 1] : tensor<8x32x64xf32> -> tensor<1x32x64xf32>
  return %s : tensor<1x32x64xf32>
}

// CHECK-LABEL: func.func @columns
// CHECK: %[[E:.*]] = mlc.weight "scales"[%{{.*}} of 8] : tensor<64xf32>
// CHECK: %[[R:.*]] = mlc.reshape %[[E]] [64, 1]
// CHECK: mlc.reshape %[[R]] [1, 64, 1]
func.func @columns(%i: index) -> tensor<1x64x1xf32> {
  %w = mlc.weight "scales" : tensor<8x64xf32>
  %r = mlc.reshape %w [8, 64, 1] : tensor<8x64xf32> -> tensor<8x64x1xf32>
  %s = mlc.slice %r [%i, 0, 0] [1, 64, 1] [1, 1, 1] : tensor<8x64x1xf32> -> tensor<1x64x1xf32>
  return %s : tensor<1x64x1xf32>
}

// Several at once, a place that is known, tensors shorter than a line, another dimension, and no weight.
// CHECK-LABEL: func.func @others
// CHECK-NOT: of 8
// CHECK: return
func.func @others(%i: index, %x: tensor<8x64x32xf32>) -> (tensor<2x64x32xf32>, tensor<1x64x32xf32>, tensor<1x4xf32>,
                                                        tensor<1x8x64xf32>, tensor<1x64x32xf32>) {
  %w = mlc.weight "experts" : tensor<8x64x32xf32>
  %two = mlc.slice %w [%i, 0, 0] [2, 64, 32] [1, 1, 1] : tensor<8x64x32xf32> -> tensor<2x64x32xf32>
  %known = mlc.slice %w [3, 0, 0] [1, 64, 32] [1, 1, 1] : tensor<8x64x32xf32> -> tensor<1x64x32xf32>
  %v = mlc.weight "short" : tensor<8x4xf32>
  %short = mlc.slice %v [%i, 0] [1, 4] [1, 1] : tensor<8x4xf32> -> tensor<1x4xf32>
  %t = mlc.transpose %w {permutation = array<i64: 2, 0, 1>} : tensor<8x64x32xf32> -> tensor<32x8x64xf32>
  %turned = mlc.slice %t [%i, 0, 0] [1, 8, 64] [1, 1, 1] : tensor<32x8x64xf32> -> tensor<1x8x64xf32>
  %given = mlc.slice %x [%i, 0, 0] [1, 64, 32] [1, 1, 1] : tensor<8x64x32xf32> -> tensor<1x64x32xf32>
  return %two, %known, %short, %turned, %given : tensor<2x64x32xf32>, tensor<1x64x32xf32>, tensor<1x4xf32>, tensor<1x8x64xf32>, tensor<1x64x32xf32>
}

// A gather of one matrix in a loop, from the end where its number is negative; a row of a table, and one outside of a
// loop, stay.
// CHECK-LABEL: func.func @gathers
// CHECK-SAME: (%[[AT:.*]]: tensor<i64>
// CHECK: mlc.gather {{.*}} -> tensor<64x32xf32>
// CHECK: scf.for
// CHECK:   %[[GIVEN:.*]] = tensor.extract %[[AT]][]
// CHECK:   %[[I:.*]] = arith.index_cast %[[GIVEN]]
// CHECK:   %[[UP:.*]] = arith.addi %[[I]], %c8
// CHECK:   %[[PLACE:.*]] = arith.select %{{.*}}, %[[UP]], %[[I]]
// CHECK:   mlc.check %{{.*}}, %[[I]], "the index is out of range"
// CHECK:   mlc.weight "experts"[%[[PLACE]] of 8] : tensor<64x32xf32>
// CHECK:   mlc.gather {{.*}} -> tensor<100xf32>
func.func @gathers(%at: tensor<i64>, %n: index, %x: tensor<64x32xf32>, %r: tensor<100xf32>) -> (tensor<64x32xf32>, tensor<64x32xf32>, tensor<100xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %w = mlc.weight "experts" : tensor<8x64x32xf32>
  %t = mlc.weight "table" : tensor<50x100xf32>
  %out = mlc.gather %w, %at {axis = 0 : i64} : tensor<8x64x32xf32>, tensor<i64> -> tensor<64x32xf32>
  %y:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %r) -> (tensor<64x32xf32>, tensor<100xf32>) {
    %m = mlc.gather %w, %at {axis = 0 : i64} : tensor<8x64x32xf32>, tensor<i64> -> tensor<64x32xf32>
    %v = mlc.gather %t, %at {axis = 0 : i64} : tensor<50x100xf32>, tensor<i64> -> tensor<100xf32>
    %s = mlc.binary add %a, %m : tensor<64x32xf32>
    %u = mlc.binary add %b, %v : tensor<100xf32>
    scf.yield %s, %u : tensor<64x32xf32>, tensor<100xf32>
  }
  return %out, %y#0, %y#1 : tensor<64x32xf32>, tensor<64x32xf32>, tensor<100xf32>
}
