"""Columns that half a vector holds, on a CPU where it takes half the time: the numbers are those of whole vectors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from models.processors import runs_here
from onnx import TensorProto, helper, numpy_helper

import mlc

# 8, 6, 1 and 4 columns in half a vector; behind none, one, two, three and five whole vectors
SHAPES = [(40, 24, 60), (70, 54, 158), (33, 49, 131), (9, 36, 64), (20, 84, 33), (13, 6, 50)]
_TYPES = {np.float32: TensorProto.FLOAT, np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}

pytestmark = pytest.mark.skipif(not runs_here("znver4"), reason="this machine does not run code for znver4")


def _compile(
    tmp_path: Path,
    nodes: list[onnx.NodeProto],
    inputs: dict[str, np.ndarray],
    weights: dict[str, np.ndarray],
    cpu: str,
    precision: str = "fp32",
    wide: bool = True,
) -> mlc.Model:
    """The model, which was checked to have a tail where `cpu` has halves of vectors and it is `wide` enough."""
    ends = [helper.make_tensor_value_info(name, _TYPES[x.dtype.type], x.shape) for name, x in inputs.items()]
    out = helper.make_tensor_value_info("y", TensorProto.INT32 if "x8" in inputs else TensorProto.FLOAT, None)
    graph = helper.make_graph(
        nodes, "g", ends, [out], [numpy_helper.from_array(w, name) for name, w in weights.items()]
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    report = tmp_path / f"{cpu}.json"
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.so"
    model = mlc.compile(proto, output=path, cpu=cpu, precision=precision, report=report, cache=False)
    assert ("tail" in json.dumps(json.loads(report.read_text()))) == (cpu == "znver4" and wide)
    return model


def _draw(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
@pytest.mark.parametrize("kind", ["weight", "input", "transposed"])
def test_products(tmp_path: Path, shape: tuple[int, int, int], kind: str) -> None:
    m, n, k = shape
    x, w, bias = _draw(0, m, k), _draw(1, k, n), _draw(2, n)
    nodes = [
        helper.make_node("MatMul", ["x", "v" if kind == "transposed" else "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["q"]),
        helper.make_node("Relu", ["q"], ["y"]),
    ]
    inputs, weights = {"x": x}, {"b": bias}
    if kind == "transposed":
        nodes.insert(0, helper.make_node("Transpose", ["w"], ["v"], perm=[1, 0]))
        w = np.ascontiguousarray(w.T)
    (weights if kind == "weight" else inputs)["w"] = w
    models = [_compile(tmp_path, nodes, inputs, weights, cpu) for cpu in ("znver4", "x86-64-v4")]
    halves, whole = (model(*inputs.values())[0] for model in models)
    assert halves.tobytes() == whole.tobytes()
    want = np.maximum(x.astype(np.float64) @ (w.T if kind == "transposed" else w) + bias, 0)
    assert np.max(np.abs(halves - want)) <= 2e-6 * max(1.0, np.max(np.abs(want)))


@pytest.mark.parametrize("m, n, k", [(200, 260, 128), (403, 308, 131)])
@pytest.mark.parametrize("transposed", [False, True])
def test_panels_that_are_copied(tmp_path: Path, m: int, n: int, k: int, transposed: bool) -> None:
    x, w = _draw(0, m, k), _draw(1, *((n, k) if transposed else (k, n)))
    nodes = [helper.make_node("MatMul", ["x", "v" if transposed else "w"], ["y"])]
    if transposed:
        nodes.insert(0, helper.make_node("Transpose", ["w"], ["v"], perm=[1, 0]))
    got = _compile(tmp_path, nodes, {"x": x, "w": w}, {}, "znver4")(x, w)[0]
    want = x.astype(np.float64) @ (w.T if transposed else w)
    assert np.max(np.abs(got - want)) <= 2e-6 * np.max(np.abs(want))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
def test_pairs(tmp_path: Path, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    x, w = _draw(0, m, k), _draw(1, k, n)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    got = _compile(tmp_path, nodes, {"x": x}, {"w": w}, "znver4", "bf16", n >= 32)(x)[0]
    want = x.astype(np.float64) @ w
    assert np.max(np.abs(got - want)) <= 2e-2 * np.max(np.abs(want))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
@pytest.mark.parametrize("constant", [True, False])
def test_quads(tmp_path: Path, shape: tuple[int, int, int], constant: bool) -> None:
    m, n, k = shape
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (m, k), dtype=np.uint8)
    w = rng.integers(-128, 128, (k, n), dtype=np.int8)
    nodes = [helper.make_node("MatMulInteger", ["x8", "w"], ["y"])]
    inputs, weights = {"x8": x}, {}
    (weights if constant else inputs)["w"] = w
    got = _compile(tmp_path, nodes, inputs, weights, "znver4")(*inputs.values())[0]
    assert (got == x.astype(np.int32) @ w.astype(np.int32)).all()
