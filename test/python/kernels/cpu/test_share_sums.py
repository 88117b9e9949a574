"""Contractions that differ in how many products they sum, and are one kernel: with loops that stay unrolled and ones that
never were, with the next panel fetched, for rows that only a run counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models.processors import skip_unless_it_runs
from onnx import TensorProto, helper, numpy_helper

import mlc
from mlc.runtime import load

VALUE = helper.make_tensor_value_info
# Sums of each list have one schedule on vectors of 128, 256 and 512 bits: near each other, so that as much fits caches.
SUMS = [[40, 48, 52, 56, 64], [33, 39, 45, 51], [31, 37, 41, 53]]


def _layers(rows: int | str, sums: list[int], columns: int) -> tuple[onnx.ModelProto, list[np.ndarray]]:
    """A product with a bias, and what is never negative of it, for each of the sums; and their weights."""
    rng = np.random.default_rng(1)
    nodes, arrays, outputs = [], {}, []
    for i, k in enumerate(sums):
        arrays |= {f"w{i}": rng.standard_normal((k, columns)) / np.sqrt(k), f"b{i}": rng.standard_normal(columns)}
        nodes += [
            helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"p{i}"], name=f"product{i}"),
            helper.make_node("Add", [f"p{i}", f"b{i}"], [f"s{i}"], name=f"bias{i}"),
            helper.make_node("Relu", [f"s{i}"], [f"y{i}"], name=f"relu{i}"),
        ]
        outputs.append(VALUE(f"y{i}", TensorProto.FLOAT, [rows, columns]))
    inputs = [VALUE(f"x{i}", TensorProto.FLOAT, [rows, k]) for i, k in enumerate(sums)]
    weights = [numpy_helper.from_array(a.astype("f4"), n) for n, a in arrays.items()]
    graph = helper.make_graph(nodes, "layers", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), [*arrays.values()]


def _compile(model: onnx.ModelProto, folder: Path, **options: Any) -> list[dict[str, Any]]:
    """The kernels of the report."""
    mlc.compile(model, output=folder / "m.so", report=folder / "r.json", cache=False, load=False, **options)
    return json.loads((folder / "r.json").read_text())["kernels"]


def _check(library: Path, rows: int, sums: list[int], arrays: list[np.ndarray]) -> None:
    rng = np.random.default_rng(rows)
    inputs = [rng.standard_normal((rows, k)).astype("f4") for k in sums]
    results = [load(library, threads=threads)(*inputs) for threads in (1, 2)]
    for i, x in enumerate(inputs):
        want = np.maximum(x.astype("f8") @ arrays[2 * i].astype("f4").astype("f8") + arrays[2 * i + 1], 0)
        np.testing.assert_allclose(results[0][i], want, rtol=1e-5, atol=2e-6 * np.sqrt(sums[i]))
        assert results[0][i].tobytes() == results[1][i].tobytes()


@pytest.mark.parametrize("cpu", ["native", "x86-64-v3", "x86-64-v2"])
@pytest.mark.parametrize("sums", SUMS, ids=str)
def test_one_kernel(sums: list[int], cpu: str, tmp_path: Path) -> None:
    skip_unless_it_runs(cpu)
    model, arrays = _layers(196, sums, 128)
    [kernel] = _compile(model, tmp_path, cpu=cpu)
    assert kernel["launches"] == len(sums) and kernel["uneven"]
    assert kernel["nodes"][:3] == ["product0", "bias0", "relu0"] and "product3" in kernel["nodes"]
    products = [196 * 128 * (2 * k + 2) for k in sums]
    assert kernel["flops"] == round(sum(products) / len(sums))
    touched = sum(4 * (196 * k + 128 * k + 128 + 196 * 128) for k in sums) / len(sums)
    assert round(touched) <= kernel["bytes"] < 1.03 * touched  # more where columns are no whole panels
    _check(tmp_path / "m.so", 196, sums, arrays)


@pytest.mark.parametrize("cpu", ["x86-64-v4", "x86-64-v3", "x86-64"])
@pytest.mark.parametrize("sums", SUMS, ids=str)
def test_one_kernel_for_vectors_of_any_width(sums: list[int], cpu: str, tmp_path: Path) -> None:
    """Compiled only: other machines' code does not run everywhere."""
    model, _ = _layers(196, sums, 128)
    [kernel] = _compile(model, tmp_path, cpu=cpu)
    assert kernel["launches"] == len(sums) and kernel["uneven"]


@pytest.mark.parametrize("rows", [49, "n"])
def test_next_panel(rows: int | str, tmp_path: Path) -> None:
    sums = [1024, 1120, 1536, 2048]
    model, arrays = _layers(rows, sums, 512)
    [kernel] = _compile(model, tmp_path)
    assert kernel["launches"] == 4 and kernel["schedule"]["ahead"]
    _check(tmp_path / "m.so", 49, sums, arrays)


def test_rows_that_only_a_run_counts(tmp_path: Path) -> None:
    sums = [64, 68, 72, 80]
    model, arrays = _layers("n", sums, 512)
    [kernel] = _compile(model, tmp_path)
    assert kernel["launches"] == 4
    for rows in (1, 5, 130):
        _check(tmp_path / "m.so", rows, sums, arrays)


def test_few_kernels_stay_apart(tmp_path: Path) -> None:
    sums = [64, 68, 72]
    model, arrays = _layers(196, sums, 128)
    kernels = _compile(model, tmp_path)
    assert [kernel["launches"] for kernel in kernels] == [1, 1, 1] and not any(k["uneven"] for k in kernels)
    _check(tmp_path / "m.so", 196, sums, arrays)
