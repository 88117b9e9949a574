"""`reduce`, `arg_reduce`, `scan`, `statistic`, `matmul`, `einsum` against NumPy and ONNX."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx_oracle import check, interp, onnx_run

RNG = np.random.default_rng(2)
X = RNG.standard_normal((3, 4, 5)).astype(np.float32)


@pytest.mark.parametrize(("kind", "function"), [("sum", np.sum), ("prod", np.prod), ("max", np.max), ("min", np.min)])
@pytest.mark.parametrize("axes", [[0], [1, 2], [0, 1, 2], []])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reduce(kind: str, function: np.ufunc, axes: list[int], keepdims: bool) -> None:
    want = function(X, axis=tuple(axes), keepdims=keepdims)
    check("mlc.reduce", [X], {"kind": kind, "axes": axes, "keepdims": keepdims}, want)


def test_reduce_empty_extent_gives_the_identity() -> None:
    empty = np.zeros((2, 0), np.float32)
    for kind, want in {"sum": 0, "prod": 1, "max": -np.inf, "min": np.inf}.items():
        check("mlc.reduce", [empty], {"kind": kind, "axes": [1]}, np.full(2, want, np.float32))
    for kind, low in {"max": -128, "min": 127}.items():
        check("mlc.reduce", [np.zeros((2, 0), np.int8)], {"kind": kind, "axes": [1]}, np.full(2, low, np.int8))


def test_reduce_half_accumulates_in_float32() -> None:
    x = np.ones(5000, ml_dtypes.bfloat16)
    check("mlc.reduce", [x], {"kind": "sum", "axes": [0]}, np.array(4992, ml_dtypes.bfloat16))
    x = np.full(3000, 2049, np.float16) / np.float16(64)
    (y,) = interp("mlc.reduce", [x], {"kind": "sum", "axes": [0]}, like=np.zeros((), np.float16))
    assert np.isinf(y)


def test_reduce_logic_and_wrapping() -> None:
    bits = np.array([[True, False], [True, True]])
    check("mlc.reduce", [bits], {"kind": "and", "axes": [0]}, np.array([True, False]))
    check("mlc.reduce", [bits], {"kind": "or", "axes": [1], "keepdims": True}, np.array([[True], [True]]))
    check("mlc.reduce", [np.int8([127, 2])], {"kind": "sum", "axes": [0]}, np.array(-127, np.int8))
    big = np.uint8([200, 1]).view(np.int8)
    check("mlc.reduce", [big], {"kind": "max", "axes": [0], "unsigned": True}, np.array(-56, np.int8))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kind", ["max", "min"])
def test_arg_reduce(kind: str, last: bool) -> None:
    x = np.float32([[1, 3, 3, 0, 0], [2, 2, 2, 2, 2]])
    op = "ArgMax" if kind == "max" else "ArgMin"
    (want,) = onnx_run(op, [x], axis=1, keepdims=0, select_last_index=int(last))
    check("mlc.arg_reduce", [x], {"kind": kind, "axis": 1, "select_last": last}, want)
    check("mlc.arg_reduce", [np.float32([1, np.nan, 5])], {"kind": kind, "axis": 0}, np.array(1))


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan(exclusive: bool, reverse: bool) -> None:
    (want,) = onnx_run("CumSum", [X, np.int64(1)], exclusive=int(exclusive), reverse=int(reverse))
    check("mlc.scan", [X], {"kind": "sum", "axis": 1, "exclusive": exclusive, "reverse": reverse}, want)
    empty = np.zeros((0, 3), np.float32)
    check("mlc.scan", [empty], {"kind": "max", "axis": 0, "exclusive": exclusive, "reverse": reverse}, empty)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [3, 4])
def test_scan_of_parts(exclusive: bool, reverse: bool, count: int) -> None:
    """What the last part hands on, if it is there, is not read."""
    x = RNG.integers(-9, 9, (2, 14))
    (want,) = onnx_run("CumSum", [x, np.int64(1)], exclusive=int(exclusive), reverse=int(reverse))
    parts = np.pad(x, [(0, 0), (2, 0) if reverse else (0, 2)]).reshape(2, 4, 4).sum(axis=2)
    totals = np.flip(np.cumsum(np.flip(parts, 1), 1), 1) if reverse else np.cumsum(parts, 1)
    before = totals[:, 4 - count :] if reverse else totals[:, :count]
    attributes = {"kind": "sum", "axis": 1, "exclusive": exclusive, "reverse": reverse, "part": 4}
    check("mlc.scan", [x, before], attributes, want)


@pytest.mark.parametrize(
    ("kind", "op"),
    [
        ("mean", "ReduceMean"),
        ("l1", "ReduceL1"),
        ("l2", "ReduceL2"),
        ("log_sum", "ReduceLogSum"),
        ("log_sum_exp", "ReduceLogSumExp"),
        ("sum_square", "ReduceSumSquare"),
    ],
)
def test_statistic(kind: str, op: str) -> None:
    x = np.abs(X) + 1
    (want,) = onnx_run(op, [x, np.int64([0, 2])], keepdims=1)
    check("mlc.statistic", [x], {"kind": kind, "axes": [0, 2], "keepdims": True}, want)


def test_statistic_edges() -> None:
    attrs = {"kind": "log_sum_exp", "axes": [0]}
    for value in (-np.inf, np.inf, 1000.0):
        x = np.full(3, value, np.float32)
        want = np.float32(value) if np.isinf(value) else np.float32(1000 + np.log(3))
        check("mlc.statistic", [x], attrs, np.asarray(want))
    check("mlc.statistic", [X], {"kind": "variance", "axes": [1]}, np.var(X, axis=1))
    check("mlc.statistic", [np.int32([1, 2, 4])], {"kind": "mean", "axes": [0]}, np.array(2, np.int32))


def test_matmul_transposes_and_broadcasts() -> None:
    a, b = (
        RNG.standard_normal((2, 1, 4, 3)).astype(np.float32),
        RNG.standard_normal((5, 3, 6)).astype(np.float32),
    )
    want = a @ b
    check("mlc.matmul", [a, b], {}, want)
    flags = {"transpose_lhs": True, "transpose_rhs": True}
    check("mlc.matmul", [np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)], flags, want)
    empty = np.zeros((4, 0), np.float32)
    check("mlc.matmul", [empty, empty.T], {}, np.zeros((4, 4), np.float32))


def test_matmul_integers_and_halves() -> None:
    x = np.full((1, 1000), -128, np.int8)
    check("mlc.matmul", [x, x.T], {}, np.array([[16384000]], np.int32))
    h = np.full((1, 4096), 1, ml_dtypes.bfloat16)
    check("mlc.matmul", [h, h.T], {}, np.array([[4096]], ml_dtypes.bfloat16))


@pytest.mark.parametrize("equation", ["bij,bjk->bik", "...ij,...jk->...k", "ii", "ij->ji", "b i j , b j k -> i k"])
def test_einsum(equation: str) -> None:
    square = RNG.standard_normal((4, 4)).astype(np.float32)
    batched = [
        RNG.standard_normal((2, 3, 4)).astype(np.float32),
        RNG.standard_normal((2, 4, 5)).astype(np.float32),
    ]
    operands = batched if "," in equation else [square]
    want = np.asarray(np.einsum(equation.replace(" ", ""), *operands))
    check("mlc.einsum", operands, {"equation": equation}, want)
