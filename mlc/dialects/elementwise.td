// Elementwise operations: one operand position of the result at a time.
#ifndef MLC_DIALECTS_ELEMENTWISE_TD
#define MLC_DIALECTS_ELEMENTWISE_TD

include "base.td"

def Mlc_UnaryOp : Mlc_InferOp<"unary"> {
  let summary = "an elementwise function of one tensor";
  let description = [{
    `round` rounds half to even; `not` is bitwise (logical on `i1`); `isnan` and `isinf` give `i1`, `isinf` looks at
    the signs that `positive` and `negative` (default true) allow.
    ```mlir
    %0 = mlc.unary exp %x : tensor<?x4xf32>
    %1 = mlc.unary isnan %x : tensor<?x4xf32> -> tensor<?x4xi1>
    ```
  }];
  let arguments = (ins Mlc_Kind<["abs", "neg", "sign", "floor", "ceil", "round", "trunc", "sqrt", "rsqrt", "reciprocal",
                                 "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "asin", "acos",
                                 "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "sigmoid", "not",
                                 "popcount", "isnan", "isinf"]>:$kind,
                       Mlc_Tensor:$input,
                       UnitAttr:$is_unsigned,
                       OptionalAttr<BoolAttr>:$positive,
                       OptionalAttr<BoolAttr>:$negative);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "custom<Keyword>($kind) $input attr-dict `:` custom<UnaryType>(type($input), type($result))";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Mlc_BinaryOp : Mlc_InferOp<"binary"> {
  let summary = "an elementwise function of two tensors, broadcast as NumPy does";
  let description = [{
    Integers: `div` truncates, `mod` has the divisor's sign, `fmod` the dividend's. `max` and `min` propagate NaN.
    `pow` takes an `rhs` of another element type. The result has the element type of `lhs`.
    ```mlir
    %0 = mlc.binary add %x, %bias : tensor<2x3xf32>, tensor<3xf32> -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Mlc_Kind<["add", "sub", "mul", "div", "mod", "fmod", "pow", "atan2", "max", "min", "and", "or",
                                 "xor", "shl", "shr"]>:$kind,
                       Mlc_Tensor:$lhs, Mlc_Tensor:$rhs, UnitAttr:$is_unsigned);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    custom<Keyword>($kind) $lhs `,` $rhs attr-dict `:` custom<BinaryType>(type($lhs), type($rhs), type($result))
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Mlc_CompareOp : Mlc_InferOp<"compare"> {
  let summary = "an elementwise comparison, `i1`";
  let description = "Floats compare ordered, `ne` unordered: NaN is different from everything.";
  let arguments = (ins Mlc_Kind<["eq", "ne", "lt", "le", "gt", "ge"]>:$predicate,
                       Mlc_Tensor:$lhs, Mlc_Tensor:$rhs, UnitAttr:$is_unsigned);
  let results = (outs Mlc_BoolTensor:$result);
  let assemblyFormat = [{
    custom<Keyword>($predicate) $lhs `,` $rhs attr-dict `:` custom<BinaryType>(type($lhs), type($rhs), type($result))
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Mlc_SelectOp : Mlc_InferOp<"select"> {
  let summary = "elementwise choice between two tensors; all three broadcast";
  let arguments = (ins Mlc_BoolTensor:$condition, Mlc_Tensor:$on_true, Mlc_Tensor:$on_false);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $condition `,` $on_true `,` $on_false attr-dict
    `:` type($condition) `,` type($on_true) `,` type($on_false) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Mlc_CastOp : Mlc_TypedOp<"cast"> {
  let summary = "conversion to the element type of the result";
  let description = [{
    Floats truncate to integers, anything to `i1` is `!= 0`; `saturate` clamps to the range of the result type instead
    of overflowing. `unsigned_in` and `unsigned_out` say how integers are read and written.
  }];
  let arguments = (ins Mlc_Tensor:$input, UnitAttr:$unsigned_in, UnitAttr:$unsigned_out, UnitAttr:$saturate);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Mlc_BitcastOp : Mlc_TypedOp<"bitcast"> {
  let summary = "the same bits read as another element type of the same width";
  let arguments = (ins Mlc_Tensor:$input);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Mlc_ActivationOp : Mlc_InferOp<"activation"> {
  let summary = "an activation function with the parameters of the ONNX operator of that name";
  let arguments = (ins Mlc_Kind<["relu", "leaky_relu", "elu", "selu", "celu", "gelu", "gelu_tanh", "hard_sigmoid",
                                 "hard_swish", "softplus", "softsign", "silu", "mish", "thresholded_relu",
                                 "shrink"]>:$kind,
                       Mlc_Tensor:$input, OptionalAttr<F64Attr>:$alpha, OptionalAttr<F64Attr>:$beta);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "custom<Keyword>($kind) $input attr-dict `:` custom<UnaryType>(type($input), type($result))";
  let hasFolder = 1;
}

def Mlc_ClampOp : Mlc_InferOp<"clamp", [AttrSizedOperandSegments]> {
  let summary = "min(max(input, low), high) with scalar bounds; an absent bound does not bound";
  let arguments = (ins Mlc_Tensor:$input, Optional<Mlc_Tensor>:$low, Optional<Mlc_Tensor>:$high, UnitAttr:$is_unsigned);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $input (`low` `(` $low^ `:` type($low) `)`)? (`high` `(` $high^ `:` type($high) `)`)? attr-dict
    `:` custom<UnaryType>(type($input), type($result))
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Mlc_PreluOp : Mlc_InferOp<"prelu"> {
  let summary = "input where positive, else slope * input; slope broadcasts to the input";
  let arguments = (ins Mlc_Tensor:$input, Mlc_Tensor:$slope);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $slope attr-dict `:` custom<BinaryType>(type($input), type($slope), type($result))
  }];
}

#endif // MLC_DIALECTS_ELEMENTWISE_TD
