"""A quantized network with a streamed weight stops after every phase and goes on to the same bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from models.processors import templates_of_bytes
from onnx import TensorProto, helper, numpy_helper
from phases import compiled_again, gone_on

import mlc

PHASES = ["import", "simplify", "decompose", "layout", "linalg", "kernels", "schedule", "tile", "buffers", "llvm"]


def _proto() -> onnx.ModelProto:
    """A convolution of codes with a bias and a residual sum, and a product of floats with a weight of four bits."""
    rng = np.random.default_rng(0)
    weights = {
        "s": np.float32(0.02),
        "z": np.uint8(7),
        "f": rng.integers(-127, 128, (16, 16, 3, 3)).astype(np.int8),
        "sf": (rng.random(16) / 100 + 0.001).astype(np.float32),
        "zf": np.zeros(16, np.int8),
        "bias": rng.standard_normal(16).astype(np.float32),
        "b": rng.integers(0, 256, (512, 8, 16)).astype(np.uint8),
        "sb": rng.random(512 * 8).astype(np.float32),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["a"]),
        helper.make_node("DequantizeLinear", ["f", "sf", "zf"], ["w"], axis=0),
        helper.make_node("Conv", ["a", "w", "bias"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "a"], ["sum"]),
        helper.make_node("QuantizeLinear", ["sum", "s", "z"], ["p"]),
        helper.make_node("DequantizeLinear", ["p", "s", "z"], ["d"]),
        helper.make_node("Flatten", ["d"], ["flat"], axis=3),
        helper.make_node(
            "MatMulNBits", ["flat", "b", "sb"], ["y"], domain="com.microsoft", K=256, N=512, bits=4, block_size=32
        ),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 2, 256])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [32, 512])],
        [numpy_helper.from_array(np.asarray(v), name) for name, v in weights.items()],
    )
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=9)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    onnx.save(_proto(), folder / "model.onnx")
    model = mlc.compile(folder / "model.onnx", output=folder / "model.so")
    templates = [kernel["template"] for kernel in model.metadata["kernels"]]
    assert templates_of_bytes() & set(templates) and "scaled_blocks" in templates
    return folder / "model.onnx", (folder / "model.so").read_bytes()


@pytest.mark.parametrize("phase", PHASES)
def test_stopping_and_going_on_changes_nothing(whole: tuple[Path, bytes], phase: str, tmp_path: Path) -> None:
    path, expected = whole
    assert gone_on(path, phase, tmp_path) == expected


def test_two_compilations_give_the_same_bytes(whole: tuple[Path, bytes], tmp_path: Path) -> None:
    path, expected = whole
    assert compiled_again(path, tmp_path) == expected


def test_bf16_reads_the_same_bytes(whole: tuple[Path, bytes], tmp_path: Path) -> None:
    """Weights of few bits are not rounded."""
    path, _ = whole
    x = np.random.default_rng(1).standard_normal((1, 16, 2, 256)).astype(np.float32)
    [want] = mlc.compile(path, output=tmp_path / "f32.so")(x)
    [got] = mlc.compile(path, output=tmp_path / "bf16.so", precision="bf16")(x)
    np.testing.assert_array_equal(got, want)
