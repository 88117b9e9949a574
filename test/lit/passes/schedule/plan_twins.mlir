// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-twins)' | FileCheck %s

#l = affine_map<(m, n, k) -> (m, k)>
#r = affine_map<(m, n, k) -> (n, k)>
#o = affine_map<(m, n, k) -> (m, n)>
#p = affine_map<(m, n) -> (m, n)>

// A product of the same tensor that multiplies what the one in front of it made, where it stores its own.
// CHECK-LABEL: func.func @gated(
// CHECK: mlc.launch @up({{.*}} {mlc.placement = "device", mlc.twins = 0 : i64}
// CHECK: mlc.launch @gate({{.*}} {mlc.placement = "device", mlc.twins = 0 : i64}
func.func @gated(%x: tensor<130x264xbf16>, %v: tensor<200x264xbf16>, %w: tensor<200x264xbf16>) -> tensor<130x200xbf16> {
  %e = tensor.empty() : tensor<130x200xbf16>
  %u = mlc.launch @up(%x, %v) outs(%e) {mlc.placement = "device"} : (tensor<130x264xbf16>, tensor<200x264xbf16>) outs(tensor<130x200xbf16>) -> tensor<130x200xbf16>
  %g = mlc.launch @gate(%x, %w, %u) outs(%e) {mlc.placement = "device"} : (tensor<130x264xbf16>, tensor<200x264xbf16>, tensor<130x200xbf16>) outs(tensor<130x200xbf16>) -> tensor<130x200xbf16>
  return %g : tensor<130x200xbf16>
}

// Not where it is read by others too.
// CHECK-LABEL: func.func @read_twice(
// CHECK-NOT: mlc.twins
func.func @read_twice(%x: tensor<130x264xbf16>, %v: tensor<200x264xbf16>, %w: tensor<200x264xbf16>) -> (tensor<130x200xbf16>, tensor<130x200xbf16>) {
  %e = tensor.empty() : tensor<130x200xbf16>
  %u = mlc.launch @up(%x, %v) outs(%e) {mlc.placement = "device"} : (tensor<130x264xbf16>, tensor<200x264xbf16>) outs(tensor<130x200xbf16>) -> tensor<130x200xbf16>
  %g = mlc.launch @gate(%x, %w, %u) outs(%e) {mlc.placement = "device"} : (tensor<130x264xbf16>, tensor<200x264xbf16>, tensor<130x200xbf16>) outs(tensor<130x200xbf16>) -> tensor<130x200xbf16>
  return %g, %u : tensor<130x200xbf16>, tensor<130x200xbf16>
}

// Nor where they multiply different tensors, or it is the factor of a product and no more.
// CHECK-LABEL: func.func @others(
// CHECK-NOT: mlc.twins
func.func @others(%x: tensor<130x264xbf16>, %y: tensor<130x264xbf16>, %v: tensor<200x264xbf16>, %s: tensor<264x264xbf16>) -> (tensor<130x200xbf16>, tensor<130x264xbf16>) {
  %e = tensor.empty() : tensor<130x200xbf16>
  %f = tensor.empty() : tensor<130x264xbf16>
  %u = mlc.launch @up(%x, %v) outs(%e) {mlc.placement = "device"} : (tensor<130x264xbf16>, tensor<200x264xbf16>) outs(tensor<130x200xbf16>) -> tensor<130x200xbf16>
  %g = mlc.launch @gate(%y, %v, %u) outs(%e) {mlc.placement = "device"} : (tensor<130x264xbf16>, tensor<200x264xbf16>, tensor<130x200xbf16>) outs(tensor<130x200xbf16>) -> tensor<130x200xbf16>
  %a = mlc.launch @square(%x, %s) outs(%f) {mlc.placement = "device"} : (tensor<130x264xbf16>, tensor<264x264xbf16>) outs(tensor<130x264xbf16>) -> tensor<130x264xbf16>
  %b = mlc.launch @square(%a, %s) outs(%f) {mlc.placement = "device"} : (tensor<130x264xbf16>, tensor<264x264xbf16>) outs(tensor<130x264xbf16>) -> tensor<130x264xbf16>
  return %g, %b : tensor<130x200xbf16>, tensor<130x264xbf16>
}

module @up attributes {mlc.kernel} {
  func.func @up(%x: tensor<130x264xbf16>, %w: tensor<200x264xbf16>, %d: tensor<130x200xbf16>) -> tensor<130x200xbf16> {
    %z = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<130x200xf32>
    %i = linalg.fill ins(%z : f32) outs(%e : tensor<130x200xf32>) -> tensor<130x200xf32>
    %m = linalg.generic {indexing_maps = [#l, #r, #o], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<130x264xbf16>, tensor<200x264xbf16>) outs(%i : tensor<130x200xf32>) attrs = {mlc.contraction} {
    ^bb0(%a: bf16, %b: bf16, %c: f32):
      %0 = arith.extf %a : bf16 to f32
      %1 = arith.extf %b : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %c, %2 : f32
      linalg.yield %3 : f32
    } -> tensor<130x200xf32>
    %r = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<130x200xf32>) outs(%d : tensor<130x200xbf16>) {
    ^bb0(%a: f32, %b: bf16):
      %0 = arith.truncf %a : f32 to bf16
      linalg.yield %0 : bf16
    } -> tensor<130x200xbf16>
    return %r : tensor<130x200xbf16>
  }
}
module @gate attributes {mlc.kernel} {
  func.func @gate(%x: tensor<130x264xbf16>, %w: tensor<200x264xbf16>, %u: tensor<130x200xbf16>, %d: tensor<130x200xbf16>) -> tensor<130x200xbf16> {
    %z = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<130x200xf32>
    %i = linalg.fill ins(%z : f32) outs(%e : tensor<130x200xf32>) -> tensor<130x200xf32>
    %m = linalg.generic {indexing_maps = [#l, #r, #o], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<130x264xbf16>, tensor<200x264xbf16>) outs(%i : tensor<130x200xf32>) attrs = {mlc.contraction} {
    ^bb0(%a: bf16, %b: bf16, %c: f32):
      %0 = arith.extf %a : bf16 to f32
      %1 = arith.extf %b : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %c, %2 : f32
      linalg.yield %3 : f32
    } -> tensor<130x200xf32>
    %r = linalg.generic {indexing_maps = [#p, #p, #p], iterator_types = ["parallel", "parallel"]} ins(%m, %u : tensor<130x200xf32>, tensor<130x200xbf16>) outs(%d : tensor<130x200xbf16>) {
    ^bb0(%a: f32, %b: bf16, %c: bf16):
      %0 = math.tanh %a : f32
      %1 = arith.extf %b : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.truncf %2 : f32 to bf16
      linalg.yield %3 : bf16
    } -> tensor<130x200xbf16>
    return %r : tensor<130x200xbf16>
  }
}
module @square attributes {mlc.kernel} {
  func.func @square(%x: tensor<130x264xbf16>, %w: tensor<264x264xbf16>, %d: tensor<130x264xbf16>) -> tensor<130x264xbf16> {
    %z = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<130x264xf32>
    %i = linalg.fill ins(%z : f32) outs(%e : tensor<130x264xf32>) -> tensor<130x264xf32>
    %m = linalg.generic {indexing_maps = [#l, #r, #o], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : tensor<130x264xbf16>, tensor<264x264xbf16>) outs(%i : tensor<130x264xf32>) attrs = {mlc.contraction} {
    ^bb0(%a: bf16, %b: bf16, %c: f32):
      %0 = arith.extf %a : bf16 to f32
      %1 = arith.extf %b : bf16 to f32
      %2 = arith.mulf %0, %1 : f32
      %3 = arith.addf %c, %2 : f32
      linalg.yield %3 : f32
    } -> tensor<130x264xf32>
    %r = linalg.generic {indexing_maps = [#p, #p], iterator_types = ["parallel", "parallel"]} ins(%m : tensor<130x264xf32>) outs(%d : tensor<130x264xbf16>) {
    ^bb0(%a: f32, %b: bf16):
      %0 = arith.truncf %a : f32 to bf16
      linalg.yield %0 : bf16
    } -> tensor<130x264xbf16>
    return %r : tensor<130x264xbf16>
  }
}
