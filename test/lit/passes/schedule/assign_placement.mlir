// RUN: mlc-opt %s --split-input-file --pass-pipeline='builtin.module(mlc-assign-placement)' | FileCheck %s

// Data stay on the GPU; a product of sizes that the host has and reads does not.
// CHECK-LABEL: func.func @sizes(
func.func @sizes(%x: tensor<?x4xf32>, %shape: tensor<2xi64>) -> (tensor<?x4xf32>, index) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  // CHECK: mlc.launch @data({{.*}} {mlc.placement = "device"}
  %y = mlc.launch @data(%x) outs(%e) : (tensor<?x4xf32>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  %f = tensor.empty() : tensor<1xi64>
  // CHECK: mlc.launch @product({{.*}} {mlc.placement = "host"}
  %p = mlc.launch @product(%shape) outs(%f) : (tensor<2xi64>) outs(tensor<1xi64>) -> tensor<1xi64>
  %v = tensor.extract %p[%c0] : tensor<1xi64>
  %i = arith.index_cast %v : i64 to index
  return %y, %i : tensor<?x4xf32>, index
}
// CHECK: module @data attributes {mlc.kernel, mlc.placement = "device"}
module @data attributes {mlc.kernel} {
}
// CHECK: module @product attributes {mlc.kernel, mlc.placement = "host"}
module @product attributes {mlc.kernel} {
}

// -----

// Nobody on the host reads the first; the second's operand is made by the GPU. The kernel is there twice then.
// CHECK-LABEL: func.func @both(
func.func @both(%x: tensor<4xf32>, %shape: tensor<2xi64>) -> (tensor<1xi64>, i64, i64) {
  %c0 = arith.constant 0 : index
  %a = tensor.empty() : tensor<1xi64>
  // CHECK: mlc.launch @k({{.*}} {mlc.placement = "device"}
  %r = mlc.launch @k(%shape) outs(%a) : (tensor<2xi64>) outs(tensor<1xi64>) -> tensor<1xi64>
  %b = tensor.empty() : tensor<2xi64>
  // CHECK: mlc.launch @positions({{.*}} {mlc.placement = "device"}
  %q = mlc.launch @positions(%x) outs(%b) : (tensor<4xf32>) outs(tensor<2xi64>) -> tensor<2xi64>
  // CHECK: mlc.launch @k({{.*}} {mlc.placement = "device"}
  %s = mlc.launch @k(%q) outs(%a) : (tensor<2xi64>) outs(tensor<1xi64>) -> tensor<1xi64>
  %v = tensor.extract %s[%c0] : tensor<1xi64>
  // CHECK: mlc.launch @k_host({{.*}} {mlc.placement = "host"}
  %t = mlc.launch @k(%shape) outs(%a) : (tensor<2xi64>) outs(tensor<1xi64>) -> tensor<1xi64>
  %w = tensor.extract %t[%c0] : tensor<1xi64>
  return %r, %v, %w : tensor<1xi64>, i64, i64
}
// CHECK: module @k_host attributes {mlc.kernel, mlc.placement = "host"}
// CHECK: func.func @k_host(
// CHECK: module @k attributes {mlc.kernel, mlc.placement = "device"}
module @k attributes {mlc.kernel} {
  func.func @k(%a: tensor<2xi64>, %o: tensor<1xi64>) -> tensor<1xi64> {
    return %o : tensor<1xi64>
  }
}
module @positions attributes {mlc.kernel} {
}

// -----

// A counter that the host compares is the host's; what the loop computes is not.
// CHECK-LABEL: func.func @loop(
func.func @loop(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = mlc.constant dense<0> : tensor<i64>
  %limit = arith.constant 5 : i64
  %r:2 = scf.while (%i = %zero, %a = %x) : (tensor<i64>, tensor<4xf32>) -> (tensor<i64>, tensor<4xf32>) {
    %v = tensor.extract %i[] : tensor<i64>
    %go = arith.cmpi slt, %v, %limit : i64
    scf.condition(%go) %i, %a : tensor<i64>, tensor<4xf32>
  } do {
  ^bb0(%i: tensor<i64>, %a: tensor<4xf32>):
    %e = tensor.empty() : tensor<i64>
    // CHECK: mlc.launch @next({{.*}} {mlc.placement = "host"}
    %j = mlc.launch @next(%i) outs(%e) : (tensor<i64>) outs(tensor<i64>) -> tensor<i64>
    %f = tensor.empty() : tensor<4xf32>
    // CHECK: mlc.launch @step({{.*}} {mlc.placement = "device"}
    %b = mlc.launch @step(%a) outs(%f) : (tensor<4xf32>) outs(tensor<4xf32>) -> tensor<4xf32>
    scf.yield %j, %b : tensor<i64>, tensor<4xf32>
  // CHECK: } attributes {mlc.placement = ["host", "device", "host", "device"]}
  }
  return %r#1 : tensor<4xf32>
}
module @next attributes {mlc.kernel} {
}
module @step attributes {mlc.kernel} {
}

// -----

// One thread of a GPU would go through all of the elements; running sums are the work of many.
// CHECK-LABEL: func.func @sequential(
func.func @sequential(%x: tensor<8x5000xf32>, %y: tensor<300x5000xf32>) -> (tensor<8x5000xf32>, tensor<300x5000xf32>, tensor<8x5000xf32>) {
  %a = tensor.empty() : tensor<8x5000xf32>
  %b = tensor.empty() : tensor<300x5000xf32>
  // CHECK: mlc.launch @few({{.*}} {mlc.placement = "host"}
  %r = mlc.launch @few(%x) outs(%a) : (tensor<8x5000xf32>) outs(tensor<8x5000xf32>) -> tensor<8x5000xf32>
  // CHECK: mlc.launch @many({{.*}} {mlc.placement = "device"}
  %s = mlc.launch @many(%y) outs(%b) : (tensor<300x5000xf32>) outs(tensor<300x5000xf32>) -> tensor<300x5000xf32>
  // CHECK: mlc.launch @sums({{.*}} {mlc.placement = "device"}
  %t = mlc.launch @sums(%x) outs(%a) : (tensor<8x5000xf32>) outs(tensor<8x5000xf32>) -> tensor<8x5000xf32>
  return %r, %s, %t : tensor<8x5000xf32>, tensor<300x5000xf32>, tensor<8x5000xf32>
}
module @few attributes {mlc.kernel} {
  func.func @few(%x: tensor<8x5000xf32>, %o: tensor<8x5000xf32>) -> tensor<8x5000xf32> {
    %r, %i = mlc.sort %x {axis = 1 : i64} : tensor<8x5000xf32> -> tensor<8x5000xf32>, tensor<8x5000xi64>
    return %r : tensor<8x5000xf32>
  }
}
module @many attributes {mlc.kernel} {
  func.func @many(%x: tensor<300x5000xf32>, %o: tensor<300x5000xf32>) -> tensor<300x5000xf32> {
    %r, %i = mlc.sort %x {axis = 1 : i64} : tensor<300x5000xf32> -> tensor<300x5000xf32>, tensor<300x5000xi64>
    return %r : tensor<300x5000xf32>
  }
}
module @sums attributes {mlc.kernel} {
  func.func @sums(%x: tensor<8x5000xf32>, %o: tensor<8x5000xf32>) -> tensor<8x5000xf32> {
    %r = mlc.scan sum %x {axis = 1 : i64} : tensor<8x5000xf32>
    return %r : tensor<8x5000xf32>
  }
}

// -----

// Strings stay where their characters are.
// CHECK-LABEL: func.func @strings(
func.func @strings(%s: tensor<4xi128>) -> tensor<4xi128> {
  %a = tensor.empty() : tensor<4xi128>
  // CHECK: mlc.launch @move({{.*}} {mlc.placement = "host"}
  %r = mlc.launch @move(%s) outs(%a) : (tensor<4xi128>) outs(tensor<4xi128>) -> tensor<4xi128>
  return %r : tensor<4xi128>
}
module @move attributes {mlc.kernel} {
  func.func @move(%s: tensor<4xi128>, %o: tensor<4xi128>) -> tensor<4xi128> {
    return %o : tensor<4xi128>
  }
}

// -----

// The best of a long line are selected by a block of the GPU; as many as only a run knows, by the host.
// CHECK-LABEL: func.func @selects(
func.func @selects(%x: tensor<1x50000xf32>, %k: index) -> (tensor<1x9xf32>, tensor<1x?xf32>) {
  %a = tensor.empty() : tensor<1x9xf32>
  %b = tensor.empty() : tensor<1x9xi64>
  // CHECK: mlc.launch @nine({{.*}} {mlc.placement = "device"}
  %v:2 = mlc.launch @nine(%x) outs(%a, %b) : (tensor<1x50000xf32>) outs(tensor<1x9xf32>, tensor<1x9xi64>) -> (tensor<1x9xf32>, tensor<1x9xi64>)
  %c = tensor.empty(%k) : tensor<1x?xf32>
  %d = tensor.empty(%k) : tensor<1x?xi64>
  // CHECK: mlc.launch @some({{.*}} {mlc.placement = "host"}
  %w:2 = mlc.launch @some(%x) outs(%c, %d) : (tensor<1x50000xf32>) outs(tensor<1x?xf32>, tensor<1x?xi64>) -> (tensor<1x?xf32>, tensor<1x?xi64>)
  return %v#0, %w#0 : tensor<1x9xf32>, tensor<1x?xf32>
}
module @nine attributes {mlc.kernel} {
  func.func @nine(%x: tensor<1x50000xf32>, %a: tensor<1x9xf32>, %b: tensor<1x9xi64>) -> (tensor<1x9xf32>, tensor<1x9xi64>) {
    %k = arith.constant 9 : index
    %v, %i = mlc.topk %x, %k {axis = 1 : i64} : tensor<1x50000xf32> -> tensor<1x9xf32>, tensor<1x9xi64>
    return %v, %i : tensor<1x9xf32>, tensor<1x9xi64>
  }
}
module @some attributes {mlc.kernel} {
  func.func @some(%x: tensor<1x50000xf32>, %a: tensor<1x?xf32>, %b: tensor<1x?xi64>) -> (tensor<1x?xf32>, tensor<1x?xi64>) {
    %c1 = arith.constant 1 : index
    %k = tensor.dim %a, %c1 : tensor<1x?xf32>
    %v, %i = mlc.topk %x, %k {axis = 1 : i64} : tensor<1x50000xf32> -> tensor<1x?xf32>, tensor<1x?xi64>
    return %v, %i : tensor<1x?xf32>, tensor<1x?xi64>
  }
}

// -----

// Many updates whose order does not matter, or in many lines, are the GPU's; sums of floats in few lines are the host's.
// CHECK-LABEL: func.func @scatters(
func.func @scatters(%n: tensor<50xi64>, %x: tensor<50xf32>, %w: tensor<50x300xf32>, %i: tensor<5000xi64>, %u: tensor<5000xi64>,
                    %v: tensor<5000xf32>, %j: tensor<5000x300xi64>, %y: tensor<5000x300xf32>)
    -> (tensor<50xi64>, tensor<50xf32>, tensor<50x300xf32>) {
  %a = tensor.empty() : tensor<50xi64>
  // CHECK: mlc.launch @whole({{.*}} {mlc.placement = "device"}
  %p = mlc.launch @whole(%n, %i, %u) outs(%a) : (tensor<50xi64>, tensor<5000xi64>, tensor<5000xi64>) outs(tensor<50xi64>) -> tensor<50xi64>
  %b = tensor.empty() : tensor<50xf32>
  // CHECK: mlc.launch @one({{.*}} {mlc.placement = "host"}
  %q = mlc.launch @one(%x, %i, %v) outs(%b) : (tensor<50xf32>, tensor<5000xi64>, tensor<5000xf32>) outs(tensor<50xf32>) -> tensor<50xf32>
  %c = tensor.empty() : tensor<50x300xf32>
  // CHECK: mlc.launch @lines({{.*}} {mlc.placement = "device"}
  %r = mlc.launch @lines(%w, %j, %y) outs(%c) : (tensor<50x300xf32>, tensor<5000x300xi64>, tensor<5000x300xf32>) outs(tensor<50x300xf32>) -> tensor<50x300xf32>
  return %p, %q, %r : tensor<50xi64>, tensor<50xf32>, tensor<50x300xf32>
}
module @whole attributes {mlc.kernel} {
  func.func @whole(%x: tensor<50xi64>, %i: tensor<5000xi64>, %u: tensor<5000xi64>, %o: tensor<50xi64>) -> tensor<50xi64> {
    %r = mlc.scatter_elements %x, %i, %u {axis = 0 : i64, reduction = "add"} : tensor<50xi64>, tensor<5000xi64>, tensor<5000xi64> -> tensor<50xi64>
    return %r : tensor<50xi64>
  }
}
module @one attributes {mlc.kernel} {
  func.func @one(%x: tensor<50xf32>, %i: tensor<5000xi64>, %u: tensor<5000xf32>, %o: tensor<50xf32>) -> tensor<50xf32> {
    %r = mlc.scatter_elements %x, %i, %u {axis = 0 : i64, reduction = "add"} : tensor<50xf32>, tensor<5000xi64>, tensor<5000xf32> -> tensor<50xf32>
    return %r : tensor<50xf32>
  }
}
module @lines attributes {mlc.kernel} {
  func.func @lines(%x: tensor<50x300xf32>, %i: tensor<5000x300xi64>, %u: tensor<5000x300xf32>, %o: tensor<50x300xf32>) -> tensor<50x300xf32> {
    %r = mlc.scatter_elements %x, %i, %u {axis = 0 : i64, reduction = "add"} : tensor<50x300xf32>, tensor<5000x300xi64>, tensor<5000x300xf32> -> tensor<50x300xf32>
    return %r : tensor<50x300xf32>
  }
}
