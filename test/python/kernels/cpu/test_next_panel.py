"""The panel of a packed weight that is fetched while the one in front of it is multiplied: every line, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from mlir import ir
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


def _fetched(rows: int, tile: int, size: int, loops: list[int]) -> list[int]:
    """The bytes that all steps of all tiles ask for."""
    none = cast(Any, None)
    with ir.Context():
        math = IndexMath(none)
    panel, found, row = NextPanel(none, none, 0, size, rows, 0), list[int](), 0
    for height, count in split_rows(rows, tile):
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


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("m, n, k", [(40, 100, 300), (128, 200, 301), (24, 640, 257)])
def test_products(tmp_path: Path, m: int, n: int, k: int, precision: str) -> None:
    if resolve("native", host_info()).vector_bits < 512:
        k += 800  # narrower panels that do not stay in the first level of cache either
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, s)] for name, s in (("x", [m, k]), ("y", [m, n]))]
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "panels", *ends, [numpy_helper.from_array(w, "w")])
    proto: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    report = tmp_path / "report.json"
    model = mlc.compile(proto, output=tmp_path / "m.so", precision=precision, report=report, cache=False)
    assert '"ahead"' in report.read_text()
    tolerance = 2e-6 if precision == "fp32" else 2e-2
    want = x.astype(np.float64) @ w
    assert np.max(np.abs(model(x)[0] - want)) <= tolerance * np.max(np.abs(want))
