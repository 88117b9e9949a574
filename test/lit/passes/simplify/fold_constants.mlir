// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-fold-constants,canonicalize)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-fold-constants{limit=1},canonicalize)' | FileCheck %s --check-prefix=SMALL

// CHECK-LABEL: func.func @chain
// CHECK-NEXT: %[[C:.*]] = mlc.constant dense<[7, 10]> : tensor<2xi64>
// CHECK-NEXT: return %[[C]]
// SMALL-LABEL: func.func @chain
// SMALL: mlc.binary mul
func.func @chain() -> tensor<2xi64> {
  %a = mlc.constant dense<[2, 3]> : tensor<2xi64>
  %b = mlc.constant dense<3> : tensor<i64>
  %one = mlc.constant dense<1> : tensor<2xi64>
  %0 = mlc.binary mul %a, %b : tensor<2xi64>, tensor<i64> -> tensor<2xi64>
  %1 = mlc.binary add %0, %one : tensor<2xi64>
  return %1 : tensor<2xi64>
}

// CHECK-LABEL: func.func @narrow_types
// CHECK-DAG: mlc.constant dense<[1.500000e+00, 2.000000e+00]> : tensor<2xbf16>
// CHECK-DAG: mlc.constant dense<[true, false]> : tensor<2xi1>
func.func @narrow_types() -> (tensor<2xbf16>, tensor<2xi1>) {
  %a = mlc.constant dense<[1.5, 2.0]> : tensor<2xf32>
  %limit = mlc.constant dense<1.7> : tensor<f32>
  %0 = mlc.cast %a : tensor<2xf32> -> tensor<2xbf16>
  %1 = mlc.compare lt %a, %limit : tensor<2xf32>, tensor<f32> -> tensor<2xi1>
  return %0, %1 : tensor<2xbf16>, tensor<2xi1>
}

// An index out of range is the model's error at run time.
// CHECK-LABEL: func.func @out_of_range
// CHECK: mlc.gather
func.func @out_of_range() -> tensor<i64> {
  %a = mlc.constant dense<[2, 3]> : tensor<2xi64>
  %i = mlc.constant dense<5> : tensor<i64>
  %0 = mlc.gather %a, %i {axis = 0 : i64} : tensor<2xi64>, tensor<i64> -> tensor<i64>
  return %0 : tensor<i64>
}

// CHECK-LABEL: func.func @sizes
// CHECK-NEXT: mlc.constant dense<[4, 5]> : tensor<2xi64>
// CHECK-NEXT: return
func.func @sizes() -> tensor<2xi64> {
  %c4 = arith.constant 4 : i64
  %c5 = arith.constant 5 : i64
  %0 = tensor.from_elements %c4, %c5 : tensor<2xi64>
  return %0 : tensor<2xi64>
}

// CHECK-LABEL: func.func @two_results
// CHECK-DAG: mlc.constant dense<[9, 4]> : tensor<2xi64>
// CHECK-DAG: mlc.constant dense<[1, 2]> : tensor<2xi64>
func.func @two_results() -> (tensor<2xi64>, tensor<2xi64>) {
  %k = arith.constant 2 : index
  %a = mlc.constant dense<[1, 9, 4]> : tensor<3xi64>
  %v, %i = mlc.topk %a, %k {axis = 0 : i64} : tensor<3xi64> -> tensor<2xi64>, tensor<2xi64>
  return %v, %i : tensor<2xi64>, tensor<2xi64>
}

// Large results and weights stay.
// CHECK-LABEL: func.func @large
// CHECK: mlc.broadcast
// CHECK: mlc.transpose
func.func @large() -> (tensor<100xf32>, tensor<2x1xf32>) {
  %a = mlc.constant dense<1.5> : tensor<f32>
  %0 = mlc.broadcast %a [100] : tensor<f32> -> tensor<100xf32>
  %w = mlc.weight "w" : tensor<1x2xf32>
  %1 = mlc.transpose %w {permutation = array<i64: 1, 0>} : tensor<1x2xf32> -> tensor<2x1xf32>
  return %0, %1 : tensor<100xf32>, tensor<2x1xf32>
}

// What has no elements is a constant without any.
// CHECK-LABEL: func.func @empty
// CHECK: %[[E:.*]] = mlc.constant dense<> : tensor<0x3xf32>
// CHECK-NOT: mlc.matmul
// CHECK: return %[[E]]
func.func @empty(%x: tensor<0x5xf32>, %y: tensor<5x3xf32>) -> tensor<0x3xf32> {
  %0 = mlc.matmul %x, %y : tensor<0x5xf32>, tensor<5x3xf32> -> tensor<0x3xf32>
  return %0 : tensor<0x3xf32>
}
