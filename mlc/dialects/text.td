// Calls of C routines: strings, trees, decoding and what else is no tensor compiler's business.
#ifndef MLC_DIALECTS_TEXT_TD
#define MLC_DIALECTS_TEXT_TD

include "base.td"

def Mlc_ExternOp : Mlc_Op<"extern", [Pure]> {
  let summary = "host call of a C routine that is linked in when used";
  let description = "`config` is a string whose meaning the routine defines. The routine is a function of its inputs.";
  let arguments = (ins Variadic<AnyType>:$inputs, StrAttr:$callee, DefaultValuedAttr<StrAttr, "\"\"">:$config);
  let results = (outs Variadic<AnyType>:$outputs);
  let assemblyFormat = "$callee `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
}

#endif // MLC_DIALECTS_TEXT_TD
