"""Products whose rows only a run counts: each number of rows behind the last whole tile, and which tiles take them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
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
    assert (tile + 1 in sizes) == is_taller(tile) == (2 <= tile <= 7)
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


@pytest.mark.parametrize("depth", [40, 6])  # of several steps at a time, and of one
def test_numbers_of_rows(tmp_path: Path, depth: int) -> None:
    rng = np.random.default_rng(depth)
    w, c = rng.standard_normal((depth, 52)).astype(np.float32), rng.standard_normal(52).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "c"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", k]) for name, k in (("x", depth), ("y", 52))]
    weights = [numpy_helper.from_array(value, name) for name, value in (("w", w), ("c", c))]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    model = mlc.compile(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9),
        output=tmp_path / "m.so",
    )
    for rows in range(1, 34):
        x = rng.standard_normal((rows, depth)).astype(np.float32)
        want = x.astype(np.float64) @ w + c
        assert np.max(np.abs(model(x)[0] - want)) <= 2e-6 * np.max(np.abs(want)), rows
