// Data-dependent movement: gathers, scatters, sorting, compaction.
#ifndef MLC_DIALECTS_INDEXING_TD
#define MLC_DIALECTS_INDEXING_TD

include "base.td"

def Mlc_GatherOp : Mlc_InferOp<"gather"> {
  let summary = "`numpy.take` along an axis";
  let description = "Negative indices count from the end; an index out of range is a run-time error.";
  let arguments = (ins Mlc_Tensor:$input, Mlc_IndexTensor:$indices, I64Attr:$axis);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "$input `,` $indices attr-dict `:` type($input) `,` type($indices) `->` type($result)";
}

def Mlc_GatherElementsOp : Mlc_InferOp<"gather_elements"> {
  let summary = "`numpy.take_along_axis`; the result has the shape of the indices";
  let arguments = (ins Mlc_Tensor:$input, Mlc_IndexTensor:$indices, I64Attr:$axis);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "$input `,` $indices attr-dict `:` type($input) `,` type($indices) `->` type($result)";
}

def Mlc_GatherNdOp : Mlc_InferOp<"gather_nd"> {
  let summary = "slices addressed by the coordinate vectors in the last dimension of `indices`";
  let description = [{
    With b batch dimensions and `indices [B..., I..., k]`, `input [B..., D...]` gives `[B..., I..., D[k:]...]`.
    k must be static.
  }];
  let arguments = (ins Mlc_Tensor:$input, Mlc_IndexTensor:$indices, DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "$input `,` $indices attr-dict `:` type($input) `,` type($indices) `->` type($result)";
}

def Mlc_ScatterElementsOp : Mlc_InferOp<"scatter_elements"> {
  let summary = "a copy of the input with single elements along an axis updated";
  let arguments = (ins Mlc_Tensor:$input, Mlc_IndexTensor:$indices, Mlc_Tensor:$updates, I64Attr:$axis,
                       DefaultValuedAttr<Mlc_Kind<["none", "add", "mul", "max", "min"]>, "\"none\"">:$reduction);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $indices `,` $updates attr-dict `:` type($input) `,` type($indices) `,` type($updates) `->` type($result)
  }];
}

def Mlc_ScatterNdOp : Mlc_InferOp<"scatter_nd"> {
  let summary = "a copy of the input with the slices addressed by coordinate vectors updated";
  let arguments = (ins Mlc_Tensor:$input, Mlc_IndexTensor:$indices, Mlc_Tensor:$updates,
                       DefaultValuedAttr<Mlc_Kind<["none", "add", "mul", "max", "min"]>, "\"none\"">:$reduction);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $indices `,` $updates attr-dict `:` type($input) `,` type($indices) `,` type($updates) `->` type($result)
  }];
}

def Mlc_InsertOp : Mlc_InferOp<"insert"> {
  let summary = "a copy of the input in which `update` takes a stretch of one dimension, of each batch where `starts` says";
  let description = [{
    Dimension 0 is the batch: of its entry b the elements from `starts[b]` on along `axis` are those of `update`, which
    has the input's other extents. What would lie in front of the input or behind it is left out.

    With `open_end` the input is a tensor that is read at its own coordinates, or a number, and in front of the update it
    is that tensor; what the result is behind the update is not specified. A cache that is updated where it lies may keep
    what it has there.
    ```mlir
    %0 = mlc.insert %cache, %new, %length {axis = 2 : i64} : tensor<2x8x512x64xf32>, tensor<2x8x1x64xf32>, tensor<2xi64> -> tensor<2x8x512x64xf32>
    ```
  }];
  let arguments = (ins Mlc_Tensor:$input, Mlc_Tensor:$update, Mlc_I64Tensor:$starts, I64Attr:$axis,
                       UnitAttr:$open_end);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $update `,` $starts attr-dict `:` type($input) `,` type($update) `,` type($starts) `->` type($result)
  }];
}

def Mlc_NonzeroOp : Mlc_InferOp<"nonzero"> {
  let summary = "coordinates of the nonzero elements, `[rank, count]`, in row-major order";
  let arguments = (ins Mlc_Tensor:$input);
  let results = (outs Mlc_I64Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def Mlc_TopkOp : Mlc_InferOp<"topk"> {
  let summary = "the k largest or smallest elements along an axis and their positions; ties: lower position first";
  let description = [{
    With `part`, the k best of every `part` elements of the axis, one part after the other; the last one may have fewer
    elements, but no fewer than k. Positions are those along the whole axis, or the elements of `places` there.
    ```mlir
    %v, %i = mlc.topk %x, %k {axis = 0 : i64, part = 250 : i64} : tensor<1000xf32> -> tensor<20xf32>, tensor<20xi64>
    %0, %1 = mlc.topk %v, %k places(%i : tensor<20xi64>) {axis = 0 : i64} : tensor<20xf32> -> tensor<5xf32>, tensor<5xi64>
    ```
  }];
  let arguments = (ins Mlc_Tensor:$input, Index:$k, Optional<Mlc_I64Tensor>:$places, I64Attr:$axis,
                       DefaultValuedAttr<BoolAttr, "true">:$largest, DefaultValuedAttr<BoolAttr, "true">:$sorted,
                       UnitAttr:$is_unsigned, OptionalAttr<I64Attr>:$part);
  let results = (outs Mlc_Tensor:$values, Mlc_I64Tensor:$indices);
  let assemblyFormat = [{
    $input `,` $k (`places` `(` $places^ `:` type($places) `)`)? attr-dict
    `:` type($input) `->` type($values) `,` type($indices)
  }];
}

def Mlc_SortOp : Mlc_InferOp<"sort"> {
  let summary = "stable sort along an axis and the positions that the elements came from";
  let arguments = (ins Mlc_Tensor:$input, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$descending,
                       UnitAttr:$is_unsigned);
  let results = (outs Mlc_Tensor:$values, Mlc_I64Tensor:$indices);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($values) `,` type($indices)";
}

def Mlc_UniqueOp : Mlc_InferOp<"unique"> {
  let summary = "distinct elements of a 1-d tensor";
  let description = [{
    Results: the values (ascending when `sorted`, else by first occurrence), the position of each first occurrence,
    for each input element the number of its value, and how often each value occurs.
  }];
  let arguments = (ins Mlc_Tensor:$input, DefaultValuedAttr<BoolAttr, "true">:$sorted, UnitAttr:$is_unsigned);
  let results = (outs Mlc_Tensor:$values, Mlc_I64Tensor:$first, Mlc_I64Tensor:$inverse, Mlc_I64Tensor:$counts);
  let assemblyFormat = [{
    $input attr-dict `:` type($input) `->` type($values) `,` type($first) `,` type($inverse) `,` type($counts)
  }];
}

def Mlc_OneHotOp : Mlc_InferOp<"one_hot"> {
  let summary = "`values[1]` where the coordinate along a new axis equals the index, else `values[0]`";
  let arguments = (ins Mlc_Tensor:$indices, Index:$depth, Mlc_Tensor:$values, I64Attr:$axis);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $indices `,` $depth `,` $values attr-dict `:` type($indices) `,` type($values) `->` type($result)
  }];
}

def Mlc_TriluOp : Mlc_InferOp<"trilu"> {
  let summary = "the upper or lower triangle of the last two dimensions, zero elsewhere; k shifts the diagonal";
  let arguments = (ins Mlc_Tensor:$input, Index:$k, DefaultValuedAttr<BoolAttr, "true">:$upper);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "$input `,` $k attr-dict `:` custom<UnaryType>(type($input), type($result))";
}

#endif // MLC_DIALECTS_INDEXING_TD
