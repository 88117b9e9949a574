// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-join-twins)' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-join-twins,mlc-assign-gpu-schedules)' | FileCheck %s --check-prefix=SCHEDULE

#l = affine_map<(m, n, k) -> (m, k)>
#r = affine_map<(m, n, k) -> (n, k)>
#o = affine_map<(m, n, k) -> (m, n)>
#p = affine_map<(m, n) -> (m, n)>

// One launch, which reads the shared operand once and writes the second result; the first one has the shape of that.
// CHECK-LABEL: func.func @gated(
// CHECK: mlc.launch @up_gate(%[[X:[a-z0-9]+]], %[[V:[a-z0-9]+]], %[[W:[a-z0-9]+]]) outs({{.*}}) {mlc.placement = "device"}
// CHECK-NOT: mlc.launch
// CHECK: module @up_gate attributes {mlc.kernel, mlc.placement = "device"}
// CHECK: func.func @up_gate(%[[A:.*]]: tensor<?x264xbf16>, %[[B:.*]]: tensor<200x264xbf16>, %[[C:.*]]: tensor<200x264xbf16>, %[[O:.*]]: tensor<?x200xbf16>) -> tensor<?x200xbf16>
// CHECK: tensor.dim %[[O]]
// CHECK: linalg.generic {{.*}} ins(%[[A]], %[[B]] :
// CHECK: %[[U:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<?x200xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[A]], %[[C]] :
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %[[U]] : {{.*}}) outs(%[[O]]
// CHECK: return %[[R]]
// CHECK-NOT: module @
// SCHEDULE: template = "hopper_contraction"{{.*}} twins = 2
module attributes {mlc.target = "nvidia:h200"} {
func.func @gated(%n: index, %x: tensor<?x264xbf16>, %v: tensor<200x264xbf16>, %w: tensor<200x264xbf16>) -> tensor<?x200xbf16> {
  %e = tensor.empty(%n) : tensor<?x200xbf16>
  %u = mlc.launch @up(%x, %v) outs(%e) {mlc.placement = "device", mlc.twins = 0 : i64} : (tensor<?x264xbf16>, tensor<200x264xbf16>) outs(tensor<?x200xbf16>) -> tensor<?x200xbf16>
  %g = mlc.launch @gate(%x, %w, %u) outs(%e) {mlc.placement = "device", mlc.twins = 0 : i64} : (tensor<?x264xbf16>, tensor<200x264xbf16>, tensor<?x200xbf16>) outs(tensor<?x200xbf16>) -> tensor<?x200xbf16>
  return %g : tensor<?x200xbf16>
}

module @up attributes {mlc.kernel} {
  func.func @up(%x: tensor<?x264xbf16>, %w: tensor<200x264xbf16>, %d: tensor<?x200xbf16>) -> tensor<?x200xbf16> {
    %z = arith.constant 0.0 : f32
    %n0 = arith.constant 0 : index
    %n = tensor.dim %x, %n0 : tensor<?x264xbf16>
    %e = tensor.empty(%n) : tensor<?x200xf32>
    %i = linalg.fill ins(%z : f32) outs(%e : tensor<?x200xf32>) -> tensor<?x200xf32>
    %m = linalg.generic {indexing_maps = [#l, #r, #o], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x264xbf16>, tensor<200x264xbf16>) outs(%i : tensor<?x200xf32>) attrs = {mlc.contraction} {
    ^bb0(%a: bf16, %b: bf16, %c: f32):
      %0 = arith.extf %a : bf16 to f32
      %1 = arith.extf %b : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %c, %2 : f32
      linalg.yield %3 : f32
    } -> tensor<?x200xf32>
    %r = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<?x200xf32>) outs(%d : tensor<?x200xbf16>) {
    ^bb0(%a: f32, %b: bf16):
      %0 = arith.truncf %a : f32 to bf16
      linalg.yield %0 : bf16
    } -> tensor<?x200xbf16>
    return %r : tensor<?x200xbf16>
  }
}
module @gate attributes {mlc.kernel} {
  func.func @gate(%x: tensor<?x264xbf16>, %w: tensor<200x264xbf16>, %u: tensor<?x200xbf16>, %d: tensor<?x200xbf16>) -> tensor<?x200xbf16> {
    %z = arith.constant 0.0 : f32
    %n0 = arith.constant 0 : index
    %n = tensor.dim %x, %n0 : tensor<?x264xbf16>
    %e = tensor.empty(%n) : tensor<?x200xf32>
    %i = linalg.fill ins(%z : f32) outs(%e : tensor<?x200xf32>) -> tensor<?x200xf32>
    %m = linalg.generic {indexing_maps = [#l, #r, #o], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<?x264xbf16>, tensor<200x264xbf16>) outs(%i : tensor<?x200xf32>) attrs = {mlc.contraction} {
    ^bb0(%a: bf16, %b: bf16, %c: f32):
      %0 = arith.extf %a : bf16 to f32
      %1 = arith.extf %b : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %c, %2 : f32
      linalg.yield %3 : f32
    } -> tensor<?x200xf32>
    %r = linalg.generic {indexing_maps = [#p, #p, #p], iterator_types = ["parallel", "parallel"]} ins(%m, %u : tensor<?x200xf32>, tensor<?x200xbf16>) outs(%d : tensor<?x200xbf16>) {
    ^bb0(%a: f32, %b: bf16, %c: bf16):
      %0 = math.tanh %a : f32
      %1 = arith.extf %b : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.truncf %2 : f32 to bf16
      linalg.yield %3 : bf16
    } -> tensor<?x200xbf16>
    return %r : tensor<?x200xbf16>
  }
}
}
