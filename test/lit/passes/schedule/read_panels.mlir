// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-read-panels)' | FileCheck %s

// 9000 rows are 141 panels of 64, the last of which is padded: the row of a word is in panel `id / 64`, at `id mod 64`.
// The constant of the padding is in front of the table, where something else reads it.
// CHECK-LABEL: func.func @main
// CHECK: mlc.unary neg
// CHECK: %[[W:.*]] = mlc.weight "w"
// CHECK: %[[Z:.*]] = mlc.constant
// CHECK: %[[P:.*]] = mlc.pad constant %[[W]] low [0, 0] high [24, 0] value(%[[Z]]
// CHECK: %[[R:.*]] = mlc.reshape %[[P]] [141, 64, 16]
// CHECK: %[[T:.*]] = mlc.transpose %[[R]] {permutation = array<i64: 0, 2, 1>}
// CHECK: mlc.launch @look_up(%{{.*}}, %[[T]])
// CHECK: mlc.launch @product(%{{.*}}, %[[T]])
// CHECK: func.func @look_up(%{{.*}}: tensor<8xi64>, %[[A:.*]]: tensor<141x16x64xf32>
// CHECK: %[[K:.*]] = linalg.index 1
// CHECK: %[[ID:.*]] = arith.index_cast
// CHECK: %[[C:.*]] = arith.constant 64 : index
// CHECK: %[[PANEL:.*]] = arith.divui %[[ID]], %[[C]]
// CHECK: %[[D:.*]] = arith.constant 64 : index
// CHECK: %[[PLACE:.*]] = arith.remui %[[ID]], %[[D]]
// CHECK: tensor.extract %[[A]][%[[PANEL]], %[[K]], %[[PLACE]]]
func.func @main(%ids: tensor<8xi64>) -> (tensor<8x9000xf32>, tensor<f32>) {
  %z = mlc.constant dense<0.0> : tensor<f32>
  %n = mlc.unary neg %z : tensor<f32>
  %w = mlc.weight "w" : tensor<9000x16xf32>
  %e = tensor.empty() : tensor<8x16xf32>
  %x = mlc.launch @look_up(%ids, %w) outs(%e) : (tensor<8xi64>, tensor<9000x16xf32>) outs(tensor<8x16xf32>) -> tensor<8x16xf32>
  %f = tensor.empty() : tensor<8x9000xf32>
  %p = mlc.pad constant %w low [0, 0] high [24, 0] value(%z : tensor<f32>) : tensor<9000x16xf32> -> tensor<9024x16xf32>
  %r = mlc.reshape %p [141, 64, 16] : tensor<9024x16xf32> -> tensor<141x64x16xf32>
  %t = mlc.transpose %r {permutation = array<i64: 0, 2, 1>} : tensor<141x64x16xf32> -> tensor<141x16x64xf32>
  %y = mlc.launch @product(%x, %t) outs(%f) : (tensor<8x16xf32>, tensor<141x16x64xf32>) outs(tensor<8x9000xf32>) -> tensor<8x9000xf32>
  return %y, %n : tensor<8x9000xf32>, tensor<f32>
}
module @look_up attributes {mlc.kernel, mlc.schedule = [{block = 0 : i64, first = 1 : i64, grid = 1 : i64, lanes = 16 : i64, last = 1 : i64, template = "loops"}]} {
  func.func @look_up(%ids: tensor<8xi64>, %w: tensor<9000x16xf32>, %o: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %r = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i)>, affine_map<(i, k) -> (i, k)>], iterator_types = ["parallel", "parallel"]}
        ins(%ids : tensor<8xi64>) outs(%o : tensor<8x16xf32>) {
    ^bb0(%id: i64, %x: f32):
      %k = linalg.index 1 : index
      %row = arith.index_cast %id : i64 to index
      %v = tensor.extract %w[%row, %k] : tensor<9000x16xf32>
      linalg.yield %v : f32
    } -> tensor<8x16xf32>
    return %r : tensor<8x16xf32>
  }
}
module @product attributes {mlc.kernel, mlc.packed} {
  func.func @product(%a: tensor<8x16xf32>, %b: tensor<141x16x64xf32>, %o: tensor<8x9000xf32>) -> tensor<8x9000xf32> {
    return %o : tensor<8x9000xf32>
  }
}

// Pairs of the sum stand together: element k of a row is in pair `k / 2`, at `k mod 2`.
// CHECK-LABEL: func.func @pairs
// CHECK: mlc.launch @look_up_pairs(%{{.*}}, %[[Q:[0-9a-z]+]])
// CHECK: mlc.launch @product_of_pairs(%{{.*}}, %[[Q]])
// CHECK: func.func @look_up_pairs(%{{.*}}: tensor<8xi64>, %{{.*}}: tensor<128x8x64x2xbf16>
// CHECK: tensor.extract %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : tensor<128x8x64x2xbf16>
func.func @pairs(%ids: tensor<8xi64>) -> (tensor<8x16xbf16>, tensor<8x8192xf32>) {
  %w = mlc.weight "v" : tensor<8192x16xbf16>
  %e = tensor.empty() : tensor<8x16xbf16>
  %x = mlc.launch @look_up_pairs(%ids, %w) outs(%e) : (tensor<8xi64>, tensor<8192x16xbf16>) outs(tensor<8x16xbf16>) -> tensor<8x16xbf16>
  %f = tensor.empty() : tensor<8x8192xf32>
  %r = mlc.reshape %w [128, 64, 8, 2] : tensor<8192x16xbf16> -> tensor<128x64x8x2xbf16>
  %t = mlc.transpose %r {permutation = array<i64: 0, 2, 1, 3>} : tensor<128x64x8x2xbf16> -> tensor<128x8x64x2xbf16>
  %y = mlc.launch @product_of_pairs(%x, %t) outs(%f) : (tensor<8x16xbf16>, tensor<128x8x64x2xbf16>) outs(tensor<8x8192xf32>) -> tensor<8x8192xf32>
  return %x, %y : tensor<8x16xbf16>, tensor<8x8192xf32>
}
module @look_up_pairs attributes {mlc.kernel, mlc.schedule = [{block = 0 : i64, first = 1 : i64, grid = 1 : i64, lanes = 16 : i64, last = 1 : i64, template = "loops"}]} {
  func.func @look_up_pairs(%ids: tensor<8xi64>, %w: tensor<8192x16xbf16>, %o: tensor<8x16xbf16>) -> tensor<8x16xbf16> {
    %r = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i)>, affine_map<(i, k) -> (i, k)>], iterator_types = ["parallel", "parallel"]}
        ins(%ids : tensor<8xi64>) outs(%o : tensor<8x16xbf16>) {
    ^bb0(%id: i64, %x: bf16):
      %k = linalg.index 1 : index
      %row = arith.index_cast %id : i64 to index
      %v = tensor.extract %w[%row, %k] : tensor<8192x16xbf16>
      linalg.yield %v : bf16
    } -> tensor<8x16xbf16>
    return %r : tensor<8x16xbf16>
  }
}
module @product_of_pairs attributes {mlc.kernel, mlc.packed} {
  func.func @product_of_pairs(%a: tensor<8x16xbf16>, %b: tensor<128x8x64x2xbf16>, %o: tensor<8x8192xf32>) -> tensor<8x8192xf32> {
    return %o : tensor<8x8192xf32>
  }
}

// Another kernel reads all of the table, which stays as it is.
// CHECK-LABEL: func.func @read
// CHECK: %[[W:.*]] = mlc.weight "u"
// CHECK: mlc.launch @look_up_again(%{{.*}}, %[[W]])
// CHECK: mlc.launch @negate(%[[W]])
func.func @read(%ids: tensor<8xi64>) -> (tensor<8x16xf32>, tensor<8192x16xf32>, tensor<8x8192xf32>) {
  %w = mlc.weight "u" : tensor<8192x16xf32>
  %e = tensor.empty() : tensor<8x16xf32>
  %x = mlc.launch @look_up_again(%ids, %w) outs(%e) : (tensor<8xi64>, tensor<8192x16xf32>) outs(tensor<8x16xf32>) -> tensor<8x16xf32>
  %g = tensor.empty() : tensor<8192x16xf32>
  %n = mlc.launch @negate(%w) outs(%g) : (tensor<8192x16xf32>) outs(tensor<8192x16xf32>) -> tensor<8192x16xf32>
  %f = tensor.empty() : tensor<8x8192xf32>
  %r = mlc.reshape %w [128, 64, 16] : tensor<8192x16xf32> -> tensor<128x64x16xf32>
  %t = mlc.transpose %r {permutation = array<i64: 0, 2, 1>} : tensor<128x64x16xf32> -> tensor<128x16x64xf32>
  %y = mlc.launch @product_again(%x, %t) outs(%f) : (tensor<8x16xf32>, tensor<128x16x64xf32>) outs(tensor<8x8192xf32>) -> tensor<8x8192xf32>
  return %x, %n, %y : tensor<8x16xf32>, tensor<8192x16xf32>, tensor<8x8192xf32>
}
module @look_up_again attributes {mlc.kernel, mlc.schedule = [{block = 0 : i64, first = 1 : i64, grid = 1 : i64, lanes = 16 : i64, last = 1 : i64, template = "loops"}]} {
  func.func @look_up_again(%ids: tensor<8xi64>, %w: tensor<8192x16xf32>, %o: tensor<8x16xf32>) -> tensor<8x16xf32> {
    %r = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i)>, affine_map<(i, k) -> (i, k)>], iterator_types = ["parallel", "parallel"]}
        ins(%ids : tensor<8xi64>) outs(%o : tensor<8x16xf32>) {
    ^bb0(%id: i64, %x: f32):
      %k = linalg.index 1 : index
      %row = arith.index_cast %id : i64 to index
      %v = tensor.extract %w[%row, %k] : tensor<8192x16xf32>
      linalg.yield %v : f32
    } -> tensor<8x16xf32>
    return %r : tensor<8x16xf32>
  }
}
module @negate attributes {mlc.kernel, mlc.schedule = [{block = 0 : i64, first = 1 : i64, grid = 1 : i64, lanes = 16 : i64, last = 1 : i64, template = "loops"}]} {
  func.func @negate(%w: tensor<8192x16xf32>, %o: tensor<8192x16xf32>) -> tensor<8192x16xf32> {
    %r = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i, k)>], iterator_types = ["parallel", "parallel"]}
        ins(%w : tensor<8192x16xf32>) outs(%o : tensor<8192x16xf32>) {
    ^bb0(%v: f32, %x: f32):
      %n = arith.negf %v : f32
      linalg.yield %n : f32
    } -> tensor<8192x16xf32>
    return %r : tensor<8192x16xf32>
  }
}
module @product_again attributes {mlc.kernel, mlc.packed} {
  func.func @product_again(%a: tensor<8x16xf32>, %b: tensor<128x16x64xf32>, %o: tensor<8x8192xf32>) -> tensor<8x8192xf32> {
    return %o : tensor<8x8192xf32>
  }
}
