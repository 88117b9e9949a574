"""Long reductions with few results on CPUs: what they come to, and that threads share them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlc

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


def _compiled(
    folder: Path, node: onnx.NodeProto, shape: list[int], result: list[int], to: int = F32, axes: Sequence[int] = ()
) -> mlc.Model:
    """A model of `node`, which computes y of x; `axes` are an input that it may read."""
    value = helper.make_tensor_value_info
    constants = [numpy_helper.from_array(np.array(axes, np.int64), "axes")]
    graph = helper.make_graph([node], "g", [value("x", F32, shape)], [value("y", to, result)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return mlc.compile(model, output=folder / "m.so")


def _items(model: mlc.Model, x: np.ndarray) -> list[int]:
    """Of each kernel, how many work items a run has."""
    context = model.context(profile=True)
    context.run([x])
    return [kernel["items"] for kernel in context.profile()["kernels"]]


@pytest.mark.parametrize(
    "op, shape, axes",
    [
        ("ReduceSum", [3001, 101], [0]),  # parts that are not equal, lines that end anywhere
        ("ReduceMax", [600, 600], [0, 1]),
        ("ReduceMean", [2, 1 << 18], [1]),
        ("ReduceL2", [5, 70001], [1]),
        ("ReduceMin", [1, 257, 1031, 2], [1, 2]),
        ("ReduceProd", [1000, 4, 100], [0, 1]),
        ("ReduceLogSumExp", [1024, 300], [0, 1]),
        ("ReduceSumSquare", [4, 1024, 80], [1]),
    ],
)
def test_results_and_work_items(tmp_path: Path, op: str, shape: list[int], axes: list[int]) -> None:
    result = [extent for i, extent in enumerate(shape) if i not in axes]
    node = helper.make_node(op, ["x", "axes"], ["y"], keepdims=0)
    model = _compiled(tmp_path, node, shape, result, axes=axes)
    x = np.random.default_rng(0).uniform(0.9, 1.1, shape).astype(np.float32)
    wide, along = x.astype(np.float64), tuple(axes)
    expected = {
        "ReduceSum": lambda: wide.sum(along),
        "ReduceMax": lambda: wide.max(along),
        "ReduceMin": lambda: wide.min(along),
        "ReduceMean": lambda: wide.mean(along),
        "ReduceProd": lambda: wide.prod(along),
        "ReduceL2": lambda: np.sqrt((wide**2).sum(along)),
        "ReduceLogSumExp": lambda: np.log(np.exp(wide).sum(along)),
        "ReduceSumSquare": lambda: (wide**2).sum(along),
    }[op]()
    np.testing.assert_allclose(model(x)[0], expected, rtol=1e-3 if op == "ReduceProd" else 2e-6)
    one, two = (mlc.load(tmp_path / "m.so", threads=threads)(x)[0] for threads in (1, 2))
    np.testing.assert_array_equal(one, two)
    assert max(_items(model, x)) >= 8


@pytest.mark.parametrize("last", [False, True])
def test_positions_in_parts_are_those_of_the_whole(tmp_path: Path, last: bool) -> None:
    node = helper.make_node("ArgMax", ["x"], ["y"], axis=0, keepdims=0, select_last_index=int(last))
    model = _compiled(tmp_path, node, [400003, 2], [2], to=I64)
    x = np.random.default_rng(1).integers(0, 50, (400003, 2)).astype(np.float32)
    expected = len(x) - 1 - x[::-1].argmax(0) if last else x.argmax(0)
    np.testing.assert_array_equal(model(x)[0], expected)
    assert max(_items(model, x)) > 8
    x[123456, 1] = np.nan
    assert model(x)[0][1] == 123456


def test_a_normalisation_stays_one_kernel(tmp_path: Path) -> None:
    model = _compiled(tmp_path, helper.make_node("Softmax", ["x"], ["y"], axis=1), [1, 300000], [1, 300000])
    x = np.random.default_rng(2).standard_normal((1, 300000)).astype(np.float32)
    powers = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(model(x)[0], powers / powers.sum(), rtol=1e-5)
    assert len(_items(model, x)) == 1
