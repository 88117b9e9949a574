// A result may have the memory of the argument that it continues, where nothing else reads that.
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-share-inputs)' | FileCheck %s

#i = affine_map<(a, b) -> (a, b)>

// CHECK: func.func @main(%[[X:[^ ]*]]: tensor<?x4xf32>, %[[Y:[^ ]*]]: tensor<?x4xf32>,
// CHECK-SAME: -> (tensor<?x4xf32> {mlc.name = "new", mlc.shares = 0 : i64}, tensor<?x4xf32>, tensor<?x4xf32>
// CHECK: mlc.launch @copy(%[[X]]) outs(%{{.*}}) {mlc.unless_same = 0 : i64}
// The second argument is also a result, the third one comes back changed.
// CHECK: mlc.launch @copy(%[[Y]]) outs(%{{.*}}) :
// CHECK: mlc.launch @changed(%{{.*}}) outs(%{{.*}}) :
func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %z: tensor<?x4xf32>, %u: tensor<?x1xf32>, %n: tensor<?xi64>)
    -> (tensor<?x4xf32> {mlc.name = "new"}, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%d) : tensor<?x4xf32>
  %a = mlc.launch @copy(%x) outs(%e) : (tensor<?x4xf32>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  %r = mlc.launch @k(%u, %n) outs(%a) {mlc.in_place, mlc.inout = array<i64: 0>} : (tensor<?x1xf32>, tensor<?xi64>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  %b = mlc.launch @copy(%y) outs(%e) : (tensor<?x4xf32>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  %s = mlc.launch @k(%u, %n) outs(%b) {mlc.in_place, mlc.inout = array<i64: 0>} : (tensor<?x1xf32>, tensor<?xi64>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  %c = mlc.launch @changed(%z) outs(%e) : (tensor<?x4xf32>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  %t = mlc.launch @k(%u, %n) outs(%c) {mlc.in_place, mlc.inout = array<i64: 0>} : (tensor<?x1xf32>, tensor<?xi64>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  return %r, %s, %y, %t : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
}
// What chooses between the argument and a number does so only where nobody asks what is behind the update.
// CHECK: func.func @chosen(
// CHECK-SAME: -> (tensor<?x4xf32> {mlc.shares = 0 : i64}, tensor<?x4xf32>
// CHECK: mlc.launch @grown({{.*}} {mlc.unless_same = 0 : i64}
// CHECK: mlc.launch @grown({{.*}}) outs(%{{.*}}) :
func.func @chosen(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>, %u: tensor<?x1xf32>, %n: tensor<?xi64>, %m: tensor<?x4xi1>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %u, %c0 : tensor<?x1xf32>
  %e = tensor.empty(%d) : tensor<?x4xf32>
  %a = mlc.launch @grown(%x, %m) outs(%e) : (tensor<?x4xf32>, tensor<?x4xi1>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  %r = mlc.launch @open(%u, %n) outs(%a) {mlc.in_place, mlc.inout = array<i64: 0>} : (tensor<?x1xf32>, tensor<?xi64>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  %b = mlc.launch @grown(%y, %m) outs(%e) : (tensor<?x4xf32>, tensor<?x4xi1>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  %s = mlc.launch @k(%u, %n) outs(%b) {mlc.in_place, mlc.inout = array<i64: 0>} : (tensor<?x1xf32>, tensor<?xi64>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  return %r, %s : tensor<?x4xf32>, tensor<?x4xf32>
}
// Views of all of it are the argument, too, unless something else reads them.
// CHECK: func.func @viewed(
// CHECK-SAME: -> (tensor<?xf32> {mlc.shares = 0 : i64}, tensor<?xf32>
// CHECK: mlc.launch @copy({{.*}} {mlc.unless_same = 0 : i64}
// CHECK: mlc.launch @copy({{.*}}) outs(%{{.*}}) :
func.func @viewed(%x: tensor<?xf32>, %y: tensor<?xf32>, %d: index, %u: tensor<?x1xf32>, %n: tensor<?xi64>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?x4xf32>) {
  %e = tensor.empty(%d) : tensor<?x4xf32>
  %xr = tensor.expand_shape %x [[0, 1]] output_shape [%d, 4] : tensor<?xf32> into tensor<?x4xf32>
  %yr = tensor.expand_shape %y [[0, 1]] output_shape [%d, 4] : tensor<?xf32> into tensor<?x4xf32>
  %a = mlc.launch @copy(%xr) outs(%e) : (tensor<?x4xf32>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  %r = mlc.launch @k(%u, %n) outs(%a) {mlc.in_place, mlc.inout = array<i64: 0>} : (tensor<?x1xf32>, tensor<?xi64>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  %rc = tensor.collapse_shape %r [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
  %b = mlc.launch @copy(%yr) outs(%e) : (tensor<?x4xf32>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  %s = mlc.launch @k(%u, %n) outs(%b) {mlc.in_place, mlc.inout = array<i64: 0>} : (tensor<?x1xf32>, tensor<?xi64>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  %sc = tensor.collapse_shape %s [[0, 1]] : tensor<?x4xf32> into tensor<?xf32>
  %c = mlc.launch @changed(%yr) outs(%e) : (tensor<?x4xf32>) outs(tensor<?x4xf32>) -> tensor<?x4xf32>
  return %rc, %sc, %c : tensor<?xf32>, tensor<?xf32>, tensor<?x4xf32>
}
module @grown attributes {mlc.kernel} {
  func.func @grown(%x: tensor<?x4xf32>, %m: tensor<?x4xi1>, %o: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %d = tensor.dim %x, %c0 : tensor<?x4xf32>
    %e = tensor.empty(%d) : tensor<?x4xf32>
    %p = linalg.generic {indexing_maps = [#i], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<?x4xf32>) {
    ^bb0(%q: f32):
      %1 = linalg.index 0 : index
      %2 = linalg.index 1 : index
      %3 = arith.cmpi ult, %1, %d : index
      %4 = scf.if %3 -> (f32) {
        %5 = tensor.extract %x[%1, %2] : tensor<?x4xf32>
        scf.yield %5 : f32
      } else {
        scf.yield %zero : f32
      }
      linalg.yield %4 : f32
    } -> tensor<?x4xf32>
    %0 = linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel", "parallel"]} ins(%m, %p : tensor<?x4xi1>, tensor<?x4xf32>) outs(%o : tensor<?x4xf32>) {
    ^bb0(%c: i1, %p1: f32, %q: f32):
      %1 = arith.select %c, %p1, %zero : f32
      linalg.yield %1 : f32
    } -> tensor<?x4xf32>
    return %0 : tensor<?x4xf32>
  }
}
module @open attributes {mlc.inout = array<i64: 0>, mlc.kernel} {
  func.func @open(%u: tensor<?x1xf32>, %n: tensor<?xi64>, %o: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %0 = mlc.insert %o, %u, %n {axis = 1 : i64, open_end} : tensor<?x4xf32>, tensor<?x1xf32>, tensor<?xi64> -> tensor<?x4xf32>
    return %0 : tensor<?x4xf32>
  }
}
module @copy attributes {mlc.kernel} {
  func.func @copy(%x: tensor<?x4xf32>, %o: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %0 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x4xf32>) outs(%o : tensor<?x4xf32>) {
    ^bb0(%p: f32, %q: f32):
      linalg.yield %p : f32
    } -> tensor<?x4xf32>
    return %0 : tensor<?x4xf32>
  }
}
module @changed attributes {mlc.kernel} {
  func.func @changed(%x: tensor<?x4xf32>, %o: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %0 = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x4xf32>) outs(%o : tensor<?x4xf32>) {
    ^bb0(%p: f32, %q: f32):
      %1 = arith.negf %p : f32
      linalg.yield %1 : f32
    } -> tensor<?x4xf32>
    return %0 : tensor<?x4xf32>
  }
}
module @k attributes {mlc.inout = array<i64: 0>, mlc.kernel} {
  func.func @k(%u: tensor<?x1xf32>, %n: tensor<?xi64>, %o: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %0 = mlc.insert %o, %u, %n {axis = 1 : i64} : tensor<?x4xf32>, tensor<?x1xf32>, tensor<?xi64> -> tensor<?x4xf32>
    return %0 : tensor<?x4xf32>
  }
}
