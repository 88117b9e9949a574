// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-dedupe-kernels)' | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: mlc.launch @k0
// CHECK: mlc.launch @k0
// CHECK: mlc.launch @k2
// CHECK: module @k0
// CHECK-NOT: module @k1
// CHECK: module @k2
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %a = mlc.launch @k0(%x) outs(%e) : (tensor<4xf32>) outs(tensor<4xf32>) -> tensor<4xf32>
  %b = mlc.launch @k1(%a) outs(%e) : (tensor<4xf32>) outs(tensor<4xf32>) -> tensor<4xf32>
  %c = mlc.launch @k2(%b) outs(%e) : (tensor<4xf32>) outs(tensor<4xf32>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}
module @k0 attributes {mlc.kernel} {
  func.func @k0(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
    %r = mlc.scan sum %x {axis = 0 : i64, exclusive = false, reverse = false} : tensor<4xf32>
    return %r : tensor<4xf32>
  }
}
module @k1 attributes {mlc.kernel} {
  func.func @k1(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
    %r = mlc.scan sum %x {axis = 0 : i64, exclusive = false, reverse = false} : tensor<4xf32>
    return %r : tensor<4xf32>
  }
}
module @k2 attributes {mlc.kernel} {
  func.func @k2(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
    %r = mlc.scan sum %x {axis = 0 : i64, exclusive = true, reverse = false} : tensor<4xf32>
    return %r : tensor<4xf32>
  }
}
