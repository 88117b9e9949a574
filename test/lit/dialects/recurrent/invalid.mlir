// RUN: mlc-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%x: tensor<7x2x3xf32>, %w: tensor<1x16x3xf32>, %r: tensor<1x20x5xf32>) {
  // expected-error @+1 {{'mlc.recurrent' op gates of input 7x2x3, weights 1x16x3 and recurrence 1x20x5 differ: 16 and 20}}
  %a, %b, %c = mlc.recurrent lstm %x, %w, %r {activations = []} : tensor<7x2x3xf32>, tensor<1x16x3xf32>, tensor<1x20x5xf32> -> tensor<7x1x2x5xf32>, tensor<1x2x5xf32>, tensor<1x2x5xf32>
  return
}

// -----

func.func @invalid(%x: tensor<7x2x3xf32>, %w: tensor<1x5x3xf32>, %r: tensor<1x5x5xf32>) {
  // expected-error @+1 {{'mlc.recurrent' op directions of input 7x2x3, weights 1x5x3 and recurrence 1x5x5 differ: 1 and 2}}
  %a, %b, %c = mlc.recurrent rnn %x, %w, %r {activations = [], direction = "bidirectional"} : tensor<7x2x3xf32>, tensor<1x5x3xf32>, tensor<1x5x5xf32> -> tensor<7x2x2x5xf32>, tensor<2x2x5xf32>, tensor<2x2x5xf32>
  return
}

// -----

func.func @invalid(%x: tensor<7x2x60xf32>, %r: tensor<1x60x16xf32>) {
  // expected-error @+1 {{'mlc.recurrence' op hidden of inputs 7x2x60 and recurrence 1x60x16 differ: 16 and 15}}
  %a, %b, %c = mlc.recurrence lstm %x, %r {direction = "forward"} : tensor<7x2x60xf32>, tensor<1x60x16xf32> -> tensor<7x2x1x15xf32>, tensor<1x2x15xf32>, tensor<1x2x15xf32>
  return
}

// -----

func.func @invalid(%x: tensor<7x2x60xf32>, %r: tensor<2x32x8xf32>) {
  // expected-error @+1 {{'mlc.recurrence' op needs inputs for 8 gates of a known size, not those of inputs 7x2x60 and recurrence 2x32x8}}
  %a, %b, %c = mlc.recurrence lstm %x, %r {direction = "bidirectional"} : tensor<7x2x60xf32>, tensor<2x32x8xf32> -> tensor<7x2x2x8xf32>, tensor<2x2x8xf32>, tensor<2x2x8xf32>
  return
}
