// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-share-kernels)' --split-input-file | FileCheck %s

// What differs is an input, a whole number as a float; what all have stays, and so do numbers that end a range.
// CHECK-LABEL: func.func @quantized
// CHECK: %[[N:.*]] = mlc.constant dense<[2.000000e-02, 1.250000e+02]> : tensor<2xf32>
// CHECK: mlc.launch @k0(%{{.*}}, %[[N]], %{{.*}}) outs(%{{.*}}) {{.*}}mlc.refused = []
// CHECK: %[[M:.*]] = mlc.constant dense<[3.000000e-02, 1.300000e+02]> : tensor<2xf32>
// CHECK: mlc.launch @k0(%{{.*}}, %[[M]], %{{.*}})
// CHECK: mlc.launch @k2(
// CHECK: func.func @k0(%[[A:.*]]: tensor<?xf32>, %[[P:.*]]: tensor<2xf32>, %{{.*}}: index, %{{.*}}: tensor<?xf32>)
// CHECK-DAG: %[[SCALE:.*]] = tensor.extract %[[P]][%c0{{.*}}] : tensor<2xf32>
// CHECK-DAG: %[[ZERO:.*]] = tensor.extract %[[P]][%c1{{.*}}] {mlc.whole} : tensor<2xf32>
// CHECK-DAG: arith.constant 2.550000e+02 : f32
// CHECK-DAG: arith.constant 7.000000e+00 : f32
// CHECK: arith.divf %{{.*}}, %[[SCALE]]
// CHECK: arith.addf %{{.*}}, %[[ZERO]]
// CHECK: arith.minimumf
// CHECK: arith.subf %{{.*}}, %[[ZERO]]
// CHECK: arith.mulf %{{.*}}, %[[SCALE]]
// CHECK-NOT: module @k1
// CHECK: module @k2
// CHECK: arith.constant 0.000000e+00 : f32
#id = affine_map<(d0) -> (d0)>
func.func @quantized(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %e = tensor.empty(%n) : tensor<?xf32>
  %a = mlc.launch @k0(%x, %n) outs(%e) {mlc.refused = []} : (tensor<?xf32>, index) outs(tensor<?xf32>) -> tensor<?xf32>
  %b = mlc.launch @k1(%a, %n) outs(%e) : (tensor<?xf32>, index) outs(tensor<?xf32>) -> tensor<?xf32>
  %c = mlc.launch @k2(%b, %n) outs(%e) : (tensor<?xf32>, index) outs(tensor<?xf32>) -> tensor<?xf32>
  return %c : tensor<?xf32>
}
module @k0 attributes {mlc.kernel} {
  func.func @k0(%x: tensor<?xf32>, %n: index, %o: tensor<?xf32>) -> tensor<?xf32> {
    %s = arith.constant 0.02 : f32
    %z = arith.constant 125.0 : f32
    %high = arith.constant 255.0 : f32
    %seven = arith.constant 7.0 : f32
    %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %0 = arith.divf %in, %s : f32
      %1 = arith.addf %0, %z : f32
      %2 = arith.minimumf %1, %high : f32
      %3 = arith.subf %2, %z : f32
      %4 = arith.mulf %3, %s : f32
      %5 = arith.addf %4, %seven : f32
      linalg.yield %5 : f32
    } -> tensor<?xf32>
    return %r : tensor<?xf32>
  }
}
module @k1 attributes {mlc.kernel} {
  func.func @k1(%x: tensor<?xf32>, %n: index, %o: tensor<?xf32>) -> tensor<?xf32> {
    %s = arith.constant 0.03 : f32
    %z = arith.constant 130.0 : f32
    %high = arith.constant 255.0 : f32
    %seven = arith.constant 7.0 : f32
    %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %0 = arith.divf %in, %s : f32
      %1 = arith.addf %0, %z : f32
      %2 = arith.minimumf %1, %high : f32
      %3 = arith.subf %2, %z : f32
      %4 = arith.mulf %3, %s : f32
      %5 = arith.addf %4, %seven : f32
      linalg.yield %5 : f32
    } -> tensor<?xf32>
    return %r : tensor<?xf32>
  }
}
module @k2 attributes {mlc.kernel} {
  func.func @k2(%x: tensor<?xf32>, %n: index, %o: tensor<?xf32>) -> tensor<?xf32> {
    %s = arith.constant 0.03 : f32
    %z = arith.constant 0.0 : f32
    %high = arith.constant 255.0 : f32
    %seven = arith.constant 7.0 : f32
    %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<?xf32>) outs(%o : tensor<?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %0 = arith.divf %in, %s : f32
      %1 = arith.addf %0, %z : f32
      %2 = arith.minimumf %1, %high : f32
      %3 = arith.subf %2, %z : f32
      %4 = arith.mulf %3, %s : f32
      %5 = arith.addf %4, %seven : f32
      linalg.yield %5 : f32
    } -> tensor<?xf32>
    return %r : tensor<?xf32>
  }
}

// -----

// An integer comes out of the vector of floats; one operation that has another number where one has the same twice.
// CHECK-LABEL: func.func @integers
// CHECK: mlc.constant dense<1.250000e+02> : tensor<2xf32>
// CHECK: mlc.launch @k0
// CHECK: mlc.constant dense<[1.260000e+02, 1.270000e+02]>
// CHECK: mlc.launch @k0
// CHECK: module @k0
// CHECK: arith.fptosi %{{.*}} : f32 to i32
// CHECK: arith.fptosi %{{.*}} : f32 to i32
// CHECK-NOT: module @k1
#id = affine_map<(d0) -> (d0)>
func.func @integers(%x: tensor<4xi32>) -> tensor<4xi32> {
  %e = tensor.empty() : tensor<4xi32>
  %a = mlc.launch @k0(%x) outs(%e) : (tensor<4xi32>) outs(tensor<4xi32>) -> tensor<4xi32>
  %b = mlc.launch @k1(%a) outs(%e) : (tensor<4xi32>) outs(tensor<4xi32>) -> tensor<4xi32>
  return %b : tensor<4xi32>
}
module @k0 attributes {mlc.kernel} {
  func.func @k0(%x: tensor<4xi32>, %o: tensor<4xi32>) -> tensor<4xi32> {
    %z = arith.constant 125 : i32
    %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<4xi32>) outs(%o : tensor<4xi32>) {
    ^bb0(%in: i32, %out: i32):
      %0 = arith.subi %in, %z : i32
      %1 = arith.addi %0, %z : i32
      linalg.yield %1 : i32
    } -> tensor<4xi32>
    return %r : tensor<4xi32>
  }
}
module @k1 attributes {mlc.kernel} {
  func.func @k1(%x: tensor<4xi32>, %o: tensor<4xi32>) -> tensor<4xi32> {
    %z = arith.constant 126 : i32
    %w = arith.constant 127 : i32
    %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<4xi32>) outs(%o : tensor<4xi32>) {
    ^bb0(%in: i32, %out: i32):
      %0 = arith.subi %in, %z : i32
      %1 = arith.addi %0, %w : i32
      linalg.yield %1 : i32
    } -> tensor<4xi32>
    return %r : tensor<4xi32>
  }
}

// -----

// Bounds and what a fill has are no inputs: templates look at them. Nor are numbers of 64 bits.
// CHECK-LABEL: func.func @bounds
// CHECK: mlc.launch @k0
// CHECK: mlc.launch @k1
// CHECK: module @k0
// CHECK: module @k1
#id = affine_map<(d0) -> (d0)>
func.func @bounds(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %a = mlc.launch @k0(%x) outs(%e) : (tensor<4xf32>) outs(tensor<4xf32>) -> tensor<4xf32>
  %b = mlc.launch @k1(%a) outs(%e) : (tensor<4xf32>) outs(tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}
module @k0 attributes {mlc.kernel} {
  func.func @k0(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
    %z = arith.constant 5.0 : f32
    %s = arith.constant 0.3 : f32
    %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %0 = arith.minimumf %in, %z : f32
      %1 = arith.mulf %0, %s : f32
      linalg.yield %1 : f32
    } -> tensor<4xf32>
    return %r : tensor<4xf32>
  }
}
module @k1 attributes {mlc.kernel} {
  func.func @k1(%x: tensor<4xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
    %z = arith.constant 6.0 : f32
    %s = arith.constant 0.3 : f32
    %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %0 = arith.minimumf %in, %z : f32
      %1 = arith.mulf %0, %s : f32
      linalg.yield %1 : f32
    } -> tensor<4xf32>
    return %r : tensor<4xf32>
  }
}

// -----

// Products with one over a scale, in two parts. The first operation of the kernel is one of the numbers.
// CHECK-LABEL: func.func @inverted
// CHECK: mlc.constant dense<[1.250000e-01, 5.000000e+01]> : tensor<2xf32>
// CHECK: mlc.launch @k0(
// CHECK: mlc.constant dense<[3.750000e-01, 3.000000e+01]> : tensor<2xf32>
// CHECK: mlc.launch @k0(
// CHECK: %[[SMALL:.*]] = arith.mulf
// CHECK: math.fma %{{.*}}, %{{.*}}, %[[SMALL]]
// CHECK-NOT: module @k1
#id = affine_map<(d0) -> (d0)>
func.func @inverted(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %a = mlc.launch @k0(%x) outs(%e) : (tensor<8xf32>) outs(tensor<8xf32>) -> tensor<8xf32>
  %b = mlc.launch @k1(%a) outs(%e) : (tensor<8xf32>) outs(tensor<8xf32>) -> tensor<8xf32>
  return %b : tensor<8xf32>
}
module @k0 attributes {mlc.kernel} {
  func.func @k0(%x: tensor<8xf32>, %o: tensor<8xf32>) -> tensor<8xf32> {
    %low = arith.constant 0.125 : f32
    %high = arith.constant 50.0 : f32
    %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<8xf32>) outs(%o : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %0 = arith.mulf %in, %low : f32
      %1 = math.fma %in, %high, %0 : f32
      linalg.yield %1 : f32
    } -> tensor<8xf32>
    return %r : tensor<8xf32>
  }
}
module @k1 attributes {mlc.kernel} {
  func.func @k1(%x: tensor<8xf32>, %o: tensor<8xf32>) -> tensor<8xf32> {
    %low = arith.constant 0.375 : f32
    %high = arith.constant 30.0 : f32
    %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%x : tensor<8xf32>) outs(%o : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %0 = arith.mulf %in, %low : f32
      %1 = math.fma %in, %high, %0 : f32
      linalg.yield %1 : f32
    } -> tensor<8xf32>
    return %r : tensor<8xf32>
  }
}
