"""Rows of which the next one is fetched while one is computed: results, and where that is decided."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_templates import check, draw

import mlc
from mlc.kernels.common.accesses import input_accesses, plain_accesses
from mlc.kernels.common.frame import kernel_source
from mlc.passes.schedule.cost import VectorUnit, choose

CPU = "x86-64-v3"
KERNEL = Path(__file__).parents[3] / "replay" / "cpu" / "softmax_rows_fetched.mlir"


@pytest.mark.parametrize("shape", ["7x130", "5x700", "3x1x300", "2x3x4x200", "?x1030", "3x?"])
@pytest.mark.parametrize("op", ["softmax", "layer_norm"])
def test_rows(tmp_path: Path, shape: str, op: str) -> None:
    """The last rows fetch what is behind the end."""
    extents = [9 if d == "?" else int(d) for d in shape.split("x")]
    t, axis = f"tensor<{shape}xf32>", len(extents) - 1
    kind = "log = false" if op == "softmax" else "epsilon = 1.0e-5 : f64, rms = false"
    operand = "%a0" if op == "softmax" else "%a0 scale(%a1 : tensor<?xf32>)"
    arguments = [t] if op == "softmax" else [t, "tensor<?xf32>"]
    body = f"%r = mlc.{op} {operand} {{axis = {axis} : i64, {kind}}} : {t}\nreturn %r : {t}"
    check(tmp_path, body, arguments, [t], [(draw(extents), draw(extents[-1:], seed=1))[: len(arguments)]], 5e-6, cpu=CPU)


@pytest.mark.parametrize("width, expected", [(64, (0, 2)), (128, (2, 2)), (200, (1, 1)), (1000, (1, 1)), (5000, (0, 1))])
def test_choice(tmp_path: Path, width: int, expected: tuple[int, int]) -> None:
    """How many rows ahead, and how many at a time."""
    import onnx
    from onnx import helper

    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (50, width)) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Softmax", ["x"], ["y"])], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    report = tmp_path / "r.json"
    mlc.compile(model, output=tmp_path / "m.so", cpu=CPU, report=report, cache=False)
    [kernel] = json.loads(report.read_text())["kernels"]
    assert (kernel["schedule"].get("ahead", 0), kernel["schedule"].get("together", 1)) == expected


@pytest.mark.parametrize("width, expected", [(128, 0), (192, 2), (600, 1), (1280, 0)])
@pytest.mark.parametrize("function", ["math.exp", None])
def test_wider_vectors(width: int, expected: int, function: str | None) -> None:
    """Where fetching pays: rows of functions, neither short nor long ones."""
    from mlir import ir

    import mlc.compiler_setup  # noqa: F401

    text = KERNEL.read_text().replace("x200x", f"x{width}x")
    text = text if function else text.replace("math.exp %in", "arith.negf %in")
    with ir.Context():
        module = ir.Module.parse(text)
        source = kernel_source(module.body.operations[0].operation)
        schedule = choose(source, VectorUnit(512, 32, claims=True), set())
    assert schedule.get("ahead", 0) == (expected if function else 0)


def test_wider_vectors_and_what_is_read() -> None:
    from mlir import ir

    import mlc.compiler_setup  # noqa: F401

    with ir.Context():
        module = ir.Module.parse(KERNEL.read_text())
        source = kernel_source(module.body.operations[0].operation)
        assert choose(source, VectorUnit(512, 32), set()).get("ahead") is None
        assert choose(source, VectorUnit(256, 16), set())["ahead"] == 1
        assert choose(source, VectorUnit(512, 32, claims=True), set())["ahead"] == 2
        assert input_accesses(source.results) is None
        [(argument, reads)] = plain_accesses(source.results).items()
        assert argument == source.block.arguments[0] and len(reads) == 1
