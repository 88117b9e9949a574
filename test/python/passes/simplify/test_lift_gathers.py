"""Embeddings whose table is stored narrow: the same bits as when all of it is widened first, and no copy of it."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlc

ROWS, COLUMNS, BLOCK = 3000, 512, 32


def _compile(tmp_path: Path, nodes: list[onnx.NodeProto], weights: dict[str, np.ndarray], words: list) -> mlc.Model:
    graph = helper.make_graph(
        nodes,
        "embedding",
        [helper.make_tensor_value_info("words", TensorProto.INT64, words)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return mlc.compile(proto, output=tmp_path / "model.so")


def _check(tmp_path: Path, model: mlc.Model, table: np.ndarray, stored: int) -> None:
    assert (tmp_path / "model.so").stat().st_size < stored + 250_000
    arena = eval(model.metadata["memory"]["forward"], {"n": 7, "max": max})
    assert arena < table.nbytes / 10  # all of the table in f32 is not made
    for shape in ((2, 7), (2, 1)):
        words = np.random.default_rng(shape[1]).integers(-ROWS, ROWS, shape)
        [got] = model(words)
        np.testing.assert_array_equal(got, table[words])
    with pytest.raises(RuntimeError, match="out of range"):
        model(np.full((2, 7), ROWS))


@pytest.mark.parametrize("scales", ["tensor", "rows", "columns"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_bytes(tmp_path: Path, dtype: type, scales: str) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(-100, 100, (ROWS, COLUMNS)).astype(np.int8).view(dtype)
    shape, axis = {"tensor": ((), 0), "rows": ((ROWS,), 0), "columns": ((COLUMNS,), 1)}[scales]
    weights = {
        "codes": codes,
        "scale": rng.random(shape, dtype=np.float32),
        "zero": np.asarray(rng.integers(0, 100, shape), dtype),
    }
    nodes = [
        helper.make_node("DequantizeLinear", list(weights), ["table"], axis=axis),
        helper.make_node("Gather", ["table", "words"], ["y"]),
    ]
    spread = [v[:, None] if scales == "rows" else v for v in (weights["scale"], weights["zero"].astype(np.int32))]
    table = (codes.astype(np.int32) - spread[1]).astype(np.float32) * spread[0]
    model = _compile(tmp_path, nodes, weights, [2, "n"])
    _check(tmp_path, model, table, codes.nbytes + 8 * ROWS)


@pytest.mark.parametrize("dtype", [np.int8, ml_dtypes.int4])
def test_blocks(tmp_path: Path, dtype: type) -> None:
    """A scale for each block of a row, as models have whose weights are of few bits."""
    rng = np.random.default_rng(0)
    codes = rng.integers(-8, 8, (ROWS, COLUMNS)).astype(dtype)
    scale = rng.random((ROWS, COLUMNS // BLOCK), dtype=np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["codes", "scale"], ["table"], axis=1, block_size=BLOCK),
        helper.make_node("Gather", ["table", "words"], ["y"], axis=0),
    ]
    model = _compile(tmp_path, nodes, {"codes": codes, "scale": scale}, [2, "n"])
    table = codes.astype(np.float32) * scale.repeat(BLOCK, 1)
    _check(tmp_path, model, table, ROWS * COLUMNS + scale.nbytes)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision(tmp_path: Path, dtype: type) -> None:
    stored = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(dtype)
    nodes = [
        helper.make_node("Cast", ["stored"], ["table"], to=TensorProto.FLOAT),
        helper.make_node("Gather", ["table", "words"], ["y"]),
    ]
    model = _compile(tmp_path, nodes, {"stored": stored}, [2, "n"])
    _check(tmp_path, model, stored.astype(np.float32), stored.nbytes)
