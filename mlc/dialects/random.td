// Random numbers.
#ifndef MLC_DIALECTS_RANDOM_TD
#define MLC_DIALECTS_RANDOM_TD

include "base.td"

def Mlc_RandomOp : Mlc_TypedOp<"random"> {
  let summary = "random numbers: uniform in [0, 1) or standard normal";
  let description = "Philox 4x32-10 keyed by the seed; the counter is the element index, so results do not depend on order.";
  let arguments = (ins Mlc_Kind<["uniform", "normal"]>:$kind, Mlc_Scalar<[I64], "i64">:$seed, Variadic<Index>:$sizes,
                       DenseI64ArrayAttr:$static_sizes);
  let results = (outs Mlc_FloatTensor:$result);
  let assemblyFormat = [{
    custom<Keyword>($kind) $seed custom<DynamicIndexList>($sizes, $static_sizes) attr-dict
    `:` type($seed) `->` type($result)
  }];
}

#endif // MLC_DIALECTS_RANDOM_TD
