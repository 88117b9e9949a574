// Normalizations: all results have the shape of the input.
#ifndef MLC_DIALECTS_NORMALIZATION_TD
#define MLC_DIALECTS_NORMALIZATION_TD

include "base.td"

def Mlc_SoftmaxOp : Mlc_InferOp<"softmax"> {
  let summary = "softmax along an axis, or its logarithm";
  let arguments = (ins Mlc_Tensor:$input, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$log);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` custom<UnaryType>(type($input), type($result))";
}

def Mlc_BatchNormOp : Mlc_InferOp<"batch_norm"> {
  let summary = "(input - mean) / sqrt(variance + epsilon) * scale + bias per channel (axis 1)";
  let arguments = (ins Mlc_Tensor:$input, Mlc_Tensor:$scale, Mlc_Tensor:$bias, Mlc_Tensor:$mean, Mlc_Tensor:$variance,
                       F64Attr:$epsilon);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $scale `,` $bias `,` $mean `,` $variance attr-dict
    `:` type($input) `,` type($scale) `,` type($bias) `,` type($mean) `,` type($variance) `->` type($result)
  }];
}

def Mlc_LayerNormOp : Mlc_InferOp<"layer_norm", [AttrSizedOperandSegments]> {
  let summary = "normalization over the dimensions from `axis` on; `rms` does not subtract the mean";
  let arguments = (ins Mlc_Tensor:$input, Optional<Mlc_Tensor>:$scale, Optional<Mlc_Tensor>:$bias, I64Attr:$axis,
                       F64Attr:$epsilon, DefaultValuedAttr<BoolAttr, "false">:$rms);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $input (`scale` `(` $scale^ `:` type($scale) `)`)? (`bias` `(` $bias^ `:` type($bias) `)`)? attr-dict
    `:` custom<UnaryType>(type($input), type($result))
  }];
}

def Mlc_GroupNormOp : Mlc_InferOp<"group_norm"> {
  let summary = "normalization over groups of channels (axis 1); instance norm has as many groups as channels";
  let arguments = (ins Mlc_Tensor:$input, Mlc_Tensor:$scale, Mlc_Tensor:$bias, I64Attr:$groups, F64Attr:$epsilon);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $scale `,` $bias attr-dict `:` type($input) `,` type($scale) `,` type($bias) `->` type($result)
  }];
}

def Mlc_LrnOp : Mlc_InferOp<"lrn"> {
  let summary = "local response normalization across channels (axis 1)";
  let arguments = (ins Mlc_Tensor:$input, I64Attr:$size, F64Attr:$alpha, F64Attr:$beta, F64Attr:$bias);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` custom<UnaryType>(type($input), type($result))";
}

def Mlc_LpNormalizeOp : Mlc_InferOp<"lp_normalize"> {
  let summary = "input divided by its p-norm along an axis";
  let arguments = (ins Mlc_Tensor:$input, I64Attr:$axis, I64Attr:$p);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` custom<UnaryType>(type($input), type($result))";
}

#endif // MLC_DIALECTS_NORMALIZATION_TD
