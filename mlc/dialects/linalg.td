// Contractions.
#ifndef MLC_DIALECTS_LINALG_TD
#define MLC_DIALECTS_LINALG_TD

include "base.td"

def Mlc_MatmulOp : Mlc_InferOp<"matmul"> {
  let summary = "matrix product over the last two dimensions; leading dimensions broadcast";
  let description = [{
    `lhs [..., M, K]`, `rhs [..., K, N]` -> `[..., M, N]`; `transpose_lhs` and `transpose_rhs` swap the last two
    dimensions of an operand. `i8` operands give `i32`, accumulated in `i32`; they have a sign unless `unsigned_lhs`,
    `unsigned_rhs` say otherwise. With `widen` floats narrower than 32 bits give `f32`, the type that they accumulate in;
    `lhs` may be `f32` then, and `rhs` narrower.
    `lhs_bits` is a permission: `lhs` may be rounded to integers of so many bits, with a scale for each block of a row in
    which the dequantized `rhs` has one.
  }];
  let arguments = (ins Mlc_Tensor:$lhs, Mlc_Tensor:$rhs, UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs,
                       UnitAttr:$widen, UnitAttr:$unsigned_lhs, UnitAttr:$unsigned_rhs,
                       OptionalAttr<I64Attr>:$lhs_bits);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)";
  let hasCanonicalizer = 1;
}

def Mlc_EinsumOp : Mlc_InferOp<"einsum"> {
  let summary = "Einstein summation with the equation of `numpy.einsum`";
  let arguments = (ins Variadic<Mlc_Tensor>:$inputs, StrAttr:$equation);
  let results = (outs Mlc_Tensor:$result);
  let assemblyFormat = "$equation `(` $inputs `)` attr-dict `:` type($inputs) `->` type($result)";
}

#endif // MLC_DIALECTS_LINALG_TD
