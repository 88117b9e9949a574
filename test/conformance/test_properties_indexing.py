"""Operators that look up, scatter, sort and select, on drawn shapes and indices, against ONNX's reference evaluator."""

from __future__ import annotations

import numpy as np
import properties as p
import pytest
from hypothesis import strategies as st

TYPES = st.sampled_from(["float32", "int64", "int8"])


def _indices(data: st.DataObject, shape: tuple[int, ...], extent: int) -> np.ndarray:
    """Positions in a dimension, from both ends."""
    rng = np.random.default_rng(data.draw(p.seeds))
    return rng.integers(-extent, extent, shape).astype(np.int64)


@p.drawn
def test_gather(data: st.DataObject) -> None:
    dtype, axis = data.draw(TYPES), data.draw(st.sampled_from([0, 1, -1]))
    shape = list(data.draw(p.shapes(3)))
    shape[axis] = max(shape[axis], 1)
    model = p.graph([p.node("Gather", ["x", "i"], axis=axis)], {"x": (dtype, 3), "i": ("int64", 2)})
    feeds = {"x": p.array(dtype, shape, data.draw(p.seeds)), "i": _indices(data, data.draw(p.shapes(2)), shape[axis])}
    p.check(model, feeds)


@p.drawn
def test_gather_out_of_range_is_refused(data: st.DataObject) -> None:
    x = p.array("float32", data.draw(p.shapes(2, 1)), data.draw(p.seeds))
    model = p.graph([p.node("Gather", ["x", "i"], axis=0)], {"x": ("float32", 2), "i": ("int64", 1)})
    wrong = data.draw(st.sampled_from([len(x), -len(x) - 1, 2**40]))
    assert "out of range" in p.refused(model, {"x": x, "i": np.array([0, wrong], np.int64)})


@p.drawn
def test_gather_elements_and_scatter_elements(data: st.DataObject) -> None:
    """The indices may have fewer elements than the input in the other dimension, which the reference does not allow;
    each place is written once."""
    dtype, axis = data.draw(TYPES), data.draw(st.sampled_from([0, 1]))
    shape = data.draw(p.shapes(2, 1))
    other = data.draw(st.integers(1, shape[1 - axis]))
    order = np.random.default_rng(data.draw(p.seeds)).permutation(shape[axis])[: data.draw(st.integers(1, 4))]
    spread = (len(order), other) if axis == 0 else (other, len(order))
    lines = np.broadcast_to(order[:, None] if axis == 0 else order[None], spread).astype(np.int64)
    nodes = [
        p.node("GatherElements", ["x", "i"], ["gathered"], axis=axis),
        p.node("ScatterElements", ["x", "i", "u"], ["scattered"], axis=axis),
    ]
    model = p.graph(nodes, {"x": (dtype, 2), "i": ("int64", 2), "u": (dtype, 2)}, ["gathered", "scattered"])
    x, u = p.array(dtype, shape, data.draw(p.seeds)), p.array(dtype, lines.shape, data.draw(p.seeds))
    gathered, scattered = p.run(model, {"x": x, "i": lines, "u": u})
    wanted = x.copy()
    part = wanted[:, :other] if axis == 0 else wanted[:other]
    p.same(gathered, np.take_along_axis(part, lines, axis))
    np.put_along_axis(part, lines, u, axis)
    p.same(scattered, wanted)


@pytest.mark.parametrize("reduction", ["add", "max", "min", "mul"])
@p.drawn
def test_scatter_with_reduction(reduction: str, data: st.DataObject) -> None:
    """Places may be written several times."""
    shape = data.draw(p.shapes(2, 1))
    rows = data.draw(st.integers(0, 5))
    model = p.graph(
        [p.node("ScatterND", ["x", "i", "u"], reduction=reduction)],
        {"x": ("int32", 2), "i": ("int64", [None, 1]), "u": ("int32", 2)},
    )
    feeds = {
        "x": p.array("int32", shape, data.draw(p.seeds), special=False),
        "i": np.abs(_indices(data, (rows, 1), shape[0])) % shape[0],
        "u": p.array("int32", (rows, shape[1]), data.draw(p.seeds), special=False),
    }
    p.check(model, feeds)


@p.drawn
def test_gather_nd(data: st.DataObject) -> None:
    shape = data.draw(p.shapes(3, 1))
    count = data.draw(st.integers(0, 6))
    model = p.graph([p.node("GatherND", ["x", "i"])], {"x": ("float32", 3), "i": ("int64", [None, 2])})
    indices = np.stack([_indices(data, (count,), extent) for extent in shape[:2]], axis=1)
    p.check(model, {"x": p.array("float32", shape, data.draw(p.seeds)), "i": indices})


@pytest.mark.parametrize("largest", [0, 1])
@p.drawn
def test_top_k(largest: int, data: st.DataObject) -> None:
    """Of equal elements the first."""
    dtype, axis = data.draw(st.sampled_from(["float32", "int64", "int32"])), data.draw(st.sampled_from([0, -1]))
    x = p.array(dtype, data.draw(p.shapes(2, 1)), data.draw(p.seeds))
    x = np.where(np.isnan(x), np.array(0, x.dtype), x) if x.dtype.kind == "f" else x
    model = p.graph(
        [p.node("TopK", ["x", "k"], ["y", "i"], axis=axis, largest=largest)],
        {"x": (dtype, 2), "k": ("int64", [1])}, ["y", "i"],
    )  # fmt: skip
    k = data.draw(st.integers(1, x.shape[axis]))
    y, places = p.run(model, {"x": x, "k": np.array([k], np.int64)})
    order = np.argsort(-x.astype(np.float64) if largest and x.dtype.kind == "f" else x, axis=axis, kind="stable")
    if largest and x.dtype.kind != "f":  # the least integer has no opposite
        order = np.flip(x.shape[axis] - 1 - np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    wanted = np.take(order, range(k), axis)
    p.same(places, wanted)
    p.same(y, np.take_along_axis(x, wanted, axis))


@p.drawn
def test_nonzero_and_compress(data: st.DataObject) -> None:
    """How many there are shows at run time."""
    dtype = data.draw(st.sampled_from(["float32", "bool", "int8"]))
    x = p.array(dtype, data.draw(p.shapes(2)), data.draw(p.seeds))
    keep = p.array("bool", (x.shape[0],), data.draw(p.seeds))
    nodes = [p.node("NonZero", ["x"], ["places"]), p.node("Compress", ["x", "keep"], ["kept"], axis=0)]
    model = p.graph(nodes, {"x": (dtype, 2), "keep": ("bool", 1)}, ["places", "kept"])
    p.check(model, {"x": x, "keep": keep})


@p.drawn
def test_one_hot_and_triangles(data: st.DataObject) -> None:
    """Indices from both ends, those outside give nothing; diagonals far away."""
    nodes = [
        p.node("OneHot", ["i", "depth", "values"], ["hot"], axis=-1),
        p.node("Trilu", ["x", "k"], ["lower"], upper=0),
        p.node("Trilu", ["x", "k"], ["upper"], upper=1),
    ]
    inputs = {"i": ("int64", 1), "depth": ("int64", 0), "values": ("float32", [2]), "x": ("int32", 3), "k": ("int64", 0)}
    depth = data.draw(st.integers(1, 6))
    feeds = {
        "i": _indices(data, data.draw(p.shapes(1)), depth),
        "depth": np.array(depth, np.int64),
        "values": np.array([-1, 2], np.float32),
        "x": p.array("int32", data.draw(p.shapes(3)), data.draw(p.seeds)),
        "k": np.array(data.draw(st.integers(-9, 9)), np.int64),
    }
    p.check(p.graph(nodes, inputs, ["hot", "lower", "upper"]), feeds)


@p.drawn
def test_unique(data: st.DataObject) -> None:
    x = p.array("int64", data.draw(p.shapes(1, 1)), data.draw(p.seeds))
    names = ["values", "first", "inverse", "counts"]
    p.check(p.graph([p.node("Unique", ["x"], names)], {"x": ("int64", 1)}, names), {"x": x})


@p.drawn
def test_tensor_scatter(data: st.DataObject) -> None:
    """An update of a cache, by NumPy: of one element and of several, with and without positions, around the end."""
    dtype, mode = data.draw(TYPES), data.draw(st.sampled_from(["linear", "circular"]))
    axis = data.draw(st.sampled_from([1, 2, -1, -2, -3]))
    shape = [data.draw(st.integers(1, 3)), *(data.draw(st.integers(1, 6)) for _ in range(3))]
    extent = shape[axis]
    new = [data.draw(st.integers(1, extent)) if i == axis % 4 else length for i, length in enumerate(shape)]
    cache, update = p.array(dtype, shape, data.draw(p.seeds)), p.array(dtype, new, data.draw(p.seeds))
    most = extent - 1 if mode == "circular" else extent - new[axis]
    starts = np.array([data.draw(st.integers(0, most)) for _ in range(shape[0])], np.int64)
    inputs, names, feeds = {"x": (dtype, 4), "u": (dtype, 4)}, ["x", "u"], {"x": cache, "u": update}
    if data.draw(st.booleans()):
        inputs, names, feeds = inputs | {"i": ("int64", 1)}, [*names, "i"], feeds | {"i": starts}
    else:
        starts[:] = 0
    model = p.graph([p.node("TensorScatter", names, axis=axis, mode=mode)], inputs, opset=24)
    wanted = cache.copy()
    for place in np.ndindex(*new):
        target = list(place)
        target[axis] = (target[axis] + starts[place[0]]) % extent
        wanted[tuple(target)] = update[place]
    p.same(p.run(model, feeds)[0], wanted)


@pytest.mark.parametrize("name, shape", [("u", (2, 1, 2, 5)), ("u", (3, 2, 2, 5)), ("i", (2,))])
def test_tensor_scatter_of_other_extents_is_refused(name: str, shape: tuple[int, ...]) -> None:
    """Extents that only the run knows, of a cache `[3, 1, 4, 5]`."""
    model = p.graph(
        [p.node("TensorScatter", ["x", "u", "i"], axis=2)], {"x": ("float32", 4), "u": ("float32", 4), "i": ("int64", 1)},
        opset=24,
    )  # fmt: skip
    feeds = {"x": np.zeros((3, 1, 4, 5), np.float32), "u": np.ones((3, 1, 2, 5), np.float32), "i": np.zeros(3, np.int64)}
    p.same(p.run(model, feeds)[0][0, 0, :, 0], np.float32([1, 1, 0, 0]))
    feeds[name] = np.ones(shape, feeds[name].dtype)
    assert "in input 'x'" in p.refused(model, feeds)  # the dimensions have one name
