// Constants, shapes and data movement with a fixed pattern.
#ifndef MLC_DIALECTS_SHAPE_TD
#define MLC_DIALECTS_SHAPE_TD

include "base.td"

def Mlc_ConstantOp : Mlc_Op<"constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a small constant tensor";
  let description = "Tensors of more than 64 elements are `mlc.weight`s.";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def Mlc_WeightOp : Mlc_Op<"weight", [Pure]> {
  let summary = "a tensor of the weight store, or one of a stack of them";
  let description = [{
    With an index the weight is a stack of `count` such tensors, along a dimension in front, and the result is one of
    them: operations on it are operations on each.
    ```mlir
    %0 = mlc.weight "w" : tensor<64x32xf32>
    %1 = mlc.weight "experts"[%i of 8] : tensor<64x32xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name, Optional<Index>:$index, OptionalAttr<I64Attr>:$count);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$name (`[` $index^ `of` $count `]`)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Mlc_ReshapeOp : Mlc_InferOp<"reshape"> {
  let summary = "the same elements, in row-major order, in another shape";
  let description = [{
    ```mlir
    %0 = mlc.reshape %x [%n, 12] : tensor<?x3x4xf32> -> tensor<?x12xf32>
    ```
  }];
  let arguments = (ins Mlc_Tensor:$input, Variadic<Index>:$sizes, DenseI64ArrayAttr:$static_sizes);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $input custom<DynamicIndexList>($sizes, $static_sizes) attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Mlc_TransposeOp : Mlc_InferOp<"transpose"> {
  let summary = "permutation of dimensions: result dimension i is input dimension permutation[i]";
  let arguments = (ins Mlc_Tensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Mlc_BroadcastOp : Mlc_InferOp<"broadcast"> {
  let summary = "`numpy.broadcast_to`";
  let arguments = (ins Mlc_Tensor:$input, Variadic<Index>:$sizes, DenseI64ArrayAttr:$static_sizes);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $input custom<DynamicIndexList>($sizes, $static_sizes) attr-dict `:` type($input) `->` type($result)
  }];
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Mlc_ConcatOp : Mlc_InferOp<"concat"> {
  let summary = "concatenation along an axis";
  let arguments = (ins Variadic<Mlc_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "$inputs attr-dict `:` type($inputs) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Mlc_SliceOp : Mlc_InferOp<"slice", [AttrSizedOperandSegments]> {
  let summary = "every stride-th element from an offset on, per dimension";
  let description = [{
    A stride may be negative: then the offset is the position of the first element taken. Offsets are normalised and
    clamped, `sizes` are the extents of the result.
    ```mlir
    %0 = mlc.slice %x [0, %o] [4, %n] [1, 2] : tensor<8x?xf32> -> tensor<4x?xf32>
    ```
  }];
  let arguments = (ins Mlc_Tensor:$input, Variadic<Index>:$offsets, Variadic<Index>:$sizes, Variadic<Index>:$strides,
                       DenseI64ArrayAttr:$static_offsets, DenseI64ArrayAttr:$static_sizes,
                       DenseI64ArrayAttr:$static_strides);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $input custom<DynamicIndexList>($offsets, $static_offsets) custom<DynamicIndexList>($sizes, $static_sizes)
    custom<DynamicIndexList>($strides, $static_strides) attr-dict `:` type($input) `->` type($result)
  }];
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Mlc_PadOp : Mlc_InferOp<"pad", [AttrSizedOperandSegments]> {
  let summary = "padding below and above each dimension; negative padding crops";
  let description = [{
    ```mlir
    %0 = mlc.pad constant %x low [0, 1] high [0, %h] value(%v : tensor<f32>) : tensor<2x4xf32> -> tensor<2x?xf32>
    ```
    Without `value` a constant pad is zero.
  }];
  let arguments = (ins Mlc_Tensor:$input, Optional<Mlc_Tensor>:$value, Variadic<Index>:$low, Variadic<Index>:$high,
                       DenseI64ArrayAttr:$static_low, DenseI64ArrayAttr:$static_high,
                       Mlc_Kind<["constant", "reflect", "edge", "wrap"]>:$mode);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    custom<Keyword>($mode) $input `low` custom<DynamicIndexList>($low, $static_low)
    `high` custom<DynamicIndexList>($high, $static_high) (`value` `(` $value^ `:` type($value) `)`)? attr-dict
    `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Mlc_ShapeOfOp : Mlc_InferOp<"shape_of"> {
  let summary = "the extents of a tensor as a 1-d tensor of `i64`";
  let arguments = (ins Mlc_Tensor:$input);
  let results = (outs Mlc_I64Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Mlc_IotaOp : Mlc_TypedOp<"iota"> {
  let summary = "each element is its coordinate along an axis";
  let description = "`mlc.iota [%n, 4] {axis = 0 : i64} : tensor<?x4xi64>`";
  let arguments = (ins Variadic<Index>:$sizes, DenseI64ArrayAttr:$static_sizes, I64Attr:$axis);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "custom<DynamicIndexList>($sizes, $static_sizes) attr-dict `:` type($result)";
  let hasCanonicalizer = 1;
}

#endif // MLC_DIALECTS_SHAPE_TD
