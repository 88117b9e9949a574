"""Positions of extremes, the best k, running sums: vectors along lines and across them, ties, NaN and infinities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import mlc

INT64 = onnx.TensorProto.INT64


def _run(
    tmp_path: Path, op: str, x: np.ndarray, results: Sequence[int], constants: Sequence[np.ndarray], **attributes: Any
) -> tuple[list[np.ndarray], mlc.Model]:
    names = [f"y{i}" for i in range(len(results))]
    given = [numpy_helper.from_array(array, f"c{i}") for i, array in enumerate(constants)]
    node = helper.make_node(op, ["x", *(tensor.name for tensor in given)], names, **attributes)
    type_ = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph(
        [node],
        "lines",
        [helper.make_tensor_value_info("x", type_, list(x.shape))],
        [helper.make_tensor_value_info(name, t, None) for name, t in zip(names, results, strict=True)],
        given,
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(proto, tmp_path / "model.onnx")
    model = mlc.compile(tmp_path / "model.onnx", output=tmp_path / "model.so")
    return model(x), model


def _lines(dtype: str, length: int) -> np.ndarray:
    """Lines with many ties, of which some are all alike, or have what is larger or smaller than any number."""
    x = np.random.default_rng(length).integers(0, 7, (6, length)).astype(dtype)
    if x.dtype.kind == "f":
        x[1], x[3], x[4] = -np.inf, np.nan, np.inf
        x[2, length // 2 : length // 2 + 2] = np.nan
    elif x.dtype.kind == "u":
        x[1] -= 3  # the largest numbers of all
    return x


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype, length", [("f4", 5), ("f4", 33), ("f4", 100), ("i4", 100), ("f8", 33), ("u1", 40)])
def test_position_of_an_extreme(tmp_path: Path, dtype: str, length: int, op: str, last: int) -> None:
    """NumPy's rule: a NaN is the extreme."""
    x = _lines(dtype, length)
    (found,), _ = _run(tmp_path, op, x, [INT64], [], axis=1, keepdims=0, select_last_index=last)
    expected = getattr(np, op.lower())(x[:, ::-1] if last else x, 1)
    np.testing.assert_array_equal(found, length - 1 - expected if last else expected)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype, length", [("f4", 5), ("f4", 33), ("i4", 20), ("f8", 33), ("u1", 40)])
def test_position_of_an_extreme_in_columns(tmp_path: Path, dtype: str, length: int, op: str, last: int) -> None:
    """Several registers of columns at a time, and what is left of them."""
    x = np.concatenate([np.roll(_lines(dtype, length), shift, 1) for shift in range(14)]).T.copy()
    (found,), _ = _run(tmp_path, op, x, [INT64], [], axis=0, keepdims=0, select_last_index=last)
    expected = getattr(np, op.lower())(x[::-1] if last else x, 0)
    np.testing.assert_array_equal(found, length - 1 - expected if last else expected)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize(
    "dtype, length, k",
    [("f4", 5, 3), ("f4", 100, 1), ("f4", 100, 30), ("i4", 70, 5)]
    + [("f2", 40, 5), ("f8", 50, 7), ("i8", 40, 5), ("u1", 70, 9), ("u4", 70, 9)],
)
def test_best_k(tmp_path: Path, dtype: str, length: int, k: int, largest: int) -> None:
    """In order, of equal values the first; a NaN is the largest."""
    x = _lines(dtype, length)
    if x.dtype.kind == "f":
        x[0] = np.where(np.arange(length) % 2, -0.0, 0.0)  # equal
        x[5] = -x[5]
    types = [helper.np_dtype_to_tensor_dtype(x.dtype), INT64]
    (values, found), _ = _run(tmp_path, "TopK", x, types, [np.array([k])], axis=1, largest=largest)
    number, sign = np.nan_to_num(x.astype("f8"), nan=0.0, posinf=1e9, neginf=-1e9), -1 if largest else 1
    nan = np.isnan(x.astype("f8"))
    order = [sorted(range(length), key=lambda j: (sign * nan[i, j], sign * number[i, j], j))[:k] for i in range(6)]
    np.testing.assert_array_equal(found, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, np.array(order), 1))


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("shape, axis", [((37, 53), 0), ((5, 70), 1), ((3, 29, 20), 1), ((9, 200), 0), ((4, 6), 0), ((7, 1100), 0)])
def test_running_sum(tmp_path: Path, shape: tuple[int, ...], axis: int, reverse: int, exclusive: int) -> None:
    x = np.random.default_rng(1).integers(-50, 50, shape).astype(np.float32)  # whole numbers: sums are exact
    (found,), _ = _run(tmp_path, "CumSum", x, [1], [np.array(axis)], reverse=reverse, exclusive=exclusive)
    line = np.flip(x, axis) if reverse else x
    total = np.cumsum(line, axis) - (line if exclusive else 0)
    np.testing.assert_array_equal(found, np.flip(total, axis) if reverse else total)


def test_long_rows_are_not_cut(tmp_path: Path) -> None:
    """What is computed once per row would be computed again by every part of it."""
    x = np.random.default_rng(1).standard_normal((3, 9000)).astype(np.float32)
    (found,), model = _run(tmp_path, "Softmax", x, [1], [], axis=1)
    e = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=2e-6)
