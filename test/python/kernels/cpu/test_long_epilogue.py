"""Functions behind a contraction that are much code: one loop over the rows of a tile, not once for every row."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlc

K, COLUMNS = 40, 44  # a whole panel and a part of one, on 128 to 512 bits


def _snake(rows: int | str) -> tuple[onnx.ModelProto, np.ndarray, np.ndarray]:
    """`h + sin(a h)² / a` of `h = x w`, the activation of audio codecs; the weight, and `a` of each column."""
    rng = np.random.default_rng(6)
    weight = rng.standard_normal((K, COLUMNS)).astype(np.float32)
    a = rng.uniform(0.5, 3, COLUMNS).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Mul", ["h", "a"], ["ah"]),
        helper.make_node("Sin", ["ah"], ["s"]),
        helper.make_node("Pow", ["s", "two"], ["ss"]),
        helper.make_node("Div", ["ss", "a"], ["q"]),
        helper.make_node("Add", ["h", "q"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "snake",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, K])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, COLUMNS])],
        [
            numpy_helper.from_array(weight, "w"),
            numpy_helper.from_array(a, "a"),
            numpy_helper.from_array(np.float32(2), "two"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), weight, a


@pytest.mark.parametrize("rows", [37, "n"], ids=["static", "dynamic"])
def test_values(tmp_path: Path, rows: int | str) -> None:
    """Of every row and column, in whole tiles and in what is left."""
    proto, weight, a = _snake(rows)
    model = mlc.compile(proto, output=tmp_path / "model.so")
    for count in [rows] if isinstance(rows, int) else [*range(1, 15), 64]:
        x = np.random.default_rng(7).standard_normal((count, K)).astype(np.float32)
        h = x.astype(np.float64) @ weight.astype(np.float64)
        want = h + np.sin(a * h) ** 2 / a
        np.testing.assert_allclose(model(x)[0], want, rtol=2e-5, atol=2e-5 * np.abs(h).max())


def test_code_does_not_grow_with_rows(tmp_path: Path) -> None:
    """A tile of six rows has the function as often as one of two."""
    proto, _, _ = _snake(48)
    stage = tmp_path / "stage.mlir"
    mlc.compile(proto, output=stage, emit="schedule", cpu="x86-64-v3")
    text, counts = stage.read_text(), []
    for rows in (2, 6):
        changed, count = re.subn(r"\brows = \d+", f"rows = {rows}", text)
        assert count == 1
        stage.write_text(changed)
        mlc.compile(stage, output=tmp_path / "tiled.mlir", from_phase="schedule", emit="tile", cpu="x86-64-v3")
        tiled = (tmp_path / "tiled.mlir").read_text()
        counts.append((tiled.count("math.fma"), tiled.count("vector.fma")))
    (few, few_products), (many, many_products) = counts
    assert few == many > 0 and many_products == 3 * few_products
