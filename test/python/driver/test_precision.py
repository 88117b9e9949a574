"""`precision="bf16"`: what it changes in a whole model, and what it leaves."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from models.processors import has_tiles
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import mlc
from mlc.options import UsageError

SHAPE = (2, 12, 24)
PHASES = ("import", "simplify", "decompose", "layout", "linalg", "kernels", "schedule", "tile", "buffers", "llvm")


def _attention() -> onnx.ModelProto:
    """One head of attention with a residual: products with weights, of two activations, and of a softmax."""
    rng = np.random.default_rng(0)
    weights = {n: (rng.standard_normal((24, 24)) / 5).astype(np.float32) for n in "qkvo"}
    nodes = [helper.make_node("MatMul", ["x", n], [f"x{n}"]) for n in "qkv"]
    nodes += [
        helper.make_node("Transpose", ["xk"], ["xt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["xq", "xt"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "xv"], ["mixed"]),
        helper.make_node("MatMul", ["mixed", "o"], ["out"]),
        helper.make_node("Add", ["x", "out"], ["y"]),
    ]
    shape = ["batch", *SHAPE[1:]]
    graph = helper.make_graph(
        nodes,
        "attention",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(w, n) for n, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """The model compiled for bf16 in one go, every phase checked."""
    path = tmp_path / "whole.so"
    mlc.compile(_attention(), output=path, precision="bf16", verify_each=True)
    return path


def test_results_are_float32_and_near_those_of_fp32(whole: Path, tmp_path: Path) -> None:
    narrow, wide = mlc.load(whole), mlc.compile(_attention(), output=tmp_path / "wide.so")
    assert narrow.metadata["precision"] == "bf16" and wide.metadata["precision"] == "fp32"
    x = np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)
    [got], [want] = narrow(x), wide(x)
    assert got.dtype == np.float32
    error = np.abs(got - want).max() / np.abs(want).max()
    assert 1e-5 < error < 1e-2  # rounded, and not far away
    weights = [m.metadata["weights"]["size"] for m in (narrow, wide)]
    assert weights[0] < (0.7 if has_tiles() else 0.6) * weights[1]  # half, on tiles in whole ones


@pytest.mark.parametrize("phase", PHASES)
def test_the_ir_of_every_phase_knows_its_precision(whole: Path, tmp_path: Path, phase: str) -> None:
    mlc.compile(_attention(), output=tmp_path / "stage.mlir", emit=phase, precision="bf16")
    mlc.compile(tmp_path / "stage.mlir", output=tmp_path / "whole2.so")
    assert (tmp_path / "whole2.so").read_bytes() == whole.read_bytes()


def test_a_precision_cannot_be_changed_on_the_way(tmp_path: Path) -> None:
    mlc.compile(_attention(), output=tmp_path / "stage.mlir", emit="linalg")
    with pytest.raises(UsageError, match="was made for precision fp32, not bf16"):
        mlc.compile(tmp_path / "stage.mlir", output=tmp_path / "other.so", precision="bf16")


def test_unknown_precisions_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="precision 'int8' is not one of: fp32, bf16"):
        mlc.compile(_attention(), output=tmp_path / "model.so", precision="int8")


def test_verify_allows_for_the_precision(tmp_path: Path) -> None:
    mlc.compile(_attention(), output=tmp_path / "model.so", precision="bf16", verify=2)


def test_deep_models(tmp_path: Path) -> None:
    """A product of activations behind two thousand operations."""
    nodes = [helper.make_node("Add", [f"v{i}", "x"], [f"v{i + 1}"]) for i in range(2000)]
    nodes[0].input[0] = "x"
    nodes += [helper.make_node("Transpose", ["v2000"], ["t"]), helper.make_node("MatMul", ["v2000", "t"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "deep",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [16, 16])],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    mlc.compile(proto, output=tmp_path / "deep.mlir", emit="decompose", precision="bf16", cpu="znver4")
    assert (tmp_path / "deep.mlir").read_text().count("{widen}") == 1


def _residual(rows: int | str) -> onnx.ModelProto:
    """Two convolutions by 1x1 with a residual and a ReLU, as in ResNet, and the sum of all pixels."""
    rng = np.random.default_rng(0)
    weights = {n: (rng.standard_normal((256, 256, 1, 1)) / 16).astype(np.float32) for n in "vw"}
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w"], ["c"]),
        helper.make_node("Add", ["b", "c"], ["d"]),
        helper.make_node("Relu", ["d"], ["e"]),
        helper.make_node("GlobalAveragePool", ["e"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(n, 1, [rows, 256, *s]) for n, s in (("x", (48, 48)), ("y", (1, 1)))]
    arrays = [numpy_helper.from_array(w, n) for n, w in weights.items()]
    graph = helper.make_graph(nodes, "residual", values[:1], values[1:], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("rows", [2, "n"])
def test_tensors_between_kernels_are_rounded_where_no_cache_holds_them(rows: int | str, tmp_path: Path) -> None:
    """Half the memory of the arena, and results as near as rounded operands are."""
    narrow = mlc.compile(_residual(rows), output=tmp_path / "narrow.so", precision="bf16", verify_each=True)
    wide = mlc.compile(_residual(rows), output=tmp_path / "wide.so")
    text = mlc.compile(_residual(rows), output=tmp_path / "k.mlir", emit="schedule", precision="bf16").read_text()
    kernels = [line for line in text.splitlines() if "mlc.launch" in line and "48x48x256" in line]
    assert kernels and not any("48x48x256xf32" in line for line in kernels)
    x = np.random.default_rng(1).standard_normal((2, 256, 48, 48)).astype(np.float32)
    [got], [want] = narrow(x), wide(x)
    assert 1e-6 < np.abs(got - want).max() / np.abs(want).max() < 5e-3


def _pooled(extent: int | str, outputs: tuple[str, ...]) -> onnx.ModelProto:
    """The beginning of an image model: a convolution, ReLU, a maximum of windows, a convolution."""
    rng = np.random.default_rng(3)
    weights = {
        "f": (rng.standard_normal((64, 8, 3, 3)) / 8).astype(np.float32),
        "g": (rng.standard_normal((16, 64, 1, 1)) / 8).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "f"], ["c"], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
        helper.make_node("Conv", ["p", "g"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "pooled",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, extent, extent])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(w, n) for n, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("extent", [64, 81])
def test_the_largest_of_rounded_elements_is_the_rounded_largest(extent: int, tmp_path: Path) -> None:
    """A pool in front of a convolution reads bf16, which changes no bit, and gives rounded results to others, too."""
    for name, outputs in (("narrow", ("y",)), ("wide", ("y", "p"))):
        mlc.compile(_pooled(extent, outputs), output=tmp_path / f"{name}.mlir", emit="kernels", precision="bf16")
        stored = f"tensor<1x{extent}x{extent}x64xbf16>"
        assert stored in (tmp_path / f"{name}.mlir").read_text()
    narrow, wide = (
        mlc.compile(_pooled(extent, outputs), output=tmp_path / f"{len(outputs)}.so", precision="bf16")
        for outputs in (("y",), ("y", "p"))
    )
    x = np.random.default_rng(4).standard_normal((1, 8, extent, extent)).astype(np.float32)
    x[0, 3, 5, 7] = np.nan
    result, pooled = wide(x)
    np.testing.assert_array_equal(narrow(x)[0], result)
    np.testing.assert_array_equal(pooled, pooled.astype(ml_dtypes.bfloat16).astype(np.float32))


def _depthwise(size: int, stride: int, pad: int) -> onnx.ModelProto:
    """A convolution by 1x1, ReLU, a depthwise one."""
    rng = np.random.default_rng(5)
    weights = {
        "f": (rng.standard_normal((48, 16, 1, 1)) / 4).astype(np.float32),
        "g": (rng.standard_normal((48, 1, 3, 3)) / 3).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "f"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "g"], ["y"], group=48, pads=[pad] * 4, strides=[stride] * 2),
    ]
    graph = helper.make_graph(
        nodes,
        "depthwise",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, size, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w, n) for n, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize(("stride", "pad"), [(1, 1), (2, 1), (1, 0)])
def test_depthwise_convolutions_read_large_tensors_rounded(stride: int, pad: int, tmp_path: Path) -> None:
    """As near as one rounding of what they read is; a small tensor is not rounded, and sums are those of f32."""
    stored = []
    for size in (32, 112):
        proto = _depthwise(size, stride, pad)
        text = mlc.compile(proto, output=tmp_path / "k.mlir", emit="schedule", precision="bf16").read_text()
        stored.append(any("mlc.launch" in line and f"{size}x{size}x48xbf16" in line for line in text.splitlines()))
        x = np.random.default_rng(6).standard_normal((1, 16, size, size)).astype(np.float32)
        x = x.astype(ml_dtypes.bfloat16).astype(np.float32)
        [want] = ReferenceEvaluator(proto).run(None, {"x": x})
        [got] = mlc.compile(proto, output=tmp_path / f"{size}.so", precision="bf16")(x)
        error = np.abs(got - want).max() / np.abs(want).max()
        assert 1e-5 < error < 6e-3
    assert stored == [False, True]
