"""Attention as PyTorch's exporter to ONNX writes it with a mask: NaN of rows without a key become zeros."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import mlc

HEADS, WIDTH = 4, 16


def _model(tokens: int | str) -> onnx.ModelProto:
    """`softmax(q k + mask) v` of `[1, HEADS, tokens, WIDTH]`; the mask is `[1, 1, tokens, tokens]`."""
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("Mul", ["q", "scale"], ["qs"]),
        helper.make_node("Mul", ["kt", "scale"], ["ks"]),
        helper.make_node("Where", ["mask", "zero", "low"], ["bias"]),
        helper.make_node("MatMul", ["qs", "ks"], ["scores"]),
        helper.make_node("Add", ["scores", "bias"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["p"], axis=-1),
        helper.make_node("IsNaN", ["p"], ["n"]),
        helper.make_node("Where", ["n", "zero", "p"], ["w"]),
        helper.make_node("MatMul", ["w", "v"], ["y"]),
    ]
    numbers = {"scale": WIDTH**-0.25, "zero": 0.0, "low": -np.inf}
    shape = [1, HEADS, tokens, WIDTH]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "qkv"]
    inputs.append(helper.make_tensor_value_info("mask", TensorProto.BOOL, [1, 1, tokens, tokens]))
    graph = helper.make_graph(
        nodes,
        "attention",
        inputs,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.array(value, np.float32), name) for name, value in numbers.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_rows_without_a_key_are_zeros(tmp_path: Path, dynamic: bool) -> None:
    proto, report = _model("tokens" if dynamic else 40), tmp_path / "report.json"
    model = mlc.compile(proto, output=tmp_path / "m.so", report=report)
    templates = [kernel["template"] for kernel in json.loads(report.read_text())["kernels"]]
    assert templates == ["attention"]
    rng = np.random.default_rng(0)
    for tokens in (1, 17, 40, 130) if dynamic else (40,):
        q, k, v = rng.standard_normal((3, 1, HEADS, tokens, WIDTH)).astype(np.float32)
        mask = rng.random((1, 1, tokens, tokens)) < 0.5
        mask[..., ::3, :] = False
        with np.errstate(invalid="ignore"):
            [want] = ReferenceEvaluator(proto).run(None, {"q": q, "k": k, "v": v, "mask": mask})
        [got] = model(q, k, v, mask)
        assert not np.any(want[..., ::3, :]) and not np.any(got[..., ::3, :])
        np.testing.assert_allclose(got, want, rtol=0, atol=3e-6 * max(np.abs(want).max(), 1))
