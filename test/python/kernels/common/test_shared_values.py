"""Values with several readers: 2^40 ways lead from a result to the input, which nobody may walk one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlc

STEPS = 40


def _steps(nodes: list[onnx.NodeProto], x: str, name: str) -> str:
    """Steps that each read the one before in two ways: `x 0.875^40`."""
    for step in range(STEPS):
        scaled, after = f"{name}_s{step}", f"{name}{step}"
        nodes.append(helper.make_node("Mul", [x, "c"], [scaled]))
        nodes.append(helper.make_node("Sub", [x, scaled], [after]))
        x = after
    return x


def _around(op: str, *more: str, **attributes: int) -> Callable[[list[onnx.NodeProto]], str]:
    """Steps in front of an operator and behind it."""

    def build(nodes: list[onnx.NodeProto]) -> str:
        nodes.append(helper.make_node(op, [_steps(nodes, "x", "a"), *more], ["middle"], **attributes))
        return _steps(nodes, "middle", "b")

    return build


def _of_rows(nodes: list[onnx.NodeProto]) -> str:
    nodes.append(helper.make_node("MatMul", [_around("Softmax")(nodes), "w"], ["product"]))
    return "product"


CASES: dict[str, tuple[Callable[[list[onnx.NodeProto]], str], Callable[[np.ndarray], np.ndarray]]] = {
    "elements": (lambda nodes: _steps(nodes, "x", "a"), lambda x: x),
    "softmax": (_around("Softmax"), lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
    "softmax, product": (_of_rows, lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True) @ np.full((24, 24), 0.5)),
    "product": (_around("MatMul", "w"), lambda x: x @ np.full((24, 24), 0.5)),
    "transposition": (_around("Transpose"), lambda x: x.T),
}
FACTOR = 0.875**STEPS


@pytest.mark.parametrize("case", CASES)
def test_compiles(tmp_path: Path, case: str) -> None:
    build, expected = CASES[case]
    nodes: list[onnx.NodeProto] = []
    nodes.append(helper.make_node("Identity", [build(nodes)], ["y"]))
    graph = helper.make_graph(
        nodes,
        "steps",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [24, 24])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.full(1, 0.125, np.float32), "c"),
         numpy_helper.from_array(np.full((24, 24), 0.5, np.float32), "w")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    x = np.random.default_rng(0).standard_normal((24, 24)).astype(np.float32) * 8
    want = expected(x * FACTOR) * (1 if case == "elements" else FACTOR)
    np.testing.assert_allclose(mlc.compile(model, output=tmp_path / "m.so")(x)[0], want, rtol=2e-5, atol=1e-7)
