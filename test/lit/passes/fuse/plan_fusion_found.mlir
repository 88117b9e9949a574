// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-fusion)' | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#turned = affine_map<(i, j) -> (j, i)>

// Rows are found by their numbers and squared, whole lines at a time; what is transposed is a kernel of its own.
// CHECK-LABEL: func.func @transposed
// CHECK: linalg.generic {{.*}}mlc.cluster = [[A:[0-9]]] : i64
// CHECK: tensor.extract
// CHECK: linalg.generic {{.*}}mlc.cluster = [[A]] : i64}
// CHECK: linalg.generic {{.*}}mlc.cluster = [[B:[0-9]]] : i64, mlc.refused = [{node = "", reason = "its elements are found one by one, across the lines that are stored", role = "producer"}]}
func.func @transposed(%x: tensor<90x64xf32>, %n: tensor<50xi64>) -> tensor<64x50xf32> {
  %e = tensor.empty() : tensor<50x64xf32>
  %f = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%n : tensor<50xi64>) outs(%e : tensor<50x64xf32>) {
  ^bb0(%a: i64, %z: f32):
    %i = arith.index_cast %a : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%i, %j] : tensor<90x64xf32>
    linalg.yield %v : f32
  } -> tensor<50x64xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%f : tensor<50x64xf32>) outs(%e : tensor<50x64xf32>) {
  ^bb0(%a: f32, %z: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<50x64xf32>
  %o = tensor.empty() : tensor<64x50xf32>
  %t = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<50x64xf32>) outs(%o : tensor<64x50xf32>) {
  ^bb0(%a: f32, %z: f32):
    linalg.yield %a : f32
  } -> tensor<64x50xf32>
  return %t : tensor<64x50xf32>
}

// Without such a load, what is transposed is computed where it is stored.
// CHECK-LABEL: func.func @computed
// CHECK: linalg.generic {{.*}}mlc.cluster = [[C:[0-9]]] : i64
// CHECK: linalg.generic {{.*}}mlc.cluster = [[C]] : i64}
func.func @computed(%x: tensor<50x64xf32>) -> tensor<64x50xf32> {
  %e = tensor.empty() : tensor<50x64xf32>
  %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<50x64xf32>) outs(%e : tensor<50x64xf32>) {
  ^bb0(%a: f32, %z: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<50x64xf32>
  %o = tensor.empty() : tensor<64x50xf32>
  %t = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<50x64xf32>) outs(%o : tensor<64x50xf32>) {
  ^bb0(%a: f32, %z: f32):
    linalg.yield %a : f32
  } -> tensor<64x50xf32>
  return %t : tensor<64x50xf32>
}

// A dimension of one element moves no lines.
// CHECK-LABEL: func.func @column
// CHECK: linalg.generic {{.*}}mlc.cluster = [[C:[0-9]]] : i64
// CHECK: linalg.generic {{.*}}mlc.cluster = [[C]] : i64}
func.func @column(%x: tensor<90x1xf32>, %n: tensor<50xi64>) -> tensor<1x50xf32> {
  %e = tensor.empty() : tensor<50x1xf32>
  %f = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%n : tensor<50xi64>) outs(%e : tensor<50x1xf32>) {
  ^bb0(%a: i64, %z: f32):
    %i = arith.index_cast %a : i64 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %x[%i, %j] : tensor<90x1xf32>
    linalg.yield %v : f32
  } -> tensor<50x1xf32>
  %o = tensor.empty() : tensor<1x50xf32>
  %t = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]} ins(%f : tensor<50x1xf32>) outs(%o : tensor<1x50xf32>) {
  ^bb0(%a: f32, %z: f32):
    linalg.yield %a : f32
  } -> tensor<1x50xf32>
  return %t : tensor<1x50xf32>
}
