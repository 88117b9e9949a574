"""Quantized graphs with reshapes between their operators: few kernels, and the integers that onnxruntime computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlc
from mlc.passes.simplify.cancel_quantization import _ORDINARY

ROWS, WIDTH, HIDDEN = 24, 64, 96


@pytest.mark.parametrize(("dtype", "step"), [(np.uint8, 1), (np.int16, 7)])
def test_codes_survive(dtype: type, step: int) -> None:
    """`(q - z) * s / s`, in f32, rounds to `q - z`: all codes, scales up to the ends of what the pass takes."""
    limits = np.iinfo(dtype)
    codes = np.arange(limits.min, int(limits.max) + 1, step, dtype=np.int64)
    low, high = np.log10(_ORDINARY)
    for scale in 10 ** np.random.default_rng(0).uniform(low, high, 500).astype(np.float32):
        for zero in (limits.min, 3, limits.max):
            numbers = (codes - int(zero)).astype(np.float32) * scale / scale
            np.testing.assert_array_equal(np.rint(numbers), codes - int(zero))


def _pair(name: str, source: str, scale: str) -> list[onnx.NodeProto]:
    """A quantization of `source` and the dequantization `name`."""
    parameters = [f"s_{scale}", f"z_{scale}"]
    return [
        helper.make_node("QuantizeLinear", [source, *parameters], [f"{name}_q"]),
        helper.make_node("DequantizeLinear", [f"{name}_q", *parameters], [name]),
    ]


def _model(rng: np.random.Generator, dtype: type) -> onnx.ModelProto:
    """Two layers on rows, with a function of three dimensions in between, as quantizers and exporters write them."""
    zero = 128 if dtype is np.uint8 else 0
    nodes = [
        *_pair("x0", "x", "x"),
        helper.make_node("Reshape", ["x0", "rows"], ["x1"]),
        *_pair("x2", "x1", "x"),
        helper.make_node("DequantizeLinear", ["w1", "s_w"], ["w1_f"]),
        helper.make_node("MatMul", ["x2", "w1_f"], ["h0"]),
        *_pair("h1", "h0", "h"),
        helper.make_node("Reshape", ["h1", "deep"], ["h2"]),
        *_pair("h3", "h2", "h"),
        helper.make_node("Gelu", ["h3"], ["g0"]),
        *_pair("g1", "g0", "g"),
        helper.make_node("Reshape", ["g1", "wide"], ["g2"]),
        *_pair("g3", "g2", "g"),
        helper.make_node("DequantizeLinear", ["w2", "s_w"], ["w2_f"]),
        helper.make_node("MatMul", ["g3", "w2_f"], ["y0"]),
        *_pair("y1", "y0", "y"),
        helper.make_node("Transpose", ["y1"], ["y2"], perm=[1, 0]),
        helper.make_node("QuantizeLinear", ["y2", "s_y", "z_y"], ["q"]),
    ]
    values = {
        "w1": rng.integers(-127, 128, (WIDTH, HIDDEN)).astype(np.int8),
        "w2": rng.integers(-127, 128, (HIDDEN, WIDTH)).astype(np.int8),
        "rows": np.array([-1, WIDTH]),
        "deep": np.array([2, -1, HIDDEN]),
        "wide": np.array([-1, HIDDEN]),
        **{f"s_{name}": np.float32(s) for name, s in {"x": 0.02, "w": 0.004, "h": 0.05, "g": 0.04, "y": 0.2}.items()},
        **{f"z_{name}": dtype(zero) for name in "xhgy"},
    }
    graph = helper.make_graph(
        nodes,
        "block",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, "n", WIDTH])],
        [helper.make_tensor_value_info("q", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in values.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.parametrize("cpu", ["native", "x86-64-v3"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_block(tmp_path: Path, dtype: type, cpu: str) -> None:
    rng = np.random.default_rng(0)
    proto = _model(rng, dtype)
    model = mlc.compile(proto, output=tmp_path / "model.so", cpu=cpu)
    kernels = model.metadata["kernels"]
    assert len(kernels) <= 4, [k["nodes"] for k in kernels]  # codes of x; each product and what follows; the transpose
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for n in (ROWS // 2, 1):
        x = rng.standard_normal((2, n, WIDTH)).astype(np.float32)
        [want] = session.run(None, {"x": x})
        [got] = model(x)
        distance = np.abs(got.astype(int) - want.astype(int))
        assert distance.max() <= 1 and np.mean(distance > 0) < 0.01
