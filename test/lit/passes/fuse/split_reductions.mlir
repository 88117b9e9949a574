// RUN: mlc-opt %s --mlc-lower-to-linalg --mlc-plan-splits --mlc-split-reductions | FileCheck %s

// CHECK-DAG: #[[ALL:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[WEIGHT:.*]] = affine_map<(d0, d1, d2) -> (0, d2)>
// CHECK-DAG: #[[CUT:.*]] = affine_map<(d0, d1, d2) -> (d1 + d0 * 3787, d2)>
// CHECK-DAG: #[[REST:.*]] = affine_map<(d0, d1) -> (d0 + 999768, d1)>

// What is computed in front of a reduction is computed in parts.
// CHECK-LABEL: func.func @squares
// CHECK-SAME: %[[X:.*]]: tensor<100000x4xf32>, %[[M:.*]]: tensor<1x4xf32>
// CHECK: %[[F:.*]] = linalg.fill {{.*}} -> tensor<160x4xf32>
// CHECK: %[[P:.*]] = tensor.expand_shape %[[X]] {{\[\[}}0, 1], [2]] output_shape [160, 625, 4]
// CHECK: %[[D:.*]] = linalg.generic {indexing_maps = [#[[ALL]], #[[WEIGHT]], #[[ALL]]]{{.*}} ins(%[[P]], %[[M]]
// CHECK: arith.subf
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[D]], %[[D]]
// CHECK: arith.mulf
// CHECK: %[[R:.*]] = linalg.generic {{.*}}["parallel", "reduction", "parallel"]} ins(%[[S]] : {{.*}} outs(%[[F]]
// CHECK: linalg.generic {{.*}}["reduction", "parallel"]} ins(%[[R]]
// CHECK: -> tensor<4xf32>
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @squares(%x: tensor<100000x4xf32>, %m: tensor<1x4xf32>) -> tensor<4xf32> {
  %0 = mlc.binary sub %x, %m : tensor<100000x4xf32>, tensor<1x4xf32> -> tensor<100000x4xf32>
  %1 = mlc.binary mul %0, %0 : tensor<100000x4xf32>, tensor<100000x4xf32> -> tensor<100000x4xf32>
  %2 = mlc.reduce sum %1 {axes = array<i64: 0>, keepdims = false} : tensor<100000x4xf32> -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// Parts of narrow sums are as wide as the sums: they are rounded once.
// CHECK-LABEL: func.func @narrow
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0], [1, 2]] : tensor<3x100x1000xbf16> into tensor<3x100000xbf16>
// CHECK: tensor.expand_shape %{{.*}} output_shape [3, 250, 400]
// CHECK: %[[R:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<3x250x400xbf16>) outs(%{{.*}} : tensor<3x250xf32>)
// CHECK: arith.extf
// CHECK: linalg.generic {{.*}} ins(%[[R]] : tensor<3x250xf32>) outs(%{{.*}} : tensor<3xf32>)
// CHECK: arith.truncf
func.func @narrow(%x: tensor<3x100x1000xbf16>) -> tensor<3x1x1xbf16> {
  %0 = mlc.reduce sum %x {axes = array<i64: 1, 2>, keepdims = true} : tensor<3x100x1000xbf16> -> tensor<3x1x1xbf16>
  return %0 : tensor<3x1x1xbf16>
}

// What no equal parts have is one more reduction.
// CHECK-LABEL: func.func @prime
// CHECK-SAME: %[[X:.*]]: tensor<1000003x4xf32>
// CHECK: linalg.generic {indexing_maps = [#[[CUT]], #[[ALL]]]{{.*}} ins(%[[X]] {{.*}} outs(%{{.*}} : tensor<264x3787x4xf32>)
// CHECK: linalg.generic {{.*}}"reduction"{{.*}} outs(%{{.*}} : tensor<264x4xf32>)
// CHECK: %[[S:.*]] = linalg.generic {{.*}}"reduction"{{.*}} outs(%{{.*}} : tensor<4xf32>)
// CHECK: linalg.generic {indexing_maps = [#[[REST]],{{.*}} ins(%[[X]] {{.*}} outs(%{{.*}} : tensor<235x4xf32>)
// CHECK: %[[R:.*]] = linalg.generic {{.*}}"reduction"{{.*}} outs(%{{.*}} : tensor<4xf32>)
// CHECK: %[[Y:.*]] = linalg.generic {{.*}}["parallel"]} ins(%[[S]], %[[R]]
// CHECK: arith.mulf
// CHECK: return %[[Y]]
func.func @prime(%x: tensor<1000003x4xf32>) -> tensor<4xf32> {
  %0 = mlc.reduce prod %x {axes = array<i64: 0>, keepdims = false} : tensor<1000003x4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Parts of a position: an extreme value, and where it is among all elements. Of equal ones the last part's counts here.
// CHECK-LABEL: func.func @position
// CHECK: %[[P:.*]]:2 = linalg.generic {{.*}}["parallel", "parallel", "reduction", "parallel"]}{{.*}}mlc.arg_reduce = "minimumf", mlc.select_last
// CHECK-DAG: %[[I:.*]] = linalg.index 1
// CHECK-DAG: %[[J:.*]] = linalg.index 2
// CHECK-DAG: %[[L:.*]] = arith.constant 1000
// CHECK-DAG: arith.muli %[[I]], %{{.*}}
// CHECK: arith.select
// CHECK: %[[Q:.*]]:2 = linalg.generic {{.*}}["parallel", "reduction", "parallel"]} ins(%[[P]]#0, %[[P]]#1 {{.*}}mlc.arg_reduce = "minimumf", mlc.select_last
// CHECK-NEXT: ^bb0(%[[V:.*]]: f32, %[[W:.*]]: i32, %[[B:.*]]: f32, %[[A:.*]]: i32):
// CHECK: %[[C:.*]] = arith.cmpf ole, %[[V]], %[[B]]
// CHECK: %[[N:.*]] = arith.cmpf uno, %[[V]], %[[V]]
// CHECK: %[[O:.*]] = arith.ori %[[C]], %[[N]]
// CHECK: arith.select %[[O]], %[[V]], %[[B]]
// CHECK: arith.select %[[O]], %[[W]], %[[A]]
func.func @position(%x: tensor<8x50000x4xf32>) -> tensor<8x4xi64> {
  %0 = mlc.arg_reduce min %x {axis = 1 : i64, select_last = true} : tensor<8x50000x4xf32> -> tensor<8x4xi64>
  return %0 : tensor<8x4xi64>
}
