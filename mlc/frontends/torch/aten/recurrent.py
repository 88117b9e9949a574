"""Layers of LSTM, GRU and plain recurrent networks."""

from __future__ import annotations

from collections.abc import Sequence

from mlc.frontends.common import shape
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.registry import Call, aten

# Where the parts of PyTorch's parameters (gates) lie in those of the dialect, which are ONNX's.
_GATES = {"lstm": [0, 3, 1, 2], "gru": [1, 0, 2], "rnn": [0]}
_ACTIVATIONS = {
    "lstm": ["sigmoid", "tanh", "tanh"],
    "gru": ["sigmoid", "tanh"],
    "rnn_tanh": ["tanh"],
    "rnn_relu": ["relu"],
}


def _gates(b: Builder, tensor: Tensor, kind: str) -> Tensor:
    """A weight or bias with its gates in the dialect's order."""
    order = _GATES[kind]
    size: Size = b.arith("divsi", b.dim(tensor, 0), len(order))
    parts = shape.split(b, tensor, 0, [size] * len(order))
    return shape.concat(b, [parts[place] for place in order], 0)


def _stacked(b: Builder, tensors: Sequence[Tensor]) -> Tensor:
    return shape.concat(b, [shape.unsqueeze(b, tensor, [0]) for tensor in tensors], 0)


@aten("lstm", "gru", "rnn_tanh", "rnn_relu")
def recurrent(call: Call) -> list[Tensor]:
    """All layers, in one or both directions; the sequence first, or the batch."""
    b, name = call.b, call.op.removeprefix("aten::")
    if "batch_sizes" in call.names:
        raise NodeError("sequences that are packed", "pass padded sequences, without pack_padded_sequence")
    dropout, train = call.get("dropout"), call.get("train")
    if dropout and train:
        raise NodeError("dropout in training mode", "call model.eval() before tracing")
    both, batch_first = bool(call.get("bidirectional")), bool(call.get("batch_first"))
    states = call[1] if name == "lstm" else [call[1]]
    cells = call.int(call.names.index("num_layers")) * (2 if both else 1)
    parameters = call.get("params")
    count = len(parameters) // cells
    if count != (4 if call.get("has_biases") else 2):
        raise NodeError("an LSTM with projections (proj_size) is not supported", "use one without")
    x = call.tensor(0)
    x = shape.transpose(b, x, [1, 0, 2]) if batch_first else x
    finals: list[list[Tensor]] = [[] for _ in states]
    for first in range(0, cells, 2 if both else 1):
        directions = [parameters[count * i : count * (i + 1)] for i in range(first, first + (2 if both else 1))]
        starts = [shape.window(b, state, 0, first, len(directions)) for state in states]
        x, ends = _layer(b, name, x, directions, starts)
        for final, end in zip(finals, ends, strict=True):
            final.append(end)
    x = shape.transpose(b, x, [1, 0, 2]) if batch_first else x
    return [x, *(shape.concat(b, final, 0) for final in finals)]


def _layer(
    b: Builder, name: str, x: Tensor, directions: list[list[Tensor]], starts: list[Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """One layer: `[seq, batch, directions * hidden]` and the last states."""
    kind = name.split("_")[0]
    gates = [[_gates(b, tensor, kind) for tensor in parameters] for parameters in directions]
    biases = [shape.concat(b, list(parameters[2:]), 0) for parameters in gates if len(parameters) > 2]
    operation = b.emit(
        "recurrent",
        [
            x,
            _stacked(b, [parameters[0] for parameters in gates]),
            _stacked(b, [parameters[1] for parameters in gates]),
            _stacked(b, biases) if biases else None,
            None,
            starts[0],
            starts[1] if kind == "lstm" else None,
            None,
        ],
        kind=kind,
        direction="bidirectional" if len(directions) == 2 else "forward",
        activations=_ACTIVATIONS[name] * len(directions),
        linear_before_reset=kind == "gru",
    )
    y, *ends = (Tensor(result) for result in operation.results)
    y = shape.transpose(b, y, [0, 2, 1, 3])
    dims = b.dims(y)
    return shape.reshape(b, y, [*dims[:2], b.arith("muli", dims[2], dims[3])]), ends[: len(starts)]
