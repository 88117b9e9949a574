// RUN: mlc-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%x: tensor<3xf32>, %y: tensor<3xi32>) {
  // expected-error @+1 {{'mlc.sequence_make' op holds 'tensor<?xf32>', not 'tensor<3xi32>'}}
  %0 = mlc.sequence_make(%x, %y) : (tensor<3xf32>, tensor<3xi32>) -> !mlc.seq<tensor<?xf32>>
  return
}

// -----

func.func @invalid(%s: !mlc.seq<tensor<?xf32>>, %p: tensor<i64>) {
  // expected-error @+1 {{'mlc.sequence_at' op gives 'tensor<?xf32>', not 'tensor<?xi32>'}}
  %0 = mlc.sequence_at %s, %p : <tensor<?xf32>>, tensor<i64> -> tensor<?xi32>
  return
}

// -----

func.func @invalid(%s: !mlc.seq<tensor<?xf32>>, %x: tensor<2x2xf32>) {
  // expected-error @+1 {{'mlc.sequence_insert' op holds 'tensor<?xf32>', not 'tensor<2x2xf32>'}}
  %0 = mlc.sequence_insert %s, %x : <tensor<?xf32>>, tensor<2x2xf32>
  return
}

// -----

func.func @invalid(%c: tensor<2xf32>) {
  // expected-error @+1 {{'mlc.optional_get' op operand #0 must be a value or nothing}}
  %0 = "mlc.optional_get"(%c) : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @invalid(%c: tensor<2xf32>) {
  // expected-error @+1 {{'mlc.optional_has' op operand #0 must be a value or nothing}}
  %0 = "mlc.optional_has"(%c) : (tensor<2xf32>) -> i1
  return
}

// -----

func.func @invalid(%c: tensor<2xf32>) {
  // expected-error @+1 {{'mlc.optional_some' op result #0 must be a value or nothing}}
  %0 = "mlc.optional_some"(%c) : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @invalid(%c: tensor<2xf32>) {
  // expected-error @+1 {{'mlc.optional_none' op result #0 must be a value or nothing}}
  %0 = "mlc.optional_none"() : () -> tensor<2xf32>
  return
}

// -----

func.func @invalid(%c: tensor<2xf32>) {
  // expected-error @+1 {{'mlc.sequence_length' op operand #0 must be a sequence of values}}
  %0 = "mlc.sequence_length"(%c) : (tensor<2xf32>) -> tensor<i64>
  return
}

// -----

func.func @invalid(%s: !mlc.seq<tensor<?xf32>>, %c: tensor<2xf32>) {
  // expected-error @+1 {{'mlc.sequence_erase' op operand #1 must be rank-0 tensor of i64, but got 'tensor<2xf32>'}}
  %0 = "mlc.sequence_erase"(%s, %c) : (!mlc.seq<tensor<?xf32>>, tensor<2xf32>) -> !mlc.seq<tensor<?xf32>>
  return
}
