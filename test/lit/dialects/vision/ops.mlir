// Detection and resampling: what is printed parses to the same, in both forms.
// RUN: mlc-opt %s | mlc-opt | FileCheck %s
// RUN: mlc-opt %s --mlir-print-op-generic | mlc-opt | FileCheck %s

// CHECK-LABEL: func.func @vision
func.func @vision(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %i: tensor<?x4xi32>, %b: tensor<?x4xi1>, %s: tensor<f32>, %l: tensor<i64>, %n: index) {
  // CHECK: mlc.weight "b" : tensor<1x6x4xf32>
  %boxes = mlc.weight "b" : tensor<1x6x4xf32>
  // CHECK: mlc.weight "s" : tensor<1x2x6xf32>
  %scores = mlc.weight "s" : tensor<1x2x6xf32>
  // CHECK: mlc.weight "i" : tensor<1x3x8x8xf32>
  %img = mlc.weight "i" : tensor<1x3x8x8xf32>
  // CHECK: mlc.weight "sc" : tensor<4xf32>
  %sc = mlc.weight "sc" : tensor<4xf32>
  // CHECK: mlc.nms %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {center_point_box = true} : tensor<1x6x4xf32>, tensor<1x2x6xf32>, tensor<f32>, tensor<f32> -> tensor<?x3xi64>
  %0 = mlc.nms %boxes, %scores, %n, %s, %s {center_point_box = true} : tensor<1x6x4xf32>, tensor<1x2x6xf32>, tensor<f32>, tensor<f32> -> tensor<?x3xi64>
  // CHECK: mlc.suppress %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x6x4xf32>, tensor<1x2x6xf32>, tensor<f32>, tensor<f32> -> tensor<1x2x6xi64>, tensor<1x2xi64>
  %kept, %counts = mlc.suppress %boxes, %scores, %s, %s, %n : tensor<1x6x4xf32>, tensor<1x2x6xf32>, tensor<f32>, tensor<f32> -> tensor<1x2x6xi64>, tensor<1x2xi64>
  // CHECK: mlc.resize linear %{{.*}}, %{{.*}} [1, 3, %{{.*}}, 16] {coordinate = "align_corners"} : tensor<1x3x8x8xf32>, tensor<4xf32> -> tensor<1x3x?x16xf32>
  %1 = mlc.resize linear %img, %sc [1, 3, %n, 16] {coordinate = "align_corners"} : tensor<1x3x8x8xf32>, tensor<4xf32> -> tensor<1x3x?x16xf32>
  // CHECK: mlc.resize nearest %{{.*}}, %{{.*}} [1, 3, 4, 4] {nearest_mode = "floor"} : tensor<1x3x8x8xf32>, tensor<4xf32> -> tensor<1x3x4x4xf32>
  %2 = mlc.resize nearest %img, %sc [1, 3, 4, 4] {nearest_mode = "floor"} : tensor<1x3x8x8xf32>, tensor<4xf32> -> tensor<1x3x4x4xf32>
  return
}
