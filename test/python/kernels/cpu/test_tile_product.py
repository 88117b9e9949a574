"""Contractions of precision bf16 on matrix tiles against float64 on rounded operands: rows, columns and depths around
those of a tile, operands of the run, windows, epilogues. That tiles multiplied is counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper
from spread import spread
from test_dot_product import _close, _model, _reference, rounded
from tiles.emulated import Tiles
from windows import WINDOWS

import mlc

ROWS, COLUMNS, STEPS = 16, 16, 32  # of a tile of sums, and the products of a step


def _compile(tmp_path: Path, proto: onnx.ModelProto, cpu: str) -> mlc.Model:
    number = len(list(tmp_path.iterdir()))  # a loaded library keeps its file
    return mlc.compile(proto, output=tmp_path / f"model{number}.so", precision="bf16", cpu=cpu)


def _templates(model: mlc.Model) -> list[str]:
    return [kernel["template"] for kernel in model.metadata["kernels"]]


def _planned(tmp_path: Path, proto: onnx.ModelProto, cpu: str, name: str) -> tuple[mlc.Model, list[int]]:
    """The model, and parameter `name` of its products on tiles."""
    report = tmp_path / "report.json"
    model = mlc.compile(proto, output=tmp_path / "planned.so", precision="bf16", cpu=cpu, report=report)
    kernels = json.loads(report.read_text())["kernels"]
    return model, [k["schedule"].get(name, 0) for k in kernels if k["template"] == "tile_product"]


def _least(rows: int, depth: int, columns: int) -> int:
    """The fewest products of tiles that a product of matrices takes."""
    return -(-rows // ROWS) * -(-columns // COLUMNS) * -(-depth // STEPS)


def _drawn(seed: int, *shapes: Sequence[int]) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def _check_product(tiles: Tiles, model: mlc.Model, x: np.ndarray, z: np.ndarray, *inputs: np.ndarray) -> None:
    """The result of `model` for `inputs` is `x @ z`, by tiles; `z` may be a weight."""
    before = tiles.count("tdpbf16ps")
    [got] = model(*inputs)
    a, b = rounded(x), rounded(z)
    _close(got, a @ b, np.abs(a) @ np.abs(b), x.shape[-1])
    batch = int(np.prod(x.shape[:-2]))
    assert tiles.count("tdpbf16ps") - before >= batch * _least(x.shape[-2], *z.shape[-2:])
    assert not tiles.configured


# rows, depth, columns
SHAPES = [
    *((4, 32, 16), (5, 33, 15), (15, 31, 17), (16, 64, 32), (17, 65, 33), (31, 63, 31), (32, 32, 48)),
    *((17, 256, 33), (32, 300, 16), (50, 1025, 40), (70, 3000, 17), (100, 513, 50)),
    *((18, 24, 33), (20, 144, 40), (40, 80, 17)),
    *((33, 96, 47), (47, 9, 64), (48, 8, 65), (49, 16, 70), (63, 100, 2), (64, 17, 63), (65, 15, 49), (70, 40, 34)),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
def test_product_with_a_weight(tiles: Tiles, tmp_path: Path, shape: tuple[int, int, int]) -> None:
    rows, depth, columns = shape
    x, w = _drawn(0, (rows, depth), (depth, columns))
    proto = _model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": x.shape}, {"w": w})
    model = _compile(tmp_path, proto, tiles.cpu)
    assert "tile_product" in _templates(model)
    _check_product(tiles, model, x, w, x)


@pytest.mark.parametrize("shape", [(2086, 64, 196), (5500, 33, 65)], ids=lambda s: "x".join(map(str, s)))
def test_blocks_of_rows_meet_all_panels(tiles: Tiles, tmp_path: Path, shape: tuple[int, int, int]) -> None:
    """Rows and results of more than a cache has, on both sides of ends of blocks and panels."""
    rows, depth, columns = shape
    x, w = _drawn(6, (rows, depth), (depth, columns))
    proto = _model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": x.shape}, {"w": w})
    model, planned = _planned(tmp_path, proto, tiles.cpu, "part")
    assert planned == [1]
    _check_product(tiles, model, x, w, x)


@pytest.mark.parametrize("columns", [150, 700])
@pytest.mark.parametrize("rows", [500, "m"], ids=str)
def test_rows_that_a_cache_does_not_keep_meet_the_weight_in_parts(
    tiles: Tiles, tmp_path: Path, rows: int | str, columns: int
) -> None:
    """With a weight that stays near itself and one that does not; each part fetches panels, a short one at the end."""
    [w] = _drawn(3, (2048, columns))
    proto = _model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [rows, 2048]}, {"w": w})
    model, ahead = _planned(tmp_path, proto, tiles.cpu, "ahead")
    assert ahead == [500 if rows == 500 else -128]
    assert _planned(tmp_path, proto, tiles.cpu, "part")[1] == [1]
    for number in [500] if rows == 500 else [500, 4, 37, 1, 0]:
        [x] = _drawn(number, (number, 2048))
        _check_product(tiles, model, x, w, x)


@pytest.mark.parametrize("window", [(1, 1), (3, 3)], ids=["1x1", "3x3"])
def test_lines_that_a_cache_does_not_keep_meet_the_weight_in_parts(
    tiles: Tiles, tmp_path: Path, window: tuple[int, int]
) -> None:
    """Of two images, so that parts end anywhere in one."""
    channels, size, pad = (1024, 34, 0) if window == (1, 1) else (96, 69, 1)
    x, filter_ = _drawn(7, (2, channels, size, size), (170, channels, *window))
    nodes = [helper.make_node("Conv", ["x", "f"], ["y"], pads=[pad] * 4, strides=[2, 2])]
    model, part = _planned(tmp_path, _model(nodes, {"x": x.shape}, {"f": filter_}), tiles.cpu, "part")
    assert part and all(n > 1 for n in part)
    [want] = _reference(nodes, {"f": rounded(filter_)}, rounded(x))
    [magnitude] = _reference(nodes, {"f": np.abs(rounded(filter_))}, np.abs(rounded(x)))
    results = [mlc.load(tmp_path / "planned.so", threads=n)(x)[0] for n in (1, 3)]
    _close(results[0], want, magnitude, channels * window[0] * window[1])
    assert np.array_equal(*results) and tiles.count("tdpbf16ps")


@pytest.mark.parametrize("window", [(1, 1), (3, 3)], ids=["1x1", "3x3"])
@pytest.mark.parametrize("size", [7, 12, 20], ids=str)
def test_the_next_panel_of_a_large_weight_is_fetched(
    tiles: Tiles, tmp_path: Path, size: int, window: tuple[int, int]
) -> None:
    """Lines side by side and not, an odd number of them, and fewer panels than a whole one at the end."""
    channels, filters = (2048, 70) if window == (1, 1) else (256, 70)
    x, filter_ = _drawn(7, (1, channels, size, size + 13), (filters, channels, *window))
    pad = window[0] // 2
    nodes = [helper.make_node("Conv", ["x", "f"], ["y"], pads=[pad] * 4)]
    model, planned = _planned(tmp_path, _model(nodes, {"x": x.shape}, {"f": filter_}), tiles.cpu, "ahead")
    assert planned and all(planned)
    [got] = model(x)
    [want] = _reference(nodes, {"f": rounded(filter_)}, rounded(x))
    [magnitude] = _reference(nodes, {"f": np.abs(rounded(filter_))}, np.abs(rounded(x)))
    _close(got, want, magnitude, channels * window[0] * window[1])
    assert tiles.count("tdpbf16ps")


@pytest.mark.parametrize(("depth", "columns"), [(32, 32), (45, 70), (130, 16)])
def test_rows_known_at_run_time(tiles: Tiles, tmp_path: Path, depth: int, columns: int) -> None:
    """Fewer than a tile has, too, and none."""
    [w] = _drawn(1, (depth, columns))
    proto = _model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ["m", depth]}, {"w": w})
    model = _compile(tmp_path, proto, tiles.cpu)
    for rows in (1, 2, 3, 4, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 70, 300, 0):
        [x] = _drawn(rows, (rows, depth))
        _check_product(tiles, model, x, w, x)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("shape", SHAPES[::2] + [(20, 40, 9)], ids=lambda s: "x".join(map(str, s)))
def test_product_of_two_inputs(tiles: Tiles, tmp_path: Path, shape: tuple[int, int, int], dynamic: bool) -> None:
    """The right operand is interleaved on the way; batches, rows and columns may be known at run time only."""
    rows, depth, columns = shape
    shapes: dict[str, Sequence[int | str]] = {"x": [2, rows, depth], "z": [2, depth, columns]}
    if dynamic:
        shapes = {"x": ["b", "m", depth], "z": ["b", depth, "n"]}
    model = _compile(tmp_path, _model([helper.make_node("MatMul", ["x", "z"], ["y"])], shapes, {}), tiles.cpu)
    more = [(1, rows + 5, columns + 1), (3, 1, 8), (2, 3, 45)] if dynamic else []
    for batch, m, n in [(2, rows, columns), *more]:
        x, z = _drawn(m, (batch, m, depth), (batch, depth, n))
        if dynamic or min(m, n) >= 8:  # others keep f32
            _check_product(tiles, model, x, z, x, z)


def test_batches_share_a_right_side(tiles: Tiles, tmp_path: Path) -> None:
    """Of the run: every product of the batch interleaves it once."""
    shapes = {"x": [3, 2, 21, 50], "z": [1, 2, 50, 37]}
    model = _compile(tmp_path, _model([helper.make_node("MatMul", ["x", "z"], ["y"])], shapes, {}), tiles.cpu)
    x, z = _drawn(2, *shapes.values())
    _check_product(tiles, model, x, z, x, z)


def test_a_right_side_that_is_transposed(tiles: Tiles, tmp_path: Path) -> None:
    shapes = {"x": [3, 20, 33], "z": [3, 50, 33]}
    nodes = [
        helper.make_node("Transpose", ["z"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "t"], ["y"]),
    ]
    model = _compile(tmp_path, _model(nodes, shapes, {}), tiles.cpu)
    x, z = _drawn(3, *shapes.values())
    _check_product(tiles, model, x, np.swapaxes(z, 1, 2), x, z)


@pytest.mark.parametrize("case", ["few rows", "short sum", "sum of the run"])
def test_products_without_tiles(tiles: Tiles, tmp_path: Path, case: str) -> None:
    rows, depth = {"few rows": (3, 64), "short sum": (40, 7), "sum of the run": (40, 64)}[case]
    shapes: dict[str, Sequence[int | str]] = {"x": [rows, depth], "z": [depth, 48]}
    if case == "sum of the run":
        shapes = {"x": [rows, "k"], "z": ["k", 48]}
    x, z = _drawn(4, (rows, depth), (depth, 48))
    weights = {} if case == "sum of the run" else {"z": shapes.pop("z") and z}
    model = _compile(tmp_path, _model([helper.make_node("MatMul", ["x", "z"], ["y"])], shapes, weights), tiles.cpu)
    [got] = model(x, z) if case == "sum of the run" else model(x)
    a, b = (v.astype(np.float64) if depth < 8 else rounded(v) for v in (x, z))
    _close(got, a @ b, np.abs(a) @ np.abs(b), depth)
    assert "tile_product" not in _templates(model) and not tiles.counts


# -- epilogues ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [4, 20, 33, 48, "m"], ids=str)
@pytest.mark.parametrize("depth, columns", [(48, 50), (256, 290), (1100, 520)])
def test_residual_in_place(tiles: Tiles, tmp_path: Path, depth: int, columns: int, rows: int | str) -> None:
    """A bias, an activation, and a sum that is written over one of its terms: each row once, though tiles overlap, and
    where some rows are with each step of the sums of the next tiles."""
    names = ["w0", "w1", "w2"]
    shapes = [(depth, columns), (columns, depth), (depth, columns)]
    weights = dict(zip(names, _drawn(5, *shapes), strict=True)) | {"b": _drawn(6, (depth,))[0]}
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"]),
        helper.make_node("MatMul", ["a", "w1"], ["h"]),
        helper.make_node("Add", ["h", "b"], ["g"]),
        helper.make_node("Relu", ["g"], ["r"]),
        helper.make_node("MatMul", ["r", "w2"], ["p"]),
        helper.make_node("Add", ["p", "a"], ["y"]),
    ]
    proto, report = _model(nodes, {"x": [rows, depth]}, weights), tmp_path / "report.json"
    options = {"precision": "bf16", "cpu": tiles.cpu, "cache": False}
    model = mlc.compile(proto, output=tmp_path / "model.so", report=report, **options)
    kernels = [k for k in json.loads(report.read_text())["kernels"] if k["template"] == "tile_product"]
    [last] = [k for k in kernels if "Add:y" in k["nodes"]]
    assert len(kernels) == 3 and len(last["shapes"]) == 3  # it has no input for what is added
    assert all(("mixed" in k["schedule"]) == (depth >= 256) for k in kernels)
    for count in (1, 15, 16, 17, 40, 70) if rows == "m" else (int(rows),):
        [x] = _drawn(count, (count, depth))
        [got] = model(x)
        a = rounded(x) @ rounded(weights["w0"])
        hidden = np.maximum(rounded(a) @ rounded(weights["w1"]) + weights["b"], 0)
        want = a + rounded(hidden) @ rounded(weights["w2"])
        # An operand may be rounded to the neighbour where sums in f32 and in float64 differ.
        assert np.abs(got - want).max() <= 1e-3 * np.abs(want).max()
    assert tiles.count("tdpbf16ps") >= _least(16, depth, columns)


@pytest.mark.parametrize("activation", ["Relu", "Sigmoid", "Tanh"])
def test_activations(tiles: Tiles, tmp_path: Path, activation: str) -> None:
    x, w, b = _drawn(7, (37, 40), (40, 45), (45,))
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["s"]),
        helper.make_node(activation, ["s"], ["y"]),
    ]
    model = _compile(tmp_path, _model(nodes, {"x": x.shape}, {"w": w, "b": b}), tiles.cpu)
    assert _templates(model).count("tile_product") == 1
    [got] = model(x)
    sums = rounded(x) @ rounded(w) + b
    want = {"Relu": np.maximum(sums, 0), "Sigmoid": 1 / (1 + np.exp(-sums)), "Tanh": np.tanh(sums)}[activation]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert tiles.count("tdpbf16ps") >= _least(37, 40, 45)


# -- convolutions ------------------------------------------------------------------------------------------------------

# channels, filters, height, width, window, pads, strides, dilations, groups
MORE_WINDOWS = {
    "3x3 of 64 channels": (64, 32, 9, 20, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 1),
    "3x3 of 40 channels, 7 wide": (40, 33, 7, 7, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 1),
    "3x3 strided, 35 wide": (32, 20, 9, 35, (3, 3), (1, 1, 1, 1), (2, 2), (1, 1), 1),
    "3x3 dilated": (32, 16, 20, 20, (3, 3), (2, 2, 2, 2), (1, 1), (2, 2), 1),
    "5x1 and 5 wide": (16, 40, 12, 5, (5, 1), (2, 0, 2, 0), (1, 1), (1, 1), 1),
    "3x3 strided of 3 channels": (3, 40, 19, 37, (3, 3), (1, 1, 1, 1), (2, 2), (1, 1), 1),
    "5x5 of 4 channels, uneven padding": (4, 20, 11, 18, (5, 5), (0, 1, 2, 3), (1, 1), (1, 1), 1),
    "7x7 strided of 3 channels, wide": (3, 40, 21, 80, (7, 7), (3, 3, 3, 3), (2, 2), (1, 1), 1),
    "5x5 of 12 channels, lines apart": (12, 33, 14, 45, (5, 5), (4, 0, 2, 3), (2, 1), (2, 1), 1),
    "3x3 of 9 channels, unpadded": (9, 16, 8, 50, (3, 3), (0, 0, 0, 0), (1, 1), (1, 1), 1),
    "3x3 padded along lines, 40 wide": (64, 40, 10, 40, (3, 3), (0, 1, 0, 1), (1, 1), (1, 1), 1),
    "2x2 dilated, one line": (256, 8, 3, 17, (2, 2), (0, 3, 0, 2), (1, 1), (2, 2), 1),
    "1x7": (24, 16, 3, 40, (1, 7), (0, 3, 0, 3), (1, 1), (1, 1), 1),
    "1x3 of 64 channels": (64, 40, 9, 20, (1, 3), (0, 1, 0, 1), (1, 1), (1, 1), 1),
    "1x5 strided": (32, 33, 8, 17, (1, 5), (0, 2, 0, 2), (2, 2), (1, 1), 1),
    "1x5 of one line": (32, 40, 1, 20, (1, 5), (0, 2, 0, 2), (1, 1), (1, 1), 1),
    "1x1 of two pixels": (96, 50, 2, 1, (1, 1), (0, 0, 0, 0), (1, 1), (1, 1), 1),
    "in groups": (64, 96, 10, 17, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 2),
}


def side_by_side(name: str) -> int:
    """How many elements of an image that a window sums lie side by side: channels of a group, and taps along a line."""
    channels, _, _, _, (_, taps), _, _, (_, dilation), groups = (WINDOWS | MORE_WINDOWS)[name]
    return channels // groups * (taps if dilation == groups == 1 else 1)


# One channel keeps f32.
CASES = {n: w for n, w in (WINDOWS | MORE_WINDOWS).items() if side_by_side(n) >= 8 and n != "one channel"}


@pytest.mark.parametrize(("dynamic", "name"), spread(list(CASES), True, [False], 3))
def test_convolution(tiles: Tiles, tmp_path: Path, name: str, dynamic: bool) -> None:
    channels, filters, height, width, window, pads, strides, dilations, groups = CASES[name]
    x, filter_, bias = _drawn(8, (2, channels, height, width), (filters, channels // groups, *window), (filters,))
    shape: list[int | str] = ["n", channels, "h", "w"] if dynamic else [*x.shape]
    attributes = {"pads": pads, "strides": strides, "dilations": dilations, "group": groups}
    nodes = [
        helper.make_node("Conv", ["x", "f", "b"], ["c"], **attributes),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    model = _compile(tmp_path, _model(nodes, {"x": shape}, {"f": filter_, "b": bias}), tiles.cpu)
    weights = {"f": rounded(filter_), "b": bias.astype(np.float64)}
    for batch, h, w in [(2, height, width)] + ([(1, height + 3, width + 8)] if dynamic else []):
        before = tiles.count("tdpbf16ps")
        [x] = _drawn(h, (batch, channels, h, w))
        [got] = model(x)
        [want] = _reference(nodes, weights, rounded(x))
        [magnitude] = _reference(nodes, {n: np.abs(v) for n, v in weights.items()}, np.abs(rounded(x)))
        _close(got, want, magnitude, channels // groups * window[0] * window[1])
        used = tiles.count("tdpbf16ps") - before
        # Taps outside of the image are left out by whole rows of tiles.
        pixels, lines = batch * want.shape[2] * want.shape[3], window[0] - pads[0]
        assert used >= groups * _least(pixels, channels // groups * lines, filters // groups)
    assert "tile_product" in _templates(model)


LINES_OF_THREADS = ["1x3 of 64 channels", "3x3 padded along lines, 40 wide", "3x3 strided, 35 wide", "3x3 dilated", "5x1 and 5 wide", "in groups"]


@pytest.mark.parametrize("name", LINES_OF_THREADS)
def test_each_thread_copies_the_lines_that_it_reads(tiles: Tiles, tmp_path: Path, name: str) -> None:
    """Of padded images, three of them, whose work items begin anywhere: the bits that one thread has for all."""
    channels, filters, height, width, window, pads, strides, dilations, groups = CASES[name]
    x, filter_ = _drawn(8, (3, channels, height, width), (filters, channels // groups, *window))
    attributes = {"pads": pads, "strides": strides, "dilations": dilations, "group": groups}
    node = helper.make_node("Conv", ["x", "f"], ["y"], **attributes)
    model, halos = _planned(tmp_path, _model([node], {"x": x.shape}, {"f": filter_}), tiles.cpu, "halo")
    assert halos == [1]
    [want] = _reference([node], {"f": rounded(filter_)}, rounded(x))
    results = [mlc.load(tmp_path / "planned.so", threads=n)(x)[0] for n in (1, 2, 3, 5)]
    np.testing.assert_allclose(results[0], want, atol=1e-4 * np.abs(want).max())
    assert all(np.array_equal(results[0], r) for r in results) and tiles.count("tdpbf16ps") > 0


@pytest.mark.parametrize("shape", [(64, 64, 16), (24, 48, 6), (80, 40, 10), (92, 46, 23)], ids=str)
def test_groups_of_few_channels_are_multiplied_together(
    tiles: Tiles, tmp_path: Path, shape: tuple[int, int, int]
) -> None:
    """By zeros: each sum is the one that a group alone has. Of 23 groups none are joined."""
    channels, filters, groups = shape
    x, filter_ = _drawn(8, (2, channels, 9, 21), (filters, channels // groups, 3, 3))
    node = helper.make_node("Conv", ["x", "f"], ["y"], pads=[1] * 4, group=groups)
    model = _compile(tmp_path, _model([node], {"x": x.shape}, {"f": filter_}), tiles.cpu)
    assert ("tile_product" in _templates(model)) == (groups != 23)
    [want] = _reference([node], {"f": rounded(filter_)}, rounded(x))
    [magnitude] = _reference([node], {"f": np.abs(rounded(filter_))}, np.abs(rounded(x)))
    _close(model(x)[0], want, magnitude, channels // groups * 9)


def test_weights_may_be_many_times_as_large_when_they_are_packed(tiles: Tiles, tmp_path: Path) -> None:
    """Two filters of 64 channels and 49 taps a group are 6 MB in tiles."""
    x, filter_ = _drawn(8, (1, 2048, 8, 8), (64, 64, 7, 7))
    node = helper.make_node("Conv", ["x", "f"], ["y"], pads=[3] * 4, group=32)
    model = _compile(tmp_path, _model([node], {"x": x.shape}, {"f": filter_}), tiles.cpu)
    [want] = _reference([node], {"f": rounded(filter_)}, rounded(x))
    [magnitude] = _reference([node], {"f": np.abs(rounded(filter_))}, np.abs(rounded(x)))
    _close(model(x)[0], want, magnitude, 64 * 49)
    assert tiles.count("tdpbf16ps")


# channels, filters, height, width, window, pads, dilations
FLAT = {
    "20 wide": (32, 40, 20, 20, (3, 3), (1, 1, 1, 1), (1, 1)),
    "7 wide, 48 channels": (48, 33, 7, 7, (3, 3), (1, 1, 1, 1), (1, 1)),
    "9 wide, uneven padding": (64, 20, 12, 9, (3, 3), (0, 2, 1, 1), (1, 1)),
    "22 wide, dilated": (48, 50, 11, 22, (3, 3), (2, 2, 2, 2), (2, 2)),
    "33 wide, 5x5": (32, 16, 6, 33, (5, 5), (2, 2, 2, 2), (1, 1)),
    "5 wide, nothing behind": (96, 32, 5, 5, (2, 2), (1, 1, 0, 0), (1, 1)),
    "large weight": (256, 96, 10, 10, (3, 3), (1, 1, 1, 1), (1, 1)),
}


@pytest.mark.parametrize("name", FLAT)
def test_rows_go_over_the_zeros_between_lines(tiles: Tiles, tmp_path: Path, name: str) -> None:
    """In fewer tiles than lines have, for any number of threads: of three images, with a residual."""
    channels, filters, height, width, window, pads, dilations = FLAT[name]
    x, filter_ = _drawn(8, (3, channels, height, width), (filters, channels, *window))
    conv, alone = (helper.make_node("Conv", ["x", "f"], [y], pads=pads, dilations=dilations) for y in "cy")
    [want] = _reference([alone], {"f": rounded(filter_)}, rounded(x))
    [magnitude] = _reference([alone], {"f": np.abs(rounded(filter_))}, np.abs(rounded(x)))
    [residual] = _drawn(9, want.shape)
    nodes = [conv, helper.make_node("Add", ["c", "r"], ["y"])]
    proto = _model(nodes, {"x": x.shape, "r": residual.shape}, {"f": filter_})
    _, flat = _planned(tmp_path, proto, tiles.cpu, "flat")
    assert flat == [width + max(pads[1], pads[3])]
    results = []
    for threads in (1, 2, 3, 5):
        before = tiles.count("tdpbf16ps")
        results.append(mlc.load(tmp_path / "planned.so", threads=threads)(x, residual)[0])
        by_lines = 3 * want.shape[2] * _least(want.shape[3], channels, filters) * window[0] * window[1]
        assert 0 < tiles.count("tdpbf16ps") - before < by_lines
    _close(results[0] - residual, want, magnitude + np.abs(residual), channels * window[0] * window[1])
    assert all(np.array_equal(results[0], r) for r in results)


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_rounding_is_to_nearest_even_and_special_values_are_kept(tiles: Tiles, tmp_path: Path) -> None:
    """A product with the identity shows how operands are rounded."""
    bits = np.random.default_rng(5).integers(0, 1 << 32, 256, dtype=np.uint64).astype(np.uint32)
    ties = (bits & 0xFFFF0000) | 0x8000
    values = np.concatenate([bits, ties, ties + 1, ties - 1]).view(np.float32)
    magnitude = np.abs(values)
    values = values[(magnitude > 1e-37) & (magnitude < 3e38)]  # tiles take denormal numbers for zeros
    x = np.zeros((len(values) + 3, 32), np.float32)
    x[: len(values), 0] = values
    x[-3:] = [[np.nan] * 32, [np.inf] * 32, [-np.inf] * 32]
    w = np.zeros((32, 16), np.float32)
    w[0] = 1
    proto = _model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ["n", 32]}, {"w": w})
    [got] = _compile(tmp_path, proto, tiles.cpu)(x)
    np.testing.assert_array_equal(got[:-3, 5], values.astype(ml_dtypes.bfloat16).astype(np.float32))
    assert np.isnan(got[-3:]).all()  # infinity times zero
    proto = _model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ["n", 32]}, {"w": np.ones_like(w)})
    [got] = _compile(tmp_path, proto, tiles.cpu)(x[-3:])
    np.testing.assert_array_equal(got[:, 3], [np.nan, np.inf, -np.inf])
    assert tiles.count("tdpbf16ps") > 0


@pytest.mark.parametrize("depth", [16, 45, 48])
def test_what_lies_beside_the_operands_is_not_multiplied(tiles: Tiles, tmp_path: Path, depth: int) -> None:
    """Zeros stand for what is behind the end of a sum, on both sides, and steps of one size leave nothing there: NaN
    would show."""
    full = np.full((2, 17, depth), np.nan, np.float32)
    [w] = _drawn(9, (depth, 20))
    proto = _model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ["b", 17, depth]}, {"w": w})
    model = _compile(tmp_path, proto, tiles.cpu)
    full[0] = _drawn(10, (17, depth))[0]
    [got] = model(full)
    assert np.isfinite(got[0]).all() and np.isnan(got[1]).all()
    full[0, 3] = np.nan  # one row, and no other one
    [got] = model(full)
    np.testing.assert_array_equal(np.isnan(got[0]).all(1), np.arange(17) == 3)


def test_threads_give_the_same_bits(tiles: Tiles, tmp_path: Path) -> None:
    w, x = _drawn(6, (64, 300), (50, 64))
    proto = _model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [50, 64]}, {"w": w})
    _compile(tmp_path, proto, tiles.cpu)
    results = [mlc.load(tmp_path / "model0.so", threads=n)(x)[0] for n in (1, 2, 3)]
    assert all(np.array_equal(results[0], r) for r in results)
    assert tiles.count("tdpbf16ps") >= 3 * _least(50, 64, 300)
