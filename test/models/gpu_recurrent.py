"""GPU cases of recurrent layers, whose products are rounded: the form of `models/recurrent.py`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.gpu_cases import Arrays, Case
from models.recurrent import Layer


def case_of(
    name: str,
    layer: Layer,
    steps: int,
    batch: int,
    dims: Sequence[int | str] | None = None,
    dtype: type[np.floating] = np.float32,
) -> Case:
    """`layer` of so many steps and rows; `dims` as the model has those of its input, where it does not know them."""
    lengths, states = ["lengths"] * layer.lengths, ["h", "c"][: 1 + (layer.kind == "LSTM")] * layer.states
    given = ["x", *lengths, *states]
    ends = ["y", "yh", *(["yc"] if layer.kind == "LSTM" else [])]
    operands = ["x", "w", "r", "b" if layer.bias else "", *(lengths or [""]), *states]
    attributes = {"hidden_size": layer.hidden, "direction": layer.direction, **layer.attributes}
    constants = {n: v.astype(dtype) for n, v in layer.weights().items() if n in operands}

    def inputs() -> Arrays:
        drawn = zip(given, layer.inputs(steps, batch), strict=True)
        return {name: v.astype(dtype) if v.dtype == np.float32 else v for name, v in drawn}

    def expected(arrays: Arrays) -> list[np.ndarray]:
        return layer.expected([arrays[name] for name in given])

    return Case(
        name, [(layer.kind, operands, ends, attributes)], inputs, expected, dict.fromkeys(ends, np.dtype(dtype).name),
        {"x": dims} if dims else None, constants, tolerance=2e-2,
    )  # fmt: skip


def recurrent_cases() -> list[Case]:
    """All cells and directions; rows that are no multiple of what a block has, and that only a run knows; rows of the
    weights that end within a piece, and such as do not fit in registers."""
    linear = {"linear_before_reset": 1}
    return [
        case_of("recurrent_lstm", Layer("LSTM", 96, direction="bidirectional"), 3, 8),
        case_of(
            "recurrent_lstm_lengths", Layer("LSTM", 48, direction="bidirectional", states=True, lengths=True), 4, 11
        ),
        case_of("recurrent_lstm_large", Layer("LSTM", 208), 2, 19),
        case_of("recurrent_gru", Layer("GRU", 48, width=9, attributes=linear), 4, 5, ("steps", "batch", 9)),
        case_of("recurrent_gru_lengths", Layer("GRU", 32, direction="reverse", lengths=True, attributes=linear), 4, 9),
        case_of("recurrent_gru_large", Layer("GRU", 208, bias=False, attributes=linear), 2, 3),
        case_of("recurrent_half", Layer("LSTM", 32, direction="bidirectional", states=True), 4, 5, dtype=np.float16),
        case_of("recurrent_tanh", Layer("RNN", 16, direction="reverse", states=True), 4, 3),
        case_of("recurrent_relu", Layer("RNN", 80, attributes={"activations": ["Relu"]}), 3, 8),
    ]
