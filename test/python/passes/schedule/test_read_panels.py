"""Tables that a model both looks words up in and multiplies by: stored once, as panels."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from models.processors import has_tiles, skip_unless_it_runs
from onnx import TensorProto, helper, numpy_helper

import mlc

CPUS = ["native", "x86-64", "x86-64-v3", "x86-64-v4"]


def _model(table: np.ndarray, rows: int | str, more: tuple[onnx.NodeProto, ...] = ()) -> onnx.ModelProto:
    """Words [1, rows] -> what `table` has for them plus one, times the table; and results of `more`."""
    kind = helper.np_dtype_to_tensor_dtype(table.dtype)
    nodes = [
        helper.make_node("Gather", ["table", "words"], ["embedded"], name="look_up"),
        helper.make_node("Add", ["embedded", "one"], ["x"]),
        helper.make_node("Transpose", ["table"], ["turned"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "turned"], ["logits"]),
        *more,
    ]
    results = ["x", "logits", *(output for node in more for output in node.output)]
    graph = helper.make_graph(
        nodes,
        "tied",
        [helper.make_tensor_value_info("words", TensorProto.INT64, [1, rows])],
        [helper.make_tensor_value_info(name, kind, None) for name in results],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.ones(1, table.dtype), "one")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _table(rows: int, columns: int, dtype: type) -> np.ndarray:
    return (np.random.default_rng(rows).standard_normal((rows, columns)) / 8).astype(dtype)


def _check(model: mlc.Model, table: np.ndarray, words: np.ndarray) -> None:
    """`x` is exact; the products are as good as sums of f32 are."""
    x, logits, *_ = model(words)
    expected = table[words] + np.ones(1, table.dtype)
    np.testing.assert_array_equal(x, expected)
    wide = (table[words].astype(np.float64) + 1) @ table.T.astype(np.float64)  # halves are computed in f32
    np.testing.assert_allclose(logits, wide, rtol=1e-3 if table.dtype == np.float16 else 0, atol=2e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("columns", [40, 49])
def test_one_table(tmp_path: Path, columns: int, cpu: str, dtype: type) -> None:
    """Any number of words, from both ends of the table, whose rows are no whole panels."""
    skip_unless_it_runs(cpu)
    table = _table(8205, columns, dtype)
    model = mlc.compile(_model(table, "n"), output=tmp_path / "m.so", cpu=cpu)
    _check(model, table, np.array([[0, 8204, -1, -8205, 63, 64, 65, 4711]]))
    _check(model, table, np.array([[8000]]))
    size = 6 if cpu == "x86-64" and dtype == np.float16 else table.itemsize  # it multiplies by a copy in f32
    assert model.metadata["weights"]["size"] < 1.1 * (columns + 1) * 8256 * size


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("rows", [8205, 1000])
def test_rounded_table(tmp_path: Path, rows: int, cpu: str) -> None:
    """A table that products round is stored rounded only, also where it is too short for panels."""
    skip_unless_it_runs(cpu)
    table = _table(rows, 40, np.float32)
    model = mlc.compile(_model(table, "n"), output=tmp_path / "m.so", cpu=cpu, precision="bf16")
    words = np.array([[0, rows - 1, -1, -rows, 63, 64, 65, 471]])
    x, logits = model(words)
    rounded = table.astype(ml_dtypes.bfloat16).astype(np.float64)
    np.testing.assert_array_equal(x, (rounded[words] + 1).astype(np.float32))
    np.testing.assert_allclose(logits, (rounded[words] + 1) @ rounded.T, rtol=0, atol=1e-2)
    stored = 1 if rows > 8192 else 2  # once in panels, and as it was
    width = 64 if has_tiles(cpu) else 41  # whole steps of tiles
    assert model.metadata["weights"]["size"] < 1.1 * stored * width * (rows + 63) * 2


def test_words_that_are_none(tmp_path: Path) -> None:
    model = mlc.compile(_model(_table(8205, 40, np.float32), 3), output=tmp_path / "m.so")
    with pytest.raises(RuntimeError, match="node 'look_up': index 8205 is out of range"):
        model(np.array([[1, 8205, 2]]))


def test_tables_that_stay(tmp_path: Path) -> None:
    """A short one, and one that something else reads as it is."""
    short = _table(1000, 40, np.float32)
    model = mlc.compile(_model(short, 3), output=tmp_path / "short.so")
    assert model.metadata["weights"]["size"] > 1.9 * short.nbytes
    _check(model, short, np.array([[0, -1, 999]]))
    table = _table(8205, 40, np.float32)
    sines = helper.make_node("Add", ["table", "x0"], ["sums"])
    first = helper.make_node("Slice", ["x", "zero", "end", "axis"], ["x0"])
    model_ = _model(table, 3, (first, sines))
    for name, value in (("zero", [0]), ("end", [1]), ("axis", [1])):
        model_.graph.initializer.append(numpy_helper.from_array(np.array(value), name))
    read = mlc.compile(model_, output=tmp_path / "read.so")
    words = np.array([[5, 8204, 77]])
    _check(read, table, words)
    assert read.metadata["weights"]["size"] > 1.9 * table.nbytes
    np.testing.assert_array_equal(read(words)[3], (table + (table[5] + 1))[None])
