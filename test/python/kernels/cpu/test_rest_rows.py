"""Products whose rows only a run counts: each number of rows behind the last whole tile, and which tiles take them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlc
from mlc.kernels.cpu.register_tile import is_taller, rest_sizes


@pytest.mark.parametrize("is_window", [False, True])
@pytest.mark.parametrize("tile", range(1, 29))
def test_each_rest_is_taken_by_tiles_of_different_heights(tile: int, is_window: bool) -> None:
    most = tile - 1 if tile <= 8 and not is_window else min(tile - 1, 4)
    for rest in range(tile):
        taken = _tiles(rest, rest_sizes(tile, is_window))
        assert len(set(taken)) == len(taken)
        assert len(taken) == 1 or not 1 <= rest <= most


@pytest.mark.parametrize("tile", range(1, 29))
def test_one_row_above_whole_tiles_has_a_tile_with_the_last_ones(tile: int) -> None:
    sizes = rest_sizes(tile)
    assert (tile + 1 in sizes) == is_taller(tile) == (2 <= tile <= 8)
    if is_taller(tile):
        assert _tiles(tile + 1, sizes) == [tile + 1]
        assert tile + 1 not in rest_sizes(tile, is_window=True)


def _tiles(rows: int, sizes: list[int]) -> list[int]:
    taken = []
    for size in sizes:
        taken += [size] * (rows // size)
        rows %= size
    assert rows == 0
    return taken


def _product(w: np.ndarray, c: np.ndarray) -> onnx.ModelProto:
    """x w + c, with any number of rows."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "c"], ["y"])]
    sizes = zip("xy", w.shape, strict=True)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in sizes]
    weights = [numpy_helper.from_array(value, name) for name, value in (("w", w), ("c", c))]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize(
    "columns, cpu, tile",
    [*((n, "x86-64-v4", (8, 3)) for n in (64, 200, 768)), (200, "x86-64-v3", (6, 2)), (768, "x86-64-v3", (4, 3))],
)
def test_tile(tmp_path: Path, columns: int, cpu: str, tile: tuple[int, int]) -> None:
    """Where there are thirty-two registers, few rows read the weight once, and many take no longer."""
    model = _product(np.ones((40, columns), np.float32), np.ones(columns, np.float32))
    mlc.compile(model, output=tmp_path / "m.so", cpu=cpu, report=tmp_path / "r.json", load=False)
    [kernel] = json.loads((tmp_path / "r.json").read_text())["kernels"]
    assert (kernel["schedule"]["rows"], kernel["schedule"]["vectors"]) == tile


@pytest.mark.parametrize("depth", [40, 6])  # of several steps at a time, and of one
@pytest.mark.parametrize("columns", [52, 150])
def test_numbers_of_rows(tmp_path: Path, depth: int, columns: int) -> None:
    rng = np.random.default_rng(depth)
    w, c = rng.standard_normal((depth, columns)).astype(np.float32), rng.standard_normal(columns).astype(np.float32)
    model = mlc.compile(_product(w, c), output=tmp_path / "m.so")
    for rows in range(1, 34):
        x = rng.standard_normal((rows, depth)).astype(np.float32)
        want = x.astype(np.float64) @ w + c
        assert np.max(np.abs(model(x)[0] - want)) <= 2e-6 * np.max(np.abs(want)), rows
