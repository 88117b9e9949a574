"""`recurrent`: RNN, GRU and LSTM layers as one matrix product over all inputs and a loop over the sequence.

Where a target has said so (`mlc.whole`, `mlc-plan-recurrences`) the steps are an `mlc.recurrence` instead of the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, scf

from mlc.passes.adaptor import DYNAMIC, OpAdaptor, Size, defining_op, element, splat_number
from mlc.passes.decompose import build as b
from mlc.passes.decompose import decomposition
from mlc.passes.decompose.elementwise import activate
from mlc.passes.decompose.indexing import index_scalar

UNROLLED = 4
"""Sequences up to this length have no loop: their steps can fuse."""

WHOLE = "mlc.whole"
"""An attribute of `mlc.recurrent`: its steps are one operation."""

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
_DEFAULTS = {"rnn": ["tanh"], "gru": ["sigmoid", "tanh"], "lstm": ["sigmoid", "tanh", "tanh"]}
_KIND_OF = {
    **{name: name for name in ("relu", "tanh", "sigmoid", "affine", "elu", "softsign", "softplus")},
    "leakyrelu": "leaky_relu",
    "thresholdedrelu": "thresholded_relu",
    "scaledtanh": "scaled_tanh",
    "hardsigmoid": "hard_sigmoid",
}
Function = Callable[[ir.Value], ir.Value]
FromInput = Callable[[int], ir.Value]
"""What a gate, by its number, gets from the layer's input in a step."""


@decomposition("mlc.recurrent")
def recurrent(op: OpAdaptor) -> list[ir.Value]:
    """Directions are independent; their results are concatenated. Narrow floats compute in `f32`."""
    if op.has(WHOLE):
        return _whole(op)
    directions = 2 if op.text("direction", "forward") == "bidirectional" else 1
    parts = [_Direction(op, number).run() for number in range(directions)]
    y, y_h, y_c = (list(values) for values in zip(*parts, strict=True))
    types = [t.element_type for t in op.types]
    results = [
        b.concat([b.expand_dims(v, [1]) for v in y], 1),
        b.concat(y_h, 0),
        b.concat(y_c, 0),
    ]
    return [b.cast(v, t) for v, t in zip(results, types, strict=True)]


def _function(op: OpAdaptor, name: str) -> Function:
    """An activation from its ONNX name, optionally with parameters: `LeakyRelu`, `Elu:0.5`, `Affine:2.0:1.0`."""
    kind, *parameters = name.split(":")
    key = kind.lower().replace("_", "")
    if key not in _KIND_OF:
        raise ValueError(f"{op.node}: unknown activation '{name}' of a recurrent layer")
    values: list[float | None] = [*(float(p) for p in parameters), None, None]
    return lambda x: activate(_KIND_OF[key], x, values[0], values[1])


def usual_kind(op: OpAdaptor) -> str:
    """What `mlc.recurrence` calls the steps of a recurrent layer, or nothing if it does not have them."""
    kind, directions = op.text(), 2 if op.text("direction", "forward") == "bidirectional" else 1
    given = [a.value.lower() for a in op.op.attributes["activations"]] if op.has("activations") else []
    names = given or _DEFAULTS[kind] * directions
    if op.optional(7) is not None or op.has("clip"):
        return ""
    if kind == "rnn":
        return names[0] if names[0] in ("tanh", "relu") and len(set(names)) == 1 else ""
    is_usual = names == _DEFAULTS[kind] * directions and (kind == "lstm" or op.flag("linear_before_reset"))
    return kind if is_usual else ""


def _whole(op: OpAdaptor) -> list[ir.Value]:
    """The product of all inputs, of both directions, and the steps as one operation."""
    x, weights, recurrence, bias, lengths, h, c = (op.optional(group) for group in range(7))
    assert x is not None and weights is not None and recurrence is not None
    directions, height, inputs = weights.type.shape
    hidden, wide = recurrence.type.shape[2], b.wide_type(element(x))
    product = b.wide_matmul(x, b.reshape(weights, [directions * height, inputs]), transpose_rhs=True)
    own = None
    if bias is not None:
        bias = b.cast(bias, wide)
        first, second = b.slice_dim(bias, 1, 0, height), b.slice_dim(bias, 1, height, height)
        if op.text() == "gru":
            own = b.slice_dim(second, 1, 2 * hidden, hidden)
            second = b.pad(b.slice_dim(second, 1, 0, 2 * hidden), [0, 0], [0, hidden])
        product = b.add(product, b.reshape(b.add(first, second), [directions * height]))
    states = [None if state is None or _is_zero(state) else b.cast(state, wide) for state in (h, c)]
    given = [product, recurrence, own, lengths, *states]
    attributes = {"kind": b.text(usual_kind(op)), "direction": b.text(op.text("direction", "forward"))}
    segments = [int(value is not None) for value in given]
    y, *ends = b.operation("recurrence", [v for v in given if v is not None], attributes, segments=segments)
    results = [b.transpose(y, [0, 2, 1, 3]), *ends]
    return [b.cast(v, t.element_type) for v, t in zip(results, op.types, strict=True)]


def _is_zero(state: ir.Value) -> bool:
    """Is a state zero everywhere, as PyTorch's first ones are?"""
    op = defining_op(state)
    while op is not None and op.name in ("mlc.broadcast", "mlc.slice", "mlc.reshape"):
        state = op.operands[0]
        op = defining_op(state)
    return splat_number(state) == 0


class _Direction:
    """One direction of one layer."""

    def __init__(self, op: OpAdaptor, number: int) -> None:
        self.op, self.kind = op, op.text()
        groups = op.segments()
        x, weights, recurrence = (group[0] for group in groups[:3])
        self.type = b.wide_type(element(x))
        self.number = number
        self.lengths = groups[4][0] if groups[4] else None
        self.x = b.cast(x, self.type)
        self.weights, self.recurrence = self._own(weights), self._own(recurrence)
        hidden = self.recurrence.type.shape[1]
        if hidden == DYNAMIC:
            raise ValueError(f"{op.node}: a recurrent layer needs a hidden size that is known when compiling")
        self.hidden: int = hidden
        self.bias = self._own(groups[3][0]) if groups[3] else None
        self.peepholes = self._own(groups[7][0]) if groups[7] else None
        self.functions = self._functions()
        self.backward = number == 1 or op.text("direction", "forward") == "reverse"
        self.steps, self.batch = b.sizes(x)[:2]
        self.initial = [self._state(groups[5]), self._state(groups[6])]

    def _own(self, value: ir.Value) -> ir.Value:
        """The part of a parameter that belongs to this direction."""
        return b.cast(b.drop_dim(b.slice_dim(value, 0, self.number, 1), 0), self.type)

    def _functions(self) -> list[Function]:
        names = [a.value for a in self.op.op.attributes["activations"]] if self.op.has("activations") else []
        count = len(_DEFAULTS[self.kind])
        own = names[self.number * count : (self.number + 1) * count] or _DEFAULTS[self.kind]
        return [_function(self.op, name) for name in own]

    def _state(self, group: Sequence[ir.Value]) -> ir.Value:
        """A state `[1, batch, hidden]`: that of a step, as sequences have it, so that no view is between kernels."""
        if group:
            return b.expand_dims(self._own(group[0]), [0])
        return b.broadcast(b.scalar(0, self.type), [1, self.batch, self.hidden])

    # -- the loop --------------------------------------------------------------------------------------------------

    def run(self) -> tuple[ir.Value, ir.Value, ir.Value]:
        """`y [seq, batch, hidden]` and the last states, `[1, batch, hidden]`."""
        inputs = b.matmul(self.x, self.weights, transpose_rhs=True)
        if self.bias is not None:
            inputs = b.add(inputs, self._input_bias())
        if isinstance(self.steps, int) and self.steps <= UNROLLED:
            return self._unrolled(inputs)
        return self._loop(inputs)

    def _input_bias(self) -> ir.Value:
        """What can be added before the loop: both biases, but for the part of a GRU's that the reset gate scales."""
        assert self.bias is not None
        width = GATES[self.kind] * self.hidden
        first, second = b.slice_dim(self.bias, 0, 0, width), b.slice_dim(self.bias, 0, width, width)
        if self.kind == "gru" and self.op.flag("linear_before_reset"):
            gates = b.slice_dim(second, 0, 0, 2 * self.hidden)
            second = b.pad(gates, [0], [self.hidden])
        return b.add(first, second)

    def _unrolled(self, inputs: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        h, c = self.initial
        assert isinstance(self.steps, int)
        outputs: dict[int, ir.Value] = {}
        for number in range(self.steps):
            at = self.steps - 1 - number if self.backward else number
            y, h, c = self._step(inputs, at, b.scalar(at, b.i64()), h, c)
            outputs[at] = y
        y = b.concat([outputs[i] for i in range(self.steps)], 0) if outputs else self._no_output()
        return y, h, c if self.kind == "lstm" else h

    def _no_output(self) -> ir.Value:
        return b.broadcast(b.scalar(0, self.type), [self.steps, self.batch, self.hidden])

    def _loop(self, inputs: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        count = b.index(self.steps)
        one = b.index(1)
        carried = [self._no_output(), self.initial[0]]
        if self.kind == "lstm":
            carried.append(self.initial[1])
        loop = scf.ForOp(b.index(0), count, one, carried)
        with ir.InsertionPoint(loop.body):
            at = loop.induction_variable
            if self.backward:
                at = arith.subi(arith.subi(count, one), at)
            position = index_scalar(at)
            y, h, *rest = loop.inner_iter_args
            new_y, new_h, new_c = self._step(inputs, at, position, h, rest[0] if rest else h)
            y = b.scatter_nd(y, b.expand_dims(position, [0, 1]), new_y)
            yielded = [y, new_h, *([new_c] if rest else [])]
            for value, start in zip(yielded, carried, strict=True):
                if value.type != start.type:
                    value.set_type(start.type)
            scf.YieldOp(yielded)
        results = list(loop.results)
        return results[0], results[1], results[-1]

    def _step(
        self, inputs: ir.Value, at: Size, position: ir.Value, h: ir.Value, c: ir.Value
    ) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Output and next states; entries of the batch beyond their length keep their states and put out zero."""

        def x(gate: int) -> ir.Value:
            return b.slice_(inputs, [at, 0, gate * self.hidden], [1, self.batch, self.hidden])

        new_h, new_c = {"rnn": self._rnn, "gru": self._gru, "lstm": self._lstm}[self.kind](x, h, c)
        if self.lengths is None:
            return new_h, new_h, new_c
        active = b.compare("gt", b.expand_dims(b.cast(self.lengths, b.i64()), [1]), position)
        y = b.select(active, new_h, b.like(new_h, 0))
        next_c = b.select(active, new_c, c) if self.kind == "lstm" else new_c
        return y, b.select(active, new_h, h), next_c

    # -- the cells -------------------------------------------------------------------------------------------------

    def _clipped(self, x: ir.Value) -> ir.Value:
        limit = self.op.float("clip") if self.op.has("clip") else 0.0
        return b.clip(x, -limit, limit) if limit else x

    def _gate(self, x: ir.Value, number: int) -> ir.Value:
        return b.slice_dim(x, 2, number * self.hidden, self.hidden)

    def _rnn(self, x: FromInput, h: ir.Value, c: ir.Value) -> tuple[ir.Value, ir.Value]:
        total = b.add(x(0), b.matmul(h, self.recurrence, transpose_rhs=True))
        return self.functions[0](self._clipped(total)), c

    def _gru(self, x: FromInput, h: ir.Value, c: ir.Value) -> tuple[ir.Value, ir.Value]:
        first, second = self.functions
        hidden, is_linear = self.hidden, self.op.flag("linear_before_reset")
        rows = self.recurrence if is_linear else b.slice_dim(self.recurrence, 0, 0, 2 * hidden)
        product = b.matmul(h, rows, transpose_rhs=True)
        update, reset = (first(self._clipped(b.add(x(n), self._gate(product, n)))) for n in range(2))
        if is_linear:
            from_h = self._gate(product, 2)
            if self.bias is not None:
                from_h = b.add(from_h, b.slice_dim(self.bias, 0, 5 * hidden, hidden))
            from_h = b.mul(reset, from_h)
        else:
            own = b.slice_dim(self.recurrence, 0, 2 * hidden, hidden)
            from_h = b.matmul(b.mul(reset, h), own, transpose_rhs=True)
        new = second(self._clipped(b.add(x(2), from_h)))
        return b.add(b.mul(b.sub(b.like(update, 1), update), new), b.mul(update, h)), c

    def _lstm(self, x: FromInput, h: ir.Value, c: ir.Value) -> tuple[ir.Value, ir.Value]:
        first, second, third = self.functions
        product = b.matmul(h, self.recurrence, transpose_rhs=True)

        def gate(number: int) -> ir.Value:
            return b.add(x(number), self._gate(product, number))

        enter = first(self._clipped(self._peeped(gate(0), 0, c)))
        forget = first(self._clipped(self._peeped(gate(2), 2, c)))
        candidate = second(self._clipped(gate(3)))
        state = b.add(b.mul(forget, c), b.mul(enter, candidate))
        leave = first(self._clipped(self._peeped(gate(1), 1, state)))
        return b.mul(third(state), leave), state  # in this order fusion finds one kernel for both

    def _peeped(self, gate: ir.Value, number: int, state: ir.Value) -> ir.Value:
        if self.peepholes is None:
            return gate
        own = b.slice_dim(self.peepholes, 0, number * self.hidden, self.hidden)
        return b.add(gate, b.mul(own, state))
