"""A small model with a named dimension, weights and two kinds of kernels, and what it computes."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def perceptron() -> onnx.ModelProto:
    """softmax(relu(x w + b) v): `x` is [batch, 24]."""
    rng = np.random.default_rng(7)
    weights = {
        "w": rng.standard_normal((24, 32)).astype(np.float32),
        "b": rng.standard_normal(32).astype(np.float32),
        "v": rng.standard_normal((32, 5)).astype(np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"], name="first"),
        helper.make_node("Add", ["xw", "b"], ["biased"], name="bias"),
        helper.make_node("Relu", ["biased"], ["hidden"], name="activation"),
        helper.make_node("MatMul", ["hidden", "v"], ["scores"], name="second"),
        helper.make_node("Softmax", ["scores"], ["y"], name="probabilities", axis=-1),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "perceptron",
        [value("x", TensorProto.FLOAT, ["batch", 24])],
        [value("y", TensorProto.FLOAT, ["batch", 5])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def expected(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    """What `perceptron` computes, in NumPy."""
    weights = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    scores = np.maximum(x @ weights["w"] + weights["b"], 0) @ weights["v"]
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
