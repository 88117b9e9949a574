"""Tiles for sixteen registers: tall ones where columns leave less over with them, and addends that are fetched early."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from models.processors import runs_here
from onnx import TensorProto, helper, numpy_helper

import mlc
from mlc.compilation import Compilation
from mlc.options import make_options
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


def _softmax(kind: str, shape: tuple[int, ...]) -> onnx.ModelProto:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy"]
    graph = helper.make_graph([helper.make_node(kind, ["x"], ["y"], axis=-1)], "g", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize(
    "shape, cpu, chosen",
    [
        ((1536, 128), CPU, {"sums": 2, "together": 2}),
        ((2364, 197), CPU, {"sums": 2}),
        ((16, 32000), CPU, {"sums": 2}),
        ((1536, 128), "znver4", {"together": 2, "scalef": 3}),
        ((2048, 1024), "znver4", {"scalef": 3}),
        ((2048, 1024), "skylake-avx512", {"scalef": 1}),
    ],
)
def test_rows_of_functions(tmp_path: Path, shape: tuple[int, int], cpu: str, chosen: dict[str, int]) -> None:
    report = tmp_path / "report.json"
    Compilation(make_options(cpu=cpu, report=report)).run(_softmax("Softmax", shape), tmp_path / "m.so")
    schedule = json.loads(report.read_text())["kernels"][0]["schedule"]
    assert {name: schedule[name] for name in ("sums", "together", "scalef") if name in schedule} == chosen


@pytest.mark.skipif(not runs_here(CPU), reason=f"this machine does not run code for {CPU}")
@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("shape", [(300, 1024), (7, 60, 700), (5, 33), (9, 4), (3, 101)])
def test_softmax(tmp_path: Path, kind: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape, np.float32) * 4
    wide = x.astype(np.float64) - x.max(axis=-1, keepdims=True)
    want = wide - np.log(np.exp(wide).sum(axis=-1, keepdims=True))
    model = mlc.compile(_softmax(kind, shape), output=tmp_path / "m.so", cpu=CPU)
    want = want if kind == "LogSoftmax" else np.exp(want)
    assert np.max(np.abs(model(x)[0] - want)) <= 1e-6 * np.max(np.abs(want))


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


@pytest.mark.skipif(not runs_here(CPU), reason=f"this machine does not run code for {CPU}")
@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("rows, columns, steps, tall", [(70, 30, 50, True), (83, 54, 33, True), (64, 48, 64, False)])
def test_product_of_two_operands_of_the_run(
    tmp_path: Path, rows: int, columns: int, steps: int, tall: bool, by_columns: bool
) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((rows, steps), np.float32), rng.standard_normal((steps, columns), np.float32)
    given = y.T.copy() if by_columns else y
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, v.shape) for n, v in (("x", x), ("y", given))]
    node = helper.make_node("Gemm", ["x", "y"], ["z"], transB=int(by_columns))
    outs = [helper.make_tensor_value_info("z", TensorProto.FLOAT, (rows, columns))]
    graph = helper.make_graph([node], "g", ends, outs)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    report = tmp_path / "r.json"
    model = mlc.compile(proto, output=tmp_path / "m.so", cpu=CPU, report=report, cache=False)
    [kernel] = json.loads(report.read_text())["kernels"]
    assert kernel["template"] == "panel_copy"
    assert (kernel["schedule"]["rows"], kernel["schedule"]["vectors"]) == ((6, 2) if tall else (4, 3))
    want = x.astype(np.float64) @ y
    assert np.max(np.abs(model(x, given)[0] - want)) <= 2e-6 * np.max(np.abs(want))
