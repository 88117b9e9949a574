// RUN: mlc-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%x: tensor<4xf32>) {
  // expected-error @+1 {{attribute 'kind' failed to satisfy constraint: string attribute one of abs, neg}}
  %0 = mlc.unary foo %x : tensor<4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<4xi32>) {
  // expected-error @+1 {{'mlc.unary' op exp needs floats, not 'i32'}}
  %0 = mlc.unary exp %x : tensor<4xi32>
  return
}

// -----

func.func @invalid(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mlc.unary' op not needs integers, not 'f32'}}
  %0 = mlc.unary not %x : tensor<4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mlc.unary' op positive and negative belong to isinf, not to exp}}
  %0 = mlc.unary exp %x {positive = true} : tensor<4xf32>
  return
}

// -----

func.func @invalid(%x: tensor<4xf32>) {
  // expected-error @+1 {{where its operands give}}
  %0 = mlc.unary exp %x : tensor<4xf32> -> tensor<5xf32>
  return
}

// -----

func.func @invalid(%x: tensor<2x3xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'mlc.binary' op shapes 2x3 and 4 do not broadcast}}
  %0 = mlc.binary add %x, %y : tensor<2x3xf32>, tensor<4xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3xf32>, %y: tensor<3xi32>) {
  // expected-error @+1 {{'mlc.binary' op add needs operands of one element type, not 'f32' and 'i32'}}
  %0 = mlc.binary add %x, %y : tensor<3xf32>, tensor<3xi32> -> tensor<3xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3xf32>) {
  // expected-error @+1 {{'mlc.binary' op xor needs integers, not 'f32'}}
  %0 = mlc.binary xor %x, %x : tensor<3xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3xi32>) {
  // expected-error @+1 {{'mlc.binary' op atan2 needs floats, not 'i32'}}
  %0 = mlc.binary atan2 %x, %x : tensor<3xi32>
  return
}

// -----

func.func @invalid(%x: tensor<3xf32>, %y: tensor<3xi32>) {
  // expected-error @+1 {{'mlc.compare' op needs operands of one element type}}
  %0 = mlc.compare lt %x, %y : tensor<3xf32>, tensor<3xi32> -> tensor<3xi1>
  return
}

// -----

func.func @invalid(%c: tensor<2xi1>, %x: tensor<3xf32>) {
  // expected-error @+1 {{'mlc.select' op shapes 2 and 3 do not broadcast}}
  %0 = mlc.select %c, %x, %x : tensor<2xi1>, tensor<3xf32>, tensor<3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @invalid(%c: tensor<3xi1>, %x: tensor<3xf32>, %y: tensor<3xf64>) {
  // expected-error @+1 {{'mlc.select' op needs alternatives of one element type}}
  %0 = mlc.select %c, %x, %y : tensor<3xi1>, tensor<3xf32>, tensor<3xf64> -> tensor<3xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3xf32>) {
  // expected-error @+1 {{'mlc.cast' op has a result of type 'tensor<4xf16>' where its operands give 'tensor<3xf16>'}}
  %0 = mlc.cast %x : tensor<3xf32> -> tensor<4xf16>
  return
}

// -----

func.func @invalid(%x: tensor<3xf32>) {
  // expected-error @+1 {{'mlc.bitcast' op reads 'f32' as 'f16', which has another width}}
  %0 = mlc.bitcast %x : tensor<3xf32> -> tensor<3xf16>
  return
}

// -----

func.func @invalid(%x: tensor<3xf32>, %l: tensor<1xf32>) {
  // expected-error @+1 {{'mlc.clamp' op needs bounds of type 'tensor<f32>', not 'tensor<1xf32>'}}
  %0 = mlc.clamp %x low(%l : tensor<1xf32>) : tensor<3xf32>
  return
}

// -----

func.func @invalid(%x: tensor<3xf32>, %y: tensor<2xf32>) {
  // expected-error @+1 {{'mlc.prelu' op shapes 3 and 2 do not broadcast}}
  %0 = mlc.prelu %x, %y : tensor<3xf32>, tensor<2xf32> -> tensor<3xf32>
  return
}

// -----

func.func @invalid(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'mlc.activation' op attribute 'kind' failed to satisfy constraint: string attribute one of relu,}}
  %0 = mlc.activation wibble %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @invalid() {
  // expected-error @+1 {{'mlc.constant' op failed to verify that all of {value, result} have same type}}
  %0 = "mlc.constant"() {value = dense<1.0> : tensor<5xf32>} : () -> tensor<4xf32>
  return
}

// -----

func.func @invalid() {
  // expected-error @+1 {{'mlc.weight' op result #0 must be statically shaped tensor of any type values, but got 'tensor<?xf32>'}}
  %0 = mlc.weight "w" : tensor<?xf32>
  return
}
