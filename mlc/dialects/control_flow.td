// Run-time checks. Branches and loops are upstream `scf` operations.
#ifndef MLC_DIALECTS_CONTROL_FLOW_TD
#define MLC_DIALECTS_CONTROL_FLOW_TD

include "base.td"

def Mlc_CheckOp : Mlc_Op<"check", [MemoryEffects<[MemWrite]>]> {
  let summary = "stops the run with a message and a value unless the condition holds";
  let arguments = (ins I1:$condition, Index:$value, StrAttr:$message);
  let results = (outs);
  let assemblyFormat = "$condition `,` $value `,` $message attr-dict";
  let hasCanonicalizer = 1;
}

#endif // MLC_DIALECTS_CONTROL_FLOW_TD
