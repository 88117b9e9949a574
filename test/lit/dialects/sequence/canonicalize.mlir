// RUN: mlc-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @known_sequence
// CHECK-SAME: (%[[X:.*]]: tensor<2xf32>, %[[Y:.*]]: tensor<2xf32>)
func.func @known_sequence(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<i64>) {
  // CHECK: %[[TWO:.*]] = mlc.constant dense<2> : tensor<i64>
  %one = mlc.constant dense<1> : tensor<i64>
  %last_but_one = mlc.constant dense<-2> : tensor<i64>
  %0 = mlc.sequence_make(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> !mlc.seq<tensor<2xf32>>
  %1 = mlc.sequence_at %0, %one : <tensor<2xf32>>, tensor<i64> -> tensor<2xf32>
  %2 = mlc.sequence_at %0, %last_but_one : <tensor<2xf32>>, tensor<i64> -> tensor<2xf32>
  %3 = mlc.sequence_length %0 : <tensor<2xf32>>
  // CHECK-NEXT: return %[[Y]], %[[X]], %[[TWO]]
  return %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<i64>
}

// Out of range is an error of the run, not of the compiler.
// CHECK-LABEL: func.func @out_of_range
func.func @out_of_range(%x: tensor<2xf32>) -> tensor<2xf32> {
  %one = mlc.constant dense<1> : tensor<i64>
  %0 = mlc.sequence_make(%x) : (tensor<2xf32>) -> !mlc.seq<tensor<2xf32>>
  // CHECK: mlc.sequence_at
  %1 = mlc.sequence_at %0, %one : <tensor<2xf32>>, tensor<i64> -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: func.func @optionals
// CHECK-SAME: (%[[X:.*]]: tensor<2xf32>)
func.func @optionals(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<i1>, tensor<i1>) {
  // CHECK-DAG: %[[YES:.*]] = mlc.constant dense<true> : tensor<i1>
  // CHECK-DAG: %[[NO:.*]] = mlc.constant dense<false> : tensor<i1>
  %some = mlc.optional_some %x : tensor<2xf32>
  %none = mlc.optional_none : <tensor<2xf32>>
  %0 = mlc.optional_get %some : <tensor<2xf32>>
  %1 = mlc.optional_has %some : <tensor<2xf32>>
  %2 = mlc.optional_has %none : <tensor<2xf32>>
  // CHECK: return %[[X]], %[[YES]], %[[NO]]
  return %0, %1, %2 : tensor<2xf32>, tensor<i1>, tensor<i1>
}
