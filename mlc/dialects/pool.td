// Pooling over sliding windows.
#ifndef MLC_DIALECTS_POOL_TD
#define MLC_DIALECTS_POOL_TD

include "base.td"

def Mlc_PoolOp : Mlc_InferOp<"pool"> {
  let summary = "pooling over sliding windows";
  let description = [{
    Output extent: `floor((in + low + high - dilated kernel) / stride) + 1`. Rounding up (ceil_mode) is extra high padding,
    whose part that `avg` never counts is listed in `ceil_extra`. `avg` divides by the elements that are neither
    padding (unless `count_include_pad`) nor `ceil_extra`.
  }];
  let arguments = (ins Mlc_Kind<["max", "avg", "sum"]>:$kind, Mlc_Tensor:$input, DenseI64ArrayAttr:$kernel,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilations,
                       DefaultValuedAttr<BoolAttr, "false">:$count_include_pad,
                       DefaultValuedAttr<Mlc_Kind<["nchw", "nhwc"]>, "\"nchw\"">:$layout,
                       OptionalAttr<DenseI64ArrayAttr>:$ceil_extra, UnitAttr:$is_unsigned);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "custom<Keyword>($kind) $input attr-dict `:` type($input) `->` type($result)";
}

def Mlc_PoolIndicesOp : Mlc_InferOp<"pool_indices"> {
  let summary = "max pooling that also gives the position of each maximum";
  let description = [{
    Positions are offsets into the whole input tensor, with the spatial dimensions counted row-major, or in the reverse
    order with `column_major`.
  }];
  let arguments = (ins Mlc_Tensor:$input, DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$padding, DenseI64ArrayAttr:$dilations,
                       DefaultValuedAttr<BoolAttr, "false">:$column_major,
                       DefaultValuedAttr<Mlc_Kind<["nchw", "nhwc"]>, "\"nchw\"">:$layout,
                       OptionalAttr<DenseI64ArrayAttr>:$ceil_extra, UnitAttr:$is_unsigned);
  let results = (outs Mlc_Tensor:$values, Mlc_I64Tensor:$indices);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($values) `,` type($indices)";
}

#endif // MLC_DIALECTS_POOL_TD
