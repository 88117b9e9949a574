"""The composite `recurrent`: RNN, GRU and LSTM with ONNX's weight order, gate equations and defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mlc.interp.activation import activate
from mlc.interp.dtypes import narrow, widen
from mlc.interp.registry import Call, InterpError, evaluates

_GATES = {"rnn": 1, "gru": 3, "lstm": 4}
_DEFAULT_ACTIVATIONS = {"rnn": ["tanh"], "gru": ["sigmoid", "tanh"], "lstm": ["sigmoid", "tanh", "tanh"]}
_KIND_OF = {
    "relu": "relu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "affine": "affine",
    "leakyrelu": "leaky_relu",
    "thresholdedrelu": "thresholded_relu",
    "scaledtanh": "scaled_tanh",
    "hardsigmoid": "hard_sigmoid",
    "elu": "elu",
    "softsign": "softsign",
    "softplus": "softplus",
}


@dataclass(frozen=True)
class _Cell:
    """The weights and functions of one direction."""

    recurrence: np.ndarray  # [gates * hidden, hidden]
    bias: np.ndarray  # [gates * hidden], of the product with the recurrence
    peepholes: np.ndarray  # [3, hidden]: input, output, forget
    functions: list[Callable[[np.ndarray], np.ndarray]]
    clip: float | None
    linear_before_reset: bool
    rounded: np.dtype | None = None  # what states are rounded to before they are multiplied

    def product(self, h: np.ndarray, first: int = 0, last: int | None = None) -> np.ndarray:
        """What the gates from row `first` to row `last` of the recurrence get from the state `h`."""
        state = h if self.rounded is None else widen(narrow(h, self.rounded))
        return state @ self.recurrence[first:last].T + self.bias[first:last]

    def clipped(self, x: np.ndarray) -> np.ndarray:
        return x if self.clip is None else np.clip(x, -x.dtype.type(self.clip), x.dtype.type(self.clip))


def _rnn(cell: _Cell, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return cell.functions[0](cell.clipped(x + cell.product(h))), c


def _gru(cell: _Cell, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    whole = 2 * h.shape[-1]
    first, second = cell.functions
    update, reset = np.split(first(cell.clipped(x[:, :whole] + cell.product(h, 0, whole))), 2, axis=-1)
    is_linear = cell.linear_before_reset
    from_h = reset * cell.product(h, whole) if is_linear else cell.product(reset * h, whole)
    new = second(cell.clipped(x[:, whole:] + from_h))
    return (1 - update) * new + update * h, c


def _lstm(cell: _Cell, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first, second, third = cell.functions
    gate_i, gate_o, gate_f, gate_c = np.split(x + cell.product(h), 4, axis=-1)
    peep_i, peep_o, peep_f = cell.peepholes
    enter = first(cell.clipped(gate_i + peep_i * c))
    forget = first(cell.clipped(gate_f + peep_f * c))
    state = forget * c + enter * second(cell.clipped(gate_c))
    leave = first(cell.clipped(gate_o + peep_o * state))
    return leave * third(state), state


_STEP = {"rnn": _rnn, "gru": _gru, "lstm": _lstm}


def _function(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """An activation from its ONNX name, optionally with parameters: `"LeakyRelu"`, `"Elu:0.5"`,
    `"Affine:2.0:1.0"`.
    """
    kind, *parameters = name.split(":")
    key = kind.lower().replace("_", "")
    if key not in _KIND_OF:
        raise InterpError(f"mlc.recurrent: unknown activation '{name}'")
    values = [float(p) for p in parameters] + [None] * (2 - len(parameters))
    return lambda x: activate(_KIND_OF[key], x, values[0], values[1])


Direction = tuple[_Cell, np.ndarray, np.ndarray, np.ndarray]
"""A cell, what its gates get from inputs `[seq, batch, gates * hidden]`, and the first h and c `[batch, hidden]`."""


def _layer(
    kind: str, call: Call, directions: list[Direction], lengths: np.ndarray | None, axis: int
) -> list[np.ndarray]:
    """The outputs of all directions, side by side along `axis`, and the last h and c of each; without a cell c is h."""
    is_reverse = call.attr("direction", "forward") == "reverse"
    parts = [_run(_STEP[kind], *own, lengths, is_reverse or d == 1) for d, own in enumerate(directions)]
    y, y_h, y_c = (np.stack(values, axis=0 if i else axis) for i, values in enumerate(zip(*parts, strict=True)))
    return [y, y_h, y_c if kind == "lstm" else y_h]


def _run(
    step: Callable[..., tuple[np.ndarray, np.ndarray]],
    cell: _Cell,
    x: np.ndarray,
    h: np.ndarray,
    c: np.ndarray,
    lengths: np.ndarray | None,
    backward: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One direction over `x [seq, batch, gates * hidden]`, what gates get from its inputs: all outputs (zero beyond
    each length), last h and last c."""
    outputs = np.zeros((x.shape[0], *h.shape), x.dtype)
    for t in range(x.shape[0])[:: -1 if backward else 1]:
        new_h, new_c = step(cell, x[t], h, c)
        active = np.ones((h.shape[0], 1), bool) if lengths is None else (t < lengths)[:, None]
        h, c = np.where(active, new_h, h), np.where(active, new_c, c)
        outputs[t] = np.where(active, new_h, 0)
    return outputs, h, c


@evaluates("mlc.recurrent", "input weights recurrence bias? lengths? initial_h? initial_c? peepholes?")
def recurrent(
    call: Call,
    x: np.ndarray,
    weights: np.ndarray,
    recurrence: np.ndarray,
    bias: np.ndarray | None,
    lengths: np.ndarray | None,
    initial_h: np.ndarray | None,
    initial_c: np.ndarray | None,
    peepholes: np.ndarray | None,
) -> list[np.ndarray]:
    """`y [seq, dirs, batch, hidden]`, `y_h`, `y_c [dirs, batch, hidden]` of `x [seq, batch, in]`."""
    kind, value = call.need("kind"), widen(x)
    directions, hidden, batch = recurrence.shape[0], recurrence.shape[2], x.shape[1]
    gates = _GATES[kind]
    names = list(call.attr("activations", [])) or _DEFAULT_ACTIVATIONS[kind] * directions
    per_direction = len(names) // directions
    zero_state = np.zeros((directions, batch, hidden), value.dtype)
    state_h = zero_state if initial_h is None else widen(initial_h)
    state_c = zero_state if initial_c is None else widen(initial_c)
    parts = []
    for d in range(directions):
        both = np.zeros((2, gates * hidden), value.dtype) if bias is None else widen(bias[d]).reshape(2, -1)
        from_x = value @ widen(weights[d]).T + both[0]
        cell = _Cell(
            widen(recurrence[d]),
            both[1],
            np.zeros((3, hidden), value.dtype) if peepholes is None else widen(peepholes[d]).reshape(3, hidden),
            [_function(name) for name in names[d * per_direction : (d + 1) * per_direction]],
            call.attr("clip"),
            bool(call.attr("linear_before_reset", False)),
        )
        parts.append((cell, from_x, state_h[d], state_c[d]))
    return _layer(kind, call, parts, lengths, 1)


@evaluates("mlc.recurrence", "inputs recurrence bias? lengths? initial_h? initial_c?")
def recurrence(
    call: Call,
    inputs: np.ndarray,
    weights: np.ndarray,
    bias: np.ndarray | None,
    lengths: np.ndarray | None,
    initial_h: np.ndarray | None,
    initial_c: np.ndarray | None,
) -> list[np.ndarray]:
    """`y [seq, batch, dirs, hidden]`, `y_h`, `y_c [dirs, batch, hidden]`: steps behind the product of the inputs."""
    kind, value = call.need("kind"), widen(inputs)
    directions, height, hidden = weights.shape
    layer = kind if kind in ("gru", "lstm") else "rnn"
    zeros = np.zeros((directions, value.shape[1], hidden), value.dtype)
    names = [kind] if layer == "rnn" else _DEFAULT_ACTIVATIONS[layer]
    parts = []
    for d in range(directions):
        from_h = np.zeros(height, value.dtype)
        if bias is not None:
            from_h[2 * hidden :] = widen(bias[d])
        peepholes, functions = np.zeros((3, hidden), value.dtype), [_function(name) for name in names]
        own = _Cell(widen(weights[d]), from_h, peepholes, functions, None, True, weights.dtype)
        h, c = (zeros[d] if s is None else widen(s[d]) for s in (initial_h, initial_c))
        parts.append((own, value[..., d * height : (d + 1) * height], h, c))
    return _layer(layer, call, parts, lengths, 2)
