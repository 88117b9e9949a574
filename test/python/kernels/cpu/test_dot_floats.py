"""Contractions of bf16 that are multiplied in f32: blocks of the reduction, lines of images, ends of rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from models.processors import skip_unless_it_runs
from onnx import helper
from spread import spread
from test_dot_product import _close, _compile, _model, _reference, rounded
from windows import WINDOWS

import mlc

CPUS = ["x86-64-v4", "x86-64-v3", "x86-64"]
# One block and several; an odd reduction, which is one block; ends of tiles, of vectors and of panels.
SHAPES = [(16, 16, 64), (128, 768, 96), (131, 192, 200), (49, 77, 51), (20, 600, 33), (250, 33, 8)]
CONVOLUTIONS = {
    **WINDOWS,
    "3x3, a block a tap": (64, 80, 14, 14, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 1),
    "3x3, blocks of channels": (192, 48, 7, 7, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 1),
    "3x3 strided, lines": (48, 70, 33, 21, (3, 3), (1, 1, 1, 1), (2, 2), (1, 1), 1),
    "long lines": (32, 40, 5, 150, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 1),
    "4x4, blocks of two taps": (32, 64, 30, 44, (4, 4), (1, 1, 1, 1), (1, 1), (1, 1), 1),
    "a line of taps, blocks of two": (256, 64, 5, 44, (1, 4), (0, 1, 0, 2), (1, 1), (1, 1), 1),
    "without padding": (64, 40, 12, 13, (3, 3), (0, 0, 0, 0), (1, 1), (1, 1), 1),
    "dilated": (33, 40, 15, 17, (3, 5), (0, 1, 2, 3), (2, 1), (1, 2), 1),
    "dilated, a block a tap": (96, 40, 15, 17, (3, 3), (2, 2, 2, 2), (1, 1), (2, 2), 1),
    "a line of taps": (64, 40, 15, 17, (1, 5), (0, 2, 0, 2), (1, 1), (1, 1), 1),
    "a column of taps": (64, 40, 15, 17, (5, 1), (2, 0, 2, 0), (1, 1), (1, 1), 1),
    "1x1 in a frame": (64, 40, 9, 9, (1, 1), (1, 1, 1, 1), (1, 1), (1, 1), 1),
    "groups": (64, 64, 14, 14, (3, 3), (1, 1, 1, 1), (1, 1), (1, 1), 2),
}


def _templates(model: mlc.Model) -> list[str]:
    return [kernel["template"] for kernel in model.metadata["kernels"]]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
def test_product(tmp_path: Path, shape: tuple[int, int, int], dynamic: bool, cpu: str) -> None:
    skip_unless_it_runs(cpu)
    rows, depth, columns = shape
    rng = np.random.default_rng(0)
    w = rng.standard_normal((depth, columns)).astype(np.float32)
    bias = rng.standard_normal(columns).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]
    shapes: dict[str, Sequence[int | str]] = {"x": ["m", depth] if dynamic else [rows, depth]}
    model = _compile(tmp_path, _model(nodes, shapes, {"w": w, "b": bias}), cpu)
    assert "dot_floats" in _templates(model)
    for m in (rows, 1, 0, 7, 300) if dynamic else (rows,):
        x = rng.standard_normal((m, depth)).astype(np.float32)
        [got] = model(x)
        a, b = rounded(x), rounded(w)
        _close(got, a @ b + bias, np.abs(a) @ np.abs(b) + np.abs(bias), depth)


@pytest.mark.parametrize("cpu", CPUS[:2])
@pytest.mark.parametrize(("dynamic", "name"), spread(list(CONVOLUTIONS), True, [False], 3))
def test_convolution(tmp_path: Path, name: str, dynamic: bool, cpu: str) -> None:
    skip_unless_it_runs(cpu)
    channels, filters, height, width, window, pads, strides, dilations, groups = CONVOLUTIONS[name]
    rng = np.random.default_rng(4)
    filter_ = rng.standard_normal((filters, channels // groups, *window)).astype(np.float32)
    bias = rng.standard_normal(filters).astype(np.float32)
    shape: list[int | str] = ["n", channels, "h", "w"] if dynamic else [2, channels, height, width]
    nodes = [
        helper.make_node("Conv", ["x", "f", "b"], ["c"], pads=pads, strides=strides, dilations=dilations, group=groups),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    model = _compile(tmp_path, _model(nodes, {"x": shape}, {"f": filter_, "b": bias}), cpu)
    assert ("dot_floats" in _templates(model)) == (channels // groups >= 16)
    exact = (lambda v: v.astype(np.float64)) if channels == groups else rounded
    weights = {"f": exact(filter_), "b": bias.astype(np.float64)}
    sizes = [(2, height, width)] + ([(1, height + 3, width + 8)] if dynamic else [])
    for batch, h, w in sizes:
        x = rng.standard_normal((batch, channels, h, w)).astype(np.float32)
        [got] = model(x)
        [want] = _reference(nodes, weights, exact(x))
        [magnitude] = _reference(nodes, {n: np.abs(v) for n, v in weights.items()}, np.abs(exact(x)))
        _close(got, want, magnitude, channels // groups * window[0] * window[1])


@pytest.mark.parametrize("rows", [16, 40])
def test_results_are_those_of_multiply_adds_in_the_loop(tmp_path: Path, rows: int) -> None:
    """Few rows are multiplied by another template: a row's bits do not depend on how many there are."""
    rng = np.random.default_rng(1)
    w = rng.standard_normal((768, 70)).astype(np.float32)
    x = rng.standard_normal((rows, 768)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    many, few = (_compile(tmp_path, _model([node], {"x": [m, 768]}, {"w": w}), "x86-64-v3") for m in (rows, 2))
    assert "dot_floats" in _templates(many) and "dot_product" in _templates(few)
    np.testing.assert_array_equal(many(x)[0][:2], few(x[:2])[0])


def test_threads_give_the_same_bits(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    w = rng.standard_normal((192, 300)).astype(np.float32)
    proto = _model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [200, 192]}, {"w": w})
    x = rng.standard_normal((200, 192)).astype(np.float32)
    _compile(tmp_path, proto, "x86-64-v3")
    results = [mlc.load(tmp_path / "model0.so", threads=n)(x)[0] for n in (1, 2, 3)]
    assert all(np.array_equal(results[0], r) for r in results)
