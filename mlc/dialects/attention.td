// Attention.
#ifndef MLC_DIALECTS_ATTENTION_TD
#define MLC_DIALECTS_ATTENTION_TD

include "base.td"

def Mlc_AttentionOp : Mlc_InferOp<"attention"> {
  let summary = "softmax(query * key^T * scale + mask) * value on `[batch, heads, seq, dim]`";
  let description = [{
    `scale` defaults to `1/sqrt(dim)`. `mask` broadcasts to `[batch, heads, seq, keys]`: `i1` keeps where true, a float mask
    is added. `causal` keeps key `j` for query `i` where `j <= i`. `softcap` c replaces a score s by `c * tanh(s / c)`.
    The heads of key and value may be a divisor of the query's (grouped-query attention).
  }];
  let arguments = (ins Mlc_Tensor:$query, Mlc_Tensor:$key, Mlc_Tensor:$value, Optional<Mlc_Tensor>:$mask,
                       OptionalAttr<F64Attr>:$scale, DefaultValuedAttr<BoolAttr, "false">:$causal,
                       OptionalAttr<F64Attr>:$softcap);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` `(` $mask^ `:` type($mask) `)`)? attr-dict
    `:` type($query) `,` type($key) `,` type($value) `->` type($result)
  }];
}

#endif // MLC_DIALECTS_ATTENTION_TD
