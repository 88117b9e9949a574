// RUN: mlc-opt %s --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @involutions
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xi1>)
func.func @involutions(%x: tensor<4xf32>, %b: tensor<4xi1>) -> (tensor<4xf32>, tensor<4xi1>) {
  %0 = mlc.unary neg %x : tensor<4xf32>
  %1 = mlc.unary neg %0 : tensor<4xf32>
  %2 = mlc.unary not %b : tensor<4xi1>
  %3 = mlc.unary not %2 : tensor<4xi1>
  // CHECK-NEXT: return %[[X]], %[[B]]
  return %1, %3 : tensor<4xf32>, tensor<4xi1>
}

// -----

// CHECK-LABEL: func.func @repetitions
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
func.func @repetitions(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: %[[A:.*]] = mlc.unary abs %[[X]]
  %0 = mlc.unary abs %x : tensor<4xf32>
  %1 = mlc.unary abs %0 : tensor<4xf32>
  // CHECK-NEXT: %[[R:.*]] = mlc.activation relu %[[X]]
  %2 = mlc.activation relu %x : tensor<4xf32>
  %3 = mlc.activation relu %2 : tensor<4xf32>
  // CHECK-NEXT: return %[[A]], %[[R]]
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// -----

// exp(exp(x)) is no repetition.
// CHECK-LABEL: func.func @no_repetition
func.func @no_repetition(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-COUNT-2: mlc.unary exp
  %0 = mlc.unary exp %x : tensor<4xf32>
  %1 = mlc.unary exp %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @neutral_integers
// CHECK-SAME: (%[[X:.*]]: tensor<?xi32>)
func.func @neutral_integers(%x: tensor<?xi32>) -> tensor<?xi32> {
  %zero = mlc.constant dense<0> : tensor<i32>
  %one = mlc.constant dense<1> : tensor<i32>
  %0 = mlc.binary add %x, %zero : tensor<?xi32>, tensor<i32> -> tensor<?xi32>
  %1 = mlc.binary sub %0, %zero : tensor<?xi32>, tensor<i32> -> tensor<?xi32>
  %2 = mlc.binary mul %one, %1 : tensor<i32>, tensor<?xi32> -> tensor<?xi32>
  %3 = mlc.binary div %2, %one : tensor<?xi32>, tensor<i32> -> tensor<?xi32>
  %4 = mlc.binary or %3, %zero : tensor<?xi32>, tensor<i32> -> tensor<?xi32>
  %5 = mlc.binary shl %4, %zero : tensor<?xi32>, tensor<i32> -> tensor<?xi32>
  %6 = mlc.binary max %5, %5 : tensor<?xi32>
  // CHECK-NEXT: return %[[X]]
  return %6 : tensor<?xi32>
}

// -----

// CHECK-LABEL: func.func @neutral_floats
// CHECK-SAME: (%[[X:.*]]: tensor<?xf32>)
func.func @neutral_floats(%x: tensor<?xf32>) -> tensor<?xf32> {
  %zero = mlc.constant dense<0.0> : tensor<f32>
  %minus_zero = mlc.constant dense<-0.0> : tensor<f32>
  %one = mlc.constant dense<1.0> : tensor<f32>
  %0 = mlc.binary add %x, %minus_zero : tensor<?xf32>, tensor<f32> -> tensor<?xf32>
  %1 = mlc.binary sub %0, %zero : tensor<?xf32>, tensor<f32> -> tensor<?xf32>
  %2 = mlc.binary mul %1, %one : tensor<?xf32>, tensor<f32> -> tensor<?xf32>
  %3 = mlc.binary pow %2, %one : tensor<?xf32>, tensor<f32> -> tensor<?xf32>
  // CHECK-NEXT: return %[[X]]
  return %3 : tensor<?xf32>
}

// -----

// -0.0 + 0.0 is 0.0: adding a positive zero is not neutral.
// CHECK-LABEL: func.func @positive_zero
func.func @positive_zero(%x: tensor<?xf32>) -> tensor<?xf32> {
  %zero = mlc.constant dense<0.0> : tensor<f32>
  // CHECK: mlc.binary add
  %0 = mlc.binary add %x, %zero : tensor<?xf32>, tensor<f32> -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

// A neutral constant that makes the result larger stays.
// CHECK-LABEL: func.func @broadcasting_one
func.func @broadcasting_one(%x: tensor<1xf32>) -> tensor<4xf32> {
  %one = mlc.constant dense<1.0> : tensor<4xf32>
  // CHECK: mlc.binary mul
  %0 = mlc.binary mul %x, %one : tensor<1xf32>, tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @constant_right
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
func.func @constant_right(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[C:.*]] = mlc.constant
  %c = mlc.constant dense<2.0> : tensor<f32>
  // CHECK: mlc.binary add %[[X]], %[[C]] : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %0 = mlc.binary add %c, %x : tensor<f32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: mlc.binary sub %[[C]], %[[X]]
  %1 = mlc.binary sub %c, %x : tensor<f32>, tensor<4xf32> -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @absorb_broadcast
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<3x4xf32>)
func.func @absorb_broadcast(%x: tensor<4xf32>, %y: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  // CHECK: %[[B:.*]] = mlc.broadcast
  %b = mlc.broadcast %x [3, 4] : tensor<4xf32> -> tensor<3x4xf32>
  // CHECK: mlc.binary add %[[X]], %[[Y]]
  %0 = mlc.binary add %b, %y : tensor<3x4xf32>
  // Nothing else makes this result 3x4.
  // CHECK: mlc.binary mul %[[B]], %[[X]]
  %1 = mlc.binary mul %b, %x : tensor<3x4xf32>, tensor<4xf32> -> tensor<3x4xf32>
  return %0, %1 : tensor<3x4xf32>, tensor<3x4xf32>
}

// -----

// CHECK-LABEL: func.func @select_known
// CHECK-SAME: (%[[C:.*]]: tensor<4xi1>, %[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>)
func.func @select_known(%c: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %true = mlc.constant dense<true> : tensor<i1>
  %false = mlc.constant dense<false> : tensor<4xi1>
  %0 = mlc.select %c, %x, %x : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %1 = mlc.select %true, %x, %y : tensor<i1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %2 = mlc.select %false, %x, %y : tensor<4xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK-NEXT: return %[[X]], %[[X]], %[[Y]]
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @lossless_casts
// CHECK-SAME: (%[[H:.*]]: tensor<4xf16>, %[[I:.*]]: tensor<4xi8>)
func.func @lossless_casts(%h: tensor<4xf16>, %i: tensor<4xi8>) -> (tensor<4xf16>, tensor<4xf64>, tensor<4xi16>, tensor<4xf32>) {
  %0 = mlc.cast %h : tensor<4xf16> -> tensor<4xf32>
  %1 = mlc.cast %0 : tensor<4xf32> -> tensor<4xf16>
  // CHECK: %[[D:.*]] = mlc.cast %[[H]] : tensor<4xf16> -> tensor<4xf64>
  %2 = mlc.cast %0 : tensor<4xf32> -> tensor<4xf64>
  %3 = mlc.cast %i : tensor<4xi8> -> tensor<4xi32>
  // CHECK: %[[S:.*]] = mlc.cast %[[I]] : tensor<4xi8> -> tensor<4xi16>
  %4 = mlc.cast %3 : tensor<4xi32> -> tensor<4xi16>
  // CHECK: %[[F:.*]] = mlc.cast %[[I]] {unsigned_in} : tensor<4xi8> -> tensor<4xf32>
  %5 = mlc.cast %i {unsigned_in} : tensor<4xi8> -> tensor<4xi32>
  %6 = mlc.cast %5 : tensor<4xi32> -> tensor<4xf32>
  // CHECK: return %[[H]], %[[D]], %[[S]], %[[F]]
  return %1, %2, %4, %6 : tensor<4xf16>, tensor<4xf64>, tensor<4xi16>, tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @lossy_casts
func.func @lossy_casts(%x: tensor<4xf32>, %i: tensor<4xi32>, %s: tensor<4xi8>)
    -> (tensor<4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) {
  // CHECK-COUNT-2: mlc.cast
  %0 = mlc.cast %x : tensor<4xf32> -> tensor<4xbf16>
  %1 = mlc.cast %0 : tensor<4xbf16> -> tensor<4xf32>
  // 24 bits of precision do not hold 31.
  // CHECK-COUNT-2: mlc.cast
  %2 = mlc.cast %i : tensor<4xi32> -> tensor<4xf32>
  %3 = mlc.cast %2 : tensor<4xf32> -> tensor<4xi32>
  // A negative number read as an unsigned one.
  // CHECK-COUNT-2: mlc.cast
  %4 = mlc.cast %s {unsigned_out} : tensor<4xi8> -> tensor<4xi16>
  %5 = mlc.cast %4 {unsigned_in} : tensor<4xi16> -> tensor<4xi32>
  // Written as signed, read as unsigned.
  // CHECK-COUNT-2: mlc.cast
  %6 = mlc.cast %s : tensor<4xi8> -> tensor<4xi16>
  %7 = mlc.cast %6 {unsigned_in} : tensor<4xi16> -> tensor<4xi32>
  return %1, %3, %5, %7 : tensor<4xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>
}

// -----

// CHECK-LABEL: func.func @bitcasts
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
func.func @bitcasts(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = mlc.bitcast %x : tensor<4xf32> -> tensor<4xi32>
  %1 = mlc.bitcast %0 : tensor<4xi32> -> tensor<4xf32>
  %2 = mlc.clamp %x : tensor<4xf32>
  // CHECK-NEXT: return %[[X]], %[[X]]
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}
