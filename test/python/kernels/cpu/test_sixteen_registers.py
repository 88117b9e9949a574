"""Tiles for sixteen registers: tall ones where columns leave less over with them, and addends that are fetched early."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlc
from mlc.passes.schedule.contraction_cost import _is_tall_better

CPU = "x86-64-v3"


@pytest.mark.parametrize(
    "columns, rows, tall",
    [
        (32, 56, True),  # one wide panel and a vector, or two tall panels
        (128, 28, True),
        (128, None, True),
        (32, 7, False),  # four and three rows by two vectors do not keep the units busy
        (48, 56, False),  # no columns are left over
        (256, 14, False),  # two of three vectors are
        (512, 49, False),  # the vector that is left over is one of many
    ],
)
def test_choice(columns: int, rows: int | None, tall: bool) -> None:
    assert _is_tall_better(columns, rows, 8) == tall


@pytest.mark.parametrize("columns", [32, 40, 45, 128])
@pytest.mark.parametrize("rows", [7, 49, 83])
def test_product_with_an_addend(tmp_path: Path, columns: int, rows: int) -> None:
    rng = np.random.default_rng(0)
    x, w, y = (rng.standard_normal(s, np.float32) for s in ((rows, 24), (24, columns), (rows, columns)))
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in (("x", x), ("y", y))]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "y"], ["z"])]
    outs = [helper.make_tensor_value_info("z", TensorProto.FLOAT, y.shape)]
    graph = helper.make_graph(nodes, "g", ends, outs, [numpy_helper.from_array(w, "w")])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    report = tmp_path / "r.json"
    model = mlc.compile(proto, output=tmp_path / "m.so", cpu=CPU, report=report, cache=False)
    kernels = [k for k in json.loads(report.read_text())["kernels"] if k["template"] == "contraction"]
    assert [k["schedule"]["early"] for k in kernels] == [1]
    want = x.astype(np.float64) @ w + y
    assert np.max(np.abs(model(x, y)[0] - want)) <= 2e-6 * np.max(np.abs(want))
