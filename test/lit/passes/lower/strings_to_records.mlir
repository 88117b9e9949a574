// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-strings-to-records)' | FileCheck %s

// Results, arguments, what control flow carries and the function's type change; numbers do not.
// CHECK-LABEL: func.func @f
// CHECK-SAME: (%[[X:.*]]: tensor<2x?xi128> {mlc.dtype = "string"}, %[[C:.*]]: i1) -> (tensor<?xi128>, tensor<i64>)
// CHECK: mlc.reshape %[[X]] {{.*}} : tensor<2x?xi128> -> tensor<?xi128>
// CHECK: scf.if %[[C]] -> (tensor<?xi128>)
// CHECK: mlc.extern "mlc_text_normalize"(%{{.*}}) {{.*}} : (tensor<?xi128>) -> tensor<?xi128>
// CHECK: mlc.constant dense<7> : tensor<i64>
func.func @f(%x: tensor<2x?x!mlc.str> {mlc.dtype = "string"}, %c: i1) -> (tensor<?x!mlc.str>, tensor<i64>) {
  %c1 = arith.constant 1 : index
  %n = tensor.dim %x, %c1 : tensor<2x?x!mlc.str>
  %0 = mlc.reshape %x [%n] : tensor<2x?x!mlc.str> -> tensor<?x!mlc.str>
  %1 = scf.if %c -> (tensor<?x!mlc.str>) {
    %2 = mlc.extern "mlc_text_normalize"(%0) {config = "1:01:0"} : (tensor<?x!mlc.str>) -> tensor<?x!mlc.str>
    scf.yield %2 : tensor<?x!mlc.str>
  } else {
    scf.yield %0 : tensor<?x!mlc.str>
  }
  %3 = mlc.constant dense<7> : tensor<i64>
  return %1, %3 : tensor<?x!mlc.str>, tensor<i64>
}
