// Recurrent layers: what is printed parses to the same, in both forms.
// RUN: mlc-opt %s | mlc-opt | FileCheck %s
// RUN: mlc-opt %s --mlir-print-op-generic | mlc-opt | FileCheck %s

// CHECK-LABEL: func.func @recurrent
func.func @recurrent(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %i: tensor<?x4xi32>, %b: tensor<?x4xi1>, %s: tensor<f32>, %l: tensor<i64>, %n: index) {
  // CHECK: mlc.weight "x" : tensor<7x2x3xf32>
  %in = mlc.weight "x" : tensor<7x2x3xf32>
  // CHECK: mlc.weight "w" : tensor<1x20x3xf32>
  %w = mlc.weight "w" : tensor<1x20x3xf32>
  // CHECK: mlc.weight "r" : tensor<1x20x5xf32>
  %r = mlc.weight "r" : tensor<1x20x5xf32>
  // CHECK: mlc.weight "b" : tensor<1x40xf32>
  %bias = mlc.weight "b" : tensor<1x40xf32>
  // CHECK: mlc.weight "h" : tensor<1x2x5xf32>
  %h = mlc.weight "h" : tensor<1x2x5xf32>
  // CHECK: mlc.weight "len" : tensor<2xi32>
  %len = mlc.weight "len" : tensor<2xi32>
  // CHECK: mlc.weight "p" : tensor<1x15xf32>
  %p = mlc.weight "p" : tensor<1x15xf32>
  // CHECK: mlc.recurrent lstm %{{.*}}, %{{.*}}, %{{.*}} bias(%{{.*}} : tensor<1x40xf32>) lengths(%{{.*}} : tensor<2xi32>) initial_h(%{{.*}} : tensor<1x2x5xf32>) initial_c(%{{.*}} : tensor<1x2x5xf32>) peepholes(%{{.*}} : tensor<1x15xf32>) {activations = ["Sigmoid", "Tanh", "Tanh"], clip = 3.000000e+00 : f64, direction = "reverse"} : tensor<7x2x3xf32>, tensor<1x20x3xf32>, tensor<1x20x5xf32> -> tensor<7x1x2x5xf32>, tensor<1x2x5xf32>, tensor<1x2x5xf32>
  %y0_0, %y_h_0, %y_c_0 = mlc.recurrent lstm %in, %w, %r bias(%bias : tensor<1x40xf32>) lengths(%len : tensor<2xi32>) initial_h(%h : tensor<1x2x5xf32>) initial_c(%h : tensor<1x2x5xf32>) peepholes(%p : tensor<1x15xf32>) {activations = ["Sigmoid", "Tanh", "Tanh"], clip = 3.000000e+00 : f64, direction = "reverse"} : tensor<7x2x3xf32>, tensor<1x20x3xf32>, tensor<1x20x5xf32> -> tensor<7x1x2x5xf32>, tensor<1x2x5xf32>, tensor<1x2x5xf32>
  // CHECK: mlc.weight "w2" : tensor<2x15x3xf32>
  %w2 = mlc.weight "w2" : tensor<2x15x3xf32>
  // CHECK: mlc.weight "r2" : tensor<2x15x5xf32>
  %r2 = mlc.weight "r2" : tensor<2x15x5xf32>
  // CHECK: mlc.recurrent gru %{{.*}}, %{{.*}}, %{{.*}} {activations = ["Sigmoid", "Tanh", "Sigmoid", "Tanh"], direction = "bidirectional", linear_before_reset = true} : tensor<7x2x3xf32>, tensor<2x15x3xf32>, tensor<2x15x5xf32> -> tensor<7x2x2x5xf32>, tensor<2x2x5xf32>, tensor<2x2x5xf32>
  %y0_1, %y_h_1, %y_c_1 = mlc.recurrent gru %in, %w2, %r2 {activations = ["Sigmoid", "Tanh", "Sigmoid", "Tanh"], direction = "bidirectional", linear_before_reset = true} : tensor<7x2x3xf32>, tensor<2x15x3xf32>, tensor<2x15x5xf32> -> tensor<7x2x2x5xf32>, tensor<2x2x5xf32>, tensor<2x2x5xf32>
  return
}

// CHECK-LABEL: func.func @recurrence
func.func @recurrence(%x: tensor<?x?x96xf32>, %r: tensor<2x48x16xbf16>, %b: tensor<2x16xf32>, %l: tensor<?xi32>, %h: tensor<2x?x16xf32>) {
  // CHECK: mlc.recurrence gru %{{.*}}, %{{.*}} bias(%{{.*}} : tensor<2x16xf32>) lengths(%{{.*}} : tensor<?xi32>) initial_h(%{{.*}} : tensor<2x?x16xf32>) {direction = "bidirectional"} : tensor<?x?x96xf32>, tensor<2x48x16xbf16> -> tensor<?x?x2x16xf32>, tensor<2x?x16xf32>, tensor<2x?x16xf32>
  %y_0, %h_0, %c_0 = mlc.recurrence gru %x, %r bias(%b : tensor<2x16xf32>) lengths(%l : tensor<?xi32>) initial_h(%h : tensor<2x?x16xf32>) {direction = "bidirectional"} : tensor<?x?x96xf32>, tensor<2x48x16xbf16> -> tensor<?x?x2x16xf32>, tensor<2x?x16xf32>, tensor<2x?x16xf32>
  // In the panels of a CPU's kernel.
  // CHECK: mlc.weight "p" : tensor<1x6x96x1x16xf32>
  %p = mlc.weight "p" : tensor<1x6x96x1x16xf32>
  // CHECK: mlc.recurrence relu %{{.*}}, %{{.*}} {direction = "reverse"} : tensor<?x?x96xf32>, tensor<1x6x96x1x16xf32> -> tensor<?x?x1x96xf32>, tensor<1x?x96xf32>, tensor<1x?x96xf32>
  %y_1, %h_1, %c_1 = mlc.recurrence relu %x, %p {direction = "reverse"} : tensor<?x?x96xf32>, tensor<1x6x96x1x16xf32> -> tensor<?x?x1x96xf32>, tensor<1x?x96xf32>, tensor<1x?x96xf32>
  return
}
