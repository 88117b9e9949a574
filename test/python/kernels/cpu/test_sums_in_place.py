"""Products and convolutions that are written over what is added to them, against float64."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlc

ROWS, COLUMNS = 37, 40


def _compile(
    tmp_path: Path,
    nodes: list[tuple[str, list[str], str]],
    outputs: list[str],
    weights: dict[str, np.ndarray],
    rows: int | str = ROWS,
    **options: object,
) -> tuple[mlc.Model, list[dict[str, object]]]:
    """A model of `nodes` (operator, inputs, output) of matrices `[rows, COLUMNS]` from `x`, and its contractions."""
    shape = (rows, COLUMNS)
    graph = helper.make_graph(
        [helper.make_node(kind, inputs, [output]) for kind, inputs, output in nodes],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in outputs],
        [numpy_helper.from_array(w, name) for name, w in weights.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    report = tmp_path / "r.json"
    model = mlc.compile(proto, output=tmp_path / "m.so", report=report, cache=False, **options)
    return model, [k for k in json.loads(report.read_text())["kernels"] if "contraction" in k["template"]]


def _weights(count: int, scale: float = 0.2) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {f"w{i}": scale * rng.standard_normal((COLUMNS, COLUMNS), np.float32) for i in range(count)}


def _check(got: np.ndarray, want: np.ndarray) -> None:
    assert got.shape == want.shape
    assert np.max(np.abs(got - want)) <= 3e-6 * np.max(np.abs(want))


def _inputs(kernel: dict[str, object]) -> int:
    """Tensors of a kernel, its destination among them."""
    shapes = kernel["shapes"]
    assert isinstance(shapes, list)
    return len(shapes)


@pytest.mark.parametrize("rows", [ROWS, "rows"])
def test_chain_of_residuals(tmp_path: Path, rows: int | str) -> None:
    """x w0 is made by a launch; each block adds to what the one before has made."""
    nodes = [("MatMul", ["x", "w0"], "a")]
    previous = "a"
    for i in (1, 3):
        nodes += [
            ("MatMul", [previous, f"w{i}"], f"h{i}"),
            ("Relu", [f"h{i}"], f"r{i}"),
            ("MatMul", [f"r{i}", f"w{i + 1}"], f"p{i}"),
            ("Add", [f"p{i}", previous], f"s{i}"),
        ]
        previous = f"s{i}"
    weights = _weights(5)
    model, kernels = _compile(tmp_path, nodes, [previous], weights, rows)
    assert sum(_inputs(k) == 3 for k in kernels) >= 2  # the sums have no input for what is added
    assert all(_inputs(k) <= 3 for k in kernels)
    for count in (ROWS,) if rows == ROWS else (1, 5, ROWS, 200):
        x = np.random.default_rng(count).standard_normal((count, COLUMNS), np.float32)
        w = {name: v.astype(np.float64) for name, v in weights.items()}
        want = x @ w["w0"]
        for i in (1, 3):
            want = want + np.maximum(want @ w[f"w{i}"], 0) @ w[f"w{i + 1}"]
        _check(model(x)[0], want)
        _check(model(x)[0], want)  # nothing is left of the first run


def test_what_is_needed_again_stays(tmp_path: Path) -> None:
    """What is added is a result, the model's input, or read later on: there it is not written over."""
    nodes = [
        ("MatMul", ["x", "w0"], "a"),
        ("MatMul", ["a", "w1"], "p"),
        ("Add", ["p", "x"], "b"),  # the caller's memory
        ("MatMul", ["b", "w2"], "q"),
        ("Add", ["q", "a"], "c"),  # a result
        ("MatMul", ["c", "w3"], "r"),
        ("Add", ["r", "b"], "d"),  # read again
        ("MatMul", ["d", "w4"], "s"),
        ("Add", ["s", "b"], "e"),  # for the last time
    ]
    weights = _weights(5)
    model, _ = _compile(tmp_path, nodes, ["a", "e"], weights)
    x = np.random.default_rng(3).standard_normal((ROWS, COLUMNS), np.float32)
    given = x.copy()
    w = [v.astype(np.float64) for v in weights.values()]
    a = x @ w[0]
    b = a @ w[1] + x
    d = (b @ w[2] + a) @ w[3] + b
    first, last = model(x)
    _check(first, a)
    _check(last, d @ w[4] + b)
    np.testing.assert_array_equal(x, given)


def test_product_of_itself(tmp_path: Path) -> None:
    """A tensor that is multiplied and added in one kernel cannot be written over while others read its rows."""
    weights = _weights(2)
    nodes = [("MatMul", ["x", "w0"], "a"), ("MatMul", ["a", "w1"], "p"), ("Add", ["p", "a"], "b")]
    model, _ = _compile(tmp_path, nodes, ["b"], weights)
    x = np.random.default_rng(4).standard_normal((ROWS, COLUMNS), np.float32)
    a = x @ weights["w0"].astype(np.float64)
    _check(model(x)[0], a @ weights["w1"] + a)


@pytest.mark.parametrize("groups", [1, 16])
@pytest.mark.parametrize("extent", [1, 3, 5])
def test_convolution_of_itself(tmp_path: Path, extent: int, groups: int) -> None:
    """An image that is padded, convolved and added in one kernel is not written over while others read its pixels."""
    rng, channels, pads = np.random.default_rng(6), 16, [extent // 2] * 4
    first = (0.5 * rng.standard_normal((channels, 3, 1, 1))).astype(np.float32)
    second = (0.2 * rng.standard_normal((channels, channels // groups, extent, extent))).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "u"], ["a"]),
            helper.make_node("Conv", ["a", "v"], ["c"], pads=pads, group=groups),
            helper.make_node("Relu", ["c"], ["r"]),
            helper.make_node("Add", ["r", "a"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 20, 12))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, channels, 20, 12))],
        [numpy_helper.from_array(first, "u"), numpy_helper.from_array(second, "v")],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    x = rng.standard_normal((1, 3, 20, 12), np.float32)
    model = mlc.compile(proto, output=tmp_path / "m.so", cache=False)
    image = np.einsum("oi,nihw->nohw", first[:, :, 0, 0].astype(np.float64), x)
    padded = np.pad(image, [(0, 0), (0, 0), (extent // 2,) * 2, (extent // 2,) * 2])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (extent, extent), axis=(2, 3))
    if groups == 1:
        sums = np.einsum("nihwkl,oikl->nohw", windows, second.astype(np.float64))
    else:
        sums = np.einsum("nihwkl,ikl->nihw", windows, second[:, 0].astype(np.float64))
    for _ in range(2):
        _check(model(x)[0], np.maximum(sums, 0) + image)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("depth", [64, 4096])
def test_templates(tmp_path: Path, precision: str, depth: int) -> None:
    """Sums in one piece, in blocks of the reduction, and of pairs, with an addend that is a launch's."""
    rng = np.random.default_rng(5)
    rows, columns = 96, 200
    shapes = {"u": (8, columns), "v": (8, depth), "w": (depth, columns)}
    weights = {name: (0.1 * rng.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}
    nodes = [
        helper.make_node("MatMul", ["x", "u"], ["a"]),
        helper.make_node("MatMul", ["x", "v"], ["h"]),
        helper.make_node("MatMul", ["h", "w"], ["p"]),
        helper.make_node("Add", ["p", "a"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (rows, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, columns))],
        [numpy_helper.from_array(w, name) for name, w in weights.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    x = rng.standard_normal((rows, 8), np.float32)
    model = mlc.compile(proto, output=tmp_path / "m.so", precision=precision, cache=False)
    w64 = {name: w.astype(np.float64) for name, w in weights.items()}
    want = np.maximum(x @ w64["v"] @ w64["w"] + x @ w64["u"], 0)
    tolerance = 5e-6 if precision == "fp32" else 2e-2
    assert np.max(np.abs(model(x)[0] - want)) <= tolerance * np.max(np.abs(want))
