// RUN: mlc-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.softmax' op axis 2 is out of range for rank 2}}
  %0 = mlc.softmax %x {axis = 2 : i64} : tensor<3x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %c: tensor<3xf32>) {
  // expected-error @+1 {{'mlc.batch_norm' op scale extent and channels of 3x4 differ: 3 and 4}}
  %0 = mlc.batch_norm %x, %c, %c, %c, %c {epsilon = 0.0 : f64} : tensor<3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32> -> tensor<3x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %c: tensor<3xf32>) {
  // expected-error @+1 {{'mlc.layer_norm' op a parameter of shape 3 does not fit the input 3x4}}
  %0 = mlc.layer_norm %x scale(%c : tensor<3xf32>) {axis = 1 : i64, epsilon = 0.0 : f64} : tensor<3x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %c: tensor<4xf32>) {
  // expected-error @+1 {{'mlc.group_norm' op groups 3 do not divide the channels of 3x4}}
  %0 = mlc.group_norm %x, %c, %c {groups = 3 : i64, epsilon = 0.0 : f64} : tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<3x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{'mlc.lp_normalize' op axis 2 is out of range for rank 2}}
  %0 = mlc.lp_normalize %x {axis = 2 : i64, p = 2 : i64} : tensor<3x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<1x4xf32>) {
  // expected-error @+1 {{'mlc.lrn' op has a result of type 'tensor<1x5xf32>' where its operands give 'tensor<1x4xf32>'}}
  %0 = "mlc.lrn"(%x) {size = 3 : i64, alpha = 1.0 : f64, beta = 0.5 : f64, bias = 1.0 : f64} : (tensor<1x4xf32>) -> tensor<1x5xf32>
  return
}
