// Sequences and optionals: what is printed parses to the same, in both forms.
// RUN: mlc-opt %s | mlc-opt | FileCheck %s
// RUN: mlc-opt %s --mlir-print-op-generic | mlc-opt | FileCheck %s

// CHECK-LABEL: func.func @sequence
func.func @sequence(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %i: tensor<?x4xi32>, %b: tensor<?x4xi1>, %s: tensor<f32>, %l: tensor<i64>, %n: index) {
  // CHECK: mlc.sequence_make(%{{.*}}, %{{.*}}) : (tensor<?x4xf32>, tensor<?x4xf32>) -> !mlc.seq<tensor<?x4xf32>>
  %seq = mlc.sequence_make(%x, %y) : (tensor<?x4xf32>, tensor<?x4xf32>) -> !mlc.seq<tensor<?x4xf32>>
  // CHECK: mlc.sequence_at %{{.*}}, %{{.*}} : <tensor<?x4xf32>>, tensor<i64> -> tensor<?x4xf32>
  %0 = mlc.sequence_at %seq, %l : <tensor<?x4xf32>>, tensor<i64> -> tensor<?x4xf32>
  // CHECK: mlc.sequence_insert %{{.*}}, %{{.*}} at(%{{.*}} : tensor<i64>) : <tensor<?x4xf32>>, tensor<?x4xf32>
  %1 = mlc.sequence_insert %seq, %x at(%l : tensor<i64>) : <tensor<?x4xf32>>, tensor<?x4xf32>
  // CHECK: mlc.sequence_insert %{{.*}}, %{{.*}} : <tensor<?x4xf32>>, tensor<?x4xf32>
  %2 = mlc.sequence_insert %seq, %x : <tensor<?x4xf32>>, tensor<?x4xf32>
  // CHECK: mlc.sequence_erase %{{.*}} at(%{{.*}} : tensor<i64>) : <tensor<?x4xf32>>
  %3 = mlc.sequence_erase %seq at(%l : tensor<i64>) : <tensor<?x4xf32>>
  // CHECK: mlc.sequence_erase %{{.*}} : <tensor<?x4xf32>>
  %4 = mlc.sequence_erase %seq : <tensor<?x4xf32>>
  // CHECK: mlc.sequence_length %{{.*}} : <tensor<?x4xf32>>
  %5 = mlc.sequence_length %seq : <tensor<?x4xf32>>
  // CHECK: mlc.optional_some %{{.*}} : tensor<?x4xf32>
  %opt = mlc.optional_some %x : tensor<?x4xf32>
  // CHECK: mlc.optional_none : <tensor<2x!mlc.str>>
  %none = mlc.optional_none : <tensor<2x!mlc.str>>
  // CHECK: mlc.optional_has %{{.*}} : <tensor<?x4xf32>>
  %6 = mlc.optional_has %opt : <tensor<?x4xf32>>
  // CHECK: mlc.optional_get %{{.*}} : <tensor<?x4xf32>>
  %7 = mlc.optional_get %opt : <tensor<?x4xf32>>
  return
}
