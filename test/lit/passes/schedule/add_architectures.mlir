// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-add-architectures,mlc-assign-gpu-schedules)' | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>

// A kernel of the GPU is there for each architecture, in their order, with a schedule of its own; launches name the
// first. Kernels of the host have none.
// CHECK: mlc.launch @k0
// CHECK: module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule
// CHECK: func.func @k0(
// CHECK: module @k0_sm_80 attributes {mlc.architecture = "sm_80", mlc.kernel, mlc.kernel_of = "k0", mlc.placement = "device", mlc.schedule
// CHECK: func.func @k0_sm_80(
// CHECK: module @k0_sm_86 attributes {mlc.architecture = "sm_86"
// CHECK: module @k1 attributes {mlc.kernel, mlc.placement = "host"}
// CHECK-NOT: module
module attributes {mlc.target = "nvidia:sm_90a,sm_80,sm_86"} {
  func.func @forward(%a: tensor<4x8xf32>, %o: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %r = mlc.launch @k0(%a) outs(%o) : (tensor<4x8xf32>) outs(tensor<4x8xf32>) -> tensor<4x8xf32>
    return %r : tensor<4x8xf32>
  }
  module @k0 attributes {mlc.kernel, mlc.placement = "device"} {
    func.func @k0(%a: tensor<4x8xf32>, %o: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%a : tensor<4x8xf32>) outs(%o : tensor<4x8xf32>) {
      ^bb0(%x: f32, %out: f32):
        %n = arith.negf %x : f32
        linalg.yield %n : f32
      } -> tensor<4x8xf32>
      return %s : tensor<4x8xf32>
    }
  }
  module @k1 attributes {mlc.kernel, mlc.placement = "host"} {
    func.func @k1(%a: tensor<4x8xf32>, %o: tensor<4x8xf32>) -> tensor<4x8xf32> {
      return %a : tensor<4x8xf32>
    }
  }
}
