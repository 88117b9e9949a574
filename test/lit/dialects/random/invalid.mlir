// RUN: mlc-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%s: tensor<1xi64>) {
  // expected-error @+1 {{must be rank-0 tensor of i64, but got 'tensor<1xi64>'}}
  %0 = mlc.random normal %s [3] : tensor<1xi64> -> tensor<3xf32>
  return
}

// -----

func.func @invalid(%s: tensor<i64>) {
  // expected-error @+1 {{'mlc.random' op has a result of type 'tensor<4xf32>' where its operands give 'tensor<3xf32>'}}
  %0 = mlc.random normal %s [3] : tensor<i64> -> tensor<4xf32>
  return
}
