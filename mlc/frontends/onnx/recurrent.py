"""RNN, GRU and LSTM."""

from __future__ import annotations

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import shape
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError

# Activations of one direction, the default of each operator.
_ACTIVATIONS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
# What each activation's alpha and beta are where the node does not say.
_PARAMETERS: dict[str, list[float]] = {
    "sigmoid": [],
    "tanh": [],
    "relu": [],
    "softsign": [],
    "softplus": [],
    "affine": [1.0, 0.0],
    "leakyrelu": [0.01],
    "thresholdedrelu": [1.0],
    "scaledtanh": [1.0, 1.0],
    "hardsigmoid": [0.2, 0.5],
    "elu": [1.0],
}


def _activations(node: Node, count: int) -> list[str]:
    """The names of the activations, with their parameters behind colons. Values of `activation_alpha` and
    `activation_beta` are used up in order by those that have such a parameter."""
    alphas, betas = (list(node.attr(f"activation_{name}") or []) for name in ("alpha", "beta"))
    result = []
    for given in node.attr("activations") or _ACTIVATIONS[node.op] * count:
        name = given.lower()
        if name not in _PARAMETERS:
            raise NodeError(f"the activation {given} is not supported", f"use one of {', '.join(_PARAMETERS)}")
        values = list(_PARAMETERS[name])
        for place, queue in enumerate((alphas, betas)):
            if place < len(values) and queue:
                values[place] = float(queue.pop(0))
        result.append(":".join([name, *(repr(value) for value in values)]))
    return result


def _coupled(b: Builder, parameters: list[Tensor | None]) -> list[Tensor | None]:
    """Parameters of an LSTM whose forget gate is 1 minus its input gate: sigmoid(-z) is 1 - sigmoid(z), so the forget
    gate's are the input gate's with the other sign. (Weights, recurrence, bias of two parts, peepholes.)"""
    result: list[Tensor | None] = []
    for tensor, places in zip(parameters, ([(4, 2, 0)], [(4, 2, 0)], [(8, 2, 0), (8, 6, 4)], [(3, 2, 0)]), strict=True):
        if tensor is not None:
            width = b.dim(tensor, 1)
            for parts, to, source in places:
                size = b.arith("divsi", width, parts)
                pieces = shape.split(b, tensor, 1, [size] * parts)
                pieces[to] = ew.unary(b, "neg", pieces[source])
                tensor = shape.concat(b, pieces, 1)
        result.append(tensor)
    return result


@onnx_op("RNN", "GRU", "LSTM")
def recurrent(g: GraphImporter, node: Node) -> list[Tensor]:
    """One layer in one or both directions; `layout` 1 has the batch first."""
    b = g.b
    batch_first = bool(node.attr("layout", 0))
    direction = node.attr("direction", "forward")
    names = _activations(node, 2 if direction == "bidirectional" else 1)
    x = shape.transpose(b, node[0], [1, 0, 2]) if batch_first else node[0]
    states = [node.optional(5), node.optional(6) if node.op == "LSTM" else None]
    if batch_first:
        states = [None if state is None else shape.transpose(b, state, [1, 0, 2]) for state in states]
    peepholes = node.optional(7) if node.op == "LSTM" else None
    parameters: list[Tensor | None] = [node[1], node[2], node.optional(3), peepholes]
    if node.op == "LSTM" and node.attr("input_forget", 0):
        if any(name != "sigmoid" for name in names[::3]):
            raise NodeError("input_forget is supported with the activation Sigmoid only")
        parameters = _coupled(b, parameters)
    clip = node.attr("clip")
    operation = b.emit(
        "recurrent",
        [x, *parameters[:3], node.optional(4), *states, parameters[3]],
        kind=node.op.lower(),
        direction=direction,
        activations=names,
        linear_before_reset=bool(node.attr("linear_before_reset", 0)),
        clip=None if clip is None else float(clip),
    )
    results = [Tensor(result) for result in operation.results]
    if batch_first:
        orders = ([2, 0, 1, 3], [1, 0, 2], [1, 0, 2])
        results = [shape.transpose(b, result, order) for result, order in zip(results, orders, strict=True)]
    return results if node.op == "LSTM" else results[:2]
