#!/usr/bin/env python3
"""Writes out/tiny.onnx, the two-layer classifier that docs/tour.md follows through the compiler.

    python examples/make_tiny.py [FILE]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DEFAULT = Path(__file__).resolve().parent.parent / "out" / "tiny.onnx"
FEATURES, HIDDEN, CLASSES = 64, 128, 10


def tiny_model() -> onnx.ModelProto:
    """`probabilities = softmax(relu(x @ w0 + b0) @ w1)` over a dynamic batch; seeded weights."""
    generator = np.random.default_rng(0)

    def weight(name: str, *shape: int) -> TensorProto:
        values = generator.standard_normal(shape) / np.sqrt(shape[0])
        return numpy_helper.from_array(values.astype(np.float32), name)

    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["product0"], name="hidden/MatMul"),
        helper.make_node("Add", ["product0", "b0"], ["sum0"], name="hidden/Add"),
        helper.make_node("Relu", ["sum0"], ["hidden"], name="hidden/Relu"),
        helper.make_node("MatMul", ["hidden", "w1"], ["scores"], name="scores/MatMul"),
        helper.make_node("Softmax", ["scores"], ["probabilities"], name="scores/Softmax", axis=-1),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", FEATURES])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", CLASSES])],
        [weight("w0", FEATURES, HIDDEN), weight("b0", HIDDEN), weight("w1", HIDDEN, CLASSES)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def main() -> int:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    path.parent.mkdir(parents=True, exist_ok=True)
    model = tiny_model()
    onnx.checker.check_model(model)
    onnx.save(model, path)
    print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
