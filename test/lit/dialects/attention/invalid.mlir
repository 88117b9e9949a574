// RUN: mlc-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%q: tensor<2x8x5x16xf32>, %k: tensor<2x8x7x16xf32>, %v: tensor<2x8x6x16xf32>) {
  // expected-error @+1 {{'mlc.attention' op key and value lengths of query 2x8x5x16, key 2x8x7x16 and value 2x8x6x16 differ: 7 and 6}}
  %0 = mlc.attention %q, %k, %v : tensor<2x8x5x16xf32>, tensor<2x8x7x16xf32>, tensor<2x8x6x16xf32> -> tensor<2x8x5x16xf32>
  return
}

// -----

func.func @invalid(%q: tensor<2x8x5x16xf32>, %k: tensor<2x3x7x16xf32>) {
  // expected-error @+1 {{'mlc.attention' op the heads of the key do not divide those of the query, given the shapes of query 2x8x5x16}}
  %0 = mlc.attention %q, %k, %k : tensor<2x8x5x16xf32>, tensor<2x3x7x16xf32>, tensor<2x3x7x16xf32> -> tensor<2x8x5x16xf32>
  return
}

// -----

func.func @invalid(%q: tensor<2x8x5x16xf32>, %m: tensor<4x5xi1>) {
  // expected-error @+1 {{'mlc.attention' op a mask of shape 4x5 does not fit the scores 2x8x5x5}}
  %0 = mlc.attention %q, %q, %q mask(%m : tensor<4x5xi1>) : tensor<2x8x5x16xf32>, tensor<2x8x5x16xf32>, tensor<2x8x5x16xf32> -> tensor<2x8x5x16xf32>
  return
}

// -----

func.func @invalid(%q: tensor<8x5x16xf32>) {
  // expected-error @+1 {{'mlc.attention' op query must have rank 4, but its shape is 8x5x16}}
  %0 = mlc.attention %q, %q, %q : tensor<8x5x16xf32>, tensor<8x5x16xf32>, tensor<8x5x16xf32> -> tensor<8x5x16xf32>
  return
}
