"""Contractions of integers of eight bits, bit by bit against 64-bit integers: signs, zero points, tails, windows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from models.processors import runs_here, skip_unless_it_runs, templates_of_bytes
from onnx import helper, numpy_helper
from spread import spread
from windows import WINDOWS

import mlc

# native: vpdpbusd where this machine has it; vpmaddwd of 512, 256 and 128 bits
CPUS = ["native", "x86-64-v4", "x86-64-v3", "x86-64"]
SIGNS = [(np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8), (np.int8, np.uint8)]


def _numbers(seed: int, shape: Sequence[int], dtype: type) -> np.ndarray:
    """Numbers of all values, the extreme ones often."""
    rng, info = np.random.default_rng(seed), np.iinfo(dtype)
    values = rng.integers(info.min, info.max + 1, shape)
    extreme = rng.choice([info.min, info.max], shape)
    return np.where(rng.random(shape) < 0.3, extreme, values).astype(dtype)


def _model(
    node: onnx.NodeProto, inputs: dict[str, tuple[type, Sequence[int | str]]], weights: dict[str, np.ndarray]
) -> onnx.ModelProto:
    graph = helper.make_graph(
        [node],
        "quads",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
            for name, (dtype, shape) in inputs.items()
        ],
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT32, None)],
        [numpy_helper.from_array(np.asarray(w), name) for name, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _compile(tmp_path: Path, proto: onnx.ModelProto, cpu: str) -> mlc.Model:
    number = len(list(tmp_path.iterdir()))  # a loaded library keeps its file
    return mlc.compile(proto, output=tmp_path / f"model{number}.so", cpu=cpu)


def _templates(model: mlc.Model) -> list[str]:
    return [kernel["template"] for kernel in model.metadata["kernels"]]


def _of_bytes(model: mlc.Model, cpu: str = "native") -> bool:
    """Is there a product of bytes?"""
    return bool(templates_of_bytes(cpu) & set(_templates(model)))


def _product(x: np.ndarray, w: np.ndarray, zero_x: object, zero_w: object) -> np.ndarray:
    return (x.astype(np.int64) - np.asarray(zero_x, np.int64)) @ (w.astype(np.int64) - np.asarray(zero_w, np.int64))


SHAPES = [(6, 64, 64), (13, 77, 51), (1, 33, 130), (5, 9, 16), (7, 8, 1), (70, 31, 65), (4, 2, 20), (3, 259, 17)]
SHAPES += [(8, 1024, 24), (11, 1099, 40)]  # sums in pieces of 512


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
def test_product_with_a_weight(tmp_path: Path, shape: tuple[int, int, int], cpu: str) -> None:
    skip_unless_it_runs(cpu)
    rows, depth, columns = shape
    left, right = SIGNS[(rows + columns) % 4]
    x, w = _numbers(1, (rows, depth), left), _numbers(2, (depth, columns), right)
    zeros = {"zx": left(7), "zw": right(3)}
    node = helper.make_node("MatMulInteger", ["x", "w", "zx", "zw"], ["y"])
    model = _compile(tmp_path, _model(node, {"x": (left, x.shape)}, {"w": w, **zeros}), cpu)
    assert w.size <= 64 or _of_bytes(model, cpu)  # small weights are constants, which are not packed
    [got] = model(x)
    np.testing.assert_array_equal(got, _product(x, w, 7, 3))


@pytest.mark.parametrize("signs", SIGNS, ids=lambda s: f"{s[0].__name__}-{s[1].__name__}")
@pytest.mark.parametrize("cpu", CPUS)
def test_zero_points(tmp_path: Path, signs: tuple[type, type], cpu: str) -> None:
    """None, constant ones, one for every column; and known at run time, one for every row. Two of the five for each pair
    of processor and signs, so that all signs meet each, and so does every processor.
    """
    skip_unless_it_runs(cpu)
    left, right = signs
    x, w = _numbers(3, (9, 50), left), _numbers(4, (50, 33), right)
    per_column, per_row = _numbers(5, (33,), right), _numbers(6, (9,), left)
    cases: list[tuple[list[str], dict[str, np.ndarray], object, object]] = [
        (["x", "w"], {}, 0, 0),
        (["x", "w", "zx"], {"zx": left(100)}, 100, 0),
        (["x", "w", "zx", "zw"], {"zx": left(0), "zw": right(128 % 127)}, 0, 1),
        (["x", "w", "zx", "zw"], {"zx": left(100), "zw": per_column}, 100, per_column),
        (["x", "w", "zx", "zw"], {"zw": per_column}, per_row[:, None], per_column),
    ]
    first = [c for c in CPUS if runs_here(c)].index(cpu) + 2 * SIGNS.index(signs)
    for names, zeros, zero_x, zero_w in (cases[first % 5], cases[(first + 2) % 5]):
        node = helper.make_node("MatMulInteger", names, ["y"])
        at_run_time = not isinstance(zero_x, int)
        inputs = {"x": (left, [9 if at_run_time else "m", 50])} | ({"zx": (left, (9,))} if at_run_time else {})
        model = _compile(tmp_path, _model(node, inputs, {"w": w, **zeros}), cpu)
        assert at_run_time or _of_bytes(model, cpu)
        for rows in (9,) if at_run_time else (9, 1, 4):
            [got] = model(x[:rows], *([per_row] if at_run_time else []))
            np.testing.assert_array_equal(got, _product(x[:rows], w, zero_x, zero_w))


@pytest.mark.parametrize("signs", SIGNS, ids=lambda s: f"{s[0].__name__}-{s[1].__name__}")
def test_product_of_two_inputs(tmp_path: Path, signs: tuple[type, type]) -> None:
    """Rows of the right operand are interleaved on the way; all extents are known at run time only."""
    left, right = signs
    node = helper.make_node("MatMulInteger", ["x", "z", "zx", "zz"], ["y"])
    inputs = {"x": (left, ["b", "m", "k"]), "z": (right, ["b", "k", "n"])}
    for cpu in [c for c in CPUS if runs_here(c)]:
        model = _compile(tmp_path, _model(node, inputs, {"zx": left(9), "zz": right(5)}), cpu)
        assert "dot_quads" in _templates(model)
        for batch, rows, depth, columns in ((2, 7, 40, 33), (1, 1, 3, 70), (3, 12, 21, 16), (2, 5, 1, 9), (1, 2, 0, 3)):
            x, z = _numbers(1, (batch, rows, depth), left), _numbers(2, (batch, depth, columns), right)
            [got] = model(x, z)
            np.testing.assert_array_equal(got, _product(x, z, 9, 5))


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("shape", [(6, 64, 64), (13, 77, 51), (1, 1099, 24), (5, 9, 16)], ids=str)
def test_codes_that_are_never_negative(tmp_path: Path, shape: tuple[int, int, int], cpu: str) -> None:
    """Codes up to 127 by weights down to -128: sums of two products are the largest that 16 bits hold."""
    skip_unless_it_runs(cpu)
    rows, depth, columns = shape
    x = _numbers(1, (rows, depth), np.int8).astype(np.float32)
    w = _numbers(2, (depth, columns), np.int8)
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "one", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "one", "zero"], ["a"]),
        helper.make_node("DequantizeLinear", ["w", "one", "zero"], ["b"]),
        helper.make_node("MatMul", ["a", "b"], ["y"]),
    ]
    proto = _model(nodes[0], {"x": (np.float32, x.shape)}, {"w": w, "one": np.float32(1), "zero": np.int8(0)})
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    model = _compile(tmp_path, proto, cpu)
    assert _of_bytes(model, cpu)
    [got] = model(x)
    np.testing.assert_array_equal(got, _product(np.maximum(x, 0), w, 0, 0))


ZEROS = [(77, 50), (0, 0), (130, 0), (0, 128)]
CASES = [(name, ZEROS[i % 4]) for i, name in enumerate(WINDOWS)] + [("3x3", zeros) for zeros in ZEROS]


@pytest.mark.parametrize(("dynamic", "case"), spread(CASES, True, [False], 3), ids=str)
def test_convolution(tmp_path: Path, case: tuple[str, tuple[int, int]], dynamic: bool) -> None:
    """Padding stands for the zero point, whatever the signs."""
    name, zeros = case
    channels, filters, height, width, window, pads, strides, dilations, groups = WINDOWS[name]
    left, right = (np.uint8, np.int8) if zeros[1] < 128 else (np.int8, np.uint8)
    w = _numbers(8, (filters, channels // groups, *window), right)
    shape: list[int | str] = ["n", channels, "h", "w"] if dynamic else [2, channels, height, width]
    attributes = {"pads": pads, "strides": strides, "dilations": dilations, "group": groups}
    node = helper.make_node("ConvInteger", ["x", "f", "zx", "zf"], ["y"], **attributes)
    points = {"zx": left(zeros[0]), "zf": right(zeros[1])}
    model = _compile(tmp_path, _model(node, {"x": (left, shape)}, {"f": w, **points}), "native")
    assert channels == groups or _of_bytes(model)
    for batch, h, wide in [(2, height, width)] + ([(1, height + 3, width + 8)] if dynamic else []):
        x = _numbers(h, (batch, channels, h, wide), left)
        [got] = model(x)
        np.testing.assert_array_equal(got, _convolved(x.astype(np.float64) - zeros[0], w - float(zeros[1]), attributes))


def _convolved(x: np.ndarray, w: np.ndarray, attributes: dict[str, object]) -> np.ndarray:
    """In float64, which is exact here."""
    pads, strides, dilations = (list(attributes[k]) for k in ("pads", "strides", "dilations"))  # type: ignore[call-overload]
    groups, (filters, channels, *window) = int(str(attributes["group"])), w.shape
    padded = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    reach = [(taps - 1) * step + 1 for taps, step in zip(window, dilations, strict=True)]
    taps = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=(2, 3))
    taps = taps[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]
    split = taps.reshape(len(x), groups, channels, *taps.shape[2:])
    result = np.einsum("ngchwij,gocij->ngohw", split, w.reshape(groups, filters // groups, channels, *window))
    return result.reshape(len(x), filters, *result.shape[3:]).astype(np.int64)


def test_threads_give_the_same_bits(tmp_path: Path) -> None:
    x, w = _numbers(1, (50, 64), np.uint8), _numbers(2, (64, 300), np.int8)
    node = helper.make_node("MatMulInteger", ["x", "w"], ["y"])
    _compile(tmp_path, _model(node, {"x": (np.uint8, x.shape)}, {"w": w}), "native")
    results = [mlc.load(tmp_path / "model0.so", threads=n)(x)[0] for n in (1, 2, 3)]
    assert all(np.array_equal(results[0], r) for r in results)
