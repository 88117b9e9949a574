// A convolution of bf16 in two groups of 64 channels, of a tensor that is padded on the way, with a bias.
module {
module @k0 attributes {mlc.kernel, mlc.placement = "device", mlc.schedule = [{blocks = 1 : i64, consumers = 2 : i64, element = "bf16", group = 384 : i64, lanes = 8 : i64, multiprocessors = 132 : i64, raster = 8 : i64, stages = 4 : i64, template = "hopper_contraction", threads = 384 : i64, tile_columns = 16 : i64, tile_rows = 128 : i64}]} {
  func.func @k0(%arg0: tensor<2x9x9x128xbf16>, %arg1: tensor<3x3x64x96xbf16>, %arg2: tensor<96xf32>, %arg3: tensor<2x9x9x96xbf16>) -> tensor<2x9x9x96xbf16> {
    %c1 = arith.constant 1 : index
    %c9 = arith.constant 9 : index
    %zero = arith.constant 0.000000e+00 : bf16
    %e = tensor.empty() : tensor<2x11x11x128xbf16>
    %p = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%e : tensor<2x11x11x128xbf16>) {
    ^bb0(%out: bf16):
      %i0 = linalg.index 0 : index
      %i1 = linalg.index 1 : index
      %i2 = linalg.index 2 : index
      %i3 = linalg.index 3 : index
      %h = arith.subi %i1, %c1 : index
      %w = arith.subi %i2, %c1 : index
      %hin = arith.cmpi ult, %h, %c9 : index
      %win = arith.cmpi ult, %w, %c9 : index
      %in = arith.andi %hin, %win : i1
      %v = scf.if %in -> (bf16) {
        %x = tensor.extract %arg0[%i0, %h, %w, %i3] : tensor<2x9x9x128xbf16>
        scf.yield %x : bf16
      } else {
        scf.yield %zero : bf16
      }
      linalg.yield %v : bf16
    } -> tensor<2x11x11x128xbf16>
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x9x9x96xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x9x9x96xf32>) -> tensor<2x9x9x96xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, (d3 floordiv 48) * 64 + d6)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d5, d6, d3)>, affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%p, %arg1 : tensor<2x11x11x128xbf16>, tensor<3x3x64x96xbf16>) outs(%1 : tensor<2x9x9x96xf32>) attrs =  {mlc.contraction} {
    ^bb0(%in: bf16, %in_0: bf16, %out: f32):
      %4 = arith.extf %in : bf16 to f32
      %5 = arith.extf %in_0 : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %out, %6 : f32
      linalg.yield %7 : f32
    } -> tensor<2x9x9x96xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2, %arg2 : tensor<2x9x9x96xf32>, tensor<96xf32>) outs(%arg3 : tensor<2x9x9x96xbf16>) {
    ^bb0(%in: f32, %in_0: f32, %out: bf16):
      %4 = arith.addf %in, %in_0 : f32
      %5 = arith.truncf %4 : f32 to bf16
      linalg.yield %5 : bf16
    } -> tensor<2x9x9x96xbf16>
    return %3 : tensor<2x9x9x96xbf16>
  }
}
}
