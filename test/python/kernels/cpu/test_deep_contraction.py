"""Products and convolutions over many steps, in blocks of the reduction: right, the same bits as in one block, and for all threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from models.processors import skip_unless_it_runs
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import mlc
from mlc._native import host_info
from mlc.passes.schedule import contraction_cost
from mlc.targets.cpu import resolve

CPU, WIDE = "x86-64-v3", "x86-64-v4"
SHAPES = [(40, 100, 4096), (25, 107, 3072), (130, 180, 2560)]


def _model(m: int | str, n: int, k: int) -> onnx.ModelProto:
    """`relu(x @ w + b) + r`."""
    rng = np.random.default_rng(1)
    weights = {"w": rng.standard_normal((k, n)).astype(np.float32), "b": rng.standard_normal(n).astype(np.float32)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["q"]),
        helper.make_node("Relu", ["q"], ["s"]),
        helper.make_node("Add", ["s", "r"], ["y"]),
    ]
    shapes = {"x": [m, k], "r": [m, n], "y": [m, n]}
    ends = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()}
    inits = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "deep", [ends["x"], ends["r"]], [ends["y"]], inits)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _want(proto: onnx.ModelProto, x: np.ndarray, r: np.ndarray) -> np.ndarray:
    w, b = (numpy_helper.to_array(t).astype(np.float64) for t in proto.graph.initializer)
    return np.maximum(x @ w + b, 0) + r


@pytest.fixture
def narrow_is_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Panels that are narrower than with the widest vectors count as large all the same."""
    if resolve("native", host_info()).vector_bits < 512:
        monkeypatch.setattr(contraction_cost, "FAR", contraction_cost.FAR // 4)


@pytest.mark.parametrize("m, n, k", SHAPES)
@pytest.mark.usefixtures("narrow_is_far")
def test_blocks_change_no_bit(tmp_path: Path, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(0)
    x, r = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (m, n)))
    proto, scheduled = _model(m, n, k), tmp_path / "scheduled.mlir"
    mlc.compile(proto, output=scheduled, emit="schedule")
    text = scheduled.read_text()
    assert 'template = "deep_contraction"' in text
    scheduled.write_text(text.replace('template = "deep_contraction"', 'template = "contraction"'))
    whole = mlc.compile(scheduled, output=tmp_path / "whole.so", from_phase="schedule")
    expected = whole(x, r)[0]
    mlc.compile(proto, output=tmp_path / "blocks.so", cache=False)
    for threads in (1, 2, 3):
        assert mlc.load(tmp_path / "blocks.so", threads=threads)(x, r)[0].tobytes() == expected.tobytes()
    want = _want(proto, x, r)
    assert np.max(np.abs(expected - want)) <= 2e-6 * np.max(np.abs(want))


@pytest.mark.usefixtures("narrow_is_far")
def test_any_rows(tmp_path: Path) -> None:
    """Rows that a run counts: fewer than a tile and than fetch ahead, and more than a work item has."""
    n, k = 200, 3072
    proto, report, rng = _model("rows", n, k), tmp_path / "report.json", np.random.default_rng(0)
    mlc.compile(proto, output=tmp_path / "any.so", report=report, cache=False)
    assert '"deep_contraction"' in report.read_text()
    for threads in (1, 3):
        model = mlc.load(tmp_path / "any.so", threads=threads)
        for m in (1, 7, 31, 97, 130):
            x, r = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (m, n)))
            want = _want(proto, x, r)
            assert np.max(np.abs(model(x, r)[0] - want)) <= 4e-6 * np.max(np.abs(want))


@pytest.mark.parametrize("cpu, limit, lines", [(CPU, "FAR_WINDOW", "lines = 4"), (WIDE, "LARGE_WINDOW", "lines = ")])
@pytest.mark.parametrize(
    "batch, extents, kernel, stride, pads",
    [
        (1, (7, 7), (3, 3), 1, (1, 1, 1, 1)),
        (2, (9, 13), (3, 3), 2, (1, 1, 1, 1)),
        (1, (11, 6), (5, 3), 1, (2, 0, 1, 2)),
        ("images", (5, 8), (3, 3), 1, (1, 1, 1, 1)),
        (1, (6, 6), (3, 1), 1, (0, 0, 0, 0)),
    ],
)
def test_windows(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    batch: int | str,
    extents: tuple[int, int],
    kernel: tuple[int, int],
    stride: int,
    pads: tuple[int, ...],
    cpu: str,
    limit: str,
    lines: str,
) -> None:
    """A convolution's taps in blocks, a few lines of the image at a time: the same bits as without."""
    skip_unless_it_runs(cpu)
    monkeypatch.setattr(contraction_cost, limit, 0)
    channels, filters, rng = 40, 29, np.random.default_rng(0)
    weight = rng.standard_normal((filters, channels, *kernel), np.float32)
    x = rng.standard_normal((3 if isinstance(batch, str) else batch, channels, *extents), np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], strides=[stride, stride], pads=list(pads)),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    value, init = helper.make_tensor_value_info, numpy_helper.from_array(weight, "w")
    ends = [value("x", TensorProto.FLOAT, [batch, channels, *extents]), value("y", TensorProto.FLOAT, [None] * 4)]
    graph = helper.make_graph(nodes, "windows", ends[:1], ends[1:], [init])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    scheduled = tmp_path / "scheduled.mlir"
    mlc.compile(proto, output=scheduled, emit="schedule", cpu=cpu)
    text = scheduled.read_text()
    assert 'template = "deep_contraction"' in text and lines in text
    mlc.compile(proto, output=tmp_path / "blocks.so", cpu=cpu, cache=False)
    scheduled.write_text(text.replace('template = "deep_contraction"', 'template = "contraction"'))
    expected = mlc.compile(scheduled, output=tmp_path / "whole.so", from_phase="schedule")(x)[0]
    for threads in (1, 3):
        assert mlc.load(tmp_path / "blocks.so", threads=threads)(x)[0].tobytes() == expected.tobytes()
    want = ReferenceEvaluator(proto).run(None, {"x": x})[0]
    assert np.max(np.abs(expected - want)) <= 1e-5 * np.max(np.abs(want))
