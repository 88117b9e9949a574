"""ONNX graphs of operators that are drawn by a seed: what fuses with what is not chosen by who wrote the compiler.

Source of the idea: Liu et al., "NNSmith: Generating Diverse and Valid Test Cases for Deep Learning Compilers", 2023.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import helper

from models.drawn_graphs import control, floats, integers, movements, others, quantized, sizes, with_itself
from models.drawn_graphs.graph import BOOL, F16, F32, I32, I64, MOST, U8, Graph, Steps

FAMILIES: dict[str, Steps] = {
    "floats": floats.step,
    "movements": movements.step,
    "integers": integers.step,
    "with_itself": with_itself.step,
    "quantized": quantized.step,
    "control": control.step,
    "sizes": sizes.step,
    "others": others.step,
}
FLOATS = ("floats", "movements")


def _named(g: Graph, inputs: Sequence[onnx.ValueInfoProto]) -> None:
    """About half of the extents of inputs get names."""
    for value in inputs:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if g.often(0.6):
                dim.dim_param = f"{value.name}_{axis}"


def drawn_graph(
    seed: int, dynamic: bool, families: Sequence[str] = FLOATS
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model of 4 to 26 nodes, or a few more, of some families of steps, and inputs for it; if `dynamic` about half of
    the inputs' extents have names.
    """
    g = Graph(np.random.default_rng(seed))
    for number in range(g.one_of([1, 2, 3])):
        others = [I64, I32, BOOL, U8, F16, F32] if number and "integers" in families else [F32]
        g.add_input(g.one_of(others))
    g.grow([s for family in families for s in FAMILIES[family]], 4 + seed % 23)
    read = {name for node in g.nodes for name in node.input}
    results = [v for v in g.values if v not in g.inputs and (v.name not in read or g.often(0.08))][:8]
    inputs = [helper.make_tensor_value_info(x.name, x.dtype, x.shape) for x in g.inputs]
    outputs = [helper.make_tensor_value_info(v.name, v.dtype, None) for v in results]
    if dynamic:
        _named(g, inputs)
    graph = helper.make_graph(g.nodes, f"drawn_{seed}", inputs, outputs, g.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return model, {x.name: g.data(x.dtype, x.shape) for x in g.inputs}


def other_inputs(
    model: onnx.ModelProto, feeds: Mapping[str, np.ndarray], seed: int, most: int = MOST
) -> dict[str, np.ndarray]:
    """Inputs for a model of `drawn_graph` of which some extents that have names are others."""
    g = Graph(np.random.default_rng(seed))
    others: dict[str, np.ndarray] = {}
    for value in model.graph.input:
        shape = list(feeds[value.name].shape)
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_param and g.often(0.4):
                shape[axis] = g.one_of([1, 2, 3, 5, 8, 9, 16, 31])
        if math.prod(shape) > most:
            shape = list(feeds[value.name].shape)
        others[value.name] = g.data(value.type.tensor_type.elem_type, shape)
    return others
