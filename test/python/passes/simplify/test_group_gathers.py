"""Rows that multiply matrices which they pick from a stack, against float64 and onnxruntime; and stacks in loops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlc

EXPERTS, HIDDEN, INNER, K = 6, 256, 320, 2
RNG = np.random.default_rng(5)
UP = (RNG.standard_normal((EXPERTS, INNER, HIDDEN)) / 16).astype(np.float32)
DOWN = (RNG.standard_normal((EXPERTS, INNER, HIDDEN)) / 18).astype(np.float32)
FLOAT = TensorProto.FLOAT


def mixture(by_points: bool) -> onnx.ModelProto:
    """`batched_mm` of transformers: a row for each choice of a token, columns for the first product, rows for the
    second; what is picked by one number, or by points of one coordinate."""
    n = helper.make_node
    pick = ("GatherND", "points") if by_points else ("Gather", "chosen")
    nodes = [
        n("TopK", ["scores", "k"], ["shares", "places"], axis=1),
        n("Reshape", ["places", "line"], ["chosen"]),
        n("Unsqueeze", ["chosen", "last"], ["points"]),
        n("Unsqueeze", ["x", "one"], ["x3"]),
        n("Expand", ["x3", "spread"], ["rows"]),
        n("Reshape", ["rows", "columns"], ["column"]),
        n(pick[0], ["up", pick[1]], ["up_of"]),
        n("MatMul", ["up_of", "column"], ["made"]),
        n("Relu", ["made"], ["active"]),
        n("Transpose", ["active"], ["row"], perm=[0, 2, 1]),
        n(pick[0], ["down", pick[1]], ["down_of"]),
        n("MatMul", ["row", "down_of"], ["out"]),
        n("Reshape", ["out", "tokens"], ["parts"]),
        n("Unsqueeze", ["shares", "last"], ["weights"]),
        n("Mul", ["parts", "weights"], ["weighted"]),
        n("ReduceSum", ["weighted", "one"], ["y"], keepdims=0),
    ]
    numbers = {"k": [K], "line": [-1], "last": [-1], "one": [1], "spread": [1, K, 1], "columns": [-1, HIDDEN, 1]}
    numbers["tokens"] = [-1, K, HIDDEN]
    weights = [numpy_helper.from_array(np.array(v, np.int64), name) for name, v in numbers.items()]
    weights += [numpy_helper.from_array(UP, "up"), numpy_helper.from_array(DOWN, "down")]
    value = helper.make_tensor_value_info
    inputs = [value("x", FLOAT, ["tokens", HIDDEN]), value("scores", FLOAT, ["tokens", EXPERTS])]
    graph = helper.make_graph(nodes, "mixture", inputs, [value("y", FLOAT, None)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("by_points", [False, True])
@pytest.mark.parametrize("cpu", ["native", "x86-64-v3"])
def test_mixture(by_points: bool, cpu: str, tmp_path: Path) -> None:
    model = mlc.compile(mixture(by_points), output=tmp_path / "mixture.so", cpu=cpu)
    session = onnxruntime.InferenceSession(mixture(by_points).SerializeToString())
    for tokens in (1, 3, 50):
        x = RNG.standard_normal((tokens, HIDDEN)).astype(np.float32)
        scores = RNG.standard_normal((tokens, EXPERTS)).astype(np.float32)
        chosen = np.argsort(-scores, axis=1, kind="stable")[:, :K]
        shares = np.take_along_axis(scores, chosen, 1).astype(np.float64)
        hidden = np.maximum(np.einsum("tkih,th->tki", UP[chosen].astype(np.float64), x), 0)
        expected = np.einsum("tki,tkih,tk->th", hidden, DOWN[chosen].astype(np.float64), shares)
        [y] = model(x, scores)
        np.testing.assert_allclose(y, expected, rtol=0, atol=3e-6 * np.abs(expected).max())
        [other] = session.run(None, {"x": x, "scores": scores})
        np.testing.assert_allclose(y, other, rtol=0, atol=6e-6 * np.abs(expected).max())


def test_no_copy_of_a_matrix_is_made(tmp_path: Path) -> None:
    """The copies for 50 tokens would take 33 MB."""
    model = mlc.compile(mixture(False), output=tmp_path / "mixture.so", dims={"tokens": 50})
    assert int(model.metadata["memory"]["forward"]) < 2_000_000


def layers(body_weight: str) -> onnx.ModelProto:
    """Layers in a loop over a stack of weights, with what they carry as state: a Scan, or a Loop that gathers."""
    n, value = helper.make_node, helper.make_tensor_value_info
    nodes = [n("MatMul", ["h", body_weight], ["p"]), n("Add", ["p", "b"], ["s"]), n("Tanh", ["s"], ["out"])]
    if body_weight == "turned":
        nodes.insert(0, n("Transpose", ["w"], ["turned"], perm=[1, 0]))
    arrays = {"stack": UP[:, :HIDDEN], "biases": UP[:, 0], "count": np.array(EXPERTS, np.int64)}
    if body_weight == "picked":
        nodes = [n("Gather", ["stack", "i"], ["picked"]), n("Gather", ["biases", "i"], ["b"]), *nodes]
        nodes.append(n("Identity", ["c"], ["more"]))
        given = [value("i", TensorProto.INT64, []), value("c", TensorProto.BOOL, []), value("h", FLOAT, None)]
        body = helper.make_graph(
            nodes, "layer", given, [value("more", TensorProto.BOOL, []), value("out", FLOAT, None)]
        )
        loop = n("Loop", ["count", "", "x"], ["y"], body=body)
    else:
        given = [value("h", FLOAT, None), value("w", FLOAT, [HIDDEN, HIDDEN]), value("b", FLOAT, [HIDDEN])]
        body = helper.make_graph(nodes, "layer", given, [value("out", FLOAT, None)])
        loop = n("Scan", ["x", "stack", "biases"], ["y"], body=body, num_scan_inputs=2)
    weights = [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in arrays.items()]
    inputs = [value("x", FLOAT, ["rows", HIDDEN])]
    graph = helper.make_graph([loop], "layers", inputs, [value("y", FLOAT, ["rows", HIDDEN])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("body_weight", ["w", "turned", "picked"])
def test_layers_in_a_loop(body_weight: str, tmp_path: Path) -> None:
    """One layer's weight is read where it lies, in the order of its kernel: no kernel copies or turns it in a run."""
    model = mlc.compile(layers(body_weight), output=tmp_path / "layers.so")
    templates = [kernel["template"] for kernel in model.metadata["kernels"]]
    assert "contraction" in templates and "transpose" not in templates, templates
    fixed, of_rows = model.metadata["memory"]["forward"].split(" + ")
    assert int(fixed) < 2_000 and of_rows == f"{4 * HIDDEN}*rows"  # no room for a matrix
    x = RNG.standard_normal((7, HIDDEN)).astype(np.float32)
    expected = x.astype(np.float64)
    for weight, bias in zip(UP[:, :HIDDEN].astype(np.float64), UP[:, 0], strict=True):
        expected = np.tanh(expected @ (weight.T if body_weight == "turned" else weight) + bias)
    [y] = model(x)
    np.testing.assert_allclose(y, expected, rtol=0, atol=2e-5)
