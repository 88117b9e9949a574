"""Reductions, running sums, extremes and normalizations over drawn shapes and axes, against ONNX's reference evaluator."""

from __future__ import annotations

import numpy as np
import properties as p
import pytest
from hypothesis import strategies as st

AXES = st.sampled_from([[0], [-1], [1], [0, 2], [1, 2], [0, 1, 2]])


def _reduced(op: str, dtype: str, axes: list[int], keep: int) -> bytes:
    constants = {"axes": np.array(axes, np.int64)}
    return p.graph([p.node(op, ["x", "axes"], keepdims=keep)], {"x": (dtype, 3)}, constants=constants)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"])
@p.drawn
def test_reductions_of_integers(op: str, data: st.DataObject) -> None:
    """Sums and products wrap around; what has no elements has no extreme."""
    dtype = data.draw(st.sampled_from(["int32", "int64", "int8", "uint8"] if "M" in op[6:] else ["int32", "int64"]))
    axes, keep = data.draw(AXES), data.draw(st.integers(0, 1))
    x = p.array(dtype, data.draw(p.shapes(3, 1 if "M" in op[6:] else 0)), data.draw(p.seeds))
    p.check(_reduced(op, dtype, axes, keep), {"x": x})


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare"])
@p.drawn
def test_reductions_of_floats(op: str, data: st.DataObject) -> None:
    dtype, axes = data.draw(st.sampled_from(["float32", "float64"])), data.draw(AXES)
    least = 1 if op in ("ReduceMean", "ReduceLogSumExp") else 0
    x = p.array(dtype, data.draw(p.shapes(3, least)), data.draw(p.seeds), special=False)
    p.check(_reduced(op, dtype, axes, data.draw(st.integers(0, 1))), {"x": x})


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin", "ReduceSum"])
@p.drawn
def test_reductions_of_odd_floats(op: str, data: st.DataObject) -> None:
    """NaN wins, infinities stay, and of nothing the extreme is infinite."""
    dtype, axes = data.draw(st.sampled_from(["float32", "float16"])), data.draw(AXES)
    x = p.array(dtype, data.draw(p.shapes(3, 0 if dtype == "float32" else 1)), data.draw(p.seeds))
    if op == "ReduceSum":
        with np.errstate(invalid="ignore"):
            x = np.where(np.abs(x) > 1000, np.array(np.inf, x.dtype), x)
    p.check(_reduced(op, dtype, axes, 1), {"x": x})


@p.drawn
def test_axes_that_are_data_or_absent(data: st.DataObject) -> None:
    """Without axes over everything, or over nothing where the node says so."""
    nodes = [
        p.node("ReduceSum", ["x"], ["all"], keepdims=0),
        p.node("ReduceSum", ["x"], ["none"], noop_with_empty_axes=1),
        p.node("ReduceMax", ["x"], ["largest"], keepdims=1),
    ]
    model = p.graph(nodes, {"x": ("int64", 2)}, ["all", "none", "largest"])
    p.check(model, {"x": p.array("int64", data.draw(p.shapes(2, 1)), data.draw(p.seeds))})


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@p.drawn
def test_positions_of_extremes(op: str, data: st.DataObject) -> None:
    """Of equal ones the first, or the last."""
    dtype = data.draw(st.sampled_from(["float32", "int8", "int64"]))
    axis, last = data.draw(st.sampled_from([0, 1, -1])), data.draw(st.integers(0, 1))
    model = p.graph(
        [p.node(op, ["x"], axis=axis, keepdims=data.draw(st.integers(0, 1)), select_last_index=last)], {"x": (dtype, 3)}
    )
    x = p.array(dtype, data.draw(p.shapes(3, 1)), data.draw(p.seeds))
    if x.dtype.kind == "f":
        x = np.where(np.isnan(x), np.array(0, x.dtype), np.round(x))
    p.check(model, {"x": x})


@p.drawn
def test_running_sums(data: st.DataObject) -> None:
    dtype, axis = data.draw(st.sampled_from(["float32", "int32", "int64"])), data.draw(st.sampled_from([0, 1, -1]))
    exclusive, reverse = data.draw(st.integers(0, 1)), data.draw(st.integers(0, 1))
    model = p.graph(
        [p.node("CumSum", ["x", "axis"], exclusive=exclusive, reverse=reverse)],
        {"x": (dtype, 2)},
        constants={"axis": np.array(axis, np.int64)},
    )
    p.check(model, {"x": p.array(dtype, data.draw(p.shapes(2)), data.draw(p.seeds), special=dtype != "float32")})


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
@p.drawn
def test_softmax(op: str, data: st.DataObject) -> None:
    """Large numbers do not overflow, and -inf has no share."""
    dtype, axis = data.draw(st.sampled_from(["float32", "float64"])), data.draw(st.sampled_from([0, 1, -1]))
    x = p.array(dtype, data.draw(p.shapes(3, 1)), data.draw(p.seeds), special=False)
    if data.draw(st.booleans()):
        x = x * 100
    model, x = p.graph([p.node(op, ["x"], axis=axis)], {"x": (dtype, 3)}), x.astype(dtype)
    if op != "LogSoftmax":
        p.check(model, {"x": x}, rtol=1e-4)
        return
    wide = x.astype(np.float64)  # the reference takes the logarithm of shares that are 0 in its precision
    wide -= wide.max(axis, keepdims=True)
    [y] = p.run(model, {"x": x})
    p.same(y.astype(np.float64), wide - np.log(np.exp(wide).sum(axis, keepdims=True)), rtol=1e-4, atol=1e-4)


@p.drawn
def test_softmax_of_infinities(data: st.DataObject) -> None:
    x = p.array("float32", data.draw(p.shapes(2, 1)), data.draw(p.seeds), special=False)
    x[np.random.default_rng(data.draw(p.seeds)).random(x.shape) < 0.5] = -np.inf
    p.check(p.graph([p.node("Softmax", ["x"], axis=-1)], {"x": ("float32", 2)}), {"x": x})


@p.drawn
def test_layer_norm(data: st.DataObject) -> None:
    axis = data.draw(st.sampled_from([-1, 1]))
    batch, rows, width = data.draw(p.shapes(3, 1))
    own = (rows, width) if axis == 1 else (width,)
    names = ["x", "scale", "bias"]
    inputs = {"x": ("float32", 3), "scale": ("float32", len(own)), "bias": ("float32", len(own))}
    seed = data.draw(p.seeds)
    feeds = {name: p.array("float32", own, seed + i, special=False) for i, name in enumerate(names)}
    feeds["x"] = p.array("float32", (batch, rows, width), seed, special=False)
    p.check(p.graph([p.node("LayerNormalization", names, axis=axis)], inputs), feeds, rtol=1e-3, atol=1e-3)


@p.drawn
def test_normalization_of_channels(data: st.DataObject) -> None:
    """Group, instance and batch norm of one input of six channels."""
    nodes = [
        p.node("GroupNormalization", ["x", "s", "b"], ["group"], num_groups=3),
        p.node("InstanceNormalization", ["x", "s", "b"], ["instance"]),
        p.node("BatchNormalization", ["x", "s", "b", "b", "v"], ["batch"]),
        p.node("LpNormalization", ["x"], ["lp"], axis=1, p=2),
    ]
    names = [n.output[0] for n in nodes]
    inputs = {"x": ("float32", [None, 6, None, None]), "s": ("float32", [6]), "b": ("float32", [6]), "v": ("float32", [6])}
    batch, height, width = data.draw(p.shapes(3, 1))
    seed = data.draw(p.seeds)
    feeds = {name: p.array("float32", (6,), seed + i, special=False) for i, name in enumerate("sbv")}
    feeds["v"] = np.abs(feeds["v"]) + np.float32(0.1)
    feeds["x"] = p.array("float32", (batch, 6, height, width + 1), seed, special=False)
    p.check(p.graph(nodes, inputs, names), feeds, rtol=2e-3, atol=2e-3)
