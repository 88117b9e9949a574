// RUN: mlc-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%b: tensor<1x6x4xf32>, %s: tensor<1x2x5xf32>, %n: index, %t: tensor<f32>) {
  // expected-error @+1 {{'mlc.nms' op box counts of boxes 1x6x4 and scores 1x2x5 differ: 6 and 5}}
  %0 = mlc.nms %b, %s, %n, %t, %t : tensor<1x6x4xf32>, tensor<1x2x5xf32>, tensor<f32>, tensor<f32> -> tensor<?x3xi64>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %s: tensor<2xf32>) {
  // expected-error @+1 {{'mlc.resize' op needs a size for each dimension of 3x4, not 1}}
  %0 = mlc.resize linear %x, %s [6] : tensor<3x4xf32>, tensor<2xf32> -> tensor<6xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %s: tensor<3xf32>) {
  // expected-error @+1 {{'mlc.resize' op scales and rank differ: 3 and 2}}
  %0 = mlc.resize linear %x, %s [6, 4] : tensor<3x4xf32>, tensor<3xf32> -> tensor<6x4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3x4xf32>, %s: tensor<2xf32>) {
  // expected-error @+1 {{attribute 'coordinate' failed to satisfy constraint: string attribute one of half_pixel}}
  %0 = mlc.resize linear %x, %s [6, 4] {coordinate = "corner"} : tensor<3x4xf32>, tensor<2xf32> -> tensor<6x4xf32>
  return
}

// -----

func.func @invalid(%b: tensor<2x6x4xf32>, %c: tensor<2x3x5xf32>, %t: tensor<f32>, %n: index) {
  // expected-error @+1 {{'mlc.suppress' op box counts of boxes 2x6x4 and scores 2x3x5 differ: 6 and 5}}
  %0, %1 = mlc.suppress %b, %c, %t, %t, %n : tensor<2x6x4xf32>, tensor<2x3x5xf32>, tensor<f32>, tensor<f32> -> tensor<2x3x5xi64>, tensor<2x3xi64>
  return
}
