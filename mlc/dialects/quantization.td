// Quantization.
#ifndef MLC_DIALECTS_QUANTIZATION_TD
#define MLC_DIALECTS_QUANTIZATION_TD

include "base.td"

def Mlc_QuantizeOp : Mlc_TypedOp<"quantize"> {
  let summary = "saturate(round(input / scale) + zero_point), per tensor, per axis or in blocks along an axis";
  let description = [{
    A rank-0 `scale` is per tensor, a rank-1 one per index of `axis`, one of the input's rank per block of `block_size`
    along `axis`. A rank-0 `zero_point` goes with any scale. `unsigned` says how the integers of the result are meant.
  }];
  let arguments = (ins Mlc_Tensor:$input, Mlc_Tensor:$scale, Optional<Mlc_Tensor>:$zero_point,
                       DefaultValuedAttr<I64Attr, "0">:$axis, UnitAttr:$is_unsigned,
                       DefaultValuedAttr<I64Attr, "0">:$block_size);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $scale (`zero_point` `(` $zero_point^ `:` type($zero_point) `)`)? attr-dict
    `:` type($input) `,` type($scale) `->` type($result)
  }];
}

def Mlc_DequantizeOp : Mlc_InferOp<"dequantize"> {
  let summary = "(input - zero_point) * scale, with the element type of `scale`";
  let description = [{
    Parameters are those of `quantize`. With `bits` the integers have no more bits than that, whatever their type.
  }];
  let arguments = (ins Mlc_Tensor:$input, Mlc_Tensor:$scale, Optional<Mlc_Tensor>:$zero_point,
                       DefaultValuedAttr<I64Attr, "0">:$axis, UnitAttr:$is_unsigned,
                       DefaultValuedAttr<I64Attr, "0">:$block_size, OptionalAttr<I64Attr>:$bits);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $input `,` $scale (`zero_point` `(` $zero_point^ `:` type($zero_point) `)`)? attr-dict
    `:` type($input) `,` type($scale) `->` type($result)
  }];
}

def Mlc_UnpackOp : Mlc_InferOp<"unpack"> {
  let summary = "integers of `bits` bits, without a sign, out of words of 32";
  let description = [{
    `[..., words, columns, 4]`, the bytes of each word -> `[..., words * 32 / bits, columns]`. Code `k` of a word is in its
    byte `k mod 4`, from bit `bits * (k floordiv 4)` on: a shift and a mask make four adjacent codes bytes of a word.
    `bits` is 2, 4 or 8.
  }];
  let arguments = (ins Mlc_Tensor:$input, I64Attr:$bits);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

#endif // MLC_DIALECTS_QUANTIZATION_TD
