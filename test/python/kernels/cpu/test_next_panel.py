"""The panel of a packed weight that is fetched while the one in front of it is multiplied: every line, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from mlir import ir
from models.processors import has_tiles
from onnx import TensorProto, helper, numpy_helper

import mlc
from mlc._native import host_info
from mlc.kernels.common.index import IndexMath
from mlc.kernels.cpu.next_panel import NextPanel
from mlc.kernels.cpu.register_tile import split_rows
from mlc.targets.cpu import resolve

LINE = 64
# rows in all, rows of a tile, bytes of a panel, steps of the loops of the reduction
CASES = [
    (128, 6, 768 * 256, [192]),
    (197, 6, 768 * 256, [192]),
    (24, 6, 300 * 256, [75]),
    (40, 6, 300 * 256, [300]),
    (2048, 6, 768 * 256, [192]),
    (49, 7, 9 * 512 * 256, [3, 3, 128]),
]

COUNTED = [
    (66, 6, 768 * 256, [192]),
    (2048, 6, 768 * 256, [192]),
    (28, 4, 768 * 96, [192]),
    (48, 8, 2048 * 192, [512]),
    (63, 7, 9 * 512 * 128, [3, 3, 128]),
]


def _fetched(
    rows: int, tile: int, size: int, loops: list[int], counted: bool = False, step: int = 0
) -> list[int]:
    """The bytes that all steps of all tiles ask for; as where a run has counted the rows, if `counted`, and as where it
    knows the size, if a `step` reads as much of it.
    """
    none = cast(Any, None)
    with ir.Context():
        math = IndexMath(none)
    share = -(-(step or size) // rows)
    panel, found, row = NextPanel(none, none, 0, size, share, 0, tile if counted else 0, step=step), list[int](), 0
    for height, count in [(tile, rows // tile)] if counted else split_rows(rows, tile):
        for _ in range(count):
            for at in np.ndindex(*loops):
                found += cast(list[int], panel.lines(math, row, height, list(zip(map(int, at), loops, strict=True))))
            row += height
    return found


@pytest.mark.parametrize("rows, tile, size, loops", CASES)
def test_every_line_is_fetched_and_few_are_twice(rows: int, tile: int, size: int, loops: list[int]) -> None:
    fetched = _fetched(rows, tile, size, loops)
    assert {at // LINE for at in fetched} == set(range(size // LINE))
    steps = sum(count for _, count in split_rows(rows, tile)) * int(np.prod(loops))
    assert len(fetched) <= max(steps, 1.5 * size / LINE)


@pytest.mark.parametrize("rows, tile, size, loops", COUNTED)
def test_every_line_is_fetched_for_rows_that_a_run_counts(rows: int, tile: int, size: int, loops: list[int]) -> None:
    fetched = {at // LINE for at in _fetched(rows, tile, size, loops, counted=True)}
    assert fetched >= set(range(size // LINE)) and max(fetched) <= size // LINE  # the last step may reach behind the end


@pytest.mark.parametrize("rows, tile, size, loops", CASES)
def test_every_line_is_fetched_of_a_panel_whose_size_a_run_knows(
    rows: int, tile: int, size: int, loops: list[int]
) -> None:
    """What a row fetches in a step is known then, whatever the number of steps."""
    fetched = _fetched(rows, tile, size, loops, step=size // int(np.prod(loops)))
    assert {at // LINE for at in fetched} == set(range(size // LINE))


@pytest.mark.parametrize("rows, tile, size, loops", COUNTED)
def test_every_line_is_fetched_of_such_a_panel_for_rows_that_a_run_counts(
    rows: int, tile: int, size: int, loops: list[int]
) -> None:
    step = size // int(np.prod(loops))
    fetched = {at // LINE for at in _fetched(rows, tile, size, loops, counted=True, step=step)}
    assert fetched >= set(range(size // LINE)) and max(fetched) <= size // LINE


def test_tiles_of_half_the_height_fetch_without_a_gap() -> None:
    """The last tiles of lines that only a run knows: what full ones ask for at a step, or a part of it."""
    none = cast(Any, None)
    with ir.Context():
        math = IndexMath(none)
    panel = NextPanel(none, none, 0, 4096 * 192, -(-4096 * 192 // 64), 0, 8)
    for height in (4, 7, 8, 9):
        steps = [panel.lines(math, 0, height, [(step, 512)]) for step in range(8)]
        reached = 0
        for lines in steps:
            assert lines[0] <= reached
            reached = cast(int, lines[-1]) + LINE


def test_fewer_rows_fetch_the_beginning() -> None:
    fetched = {at // LINE for at in _fetched(30, 6, *CASES[0][2:], counted=True)}
    assert fetched == set(range(len(fetched))) and len(fetched) > CASES[0][2] // LINE // 3


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("m, n, k", [(40, 100, 300), (128, 200, 301), (24, 640, 257)])
def test_products(tmp_path: Path, m: int, n: int, k: int, precision: str) -> None:
    if resolve("native", host_info()).vector_bits < 512:
        k += 800  # narrower panels that do not stay in the first level of cache either
    _check(tmp_path, [m], [m], n, k, precision)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("n, k", [(100, 1100), (200, 1101)])
def test_any_rows(tmp_path: Path, n: int, k: int, precision: str) -> None:
    """Rows that a run counts, of two dimensions: none, fewer than fetch, and more."""
    _check(tmp_path, ["b", "m"], [(1, 1), (1, 0), (1, 23), (2, 12), (3, 50)], n, k, precision)


def _check(tmp_path: Path, rows: list, counts: list, n: int, k: int, precision: str) -> None:
    """Compiles a product of `[*rows, k]` with a weight of `[k, n]` and runs it with so many rows. Small weights on matrix
    tiles are not fetched, so that bf16 is multiplied without any."""
    cpu = "x86-64-v4" if precision == "bf16" and has_tiles() else "native"
    rng = np.random.default_rng(0)
    w = rng.standard_normal((k, n)).astype(np.float32)
    shapes = {"x": [*rows, k], "y": [*rows, n]}
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, s)] for name, s in shapes.items()]
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "panels", *ends, [numpy_helper.from_array(w, "w")])
    proto: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    report = tmp_path / "report.json"
    model = mlc.compile(proto, output=tmp_path / "m.so", precision=precision, cpu=cpu, report=report, cache=False)
    assert '"ahead"' in report.read_text()
    tolerance = 2e-6 if precision == "fp32" else 2e-2
    for count in counts:
        x = rng.standard_normal((*np.atleast_1d(count), k)).astype(np.float32)
        want = x.astype(np.float64) @ w
        assert model(x)[0].shape == want.shape
        assert np.max(np.abs(model(x)[0] - want), initial=0) <= tolerance * np.max(np.abs(want), initial=0)
