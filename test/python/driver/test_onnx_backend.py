"""The ONNX backend interface."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from models.perceptron import expected
from onnx import TensorProto, helper

import mlc.onnx_backend as backend


def _input(batch: int) -> np.ndarray:
    return np.random.default_rng(batch).standard_normal((batch, 24)).astype(np.float32)


def test_prepare_once_run_often(model: onnx.ModelProto) -> None:
    prepared = backend.prepare(model, "CPU", cpu="x86-64-v3")
    assert prepared.model.metadata["target"]["cpu"] == "x86-64-v3"
    for batch in (2, 5):
        x = _input(batch)
        for inputs in ([x], {"x": x}, x):
            (y,) = prepared.run(inputs)
            np.testing.assert_allclose(y, expected(model, x), rtol=1e-5, atol=1e-6)


def test_run_model(model: onnx.ModelProto) -> None:
    x = _input(3)
    np.testing.assert_allclose(backend.run_model(model, [x])[0], expected(model, x), rtol=1e-5, atol=1e-6)


def test_run_node() -> None:
    a, b = np.arange(6, dtype=np.int32).reshape(2, 3), np.array([[10], [20]], np.int32)
    node = helper.make_node("Add", ["a", "b"], ["c"])
    np.testing.assert_array_equal(backend.run_node(node, [a, b])[0], a + b)
    (c,) = backend.run_node(node, [a, b], outputs_info=[(np.int32, (2, 3))], opset_version=14)
    np.testing.assert_array_equal(c, a + b)


def test_devices(model: onnx.ModelProto) -> None:
    assert backend.supports_device("CPU") and not backend.supports_device("CUDA")
    with pytest.raises(ValueError, match="runs on the CPU, not on 'CUDA:0'"):
        backend.prepare(model, "CUDA:0")


def test_is_compatible(model: onnx.ModelProto) -> None:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("NoSuchThing", ["x"], ["x2"])], "g", [value], [])
    graph.output.append(helper.make_tensor_value_info("x2", TensorProto.FLOAT, [1]))
    unknown = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    assert backend.is_compatible(model) and not backend.is_compatible(unknown)
    assert not backend.is_compatible(model, "CUDA")
