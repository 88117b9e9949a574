// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-fusion{target=cuda})' | FileCheck %s
// RUN: mlc-opt %s --pass-pipeline='builtin.module(mlc-plan-fusion)' | FileCheck %s --check-prefix=CPU

#id = affine_map<(n, x, c) -> (n, x, c)>
#vector = affine_map<(n, x, c) -> (c)>
#shared = affine_map<(n, x, c) -> (x, c)>
#window = affine_map<(n, x, o, i, c) -> (n, x * 2 + i, c)>
#filter = affine_map<(n, x, o, i, c) -> (i, c, o)>
#out = affine_map<(n, x, o, i, c) -> (n, x, o)>

// A bias joins a convolution on tensor cores. What all samples share has some of the dimensions of pixels, which are one
// dimension there: it is added by another kernel. CPUs go line by line.
// CHECK-LABEL: func.func @positions
// CHECK: mlc.cluster = 0 : i64, mlc.contraction, mlc.refused = [{node = "", reason = "it reads a tensor that all images share, and tensor cores have the pixels of all in one dimension", role = "consumer"}]}
// CHECK: tensor<16xf32>) outs({{.*}}mlc.cluster = 0 : i64}
// CHECK: tensor<10x16xf32>) outs({{.*}}mlc.cluster = 1 : i64}
// CPU-LABEL: func.func @positions
// CPU: mlc.cluster = 0 : i64, mlc.contraction}
// CPU: tensor<16xf32>) outs({{.*}}mlc.cluster = 0 : i64}
// CPU: tensor<10x16xf32>) outs({{.*}}mlc.cluster = 0 : i64}
func.func @positions(%x: tensor<4x21x16xbf16>, %w: tensor<3x16x16xbf16>, %b: tensor<16xf32>, %p: tensor<10x16xf32>) -> tensor<4x10x16xf32> {
  %zero = arith.constant 0.0 : f32
  %o = tensor.empty() : tensor<4x10x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%o : tensor<4x10x16xf32>) -> tensor<4x10x16xf32>
  %a = linalg.generic {indexing_maps = [#window, #filter, #out], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
      ins(%x, %w : tensor<4x21x16xbf16>, tensor<3x16x16xbf16>) outs(%f : tensor<4x10x16xf32>) attrs = {mlc.contraction} {
  ^bb0(%s: bf16, %t: bf16, %z: f32):
    %u = arith.extf %s : bf16 to f32
    %v = arith.extf %t : bf16 to f32
    %m = arith.mulf %u, %v : f32
    %n = arith.addf %z, %m : f32
    linalg.yield %n : f32
  } -> tensor<4x10x16xf32>
  %c = linalg.generic {indexing_maps = [#id, #vector, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%a, %b : tensor<4x10x16xf32>, tensor<16xf32>) outs(%o : tensor<4x10x16xf32>) {
  ^bb0(%s: f32, %t: f32, %z: f32):
    %n = arith.addf %s, %t : f32
    linalg.yield %n : f32
  } -> tensor<4x10x16xf32>
  %d = linalg.generic {indexing_maps = [#id, #shared, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%c, %p : tensor<4x10x16xf32>, tensor<10x16xf32>) outs(%o : tensor<4x10x16xf32>) {
  ^bb0(%s: f32, %t: f32, %z: f32):
    %n = arith.addf %s, %t : f32
    linalg.yield %n : f32
  } -> tensor<4x10x16xf32>
  return %d : tensor<4x10x16xf32>
}
