// Reductions and scans along axes.
#ifndef MLC_DIALECTS_REDUCTION_TD
#define MLC_DIALECTS_REDUCTION_TD

include "base.td"

def Mlc_ReduceOp : Mlc_InferOp<"reduce"> {
  let summary = "reduction over axes";
  let description = [{
    `f16` and `bf16` accumulate in `f32`. Over an empty extent the result is the identity (`max`: -inf).
    ```mlir
    %0 = mlc.reduce sum %x {axes = array<i64: 1>, keepdims = true} : tensor<2x3xf32> -> tensor<2x1xf32>
    ```
  }];
  let arguments = (ins Mlc_Kind<["sum", "prod", "max", "min", "and", "or"]>:$kind, Mlc_Tensor:$input,
                       DenseI64ArrayAttr:$axes, DefaultValuedAttr<BoolAttr, "false">:$keepdims, UnitAttr:$is_unsigned);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "custom<Keyword>($kind) $input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Mlc_ArgReduceOp : Mlc_InferOp<"arg_reduce"> {
  let summary = "position of the extreme value along an axis, `i64`";
  let description = "The first of equal values, or the last with `select_last`. A NaN is the extreme value.";
  let arguments = (ins Mlc_Kind<["max", "min"]>:$kind, Mlc_Tensor:$input, I64Attr:$axis,
                       DefaultValuedAttr<BoolAttr, "false">:$keepdims,
                       DefaultValuedAttr<BoolAttr, "false">:$select_last, UnitAttr:$is_unsigned);
  let results = (outs Mlc_I64Tensor:$result);
  let assemblyFormat = "custom<Keyword>($kind) $input attr-dict `:` type($input) `->` type($result)";
}

def Mlc_ScanOp : Mlc_InferOp<"scan"> {
  let summary = "running reduction along an axis";
  let description = [{
    With `part`, every `part` elements of the axis are a line of their own, counted in the order of the scan, so that the
    last of them may have fewer. In `before`, in the order of memory, is what each of them but the last has to hand on to
    the next one; there may be an element for the last one, too, that nobody reads.
    ```mlir
    %0 = mlc.scan sum %x before(%b : tensor<3xf32>) {axis = 0 : i64, part = 300 : i64} : tensor<1000xbf16>
    ```
  }];
  let arguments = (ins Mlc_Kind<["sum", "prod", "max", "min"]>:$kind, Mlc_Tensor:$input, Optional<Mlc_Tensor>:$before,
                       I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$exclusive,
                       DefaultValuedAttr<BoolAttr, "false">:$reverse, OptionalAttr<I64Attr>:$part);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    custom<Keyword>($kind) $input (`before` `(` $before^ `:` type($before) `)`)? attr-dict
    `:` custom<UnaryType>(type($input), type($result))
  }];
}

def Mlc_StatisticOp : Mlc_InferOp<"statistic"> {
  let summary = "composite reduction over axes";
  let arguments = (ins Mlc_Kind<["mean", "variance", "l1", "l2", "log_sum", "log_sum_exp", "sum_square"]>:$kind,
                       Mlc_Tensor:$input, DenseI64ArrayAttr:$axes, DefaultValuedAttr<BoolAttr, "false">:$keepdims);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "custom<Keyword>($kind) $input attr-dict `:` type($input) `->` type($result)";
}

#endif // MLC_DIALECTS_REDUCTION_TD
