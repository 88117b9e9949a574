// Recurrent networks.
#ifndef MLC_DIALECTS_RECURRENT_TD
#define MLC_DIALECTS_RECURRENT_TD

include "base.td"

def Mlc_RecurrentOp : Mlc_InferOp<"recurrent", [AttrSizedOperandSegments]> {
  let summary = "an RNN, GRU or LSTM layer in one or both directions";
  let description = [{
    Shapes, with d = 1 or 2 directions and g = 1, 3, 4 gates in ONNX's order: `input [seq, batch, in]`,
    `weights [d, g*hidden, in]`, `recurrence [d, g*hidden, hidden]`, `bias [d, 2*g*hidden]`, `lengths [batch]`,
    `initial_h`, `initial_c [d, batch, hidden]`, `peepholes [d, 3*hidden]`.
    Results: `y [seq, d, batch, hidden]`, `y_h` and `y_c [d, batch, hidden]` (`y_c` equals `y_h` unless `lstm`).
  }];
  let arguments = (ins Mlc_Kind<["rnn", "gru", "lstm"]>:$kind, Mlc_Tensor:$input, Mlc_Tensor:$weights,
                       Mlc_Tensor:$recurrence, Optional<Mlc_Tensor>:$bias, Optional<Mlc_IndexTensor>:$lengths,
                       Optional<Mlc_Tensor>:$initial_h, Optional<Mlc_Tensor>:$initial_c,
                       Optional<Mlc_Tensor>:$peepholes,
                       DefaultValuedAttr<Mlc_Kind<["forward", "reverse", "bidirectional"]>, "\"forward\"">:$direction,
                       StrArrayAttr:$activations, DefaultValuedAttr<BoolAttr, "false">:$linear_before_reset,
                       OptionalAttr<F64Attr>:$clip);
  let results = (outs Mlc_Tensor:$y, Mlc_Tensor:$y_h, Mlc_Tensor:$y_c);
  let assemblyFormat = [{
    custom<Keyword>($kind) $input `,` $weights `,` $recurrence
    (`bias` `(` $bias^ `:` type($bias) `)`)? (`lengths` `(` $lengths^ `:` type($lengths) `)`)?
    (`initial_h` `(` $initial_h^ `:` type($initial_h) `)`)? (`initial_c` `(` $initial_c^ `:` type($initial_c) `)`)?
    (`peepholes` `(` $peepholes^ `:` type($peepholes) `)`)? attr-dict
    `:` type($input) `,` type($weights) `,` type($recurrence) `->` type($y) `,` type($y_h) `,` type($y_c)
  }];
}

def Mlc_RecurrenceOp : Mlc_InferOp<"recurrence", [AttrSizedOperandSegments]> {
  let summary = "the steps of a recurrent layer behind the product of its inputs";
  let description = [{
    Shapes, with d = 1 or 2 directions and g = 1, 3, 4 gates in ONNX's order: `inputs [seq, batch, d*g*hidden]`, what
    gates get from the layer's input and its biases; `recurrence [d, g*hidden, hidden]`, or more dimensions once a target
    has packed it; `bias [d, hidden]`, what is added to the product that the reset gate of a `gru` scales;
    `lengths [batch]`; `initial_h`, `initial_c [d, batch, hidden]`, zeros where there are none.
    `tanh` and `relu` are layers without gates. A step adds the product of `recurrence` and the state to the inputs;
    `recurrence` of 16 bits multiplies states that are rounded to its type. All else is computed in the type of `inputs`.
    Results: `y [seq, batch, d, hidden]`, `y_h` and `y_c [d, batch, hidden]` (`y_c` equals `y_h` unless `lstm`).
    ```mlir
    %y, %h, %c = mlc.recurrence lstm %x, %r {direction = "forward"}
      : tensor<9x2x128xf32>, tensor<1x128x32xbf16> -> tensor<9x2x1x32xf32>, tensor<1x2x32xf32>, tensor<1x2x32xf32>
    ```
  }];
  let arguments = (ins Mlc_Kind<["tanh", "relu", "gru", "lstm"]>:$kind, Mlc_Tensor:$inputs, Mlc_Tensor:$recurrence,
                       Optional<Mlc_Tensor>:$bias, Optional<Mlc_IndexTensor>:$lengths, Optional<Mlc_Tensor>:$initial_h,
                       Optional<Mlc_Tensor>:$initial_c,
                       DefaultValuedAttr<Mlc_Kind<["forward", "reverse", "bidirectional"]>, "\"forward\"">:$direction);
  let results = (outs Mlc_Tensor:$y, Mlc_Tensor:$y_h, Mlc_Tensor:$y_c);
  let assemblyFormat = [{
    custom<Keyword>($kind) $inputs `,` $recurrence (`bias` `(` $bias^ `:` type($bias) `)`)?
    (`lengths` `(` $lengths^ `:` type($lengths) `)`)? (`initial_h` `(` $initial_h^ `:` type($initial_h) `)`)?
    (`initial_c` `(` $initial_c^ `:` type($initial_c) `)`)? attr-dict
    `:` type($inputs) `,` type($recurrence) `->` type($y) `,` type($y_h) `,` type($y_c)
  }];
}

#endif // MLC_DIALECTS_RECURRENT_TD
