"""Contractions of precision bf16 against float64 on rounded operands: tails, odd reductions, windows, all instructions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from models.processors import has_tiles, runs_here, skip_unless_it_runs
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from windows import WINDOWS

import mlc

# znver4: vdpbf16ps, which is fast there; x86-64-v4 and v3 have it not, and multiply in f32
CPUS = ["native", "znver4", "x86-64-v4", "x86-64-v3"]
UNIT = 2.0**-24  # half an ulp of f32


def _rounds_activations(cpu: str) -> bool:
    """Are products of two activations narrowed? Where they gain nothing they keep f32."""
    from mlc import _native
    from mlc.targets.cpu import resolve

    target = resolve(cpu, _native.host_info())
    return target.bf16_dot or target.bf16_tiles


def rounded(x: np.ndarray) -> np.ndarray:
    """`x` after rounding to bfloat16, as float64."""
    return x.astype(ml_dtypes.bfloat16).astype(np.float64)


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, Sequence[int | str]],
    weights: dict[str, np.ndarray],
    kind: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "pairs",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(w, name) for name, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _compile(tmp_path: Path, proto: onnx.ModelProto, cpu: str) -> mlc.Model:
    number = len(list(tmp_path.iterdir()))  # a loaded library keeps its file
    return mlc.compile(proto, output=tmp_path / f"model{number}.so", precision="bf16", cpu=cpu)


def _close(got: np.ndarray, want: np.ndarray, magnitude: np.ndarray, terms: int) -> None:
    """Sums of `terms` products with the sum of magnitudes `magnitude`: errors of a random walk of roundings."""
    assert got.shape == want.shape
    assert np.all(np.abs(got - want) <= UNIT * (4 * np.sqrt(terms) + 2) * magnitude + 1e-30)


SHAPES = [(6, 64, 64), (13, 77, 51), (1, 33, 130), (128, 96, 100), (5, 9, 16), (7, 8, 1), (70, 31, 65)]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
def test_product_with_a_weight(tmp_path: Path, shape: tuple[int, int, int], cpu: str) -> None:
    skip_unless_it_runs(cpu)
    rows, depth, columns = shape
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, depth)).astype(np.float32)
    w = rng.standard_normal((depth, columns)).astype(np.float32)
    model = _compile(tmp_path, _model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": x.shape}, {"w": w}), cpu)
    [got] = model(x)
    a, b = rounded(x), rounded(w)
    _close(got, a @ b, np.abs(a) @ np.abs(b), depth)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
def test_product_of_two_inputs(tmp_path: Path, shape: tuple[int, int, int], cpu: str) -> None:
    """Rows of the right operand are interleaved on the way; batch and rows are known at run time only."""
    skip_unless_it_runs(cpu)
    rows, depth, columns = shape
    shapes: dict[str, Sequence[int | str]] = {"x": ["b", "m", depth], "z": ["b", depth, columns]}
    model = _compile(tmp_path, _model([helper.make_node("MatMul", ["x", "z"], ["y"])], shapes, {}), cpu)
    for batch, m in ((2, rows), (1, rows + 5), (3, 1)):
        rng = np.random.default_rng(batch)
        x = rng.standard_normal((batch, m, depth)).astype(np.float32)
        z = rng.standard_normal((batch, depth, columns)).astype(np.float32)
        [got] = model(x, z)
        # A product of so few columns takes as long as rounding its operands, and keeps f32.
        is_exact = columns < 8 or not _rounds_activations(cpu)
        a, b = (v.astype(np.float64) if is_exact else rounded(v) for v in (x, z))
        _close(got, a @ b, np.abs(a) @ np.abs(b), depth)


@pytest.mark.parametrize("cpu", ["native", "znver4"])
@pytest.mark.parametrize("depth", [8, 17])
def test_reduction_known_at_run_time(tmp_path: Path, depth: int, cpu: str) -> None:
    skip_unless_it_runs(cpu)
    exact = rounded if _rounds_activations(cpu) else lambda v: v.astype(np.float64)
    shapes: dict[str, Sequence[int | str]] = {"x": [9, "k"], "z": ["k", 40]}
    model = _compile(tmp_path, _model([helper.make_node("MatMul", ["x", "z"], ["y"])], shapes, {}), cpu)
    for extent in (depth, depth + 1, 1, 0):
        x = np.random.default_rng(1).standard_normal((9, extent)).astype(np.float32)
        z = np.random.default_rng(2).standard_normal((extent, 40)).astype(np.float32)
        [got] = model(x, z)
        a, b = exact(x), exact(z)
        _close(got, a @ b, np.abs(a) @ np.abs(b), max(extent, 1))


@pytest.mark.parametrize("swapped", ["x", "z", "xz"])
def test_transposed_operands(tmp_path: Path, swapped: str) -> None:
    """Whichever dimension of an operand is contiguous."""
    skip_unless_it_runs("znver4")
    shapes = {"x": [3, 20, 33], "z": [3, 33, 50]}
    nodes, names = [], []
    for name in "xz":
        if name in swapped:
            shapes[name] = [shapes[name][0], shapes[name][2], shapes[name][1]]
            nodes.append(helper.make_node("Transpose", [name], [f"{name}t"], perm=[0, 2, 1]))
        names.append(f"{name}t" if name in swapped else name)
    proto = _model([*nodes, helper.make_node("MatMul", names, ["y"])], shapes, {})
    model = _compile(tmp_path, proto, "znver4")
    rng = np.random.default_rng(3)
    x, z = (rng.standard_normal(shapes[n]).astype(np.float32) for n in "xz")
    assert "dot_product" in [kernel["template"] for kernel in model.metadata["kernels"]]
    [got] = model(x, z)
    a, b = (np.swapaxes(rounded(v), 1, 2) if n in swapped else rounded(v) for n, v in (("x", x), ("z", z)))
    _close(got, a @ b, np.abs(a) @ np.abs(b), 33)


@pytest.mark.skipif(not _rounds_activations("native"), reason="test_dot_floats.py has what this machine multiplies in f32")
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", WINDOWS)
def test_convolution(tmp_path: Path, name: str, dynamic: bool) -> None:
    channels, filters, height, width, window, pads, strides, dilations, groups = WINDOWS[name]
    rng = np.random.default_rng(4)
    filter_ = rng.standard_normal((filters, channels // groups, *window)).astype(np.float32)
    bias = rng.standard_normal(filters).astype(np.float32)
    shape: list[int | str] = ["n", channels, "h", "w"] if dynamic else [2, channels, height, width]
    nodes = [
        helper.make_node("Conv", ["x", "f", "b"], ["c"], pads=pads, strides=strides, dilations=dilations, group=groups),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    model = _compile(tmp_path, _model(nodes, {"x": shape}, {"f": filter_, "b": bias}), "native")
    templates = {kernel["template"] for kernel in model.metadata["kernels"]}
    paired = bool({"dot_product", "dot_floats", *(["tile_product"] if has_tiles() else [])} & templates)
    # One channel a group has no pairs and keeps f32.
    assert paired == (channels > groups)
    exact = (lambda v: v.astype(np.float64)) if channels == groups else rounded
    weights = {"f": exact(filter_), "b": bias.astype(np.float64)}
    sizes = [(2, height, width)] + ([(1, height + 3, width + 8)] if dynamic else [])
    for batch, h, w in sizes:
        x = rng.standard_normal((batch, channels, h, w)).astype(np.float32)
        [got] = model(x)
        [want] = _reference(nodes, weights, exact(x))
        [magnitude] = _reference(nodes, {n: np.abs(v) for n, v in weights.items()}, np.abs(exact(x)))
        _close(got, want, magnitude, channels // groups * window[0] * window[1])


def _reference(nodes: Sequence[onnx.NodeProto], weights: dict[str, np.ndarray], x: np.ndarray) -> list[np.ndarray]:
    return ReferenceEvaluator(_model(nodes, {"x": x.shape}, weights, TensorProto.DOUBLE)).run(None, {"x": x})


def test_rounding_is_to_nearest_even_and_keeps_special_values(tmp_path: Path) -> None:
    """A product with the identity shows how operands are rounded."""
    bits = np.random.default_rng(5).integers(0, 1 << 32, 4096, dtype=np.uint64).astype(np.uint32)
    ties = (bits & 0xFFFF0000) | 0x8000
    values = np.concatenate([bits, ties, ties + 1, ties - 1]).view(np.float32)
    magnitude = np.abs(values)
    values = values[(magnitude > 1e-37) & (magnitude < 3e38)]  # vdpbf16ps flushes denormal numbers
    x = np.zeros((len(values) + 3, 8), np.float32)
    x[: len(values), 0] = values
    x[-3:] = [[np.nan] * 8, [np.inf] * 8, [-np.inf] * 8]
    w = np.zeros((8, 16), np.float32)
    w[0] = 1
    proto = _model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ["n", 8]}, {"w": w})
    for cpu in [c for c in CPUS if runs_here(c)]:
        [got] = _compile(tmp_path, proto, cpu)(x)
        np.testing.assert_array_equal(got[:-3, 5], rounded(values).astype(np.float32))
        assert np.isnan(got[-3:]).all()  # infinity times zero
    ones = np.ones((8, 16), np.float32)
    proto = _model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ["n", 8]}, {"w": ones})
    [got] = _compile(tmp_path, proto, "native")(x[-3:])
    np.testing.assert_array_equal(got[:, 3], [np.nan, np.inf, -np.inf])


def test_threads_give_the_same_bits(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    w = rng.standard_normal((64, 300)).astype(np.float32)
    proto = _model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [50, 64]}, {"w": w})
    x = rng.standard_normal((50, 64)).astype(np.float32)
    _compile(tmp_path, proto, "native")
    results = [mlc.load(tmp_path / "model0.so", threads=n)(x)[0] for n in (1, 2, 3)]
    assert all(np.array_equal(results[0], r) for r in results)
