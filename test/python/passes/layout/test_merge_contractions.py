"""Products of one tensor with several weights, compiled and compared with float64 NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import mlc

RNG = np.random.default_rng(11)


def _floats(*shape: int) -> np.ndarray:
    return RNG.normal(0, 0.3, shape).astype(np.float32)


def _model(widths: list[int], biased: bool, rows: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """`x @ w_i (+ b_i)` for every width, each transposed: the transposes read their columns of the product."""
    weights = {f"w{i}": _floats(24, n) for i, n in enumerate(widths)}
    if biased:
        weights |= {f"b{i}": _floats(n) for i, n in enumerate(widths)}
    nodes = []
    for i in range(len(widths)):
        nodes.append(helper.make_node("MatMul", ["x", f"w{i}"], [f"m{i}"]))
        if biased:
            nodes.append(helper.make_node("Add", [f"m{i}", f"b{i}"], [f"a{i}"]))
        nodes.append(helper.make_node("Transpose", [f"a{i}" if biased else f"m{i}"], [f"y{i}"], perm=[1, 0]))
    graph = helper.make_graph(
        nodes,
        "siblings",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [rows, 24])],
        [helper.make_tensor_value_info(f"y{i}", onnx.TensorProto.FLOAT, [n, rows]) for i, n in enumerate(widths)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), weights


@pytest.mark.parametrize("rows", [1, 7, 40])
@pytest.mark.parametrize("biased", [False, True])
def test_one_product_gives_what_several_give(tmp_path: Path, biased: bool, rows: int) -> None:
    widths = [16, 48, 32]
    model, weights = _model(widths, biased, rows)
    onnx.save(model, tmp_path / "siblings.onnx")
    mlc.compile(tmp_path / "siblings.onnx", output=tmp_path / "siblings.so")
    loaded = mlc.load(tmp_path / "siblings.so")
    products = [k for k in loaded.metadata["kernels"] if "contraction" in k["template"] or "dot" in k["template"]]
    assert len(products) == 1, loaded.metadata["kernels"]
    x = _floats(rows, 24)
    for i, result in enumerate(loaded(x)):
        wide = x.astype(np.float64) @ weights[f"w{i}"].astype(np.float64)
        wide = wide + weights[f"b{i}"].astype(np.float64) if biased else wide
        np.testing.assert_allclose(result, wide.T, rtol=1e-5, atol=1e-5)
