"""Convolutions in groups narrower than a vector: vectors across groups, masked last vectors, windows at the edge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from models.processors import skip_unless_it_runs
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import mlc

CPUS = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]


def _model(
    batch: int | str, groups: int, channels: int, filters: int, extent: int, kernel: int, stride: int, dilation: int
) -> onnx.ModelProto:
    """relu(conv(x, w) + b + r) between two transpositions that a compiler drops: channels are last inside."""
    rng = np.random.default_rng(0)
    c, f, low = groups * channels, groups * filters, dilation * (kernel // 2)
    weight, bias = rng.standard_normal((f, channels, kernel, kernel), np.float32), rng.standard_normal(f, np.float32)
    out = (extent + 2 * low - dilation * (kernel - 1) - 1) // stride + 1
    nodes = [
        helper.make_node("Transpose", ["x"], ["i"], perm=[0, 3, 1, 2]),
        helper.make_node(
            "Conv", ["i", "w", "b"], ["o"], group=groups, pads=[low] * 4, strides=[stride] * 2, dilations=[dilation] * 2
        ),
        helper.make_node("Transpose", ["o"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("Add", ["t", "r"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    shapes = {"x": [batch, extent, extent, c], "r": [batch, out, out, f], "y": [batch, out, out, f]}
    ends = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()}
    inits = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")]
    graph = helper.make_graph(nodes, "groups", [ends["x"], ends["r"]], [ends["y"]], inits)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize(
    "batch, groups, channels, filters, extent, kernel, stride, dilation",
    [
        (1, 32, 4, 4, 9, 3, 1, 1),
        (2, 5, 4, 4, 8, 3, 2, 1),  # the last vector has four lanes
        (1, 24, 1, 2, 15, 7, 2, 1),  # a depthwise convolution with two filters a channel
        (1, 11, 2, 2, 7, 1, 1, 1),
        (1, 9, 3, 4, 12, 3, 1, 2),  # fewer channels than filters: lanes read every third one
        (1, 7, 2, 4, 6, 5, 1, 1),
        ("images", 8, 4, 4, 5, 3, 1, 1),
    ],
)
def test_groups(
    tmp_path: Path,
    cpu: str,
    batch: int | str,
    groups: int,
    channels: int,
    filters: int,
    extent: int,
    kernel: int,
    stride: int,
    dilation: int,
) -> None:
    """As the reference says."""
    skip_unless_it_runs(cpu)
    proto = _model(batch, groups, channels, filters, extent, kernel, stride, dilation)
    model = mlc.compile(proto, output=tmp_path / "groups.so", cpu=cpu, cache=False)
    rng, images = np.random.default_rng(1), 3 if isinstance(batch, str) else batch
    shapes = [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in proto.graph.input]
    x, r = (rng.standard_normal((images, *shape[1:]), np.float32) for shape in shapes)
    [want] = ReferenceEvaluator(proto).run(None, {"x": x, "r": r})
    np.testing.assert_allclose(model(x, r)[0], want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("cpu, spanned", [("x86-64-v2", 0), ("x86-64-v3", 1), ("x86-64-v4", 1)])
def test_vectors_go_across_four_filters_where_there_are_eight_lanes(tmp_path: Path, cpu: str, spanned: int) -> None:
    mlc.compile(_model(1, 32, 4, 4, 9, 3, 1, 1), output=tmp_path / "layout.mlir", emit="layout", cpu=cpu)
    assert (tmp_path / "layout.mlir").read_text().count("mlc.joined") == spanned
