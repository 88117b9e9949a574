"""Recurrent layers as models of ONNX, and what they give, step by step in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
Extent = int | str
Array = np.ndarray
Attributes = dict[str, Any]
Function = Callable[[Array], Array]


@dataclass(frozen=True)
class Layer:
    """A layer of ONNX's operator `kind`, whose reset gate comes behind the product if it is a GRU; `states` and `lengths`
    say what it gets besides a sequence."""

    kind: str
    hidden: int
    width: int = 9
    direction: str = "forward"
    states: bool = False
    lengths: bool = False
    bias: bool = True
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    def weights(self) -> dict[str, np.ndarray]:
        rng, rows = np.random.default_rng(7), GATES[self.kind] * self.hidden
        shapes = {"w": (rows, self.width), "r": (rows, self.hidden), "b": (2 * rows,)}
        scale = 2 / np.sqrt(self.hidden)
        return {n: (rng.uniform(-1, 1, (self.directions, *s)) * scale).astype(np.float32) for n, s in shapes.items()}

    def model(self, steps: Extent, batch: Extent, element: int = TensorProto.FLOAT) -> onnx.ModelProto:
        """`x [steps, batch, width]`, and `lengths`, `h`, `c` where there are any, to `y`, `yh` and an LSTM's `yc`."""
        state = (self.directions, batch, self.hidden)
        given = [("x", element, (steps, batch, self.width))]
        given += [("lengths", TensorProto.INT32, (batch,))] if self.lengths else []
        given += [(name, element, state) for name in self._states()]
        results = [("y", element, (steps, self.directions, batch, self.hidden))]
        results += [(f"y{name}", element, state) for name in ("h", "c")[: 1 + (self.kind == "LSTM")]]
        names = [name for name, _, _ in given]
        inputs = ["x", "w", "r", "b" if self.bias else "", "lengths" if self.lengths else "", *self._states()]
        assert set(inputs) - {"", "w", "r", "b"} == set(names)
        attributes = {"hidden_size": self.hidden, "direction": self.direction, **self.attributes}
        node = helper.make_node(self.kind, inputs, [name for name, _, _ in results], name="layer", **attributes)
        dtype = helper.tensor_dtype_to_np_dtype(element)
        stored = [
            numpy_helper.from_array(v.astype(dtype), n) for n, v in self.weights().items() if self.bias or n != "b"
        ]
        ends = [[helper.make_tensor_value_info(*value) for value in values] for values in (given, results)]
        graph = helper.make_graph([node], "g", *ends, stored)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)

    def inputs(self, steps: int, batch: int, seed: int = 0) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        given = [rng.standard_normal((steps, batch, self.width), np.float32)]
        given += [rng.integers(0, steps + 1, batch).astype(np.int32)] if self.lengths else []
        return given + [rng.uniform(-1, 1, (self.directions, batch, self.hidden)).astype(np.float32)
                        for _ in self._states()]  # fmt: skip

    def expected(self, given: list[Array], inputs: Function = np.asarray, states: Function = np.asarray) -> list[Array]:
        """The outputs of `model`, in float64. `inputs` rounds the operands of products of inputs, and `states` those of
        products of states."""
        x, *rest = (np.asarray(v, np.float64) for v in given)
        lengths = rest.pop(0) if self.lengths else np.full(x.shape[1], x.shape[0])
        zeros = np.zeros((self.directions, x.shape[1], self.hidden))
        initial = [*rest, *[zeros] * (2 - len(rest))]
        given_to = [inputs(x) @ inputs(w.astype(np.float64)).T for w in self.weights()["w"]]
        found = [
            self._run(d, given_to[d], lengths, rest_h, rest_c, states)
            for d, (rest_h, rest_c) in enumerate(zip(*initial, strict=True))
        ]
        y, h, c = (np.stack(values, 1 if i == 0 else 0) for i, values in enumerate(zip(*found, strict=True)))
        return [y, h, c] if self.kind == "LSTM" else [y, h]

    def _states(self) -> list[str]:
        return ["h", "c"][: 1 + (self.kind == "LSTM")] if self.states else []

    def _run(
        self, number: int, x: Array, lengths: Array, h: Array, c: Array, rounded: Function
    ) -> tuple[Array, Array, Array]:
        """One direction over `x`, the products of its inputs."""
        r, b = (self.weights()[name][number].astype(np.float64) for name in "rb")
        own, others = np.split(b * self.bias, 2)
        y = np.zeros((*x.shape[:2], self.hidden))
        is_backward = self.direction == "reverse" or number == 1
        for t in range(len(x))[:: -1 if is_backward else 1]:
            from_h = rounded(h) @ rounded(r).T + others
            new_h, new_c = _STEPS[self.kind](x[t] + own, from_h, h, c, self.attributes)
            active = (t < lengths)[:, None]
            h, c, y[t] = np.where(active, new_h, h), np.where(active, new_c, c), np.where(active, new_h, 0)
        return y, h, c


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _rnn(x: Array, from_h: Array, h: Array, c: Array, attributes: Attributes) -> tuple[Array, Array]:
    total = x + from_h
    return (np.maximum(total, 0) if "Relu" in attributes.get("activations", []) else np.tanh(total)), c


def _gru(x: Array, from_h: Array, h: Array, c: Array, attributes: Attributes) -> tuple[Array, Array]:
    n = 2 * h.shape[1]
    update, reset = np.split(_sigmoid(x[:, :n] + from_h[:, :n]), 2, axis=1)
    return (1 - update) * np.tanh(x[:, n:] + reset * from_h[:, n:]) + update * h, c


def _lstm(x: Array, from_h: Array, h: Array, c: Array, attributes: Attributes) -> tuple[Array, Array]:
    enter, leave, forget, new = np.split(x + from_h, 4, axis=1)
    c = _sigmoid(forget) * c + _sigmoid(enter) * np.tanh(new)
    return _sigmoid(leave) * np.tanh(c), c


_STEPS = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}
