"""Contractions of integers of eight bits on matrix tiles, bit by bit: signs, zero points, tails, windows, and quantized
graphs around them. That tiles multiplied is counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from test_dot_quads import SIGNS, ZEROS, _compile, _convolved, _model, _numbers, _product, _templates
from test_tile_product import MORE_WINDOWS, side_by_side
from tiles.emulated import Tiles
from windows import WINDOWS

import mlc

ROWS, COLUMNS, STEPS = 16, 16, 64  # of a tile of sums, and the products of a step


def _id(pair: tuple[object, object]) -> str:
    """Two types or numbers in the name of a test."""
    return "-".join(v.__name__ if isinstance(v, type) else str(v) for v in pair)


def _instruction(left: type, right: type) -> str:
    return "tdpb" + "".join("u" if kind is np.uint8 else "s" for kind in (left, right)) + "d"


def _least(rows: int, depth: int, columns: int) -> int:
    """The fewest products of tiles that a product of matrices takes."""
    return -(-rows // ROWS) * -(-columns // COLUMNS) * -(-depth // STEPS)


# rows, depth, columns
SHAPES = [
    *((4, 64, 64), (5, 77, 51), (16, 33, 130), (17, 16, 16), (31, 19, 5), (70, 31, 65), (32, 128, 32), (33, 259, 17)),
    *((48, 62, 33), (49, 65, 15), (50, 600, 40), (33, 2100, 17)),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
def test_product_with_a_weight(tiles: Tiles, tmp_path: Path, shape: tuple[int, int, int]) -> None:
    rows, depth, columns = shape
    left, right = SIGNS[(rows + columns) % 4]
    x, w = _numbers(1, (rows, depth), left), _numbers(2, (depth, columns), right)
    zeros = {"zx": left(7), "zw": right(3)}
    node = helper.make_node("MatMulInteger", ["x", "w", "zx", "zw"], ["y"])
    model = _compile(tmp_path, _model(node, {"x": (left, x.shape)}, {"w": w, **zeros}), tiles.cpu)
    assert "tile_product" in _templates(model)
    [got] = model(x)
    np.testing.assert_array_equal(got, _product(x, w, 7, 3))
    assert tiles.count(_instruction(left, right)) >= _least(rows, depth, columns) and not tiles.configured


@pytest.mark.parametrize("signs", SIGNS, ids=_id)
def test_zero_points(tiles: Tiles, tmp_path: Path, signs: tuple[type, type]) -> None:
    """None, constant ones, one for every column, the middle; and known at run time, one for every row. Rows are those of
    the run. A weight without a sign is turned over where that takes its zero point away."""
    left, right = signs
    x, w = _numbers(3, (33, 50), left), _numbers(4, (50, 33), right)
    per_column, per_row = _numbers(5, (33,), right), _numbers(6, (33,), left)
    middle = 128 if right is np.uint8 else 0
    cases: list[tuple[list[str], dict[str, np.ndarray], object, object]] = [
        (["x", "w"], {}, 0, 0),
        (["x", "w", "zx"], {"zx": left(100)}, 100, 0),
        (["x", "w", "zx", "zw"], {"zx": left(0), "zw": right(1)}, 0, 1),
        (["x", "w", "zx", "zw"], {"zx": left(100), "zw": per_column}, 100, per_column),
        (["x", "w", "zx", "zw"], {"zx": left(5), "zw": right(middle)}, 5, middle),
    ]
    for names, zeros, zero_x, zero_w in cases:
        node = helper.make_node("MatMulInteger", names, ["y"])
        model = _compile(tmp_path, _model(node, {"x": (left, ["m", 50])}, {"w": w, **zeros}), tiles.cpu)
        name = _instruction(left, np.int8 if np.all(zeros.get("zw", left(0)) == 128) else right)
        for rows in (33, 1, 4, 16, 17):
            before = tiles.count(name)
            [got] = model(x[:rows])
            np.testing.assert_array_equal(got, _product(x[:rows], w, zero_x, zero_w))
            assert tiles.count(name) - before >= _least(rows, 50, 33)
    node = helper.make_node("MatMulInteger", ["x", "w", "zx", "zw"], ["y"])
    inputs = {"x": (left, x.shape), "zx": (left, (33,))}
    model = _compile(tmp_path, _model(node, inputs, {"w": w, "zw": per_column}), tiles.cpu)
    [got] = model(x, per_row)
    np.testing.assert_array_equal(got, _product(x, w, per_row[:, None], per_column))


@pytest.mark.parametrize("signs", SIGNS, ids=_id)
def test_product_of_two_inputs(tiles: Tiles, tmp_path: Path, signs: tuple[type, type]) -> None:
    """Rows of the right operand are interleaved on the way; batches, rows and columns are known at run time only."""
    left, right = signs
    node = helper.make_node("MatMulInteger", ["x", "z", "zx", "zz"], ["y"])
    for depth in (64, 83, 16, 530):
        inputs = {"x": (left, ["b", "m", depth]), "z": (right, ["b", depth, "n"])}
        model = _compile(tmp_path, _model(node, inputs, {"zx": left(9), "zz": right(5)}), tiles.cpu)
        assert "tile_product" in _templates(model)
        for batch, rows, columns in ((2, 7, 33), (1, 1, 70), (3, 32, 16), (2, 50, 9)):
            x, z = _numbers(1, (batch, rows, depth), left), _numbers(2, (batch, depth, columns), right)
            before = tiles.count(_instruction(left, right))
            [got] = model(x, z)
            np.testing.assert_array_equal(got, _product(x, z, 9, 5))
            assert tiles.count(_instruction(left, right)) - before >= batch * _least(rows, depth, columns)


@pytest.mark.parametrize("case", ["few rows", "short sum", "sum of the run"])
def test_products_without_tiles(tiles: Tiles, tmp_path: Path, case: str) -> None:
    """They are products of quads, or of words where the processor has no `vpdpbusd`."""
    rows, depth = {"few rows": (3, 64), "short sum": (40, 15), "sum of the run": (40, 64)}[case]
    x, w = _numbers(1, (rows, depth), np.int8), _numbers(2, (depth, 48), np.uint8)
    inputs: dict[str, tuple[type, Sequence[int | str]]] = {"x": (np.int8, x.shape)}
    if case == "sum of the run":
        inputs = {"x": (np.int8, [rows, "k"]), "w": (np.uint8, ["k", 48])}
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    weights = {} if case == "sum of the run" else {"w": w}
    proto = _model(node, inputs, weights)
    model = _compile(tmp_path, proto, tiles.cpu)
    [got] = model(x, w) if case == "sum of the run" else model(x)
    np.testing.assert_array_equal(got, _product(x, w, 0, 0))
    assert {"dot_quads", "dot_words"} & set(_templates(model)) and not tiles.counts


# -- convolutions ------------------------------------------------------------------------------------------------------

IN_TILES = {n: w for n, w in (WINDOWS | MORE_WINDOWS).items() if side_by_side(n) >= 16}
CASES = [(name, ZEROS[i % 4], SIGNS[(i + i // 4) % 4]) for i, name in enumerate(IN_TILES)]
CASES += [("3x3", zeros, signs) for zeros in ZEROS for signs in SIGNS]


@pytest.mark.parametrize(("name", "zeros", "signs"), CASES, ids=lambda v: v if isinstance(v, str) else _id(v))
def test_convolution(tiles: Tiles, tmp_path: Path, name: str, zeros: tuple[int, int], signs: tuple[type, type]) -> None:
    """Padding stands for the zero point, whatever the signs."""
    channels, filters, height, width, window, pads, strides, dilations, groups = IN_TILES[name]
    (left, right), (zero_x, zero_w) = signs, zeros
    zero_x, zero_w = min(zero_x, np.iinfo(left).max), min(zero_w, np.iinfo(right).max)
    w = _numbers(8, (filters, channels // groups, *window), right)
    dynamic = left is right  # two of the four
    shape: list[int | str] = ["n", channels, "h", "w"] if dynamic else [2, channels, height, width]
    attributes = {"pads": pads, "strides": strides, "dilations": dilations, "group": groups}
    node = helper.make_node("ConvInteger", ["x", "f", "zx", "zf"], ["y"], **attributes)
    points = {"zx": left(zero_x), "zf": right(zero_w)}
    model = _compile(tmp_path, _model(node, {"x": (left, shape)}, {"f": w, **points}), tiles.cpu)
    for batch, h, wide in [(2, height, width)] + ([(1, height + 3, width + 8)] if dynamic else []):
        x = _numbers(h, (batch, channels, h, wide), left)
        [got] = model(x)
        np.testing.assert_array_equal(got, _convolved(x.astype(np.float64) - zero_x, w - float(zero_w), attributes))
    if dynamic or height > 1:
        instruction = _instruction(left, np.int8 if zero_w == 128 else right)
        assert "tile_product" in _templates(model) and tiles.count(instruction) > 0
        # Tiles are configured once: no loop becomes a call (of memset), which they would have to make way for.
        assert tiles.count("ldtilecfg") == tiles.count("tilerelease")


# -- quantized graphs --------------------------------------------------------------------------------------------------


def _graph(
    nodes: Sequence[onnx.NodeProto], x: np.ndarray, weights: dict[str, np.ndarray], kind: type
) -> onnx.ModelProto:
    element = {t: helper.np_dtype_to_tensor_dtype(np.dtype(t)) for t in (x.dtype.type, kind)}
    graph = helper.make_graph(
        list(nodes),
        "quantized",
        [helper.make_tensor_value_info("x", element[x.dtype.type], x.shape)],
        [helper.make_tensor_value_info("y", element[kind], None)],
        [numpy_helper.from_array(np.asarray(w), name) for name, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _codes(x: np.ndarray, scale: float, zero: int, kind: type) -> np.ndarray:
    info = np.iinfo(kind)
    return np.clip(np.rint(x / scale) + zero, info.min, info.max)


@pytest.mark.parametrize("signs", SIGNS, ids=_id)
@pytest.mark.parametrize("form", ["QDQ", "QLinear"])
def test_product_of_codes(tiles: Tiles, tmp_path: Path, form: str, signs: tuple[type, type]) -> None:
    """One kernel from codes to codes, at most one step beside the definition."""
    left, right = signs
    x, w = _numbers(1, (35, 70), left), _numbers(2, (70, 50), right)
    zeros = {"zx": left(20), "zw": right(128 if right is np.uint8 else 0), "zy": left(3)}
    scales = {"sx": np.float32(0.02), "sw": np.float32(0.01), "sy": np.float32(2)}
    if form == "QDQ":
        nodes = [
            helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["a"]),
            helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["b"]),
            helper.make_node("MatMul", ["a", "b"], ["m"]),
            helper.make_node("QuantizeLinear", ["m", "sy", "zy"], ["y"]),
        ]
    else:
        nodes = [helper.make_node("QLinearMatMul", ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"], ["y"])]
    model = _compile(tmp_path, _graph(nodes, x, {"w": w, **zeros, **scales}, left), tiles.cpu)
    assert _templates(model) == ["tile_product"]
    [got] = model(x)
    sums = _product(x, w, zeros["zx"], zeros["zw"])
    steps = np.abs(got.astype(np.float64) - _codes(sums * 2e-4, 2.0, 3, left))
    assert steps.max() <= 1 and (steps > 0).mean() < 0.01 and np.unique(got).size > 20
    assert tiles.count(_instruction(left, np.int8)) >= _least(35, 70, 50)


@pytest.mark.parametrize("signs", SIGNS[:2], ids=_id)
def test_convolution_of_codes(tiles: Tiles, tmp_path: Path, signs: tuple[type, type]) -> None:
    """With a scale for each filter, a bias, a residual sum, and padding that stands for the zero point."""
    left, right = signs
    x, w = _numbers(1, (1, 32, 9, 11), left), _numbers(2, (32, 32, 3, 3), right)
    rng = np.random.default_rng(3)
    bias, scale = rng.integers(-9999, 9999, 32).astype(np.int32), (0.001 * (1 + rng.random(32))).astype(np.float32)
    zeros = {"zx": left(11), "zw": np.zeros(32, right), "zb": np.int32(0)}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["a"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["b"], axis=0),
        helper.make_node("DequantizeLinear", ["bias", "sb"], ["c"], axis=0),
        helper.make_node("Conv", ["a", "b", "c"], ["d"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["d", "a"], ["s"]),
        helper.make_node("Relu", ["s"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "sy", "zx"], ["y"]),
    ]
    scales = {"sx": np.float32(0.05), "sw": scale, "sb": np.float32(0.05) * scale, "sy": np.float32(0.4)}
    model = _compile(tmp_path, _graph(nodes, x, {"w": w, "bias": bias, **zeros, **scales}, left), tiles.cpu)
    assert "tile_product" in _templates(model)
    [got] = model(x)
    attributes = {"pads": (1, 1, 1, 1), "strides": (1, 1), "dilations": (1, 1), "group": 1}
    sums = _convolved(x.astype(np.float64) - 11, w.astype(np.float64), attributes) + bias[:, None, None]
    floats = sums * 0.05 * scale.astype(np.float64)[:, None, None] + 0.05 * (x.astype(np.float64) - 11)
    steps = np.abs(got.astype(np.float64) - _codes(np.maximum(floats, 0), 0.4, 11, left))
    assert steps.max() <= 1 and (steps > 0).mean() < 0.01 and np.unique(got).size > 20
    assert tiles.count(_instruction(left, right)) >= _least(9 * 11, 32 * 4, 32)


def test_dynamic_quantization(tiles: Tiles, tmp_path: Path) -> None:
    """The codes, their scale and their zero point are those of the run."""
    rng = np.random.default_rng(4)
    x, w = rng.standard_normal((37, 96)).astype(np.float32), _numbers(2, (96, 40), np.int8)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["m"]),
        helper.make_node("Cast", ["m"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["s", "sw"], ["p"]),
        helper.make_node("Mul", ["f", "p"], ["y"]),
    ]
    model = _compile(tmp_path, _graph(nodes, x, {"w": w, "sw": np.float32(0.01)}, np.float32), tiles.cpu)
    assert "tile_product" in _templates(model)
    [got] = model(x)
    low, high = min(x.min(), 0), max(x.max(), 0)
    scale = np.float32((high - low) / 255)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    codes = np.clip(np.rint(x / scale) + zero, 0, 255)
    np.testing.assert_allclose(got, (codes - zero) @ w.astype(np.float64) * scale * 0.01, rtol=1e-5)
    assert tiles.count("tdpbusd") >= _least(37, 96, 40)


def test_weights_of_few_bits_stay_with_floats(tiles: Tiles, tmp_path: Path) -> None:
    """Only the weight is quantized: it is scaled where a product of floats reads it."""
    x, w = np.random.default_rng(5).standard_normal((20, 64)).astype(np.float32), _numbers(2, (64, 96), np.int8)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "sw"], ["b"]),
        helper.make_node("MatMul", ["x", "b"], ["y"]),
    ]
    model = _compile(tmp_path, _graph(nodes, x, {"w": w, "sw": np.float32(0.01)}, np.float32), tiles.cpu)
    [got] = model(x)
    np.testing.assert_allclose(got, x @ (w * 0.01), rtol=1e-4, atol=1e-4)
    assert "tile_product" not in _templates(model) and not tiles.counts


def test_threads_give_the_same_bits(tiles: Tiles, tmp_path: Path) -> None:
    x, w = _numbers(1, (50, 64), np.uint8), _numbers(2, (64, 300), np.int8)
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    _compile(tmp_path, _model(node, {"x": (np.uint8, x.shape)}, {"w": w}), tiles.cpu)
    results = [mlc.load(tmp_path / "model0.so", threads=n)(x)[0] for n in (1, 2, 3)]
    assert all(np.array_equal(results[0], r) for r in results)
    assert tiles.count("tdpbusd") >= 3 * _least(50, 64, 300)
