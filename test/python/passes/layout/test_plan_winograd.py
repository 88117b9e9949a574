"""Convolutions by minimal filtering, compiled and compared with float64 NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import mlc
from mlc.options import UsageError
from mlc.passes.lower.to_linalg.winograd import MATRICES, TAPS

# Relative to the largest result, for 64 channels: F(2x2) rounds like the direct sum, F(4x4) some ten times as much.
LIMITS = {2: 2e-6, 4: 2e-5}


def _model(height: int, width: int, batch: int, pads: list[int]) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A 3x3 convolution between two 1x1 ones, so that channels are last."""
    rng = np.random.default_rng(3)
    arrays = {
        "w": rng.normal(0, 0.06, (64, 64, 3, 3)), "b": rng.normal(0, 1, 64),
        "before": rng.normal(0, 0.18, (64, 64, 1, 1)), "after": rng.normal(0, 0.18, (64, 64, 1, 1)),
    }  # fmt: skip
    weights = {name: array.astype(np.float32) for name, array in arrays.items()}
    nodes = [
        helper.make_node("Conv", ["x", "before"], ["p"]),
        helper.make_node("Conv", ["p", "w", "b"], ["c"], pads=pads),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "after"], ["y"]),
    ]
    shape = [batch, 64, height, width]
    result = [batch, 64, height + pads[0] + pads[2] - 2, width + pads[1] + pads[3] - 2]
    graph = helper.make_graph(
        nodes,
        "filtered",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, result)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), weights


def _expected(x: np.ndarray, weights: dict[str, np.ndarray], pads: list[int]) -> np.ndarray:
    wide = {name: array.astype(np.float64) for name, array in weights.items()}
    before = np.einsum("nchw,oc->nohw", x.astype(np.float64), wide["before"][:, :, 0, 0])
    padded = np.pad(before, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    middle = np.einsum("nchwij,ocij->nohw", windows, wide["w"]) + wide["b"][None, :, None, None]
    return np.einsum("nchw,oc->nohw", np.maximum(middle, 0), wide["after"][:, :, 0, 0])


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize(
    ("height", "width", "batch", "pads"),
    [(24, 24, 1, [1, 1, 1, 1]), (21, 30, 2, [1, 1, 1, 1]), (26, 23, 1, [0, 0, 0, 0]), (19, 25, 1, [2, 0, 1, 3])],
)
def test_results_are_those_of_the_sum(
    tmp_path: Path, tile: int, height: int, width: int, batch: int, pads: list[int]
) -> None:
    model, weights = _model(height, width, batch, pads)
    onnx.save(model, tmp_path / "c.onnx")
    mlc.compile(tmp_path / "c.onnx", output=tmp_path / "c.so", winograd=tile)
    loaded = mlc.load(tmp_path / "c.so")
    assert loaded.metadata["winograd"] == tile
    products = [k for k in loaded.metadata["kernels"] if k["template"] == "contraction"]
    assert len(products) == 2 + 5  # it was planned
    x = np.random.default_rng(4).normal(0, 1, (batch, 64, height, width)).astype(np.float32)
    expected = _expected(x, weights, pads)
    error = np.abs(loaded(x) - expected).max() / np.abs(expected).max()
    assert error < LIMITS[tile]


@pytest.mark.parametrize("tile", sorted(MATRICES))
def test_matrices_convolve_exactly(tile: int) -> None:
    """In one dimension: `At [(G g) * (Bt d)]` is the correlation of `d` with `g`."""
    by = MATRICES[tile]
    rng = np.random.default_rng(5)
    d, g = rng.integers(-9, 9, by.window).astype(np.float64), rng.integers(-9, 9, TAPS).astype(np.float64)
    np.testing.assert_allclose(by.output @ ((by.filter @ g) * (by.input @ d)), np.correlate(d, g), atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"winograd": 3}, "winograd '3' is not one of: 0, 2, 4"),
        ({"winograd": 4, "precision": "bf16"}, "winograd is for target 'cpu' and precision fp32"),
        ({"winograd": 4, "target": "cuda"}, "winograd is for target 'cpu' and precision fp32"),
    ],
)
def test_what_it_does_not_go_with(tmp_path: Path, options: dict[str, object], message: str) -> None:
    model, _ = _model(24, 24, 1, [1, 1, 1, 1])
    onnx.save(model, tmp_path / "c.onnx")
    with pytest.raises(UsageError, match=message):
        mlc.compile(tmp_path / "c.onnx", output=tmp_path / "c.so", **options)
    assert not (tmp_path / "c.so").exists()


def test_going_on_keeps_it(tmp_path: Path) -> None:
    model, _ = _model(24, 24, 1, [1, 1, 1, 1])
    onnx.save(model, tmp_path / "c.onnx")
    mlc.compile(tmp_path / "c.onnx", output=tmp_path / "c.so", winograd=4)
    mlc.compile(tmp_path / "c.onnx", output=tmp_path / "c.mlir", winograd=4, emit="simplify")
    mlc.compile(tmp_path / "c.mlir", output=tmp_path / "later.so", from_phase="simplify")
    assert (tmp_path / "later.so").read_bytes() == (tmp_path / "c.so").read_bytes()
    with pytest.raises(UsageError, match="the IR was made for winograd 4, not 2"):
        mlc.compile(tmp_path / "c.mlir", output=tmp_path / "other.so", from_phase="simplify", winograd=2)
