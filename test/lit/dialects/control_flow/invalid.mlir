// RUN: mlc-opt %s -split-input-file -verify-diagnostics

func.func @invalid(%c: i32, %n: index) {
  // expected-error @+1 {{'mlc.check' op operand #0 must be 1-bit signless integer, but got 'i32'}}
  "mlc.check"(%c, %n) {message = "m"} : (i32, index) -> ()
  return
}
