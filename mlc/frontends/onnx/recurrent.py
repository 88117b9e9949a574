"""RNN, GRU and LSTM."""

from __future__ import annotations

from mlc.frontends.common import shape
from mlc.frontends.common.builder import Tensor
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError

# Activations of one direction, the default of each operator.
_ACTIVATIONS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
_SUPPORTED = {"sigmoid", "tanh", "relu"}


@onnx_op("RNN", "GRU", "LSTM")
def recurrent(g: GraphImporter, node: Node) -> list[Tensor]:
    """One layer in one or both directions; `layout` 1 has the batch first."""
    b = g.b
    batch_first = bool(node.attr("layout", 0))
    direction = node.attr("direction", "forward")
    count = 2 if direction == "bidirectional" else 1
    names = node.attr("activations") or _ACTIVATIONS[node.op] * count
    if node.attr("activation_alpha") or node.attr("activation_beta") or node.attr("input_forget", 0):
        raise NodeError("activation_alpha, activation_beta and input_forget are not supported")
    unknown = sorted({name for name in names if name.lower() not in _SUPPORTED})
    if unknown:
        raise NodeError(f"the activations {', '.join(unknown)} are not supported", "use Sigmoid, Tanh or Relu")
    x = shape.transpose(b, node[0], [1, 0, 2]) if batch_first else node[0]
    states = [node.optional(5), node.optional(6) if node.op == "LSTM" else None]
    if batch_first:
        states = [None if state is None else shape.transpose(b, state, [1, 0, 2]) for state in states]
    peepholes = node.optional(7) if node.op == "LSTM" else None
    clip = node.attr("clip")
    operation = b.emit(
        "recurrent",
        [x, node[1], node[2], node.optional(3), node.optional(4), *states, peepholes],
        kind=node.op.lower(),
        direction=direction,
        activations=[name.lower() for name in names],
        linear_before_reset=bool(node.attr("linear_before_reset", 0)),
        clip=None if clip is None else float(clip),
    )
    results = [Tensor(result) for result in operation.results]
    if batch_first:
        orders = ([2, 0, 1, 3], [1, 0, 2], [1, 0, 2])
        results = [shape.transpose(b, result, order) for result, order in zip(results, orders, strict=True)]
    return results if node.op == "LSTM" else results[:2]
