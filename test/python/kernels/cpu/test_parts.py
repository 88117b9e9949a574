"""Contractions whose rows are in parts, each of which meets all panels before the next part does: rows, lines and panels
that no number of parts divides, panels that are fetched ahead, depthwise convolutions, and sizes of the run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from test_dot_product import _model, _reference

import mlc

# channels, filters, height, width, window, strides, groups
CASES = {
    "1x1": (40, 200, 37, 41, 1, 1, 1),
    "1x1 with panels ahead": (700, 150, 33, 31, 1, 1, 1),
    "3x3": (24, 100, 31, 45, 3, 1, 1),
    "3x3 strided": (16, 72, 61, 39, 3, 2, 1),
    "depthwise": (100, 100, 29, 23, 3, 1, 100),
    "depthwise strided": (76, 76, 17, 50, 5, 2, 76),
    "few lines": (64, 200, 3, 90, 3, 1, 1),
    "one line with panels ahead": (256, 150, 1, 400, 3, 1, 1),
}


def _schedules(report: Path) -> list[dict[str, int | str]]:
    return [{**k["schedule"], "template": k["template"]} for k in json.loads(report.read_text())["kernels"]]


def _compared(model: mlc.Model, nodes: list[onnx.NodeProto], weights: dict[str, np.ndarray], x: np.ndarray) -> None:
    """Against float64, with as many roundings as the longest sum has terms."""
    [got] = model(x)
    exact = {name: value.astype(np.float64) for name, value in weights.items()}
    [want] = _reference(nodes, exact, x.astype(np.float64))
    [magnitude] = _reference(
        nodes, {name: np.abs(value) for name, value in exact.items()}, np.abs(x.astype(np.float64))
    )
    terms = max(value[0].size for value in weights.values())
    assert np.all(np.abs(got - want) <= 1e-7 * terms**0.5 * 4 * magnitude + 1e-6)


@pytest.mark.parametrize("cpu", ["x86-64-v3", "native"])
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", CASES)
def test_convolution(tmp_path: Path, name: str, dynamic: bool, cpu: str) -> None:
    channels, filters, height, width, window, stride, groups = CASES[name]
    rng = np.random.default_rng(3)
    f = rng.standard_normal((filters, channels // groups, window, window)).astype(np.float32)
    nodes = [  # channels last outside
        helper.make_node("Transpose", ["x"], ["i"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["i", "f"], ["o"], pads=[window // 2] * 4, strides=[stride] * 2, group=groups),
        helper.make_node("Transpose", ["o"], ["y"], perm=[0, 2, 3, 1]),
    ]
    shape: list[int | str] = ["n" if dynamic else 1, height, width, channels]
    report = tmp_path / "report.json"
    model = mlc.compile(_model(nodes, {"x": shape}, {"f": f}), output=tmp_path / "m.so", cpu=cpu, report=report)
    parts = [s["part"] for s in _schedules(report) if "part" in s]
    assert parts or dynamic and "ahead" in name or name == "few lines"
    for batch in (1, 3) if dynamic else (1,):
        _compared(model, nodes, {"f": f}, rng.standard_normal((batch, height, width, channels)).astype(np.float32))


@pytest.mark.parametrize("rows", [385, 400, 777])
def test_product(tmp_path: Path, rows: int) -> None:
    rng = np.random.default_rng(rows)
    w = rng.standard_normal((50, 210)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    report = tmp_path / "report.json"
    model = mlc.compile(
        _model(nodes, {"x": [rows, 50]}, {"w": w}), output=tmp_path / "m.so", cpu="x86-64-v3", report=report
    )
    assert [s["template"] for s in _schedules(report) if "part" in s] == ["contraction"]
    x = rng.standard_normal((rows, 50)).astype(np.float32)
    want = x.astype(np.float64) @ w
    np.testing.assert_allclose(model(x)[0], want, rtol=0, atol=2e-6 * np.abs(want).max())


def test_threads_have_the_same_rows_of_each_kernel(tmp_path: Path) -> None:
    """The first half of a depthwise convolution's work items, and of a 1x1 one's, is the first half of the lines."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["i"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["i", "f"], ["h"]),
        helper.make_node("Conv", ["h", "g"], ["o"], pads=[1] * 4, group=128),
        helper.make_node("Transpose", ["o"], ["y"], perm=[0, 2, 3, 1]),
    ]
    rng = np.random.default_rng(0)
    shapes = {"f": (128, 32, 1, 1), "g": (128, 1, 3, 3)}
    weights = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    report = tmp_path / "report.json"
    model = _model(nodes, {"x": [1, 32, 32, 32]}, weights)
    mlc.compile(model, output=tmp_path / "m.so", cpu="x86-64-v3", report=report, load=False)
    found = [s for s in _schedules(report) if s["template"] == "contraction"]
    assert len(found) == 2
    for schedule in found:
        lines = 32 if schedule["row_first"] == schedule["row_last"] else 1
        tiles = -(-1024 // lines // int(schedule["rows"]))
        blocks = lines * -(-tiles // int(schedule["block"]))
        assert blocks % 2 == 0 and blocks // 2 % int(schedule["part"]) == 0
