"""Padded convolutions: taps in the padding are left out, whatever the position of a register tile on its line."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import mlc
from mlc.kernels.cpu.padding import LinePlace, Window, places_at_ends, rows_in_midst, rows_inside

# channels, filters, height, width, window, pads (top, left, bottom, right), strides, dilations, groups
CASES = {
    "3x3": (16, 64, 14, 14, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 1),
    "one tile a line": (16, 48, 7, 7, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 1),
    "7x7 strided, 3 channels": (3, 64, 28, 28, (7, 7), (3, 3, 3, 3), (2, 2), (1, 1), 1),
    "dilated": (8, 40, 15, 17, (3, 3), (2, 2, 2, 2), (1, 1), (2, 2), 1),
    "every pad different": (8, 40, 15, 17, (3, 5), (0, 1, 2, 3), (2, 1), (1, 2), 1),
    "depthwise": (32, 32, 14, 14, (3, 3), (1, 1, 1, 1), (2, 2), (1, 1), 32),
    "grouped": (32, 64, 14, 14, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 4),
    "one pixel": (8, 16, 1, 1, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 1),
    "window larger than the image": (8, 16, 5, 2, (7, 7), (3, 3, 3, 3), (1, 1), (1, 1), 1),
    "line of many tiles": (4, 24, 3, 500, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 1),
    "long line, dilated far": (8, 40, 1, 390, (1, 11), (0, 25, 0, 25), (1, 1), (1, 5), 1),
    "long line, strided": (4, 24, 2, 801, (1, 9), (0, 3, 0, 6), (1, 2), (1, 1), 1),
    "long line, padding behind": (4, 24, 2, 400, (1, 7), (0, 0, 0, 9), (1, 1), (1, 1), 1),
    "1x1 over padding": (8, 24, 6, 5, (1, 1), (1, 1, 1, 1), (1, 1), (1, 1), 1),
}
Case = tuple[
    int, int, int, int, Sequence[int], Sequence[int], Sequence[int], Sequence[int], int
]  # as in the comment above


def _model(case: Case, dynamic: bool) -> onnx.ModelProto:
    channels, filters, height, width, window, pads, strides, dilations, groups = case
    rng = np.random.default_rng(1)
    filter_ = rng.standard_normal((filters, channels // groups, *window)).astype(np.float32)
    bias = rng.standard_normal(filters).astype(np.float32)
    extents = [1, channels, "h", "w"] if dynamic else [1, channels, height, width]
    node = helper.make_node(
        "Conv", ["x", "f", "b"], ["y"], pads=pads, strides=strides, dilations=dilations, group=groups
    )
    graph = helper.make_graph(
        [node],
        "padded",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, extents)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, filters, None, None])],
        [numpy_helper.from_array(filter_, "f"), numpy_helper.from_array(bias, "b")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", CASES)
def test_padded_convolution(tmp_path: Path, name: str, dynamic: bool) -> None:
    case = CASES[name]
    proto = _model(case, dynamic)
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    model = mlc.compile(path, output=tmp_path / "model.so")
    reference = ReferenceEvaluator(proto)
    sizes = [case[2:4]] if not dynamic else [case[2:4], (case[2] + 3, case[3] + 8)]
    for height, width in sizes:
        x = np.random.default_rng(2).standard_normal((1, case[0], height, width)).astype(np.float32)
        [want] = reference.run(None, {"x": x})
        [got] = model(x)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=3e-6 * np.abs(want).max())


# window, pads (top, left, bottom, right), strides, dilations
CHAINS = {
    "3x3": ((3, 3), (1, 1, 1, 1), (1, 1), (1, 1)),
    "3x3 strided": ((3, 3), (1, 1, 1, 1), (2, 2), (1, 1)),
    "3x3, padding behind only": ((3, 3), (0, 0, 1, 1), (2, 2), (1, 1)),
    "5x5": ((5, 5), (2, 2, 2, 2), (1, 1), (1, 1)),
    "seven taps": ((1, 7), (0, 3, 0, 3), (1, 1), (1, 1)),
    "eight taps, strided": ((1, 8), (0, 5, 0, 4), (1, 2), (1, 1)),
    "dilated": ((3, 3), (2, 2, 2, 2), (1, 1), (2, 2)),
    "dilated, far": ((3, 3), (12, 12, 12, 12), (1, 1), (12, 12)),
    "every pad different": ((3, 5), (0, 1, 2, 3), (1, 1), (1, 1)),
}


@pytest.mark.parametrize("groups", [1, 24], ids=["dense", "depthwise"])
@pytest.mark.parametrize("name", CHAINS)
def test_images_of_any_size(tmp_path: Path, name: str, groups: int) -> None:
    """Behind another convolution, what is padded is computed: all lines that a run may bring, shorter than a tile and
    longer, in one kernel a convolution."""
    window, pads, strides, dilations = CHAINS[name]
    rng = np.random.default_rng(3)
    weights = {
        "e": rng.standard_normal((24, 4, 1, 1)).astype(np.float32),
        "f": rng.standard_normal((24 if groups > 1 else 80, 24 // groups, *window)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "e"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Conv", ["r", "f"], ["y"], pads=pads, strides=strides, dilations=dilations, group=groups),
    ]
    graph = helper.make_graph(
        nodes,
        "images",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4, "h", "w"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", len(weights["f"]), None, None])],
        [numpy_helper.from_array(value, key) for key, value in weights.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(proto, tmp_path / "model.onnx")
    report = tmp_path / "report.json"
    model = mlc.compile(tmp_path / "model.onnx", output=tmp_path / "model.so", report=report)
    templates = [kernel["template"] for kernel in json.loads(report.read_text())["kernels"]]
    assert templates.count("contraction") == 2 and templates.count("loops") == 0
    reference = ReferenceEvaluator(proto)
    for width in [*range(5, 24), 40]:
        x = rng.standard_normal((1 + width % 2, 4, 5 + width % 3, width)).astype(np.float32)
        [want] = reference.run(None, {"x": x})
        [got] = model(x)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("taps", [3, 11])
def test_rare_ends_cost_little_code(tmp_path: Path, taps: int) -> None:
    """Of a long line the tiles at its ends are one loop over the taps, however many those are."""
    pads, sums = (0, taps // 2, 0, taps // 2), []
    for width in (24, 2000):
        proto = _model((16, 24, 1, width, (1, taps), pads, (1, 1), (1, 1), 1), False)
        mlc.compile(proto, output=tmp_path / "tiled.mlir", emit="tile", cpu="x86-64-v3")
        sums.append((tmp_path / "tiled.mlir").read_text().count("vector.fma"))
    assert sums[1] == (4 + 4 + 1) * 12 < sums[0]  # in the midst, and at an end: a tap inside for all rows, or not


# width, rows of a tile, tiles of a block: one whole block, one at each end, others between them, no rest
BLOCKS = [(7, 4, 1), (8, 4, 1), (9, 4, 1), (14, 4, 1), (12, 4, 1), (14, 3, 2), (30, 4, 2), (24, 4, 2), (41, 2, 3)]


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("width, rows, block", BLOCKS)
def test_blocks_of_a_line(tmp_path: Path, width: int, rows: int, block: int, stride: int) -> None:
    """Of a line whose length is known, every block of rows is written as what it meets: no row asks."""
    source = (width - 1) * stride + 1
    proto = _model((8, 24, source, source, (3, 3), (1, 1, 1, 1), (stride, stride), (1, 1), 1), False)
    stage, tiled = tmp_path / "stage.mlir", tmp_path / "tiled.mlir"
    mlc.compile(proto, output=stage, emit="schedule", cpu="x86-64-v3")
    schedule = rf"block = {block} : i64, \1, rows = {rows}"
    text, count = re.subn(r"\bblock = \d+ : i64, (.*?), rows = \d+", schedule, stage.read_text())
    assert count == 1
    stage.write_text(text)
    mlc.compile(stage, output=tiled, from_phase="schedule", emit="tile", cpu="x86-64-v3")
    kernel = next(part for part in tiled.read_text().split("module @") if 'template = "contraction"' in part)
    assert "arith.select" not in kernel
    blocks = width // (rows * block)
    assert kernel.count("scf.if") <= (2 if blocks > 1 else 1)
    model = mlc.compile(stage, output=tmp_path / "model.so", from_phase="schedule", cpu="x86-64-v3")
    x = np.random.default_rng(4).standard_normal((1, 8, source, source)).astype(np.float32)
    [want] = ReferenceEvaluator(proto).run(None, {"x": x})
    [got] = model(x)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=3e-6 * np.abs(want).max())


@pytest.mark.parametrize("stride, taps, dilation", [(1, 3, 1), (2, 3, 1), (1, 5, 1), (2, 5, 1), (1, 3, 2), (3, 7, 1)])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_places_at_ends(size: int, stride: int, taps: int, dilation: int) -> None:
    """Tiles at one end of a line with as much padding on both sides, and with other ones inside, are at a known place,
    which says of every tap which rows are inside."""
    low = (taps - 1) * dilation // 2
    window = Window(axis=0, point=0, stride=stride, tap=1, dilation=dilation, low=low)
    places, met = places_at_ends(window, size, taps), set()
    for source in range(1, 60):
        line = (source + 2 * low - (taps - 1) * dilation - 1) // stride + 1
        for row in {0, line // 2, line - size}:
            if row < 0 or row + size > line:
                continue
            inside = [
                [r for r in range(size) if 0 <= (row + r) * stride + tap * dilation - low < source]
                for tap in range(taps)
            ]
            rest, reach = source - row * stride, (size - 1) * stride + (taps - 1) * dilation - low
            fitting = [
                p
                for p in places
                if (row == 0 if p.first == 0 else row * stride >= low)
                and (reach < rest if p.extent is None else rest == p.extent - p.first * stride)
            ]
            met.update(fitting)
            for place in fitting:
                assert [rows_inside(window, place, range(size), tap) for tap in range(taps)] == inside
            everywhere = all(len(rows) == size for rows in inside)
            assert len(fitting) == 1 or everywhere or 0 < row * stride < low or line - size - row > 0 and reach >= rest
    assert met == set(places)


@pytest.mark.parametrize("stride, taps, dilation", [(1, 3, 1), (2, 3, 1), (1, 11, 5), (3, 7, 1), (2, 1, 1)])
@pytest.mark.parametrize("low", [0, 1, 4])
def test_rows_in_midst(low: int, stride: int, taps: int, dilation: int) -> None:
    """A row is in the midst of its line exactly where every tap is inside."""
    window = Window(axis=0, point=0, stride=stride, tap=1, dilation=dilation, low=low)
    for source in range(1, 70):
        first, end = rows_in_midst(window, source, taps)
        for row in range(80):
            inside = all(rows_inside(window, LinePlace(row, source), [0], tap) for tap in range(taps))
            assert inside == (first <= row < end)
