"""Normalizations of groups between convolutions, as exporters write them for ONNX: right, and no tensor of an image's
size beside the convolutions' own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from mlc.compilation import Compilation
from mlc.options import make_options
from mlc.runtime.loader import load

CHANNELS = 24


def _network(groups: int, shape: Sequence[int | str]) -> onnx.ModelProto:
    """Convolution, normalization of groups with scale and bias, SiLU, convolution."""
    rng = np.random.default_rng(groups)
    draw = lambda *size: rng.standard_normal(size).astype(np.float32)  # noqa: E731
    weights = {"w": draw(CHANNELS, 3, 3, 3), "v": draw(5, CHANNELS, 3, 3) * 0.1, "scale": draw(CHANNELS, 1, 1)}
    weights |= {"bias": draw(CHANNELS, 1, 1), "each": 1 + draw(groups) * 0.1, "more": draw(groups)}
    weights |= {"split": np.array([0, groups, -1])}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Reshape", ["c", "split"], ["r"]),
        helper.make_node("InstanceNormalization", ["r", "each", "more"], ["n"], epsilon=1e-5),
        helper.make_node("Shape", ["c"], ["own"]),
        helper.make_node("Reshape", ["n", "own"], ["b"]),
        helper.make_node("Mul", ["b", "scale"], ["m"]),
        helper.make_node("Add", ["m", "bias"], ["a"]),
        helper.make_node("Sigmoid", ["a"], ["s"]),
        helper.make_node("Mul", ["a", "s"], ["silu"]),
        helper.make_node("Conv", ["silu", "v"], ["y"], pads=[1, 1, 1, 1]),
    ]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    initializers = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "groups", [x], [y], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


@pytest.mark.parametrize("shape", [(2, 3, 9, 14), ("n", 3, "h", "w")])
@pytest.mark.parametrize("groups", [1, 4, 12, 24])
def test_results_are_those_of_onnxruntime(tmp_path: Path, groups: int, shape: tuple[int | str, ...]) -> None:
    model = _network(groups, shape)
    x = np.random.default_rng(0).standard_normal((2, 3, 9, 14), np.float32) * 3 + 5
    Compilation(make_options()).run(model, tmp_path / "m.so")
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    result = load(tmp_path / "m.so").context().run([x])["y"]
    np.testing.assert_allclose(result, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize(("target", "precision"), [("cpu", "fp32"), ("cuda", "bf16")])
def test_nothing_is_moved_to_become_rows(tmp_path: Path, target: str, precision: str) -> None:
    """Behind two sums over pixels and what is small, one kernel writes what the second convolution reads."""
    shape = (16, 3, 80, 80)
    options = make_options(target=target, precision=precision, emit="schedule", report=str(tmp_path / "report.json"))
    Compilation(options).run(_network(12, shape), tmp_path / "m.mlir")
    kernels = json.loads((tmp_path / "report.json").read_text())["kernels"]
    normal = [kernel for kernel in kernels if kernel["nodes"][0].startswith("InstanceNormalization")]
    large = [kernel["name"] for kernel in normal if _elements(kernel["shapes"][-1]) >= CHANNELS * np.prod(shape) // 3]
    assert len(normal) == 4 and large == [normal[-1]["name"]]


def _elements(text: str) -> int:
    """Of a tensor that a report has as `f32[2,3]`."""
    return int(np.prod([int(extent) for extent in text.split("[")[1].rstrip("]").split(",")]))
