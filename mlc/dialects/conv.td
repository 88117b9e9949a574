// Convolutions over 1, 2 or 3 spatial dimensions.
#ifndef MLC_DIALECTS_CONV_TD
#define MLC_DIALECTS_CONV_TD

include "base.td"

def Mlc_ConvOp : Mlc_InferOp<"conv"> {
  let summary = "convolution (cross-correlation)";
  let description = [{
    `layout` is `nchw` (channels first, filter `[O, I/g, k...]`) or `nhwc` (channels last, filter `[k..., I/g, O]`),
    for any number of spatial dimensions. `padding` lists all low paddings, then all high ones.
    `i8` operands give `i32`; they have a sign unless `unsigned_input`, `unsigned_filter` say otherwise. With `widen`
    floats narrower than 32 bits give `f32`, the type that they accumulate in; `input` may be `f32` then, and `filter` narrower.
  }];
  let arguments = (ins Mlc_Tensor:$input, Mlc_Tensor:$filter, Optional<Mlc_Tensor>:$bias, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilations, DefaultValuedAttr<I64Attr, "1">:$groups,
                       DefaultValuedAttr<Mlc_Kind<["nchw", "nhwc"]>, "\"nchw\"">:$layout, UnitAttr:$widen,
                       UnitAttr:$unsigned_input, UnitAttr:$unsigned_filter);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $filter (`bias` `(` $bias^ `:` type($bias) `)`)? attr-dict
    `:` type($input) `,` type($filter) `->` type($result)
  }];
}

def Mlc_ConvTransposeOp : Mlc_InferOp<"conv_transpose"> {
  let summary = "transposed convolution, channels first, filter `[I, O/g, k...]`";
  let description = [{
    Output extent: `(in - 1) * stride + (k - 1) * dilation + 1 - low - high + output_padding`.
  }];
  let arguments = (ins Mlc_Tensor:$input, Mlc_Tensor:$filter, Optional<Mlc_Tensor>:$bias, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilations, DefaultValuedAttr<I64Attr, "1">:$groups,
                       DenseI64ArrayAttr:$output_padding);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $filter (`bias` `(` $bias^ `:` type($bias) `)`)? attr-dict
    `:` type($input) `,` type($filter) `->` type($result)
  }];
}

#endif // MLC_DIALECTS_CONV_TD
