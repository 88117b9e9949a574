"""Decoders that write an attention as products: the numbers of NumPy, and no copy of keys for each head."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import mlc

BATCH, HEADS, SHARED, DIM = 2, 8, 2, 16
SHAPES = {
    "second": [2],
    "each": [1, 1, HEADS // SHARED, 1, 1],
    "heads": [0, HEADS, -1, DIM],
    "joined": [BATCH * HEADS, -1, DIM],
    "apart": [BATCH, HEADS, DIM, -1],
}


def _repeated(name: str, shape: str) -> list[onnx.NodeProto]:
    """What exporters of PyTorch write for `x[:, :, None].expand(…).reshape(…)`."""
    return [
        helper.make_node("Unsqueeze", [f"present_{name}", "second"], [f"{name}_one"]),
        helper.make_node("Expand", [f"{name}_one", "each"], [f"{name}_all"]),
        helper.make_node("Reshape", [f"{name}_all", shape], [f"{name}_heads"]),
    ]


def _keys(joined: bool) -> list[onnx.NodeProto]:
    """The keys as columns; newer exporters transpose them with the batch and the heads in one dimension."""
    if not joined:
        turned = [helper.make_node("Transpose", ["k_heads"], ["keys"], perm=[0, 1, 3, 2])]
        return [*_repeated("k", "heads"), *turned]
    return [
        *_repeated("k", "joined"),
        helper.make_node("Transpose", ["k_heads"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("Reshape", ["turned", "apart"], ["keys"]),
    ]


def _model(batch: int | str, joined: bool) -> onnx.ModelProto:
    """New queries, keys and values `[batch, heads, new, dim]` behind keys and values of before."""
    nodes = [
        *(helper.make_node("Concat", [f"past_{n}", n], [f"present_{n}"], axis=2) for n in "kv"),
        *_keys(joined),
        *_repeated("v", "heads"),
        helper.make_node("Mul", ["q", "root"], ["queries"]),
        helper.make_node("Mul", ["keys", "root"], ["scaled"]),
        helper.make_node("MatMul", ["queries", "scaled"], ["scores"]),
        helper.make_node("Add", ["scores", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["weights"], axis=-1),
        helper.make_node("MatMul", ["weights", "v_heads"], ["y"]),
    ]
    inputs = {"q": [batch, HEADS, "new", DIM], "mask": [1, 1, "new", "past + new"]}
    inputs |= {n: [batch, SHARED, "new", DIM] for n in "kv"} | {f"past_{n}": [batch, SHARED, "past", DIM] for n in "kv"}
    outputs = {"y": None, "present_k": None, "present_v": None}
    graph = helper.make_graph(
        nodes,
        "attention",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(np.asarray(shape, np.int64), name) for name, shape in SHAPES.items()]
        + [numpy_helper.from_array(np.asarray(0.5, np.float32), "root")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def _draw(new: int, past: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(new)
    shapes = {"q": (HEADS, new)} | dict.fromkeys("kv", (SHARED, new)) | {f"past_{n}": (SHARED, past) for n in "kv"}
    given = {n: rng.standard_normal((BATCH, *shape, DIM)).astype(np.float32) for n, shape in shapes.items()}
    behind = np.arange(new + past) > np.arange(past, past + new)[:, None]
    return given | {"mask": np.where(behind, np.float32(-1e9), np.float32(0))[None, None]}


def _reference(given: dict[str, np.ndarray]) -> np.ndarray:
    wide = {name: value.astype(np.float64) for name, value in given.items()}
    keys, values = (
        np.repeat(np.concatenate([wide[f"past_{n}"], wide[n]], axis=2), HEADS // SHARED, axis=1) for n in "kv"
    )
    scores = wide["q"] @ keys.swapaxes(2, 3) * 0.25 + wide["mask"]
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ values


@pytest.mark.parametrize(("batch", "joined"), [("batch", False), (BATCH, False), (BATCH, True)])
def test_attention_of_products(tmp_path: Path, batch: int | str, joined: bool) -> None:
    model = mlc.compile(_model(batch, joined), output=tmp_path / "model.so")
    for new, past in ((1, 40), (1, 0), (5, 19), (33, 0)):
        given = _draw(new, past)
        result, keys, values = model(**given)
        np.testing.assert_allclose(result, _reference(given), rtol=2e-5, atol=2e-5)
        np.testing.assert_array_equal(keys, np.concatenate([given["past_k"], given["k"]], axis=2))
        np.testing.assert_array_equal(values, np.concatenate([given["past_v"], given["v"]], axis=2))
    sizes = {"batch": BATCH, "new": 1, "past": 1000, "max": max}
    caches = 2 * BATCH * SHARED * 1001 * DIM * 4
    assert eval(model.metadata["memory"]["forward"], sizes) < caches / 4  # keys are in no other place than the result
