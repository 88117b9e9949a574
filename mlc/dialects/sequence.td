// Sequences and optionals: runtime handles, host functions only. Positions are scalars (rank-0 tensors of i64); negative
// ones count from the end.
#ifndef MLC_DIALECTS_SEQUENCE_TD
#define MLC_DIALECTS_SEQUENCE_TD

include "base.td"

defvar Mlc_Position = Mlc_Scalar<[I64], "i64">;

def Mlc_SequenceMakeOp : Mlc_Op<"sequence_make", [Pure]> {
  let summary = "a sequence of the given values";
  let arguments = (ins Variadic<AnyType>:$inputs);
  let results = (outs Mlc_SeqType:$result);
  let assemblyFormat = "`(` $inputs `)` attr-dict `:` functional-type($inputs, $result)";
  let hasVerifier = 1;
}

def Mlc_SequenceAtOp : Mlc_Op<"sequence_at", [Pure]> {
  let summary = "the element at a position";
  let arguments = (ins Mlc_SeqType:$sequence, Mlc_Position:$position);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$sequence `,` $position attr-dict `:` type($sequence) `,` type($position) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Mlc_SequenceInsertOp : Mlc_Op<"sequence_insert", [Pure, AllTypesMatch<["sequence", "result"]>]> {
  let summary = "the sequence with an element inserted before a position, or at the end";
  let arguments = (ins Mlc_SeqType:$sequence, AnyType:$element, Optional<Mlc_Position>:$position);
  let results = (outs Mlc_SeqType:$result);
  let assemblyFormat = [{
    $sequence `,` $element (`at` `(` $position^ `:` type($position) `)`)? attr-dict
    `:` type($sequence) `,` type($element)
  }];
  let hasVerifier = 1;
}

def Mlc_SequenceEraseOp : Mlc_Op<"sequence_erase", [Pure, AllTypesMatch<["sequence", "result"]>]> {
  let summary = "the sequence without the element at a position, or without the last one";
  let arguments = (ins Mlc_SeqType:$sequence, Optional<Mlc_Position>:$position);
  let results = (outs Mlc_SeqType:$result);
  let assemblyFormat = [{
    $sequence (`at` `(` $position^ `:` type($position) `)`)? attr-dict `:` type($sequence)
  }];
}

def Mlc_SequenceLengthOp : Mlc_Op<"sequence_length", [Pure, InferTypeOpAdaptor]> {
  let summary = "how many elements a sequence has, an `i64` scalar";
  let arguments = (ins Mlc_SeqType:$sequence);
  let results = (outs Mlc_Position:$result);
  let assemblyFormat = "$sequence attr-dict `:` type($sequence)";
  let hasFolder = 1;
}

def Mlc_OptionalSomeOp : Mlc_Op<"optional_some", [Pure, InferTypeOpAdaptor]> {
  let summary = "an optional that holds a value";
  let arguments = (ins AnyType:$value);
  let results = (outs Mlc_OptionalType:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Mlc_OptionalNoneOp : Mlc_Op<"optional_none", [Pure]> {
  let summary = "an optional that holds nothing";
  let arguments = (ins);
  let results = (outs Mlc_OptionalType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Mlc_OptionalHasOp : Mlc_Op<"optional_has", [Pure, InferTypeOpAdaptor]> {
  let summary = "whether an optional holds a value, an `i1` scalar";
  let arguments = (ins Mlc_OptionalType:$optional);
  let results = (outs Mlc_Scalar<[I1], "i1">:$result);
  let assemblyFormat = "$optional attr-dict `:` type($optional)";
  let hasFolder = 1;
}

def Mlc_OptionalGetOp : Mlc_Op<"optional_get", [Pure, InferTypeOpAdaptor]> {
  let summary = "the value of an optional; a run-time error where there is none";
  let arguments = (ins Mlc_OptionalType:$optional);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$optional attr-dict `:` type($optional)";
  let hasFolder = 1;
}

#endif // MLC_DIALECTS_SEQUENCE_TD
