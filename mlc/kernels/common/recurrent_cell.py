"""The operation of a recurrent layer, `mlc.recurrence`, and what its cells compute of the sums of their gates.

ONNX operators RNN, GRU (with `linear_before_reset`) and LSTM, whose order gates have here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common.frame import Frame
from mlc.kernels.common.index import Scalar

GATES = {"tanh": 1, "relu": 1, "gru": 3, "lstm": 4}
Function = Callable[[ir.Value], ir.Value]


@dataclass(frozen=True)
class Layer:
    """An `mlc.recurrence`: its operands, None where it does without, and what they say of it."""

    op: ir.Operation
    kind: str
    direction: str
    inputs: ir.Value
    recurrence: ir.Value
    bias: ir.Value | None
    lengths: ir.Value | None
    initial_h: ir.Value | None
    initial_c: ir.Value | None

    @property
    def gates(self) -> int:
        return GATES[self.kind]

    @property
    def hidden(self) -> int:
        """Elements of a state."""
        return int(self.op.results[0].type.shape[3])

    @property
    def directions(self) -> int:
        return int(self.op.results[0].type.shape[2])

    @property
    def has_cell(self) -> bool:
        """Is there a second state?"""
        return self.kind == "lstm"


def layer_of(op: ir.Operation) -> Layer:
    """What `op`, an `mlc.recurrence`, says."""
    values = iter(op.operands)
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    inputs, recurrence, *others = (next(values) if count else None for count in segments)
    assert inputs is not None and recurrence is not None
    kind = ir.StringAttr(op.attributes["kind"]).value
    direction = ir.StringAttr(op.attributes["direction"]).value if "direction" in op.attributes else "forward"
    return Layer(op, kind, direction, inputs, recurrence, *others)


def time_of(frame: Frame, layer: Layer, direction: Scalar, step: Scalar, steps: Scalar) -> Scalar:
    """Where step number `step` of a direction is in a sequence of so many `steps`."""
    if layer.direction == "forward":
        return step
    last = frame.math.sub(frame.math.sub(steps, 1), step)
    if layer.direction == "reverse":
        return last
    c = frame.constants.index
    return arith.select(arith.cmpi(arith.CmpIPredicate.eq, c(direction), c(0)), c(step), c(last))


@dataclass(frozen=True)
class Cell:
    """What makes the next states of `sums`: what each gate gets from the input and from the state. Numbers and vectors
    are computed with alike; `sigmoid` and `tanh` are functions of these."""

    kind: str
    sigmoid: Function
    tanh: Function
    number: Callable[[float], ir.Value]

    def next_states(
        self, sums: Sequence[ir.Value], h: ir.Value, c: ir.Value, from_input: ir.Value | None
    ) -> tuple[ir.Value, ir.Value]:
        """The next `h` and `c`, which only an LSTM has. The new state of a GRU is `from_input` and what the reset gate
        leaves of the last of its `sums`, which has nothing from the input."""
        if self.kind == "lstm":
            return self._lstm(sums, c)
        if self.kind == "gru":
            assert from_input is not None
            return self._gru(sums, h, from_input), c
        return self.tanh(sums[0]) if self.kind == "tanh" else arith.maximumf(sums[0], self.number(0.0)), c

    def _lstm(self, sums: Sequence[ir.Value], c: ir.Value) -> tuple[ir.Value, ir.Value]:
        enter, leave, forget = (self.sigmoid(gate) for gate in sums[:3])
        state = arith.addf(arith.mulf(forget, c), arith.mulf(enter, self.tanh(sums[3])))
        return arith.mulf(leave, self.tanh(state)), state

    def _gru(self, sums: Sequence[ir.Value], h: ir.Value, from_input: ir.Value) -> ir.Value:
        update, reset = (self.sigmoid(gate) for gate in sums[:2])
        new = self.tanh(arith.addf(from_input, arith.mulf(reset, sums[2])))
        return arith.addf(arith.mulf(arith.subf(self.number(1.0), update), new), arith.mulf(update, h))
