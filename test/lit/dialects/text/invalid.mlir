// RUN: mlc-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%c: tensor<2xf32>) {
  // expected-error @+1 {{'mlc.extern' op requires attribute 'callee'}}
  %0 = "mlc.extern"(%c) : (tensor<2xf32>) -> tensor<2xf32>
  return
}
