// Columns of 50: twenty threads share four of them, each keeps three elements, of which the last may lie behind the end.
#all = affine_map<(i, j, k) -> (i, j, k)>
#across = affine_map<(i, j, k) -> (i, k)>

module {
module @k0 attributes {mlc.kernel, mlc.schedule = [{blocks = 2 : i64, first = 1 : i64, kept = 3 : i64, lanes = 4 : i64, last = 1 : i64, split = 20 : i64, template = "whole_columns", threads = 160 : i64, width = 8 : i64}]} {
  func.func @k0(%a: tensor<2x50x44xf32>, %o: tensor<2x50x44xf32>) -> tensor<2x50x44xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<2x44xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x44xf32>) -> tensor<2x44xf32>
    %s = linalg.generic {indexing_maps = [#all, #across], iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%a : tensor<2x50x44xf32>) outs(%f : tensor<2x44xf32>) {
    ^bb0(%x: f32, %y: f32):
      %r = arith.addf %y, %x : f32
      linalg.yield %r : f32
    } -> tensor<2x44xf32>
    %d = linalg.generic {indexing_maps = [#all, #across, #all], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%a, %s : tensor<2x50x44xf32>, tensor<2x44xf32>) outs(%o : tensor<2x50x44xf32>) {
    ^bb0(%x: f32, %y: f32, %z: f32):
      %r = arith.divf %x, %y : f32
      linalg.yield %r : f32
    } -> tensor<2x50x44xf32>
    return %d : tensor<2x50x44xf32>
  }
}
}
