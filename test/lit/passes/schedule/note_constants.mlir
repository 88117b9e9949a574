// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-note-constants)' | FileCheck %s

// The bytes of weights, through views, at the places of their tensors; sizes are no tensors. Copies have their kernel's.
// CHECK: module @k0 attributes {mlc.constants = array<i64: 0, 4096, 32>, mlc.kernel}
// CHECK: module @k0_64 attributes {mlc.constants = array<i64: 0, 4096, 32>, mlc.kernel,
// CHECK: module @k0_64_sm_100 attributes {{.*}}mlc.constants = array<i64: 0, 4096, 32>
// What one launch computes, another one's weight or not, is none; nor is anything of the host's.
// CHECK: module @k1 attributes {mlc.kernel}
// CHECK: module @k2 attributes {mlc.kernel, mlc.placement = "host"}
module {
  func.func @forward(%n: index, %x: tensor<?x64xbf16>, %o: tensor<?x32xbf16>, %p: tensor<32xbf16>) -> tensor<?x32xbf16> {
    %w = mlc.weight "w" : tensor<2048xbf16>
    %m = tensor.expand_shape %w [[0, 1]] output_shape [64, 32] : tensor<2048xbf16> into tensor<64x32xbf16>
    %b = mlc.weight "b" : tensor<32xi8>
    %0 = mlc.launch @k0(%x, %n, %m, %b) outs(%o) : (tensor<?x64xbf16>, index, tensor<64x32xbf16>, tensor<32xi8>) outs(tensor<?x32xbf16>) -> tensor<?x32xbf16>
    %1 = mlc.launch @k1(%b) outs(%p) : (tensor<32xi8>) outs(tensor<32xbf16>) -> tensor<32xbf16>
    %c = mlc.launch @k2(%b) outs(%b) : (tensor<32xi8>) outs(tensor<32xi8>) -> tensor<32xi8>
    %2 = mlc.launch @k1(%c) outs(%p) : (tensor<32xi8>) outs(tensor<32xbf16>) -> tensor<32xbf16>
    return %0 : tensor<?x32xbf16>
  }
  module @k0 attributes {mlc.kernel} {}
  module @k0_64 attributes {mlc.kernel, mlc.variant_of = "k0"} {}
  module @k0_64_sm_100 attributes {mlc.architecture = "sm_100", mlc.kernel, mlc.kernel_of = "k0_64"} {}
  module @k1 attributes {mlc.kernel} {}
  module @k2 attributes {mlc.kernel, mlc.placement = "host"} {}
}
