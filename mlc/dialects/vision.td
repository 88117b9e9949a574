// Detection and resampling.
#ifndef MLC_DIALECTS_VISION_TD
#define MLC_DIALECTS_VISION_TD

include "base.td"

def Mlc_NmsOp : Mlc_InferOp<"nms"> {
  let summary = "non-maximum suppression: `boxes [b, n, 4]`, `scores [b, classes, n]` -> `[selected, 3]` i64";
  let description = "Each row is (batch, class, box), in ONNX's order.";
  let arguments = (ins Mlc_Tensor:$boxes, Mlc_Tensor:$scores, Index:$max_per_class, Mlc_Tensor:$iou_threshold,
                       Mlc_Tensor:$score_threshold, DefaultValuedAttr<BoolAttr, "false">:$center_point_box);
  let results = (outs Mlc_I64Tensor:$result);
  let assemblyFormat = [{
    $boxes `,` $scores `,` $max_per_class `,` $iou_threshold `,` $score_threshold attr-dict
    `:` type($boxes) `,` type($scores) `,` type($iou_threshold) `,` type($score_threshold) `->` type($result)
  }];
}

def Mlc_SuppressOp : Mlc_InferOp<"suppress"> {
  let summary = "the boxes of each class that remain when those that overlap a better one are dropped";
  let description = [{
    `boxes [batches, n, 4]` are corners (y1, x1, y2, x2), `scores [batches, classes, n]` how good they are, for every
    class anew. By descending score, of equal ones in their order, a box whose score is above `least` is kept unless its
    intersection over union with a box kept before exceeds `threshold`, until `limit` boxes of the class are kept.
    `kept [batches, classes, n]` begins with the numbers of these boxes in this order, and `counts [batches, classes]`
    says how many there are; what comes behind them in `kept` is not specified.
  }];
  let arguments = (ins Mlc_FloatTensor:$boxes, Mlc_FloatTensor:$scores, Mlc_FloatTensor:$threshold,
                       Mlc_FloatTensor:$least, Index:$limit);
  let results = (outs Mlc_I64Tensor:$kept, Mlc_I64Tensor:$counts);
  let assemblyFormat = [{
    $boxes `,` $scores `,` $threshold `,` $least `,` $limit attr-dict
    `:` type($boxes) `,` type($scores) `,` type($threshold) `,` type($least) `->` type($kept) `,` type($counts)
  }];
}

def Mlc_ResizeOp : Mlc_InferOp<"resize"> {
  let summary = "resampling to given sizes; `scales` (f32, one a dimension) map coordinates";
  let description = [{
    `coordinate` is ONNX's `coordinate_transformation_mode`, `nearest_mode` and `cubic_coeff` its attributes of that name.
    ```mlir
    %0 = mlc.resize linear %x, %scales [1, 3, %h, %w] {coordinate = "half_pixel"}
      : tensor<1x3x8x8xf32>, tensor<4xf32> -> tensor<1x3x?x?xf32>
    ```
  }];
  let arguments = (ins Mlc_Tensor:$input, Mlc_FloatTensor:$scales, Variadic<Index>:$sizes,
                       DenseI64ArrayAttr:$static_sizes, Mlc_Kind<["nearest", "linear", "cubic"]>:$mode,
                       DefaultValuedAttr<Mlc_Kind<["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                                   "align_corners", "asymmetric", "tf_half_pixel_for_nn"]>,
                                         "\"half_pixel\"">:$coordinate,
                       DefaultValuedAttr<Mlc_Kind<["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]>,
                                         "\"round_prefer_floor\"">:$nearest_mode,
                       DefaultValuedAttr<F64Attr, "-0.75">:$cubic_coeff,
                       DefaultValuedAttr<BoolAttr, "false">:$exclude_outside);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    custom<Keyword>($mode) $input `,` $scales custom<DynamicIndexList>($sizes, $static_sizes) attr-dict
    `:` type($input) `,` type($scales) `->` type($result)
  }];
}

#endif // MLC_DIALECTS_VISION_TD
