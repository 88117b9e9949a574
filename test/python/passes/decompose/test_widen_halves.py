"""Models of half precision on CPUs: what is computed has the precision of f32, weights have their size, caches stay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from models.processors import skip_unless_it_runs
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import mlc

CPUS = ["native", "x86-64", "x86-64-v3", "x86-64-v4"]
UNIT = 2.0**-11  # half a step of f16, relative


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, Sequence[int | str]],
    weights: dict[str, np.ndarray],
    results: Sequence[str] = ("y",),
    kind: int = TensorProto.FLOAT16,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "halves",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name in results],
        [numpy_helper.from_array(w, name) for name, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _draw(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed + sum(shape)).standard_normal(shape) * scale).astype(np.float16)


def _in_f64(nodes: Sequence[onnx.NodeProto], weights: dict[str, np.ndarray], **inputs: np.ndarray) -> np.ndarray:
    """The same operations on float64."""
    wide = {name: w.astype(np.float64) if w.dtype == np.float16 else w for name, w in weights.items()}
    shapes = {name: x.shape for name, x in inputs.items()}
    model = _model(nodes, shapes, wide, kind=TensorProto.DOUBLE)
    [y] = ReferenceEvaluator(model).run(None, {name: x.astype(np.float64) for name, x in inputs.items()})
    return np.asarray(y)


def _close(got: np.ndarray, want: np.ndarray, sums: float = 4e-6) -> None:
    """Rounded once, behind sums of f32 whose errors are `sums` of the largest magnitude."""
    assert got.dtype == np.float16
    allowed = UNIT * 1.01 * np.abs(want) + sums * np.abs(want).max()
    assert (np.abs(got.astype(np.float64) - want) <= allowed).all()


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("rows", [1, 3, 50, "n"])
def test_layers(tmp_path: Path, rows: int | str, cpu: str) -> None:
    """Two products with weights that stay halves and an activation between them: one rounding, at the end."""
    skip_unless_it_runs(cpu)
    weights = {"w": _draw(200, 130, scale=0.1), "b": _draw(130), "v": _draw(130, 150, seed=1, scale=0.1)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["s"]),
        helper.make_node("Tanh", ["s"], ["t"]),
        helper.make_node("MatMul", ["t", "v"], ["y"]),
    ]
    model = mlc.compile(_model(nodes, {"x": (rows, 200)}, weights), output=tmp_path / "m.so", cpu=cpu)
    for count in [1, 7, 40] if rows == "n" else [int(rows)]:
        x = _draw(count, 200, seed=2)
        _close(model(x)[0], _in_f64(nodes, weights, x=x))
    stored = sum(w.size for w in weights.values())
    assert model.metadata["weights"]["size"] < (3 if cpu != "x86-64" else 6) * stored  # panels are whole vectors


@pytest.mark.parametrize(
    "cpu, template", [("x86-64-v3", "dot_floats"), ("x86-64-v4", "dot_floats"), ("znver4", "contraction")]
)
@pytest.mark.parametrize("depth, columns", [(64, 256), (201, 130), (1911, 96), (512, 40), (33, 600)])
def test_many_rows(tmp_path: Path, depth: int, columns: int, cpu: str, template: str) -> None:
    """Known rows and others, for which a weight is widened block by block or as it is read."""
    skip_unless_it_runs(cpu)
    nodes, weights = [helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": _draw(depth, columns, scale=0.1)}
    for rows, counts in ((77, [77]), ("n", [5, 31, 32, 150])):
        proto = _model(nodes, {"x": (rows, depth)}, weights)
        model = mlc.compile(proto, output=tmp_path / f"m{rows}.so", cpu=cpu)
        assert template in [kernel["template"] for kernel in model.metadata["kernels"]]
        for count in counts:
            x = _draw(count, depth, seed=1)
            _close(model(x)[0], _in_f64(nodes, weights, x=x))


@pytest.mark.parametrize("cpu", ["native", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(
    "filters, groups, stride",
    [
        ((64, 48, 3, 3), 1, 1),
        ((40, 48, 3, 3), 1, 2),
        ((96, 48, 1, 1), 1, 1),
        ((48, 1, 3, 3), 48, 1),
        ((48, 24, 5, 5), 2, 1),
    ],
    ids=str,
)
def test_convolutions(tmp_path: Path, filters: tuple[int, ...], groups: int, stride: int, cpu: str) -> None:
    skip_unless_it_runs(cpu)
    weights = {"w": _draw(*filters, scale=0.1), "b": _draw(filters[0])}
    pads, strides = [filters[2] // 2] * 4, [stride, stride]
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], group=groups, strides=strides, pads=pads),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["y"], kernel_shape=[2, 2]),
    ]
    x = _draw(1, 48, 15, 14, seed=2)
    model = mlc.compile(_model(nodes, {"x": x.shape}, weights), output=tmp_path / "m.so", cpu=cpu)
    _close(model(x)[0], _in_f64(nodes, weights, x=x))


def test_large_intermediates(tmp_path: Path) -> None:
    """Squares beyond the largest half do not become infinite on the way."""
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["s"]),
        helper.make_node("ReduceMean", ["s"], ["m"], axes=[1], keepdims=1),
        helper.make_node("Sqrt", ["m"], ["y"]),
    ]
    model = mlc.compile(_model(nodes, {"x": (3, 40)}, {}), output=tmp_path / "m.so")
    x = _draw(3, 40, scale=1000.0)
    _close(model(x)[0], _in_f64(nodes, {}, x=x))


def test_a_cache_is_not_widened(tmp_path: Path) -> None:
    """What goes out as it came in has every bit; what is appended is rounded, and read so."""
    nodes = [
        helper.make_node("Add", ["x", "x"], ["d"]),
        helper.make_node("Concat", ["c", "d"], ["k"], axis=0),
        helper.make_node("MatMul", ["k", "w"], ["y"]),
    ]
    weights = {"w": _draw(64, 80, scale=0.1)}
    proto = _model(nodes, {"c": ("n", 64), "x": (1, 64)}, weights, results=("k", "y"))
    model = mlc.compile(proto, output=tmp_path / "m.so")
    c, x = _draw(9, 64), _draw(1, 64, seed=1)
    c[0, :3] = np.nan, np.inf, np.float16(6e-8)
    keys, got = model(c, x)
    np.testing.assert_array_equal(keys.view(np.int16), np.concatenate([c, x + x]).view(np.int16))
    _close(got[1:], (keys.astype(np.float64) @ weights["w"].astype(np.float64))[1:])


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_precision(tmp_path: Path, precision: str) -> None:
    """Products may be of bf16, as those of a model of f32 may."""
    nodes, weights = [helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": _draw(256, 128, scale=0.1)}
    model = mlc.compile(_model(nodes, {"x": (64, 256)}, weights), output=tmp_path / "m.so", precision=precision)
    x = _draw(64, 256, seed=1)
    _close(model(x)[0], _in_f64(nodes, weights, x=x), sums=4e-6 if precision == "fp32" else 6e-3)
    assert model.metadata["weights"]["size"] < 1.1 * 2 * weights["w"].size
