"""Two rows at once: rows stay apart, and results do not depend on the number of threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import mlc

ROWS = 9


def _compiled(folder: Path, op: str, width: int) -> mlc.Model:
    """`op` over rows of `width`, any number of them, in one kernel."""
    scale = numpy_helper.from_array(np.linspace(0.5, 2, width, dtype=np.float32), "scale")
    inputs = ["x"] if op == "Softmax" else ["x", "scale"]
    node = helper.make_node(op, inputs, ["y"], axis=-1)
    graph = helper.make_graph(
        [node], "rows",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["rows", width])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["rows", width])],
        [] if op == "Softmax" else [scale],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), folder / "rows.onnx")
    mlc.compile(folder / "rows.onnx", output=folder / "rows.so")
    return mlc.load(folder / "rows.so")


@pytest.mark.parametrize("op", ["Softmax", "LayerNormalization"])
@pytest.mark.parametrize("width", [3, 16, 100, 197, 768])
def test_rows_do_not_know_their_neighbours(tmp_path: Path, op: str, width: int) -> None:
    model = _compiled(tmp_path, op, width)
    x = np.random.default_rng(width).normal(0, 3, (ROWS, width)).astype(np.float32)
    x[2, 1], x[5, 0] = np.inf, np.nan
    alone = np.concatenate([model(x[i : i + 1])[0] for i in range(ROWS)])
    for count in range(1, ROWS + 1):
        np.testing.assert_allclose(model(x[:count])[0], alone[:count], rtol=1e-6, atol=1e-6)
    wide = x[[0, 1, 3, 4]].astype(np.float64)
    if op == "Softmax":
        powers = np.exp(wide - wide.max(1, keepdims=True))
        expected = powers / powers.sum(1, keepdims=True)
    else:
        centred = wide - wide.mean(1, keepdims=True)
        expected = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * np.linspace(0.5, 2, width)
    np.testing.assert_allclose(alone[[0, 1, 3, 4]], expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("op", ["Softmax", "LayerNormalization"])
def test_threads_do_not_change_a_bit(tmp_path: Path, op: str) -> None:
    _compiled(tmp_path, op, 768)
    x = np.random.default_rng(1).normal(0, 3, (301, 768)).astype(np.float32)
    results = [mlc.load(tmp_path / "rows.so", threads=n)(x)[0] for n in (1, 2, 3, 5)]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_two_rows_share_their_loops(tmp_path: Path) -> None:
    """The loop over pairs has the inner loops of one row, with twice the accumulators."""
    _compiled(tmp_path, "Softmax", 128)
    mlc.compile(tmp_path / "rows.onnx", output=tmp_path / "tile.mlir", emit="tile")
    loops = [line for line in (tmp_path / "tile.mlir").read_text().splitlines() if "scf.for" in line]
    carried = [line.count("= %") - 1 if "iter_args" in line else 0 for line in loops]
    found = [c for c in carried if c]
    assert len(found) == 4 and found[:2] == [2 * c for c in found[2:]]  # the maximum and the sum, of two rows and of one
