"""Operators that move elements, on drawn shapes, axes, steps and paddings, against ONNX's reference evaluator."""

from __future__ import annotations

import numpy as np
import properties as p
import pytest
from hypothesis import strategies as st

ANY = st.sampled_from(["float32", "int64", "int8", "bool", "float16"])


def _int64(values: object) -> np.ndarray:
    return np.array(values, np.int64)


def _axis(data: st.DataObject, rank: int) -> int:
    return data.draw(st.integers(-rank, rank - 1))


@p.drawn
def test_slice(data: st.DataObject) -> None:
    """Starts and ends inside, outside and the wrong way round; the steps are part of the model, the rest data."""
    steps = data.draw(st.sampled_from([[1, 1], [2, -1], [-3, 1], [-1, -2]]))
    axes = data.draw(st.sampled_from([[0, 2], [-1, 1]]))
    dtype = data.draw(st.sampled_from(["float32", "int8"]))
    model = p.graph(
        [p.node("Slice", ["x", "starts", "ends", "axes", "steps"])],
        {"x": (dtype, 3), "starts": ("int64", [2]), "ends": ("int64", [2])},
        constants={"axes": _int64(axes), "steps": _int64(steps)},
    )
    bound = st.one_of(st.integers(-8, 8), st.sampled_from([-(2**63), 2**63 - 1, 2**31, -(2**31)]))
    feeds = {name: _int64([data.draw(bound), data.draw(bound)]) for name in ("starts", "ends")}
    p.check(model, {"x": p.array(dtype, data.draw(p.shapes(3)), data.draw(p.seeds)), **feeds})


@p.drawn
def test_slice_with_constants(data: st.DataObject) -> None:
    """The same where all is known when compiling but for the extents."""
    constants = data.draw(
        st.sampled_from([([1, -1], [9, -9], [1, -1]), ([-2, 3], [2**63 - 1, 0], [1, -2]), ([5, 0], [2, 3], [1, 2])])
    )
    model = p.graph(
        [p.node("Slice", ["x", "starts", "ends", "axes", "steps"])],
        {"x": ("int16", 2)},
        constants={
            "axes": _int64([0, 1]),
            **{name: _int64(value) for name, value in zip(("starts", "ends", "steps"), constants, strict=True)},
        },
    )
    p.check(model, {"x": p.array("int16", data.draw(p.shapes(2)), data.draw(p.seeds))})


@p.drawn
def test_transpose(data: st.DataObject) -> None:
    order = data.draw(st.sampled_from([[1, 0, 2], [2, 1, 0], [0, 2, 1], [2, 0, 1]]))
    dtype = data.draw(ANY)
    model = p.graph([p.node("Transpose", ["x"], perm=order)], {"x": (dtype, 3)})
    p.check(model, {"x": p.array(dtype, data.draw(p.shapes(3)), data.draw(p.seeds))})


@p.drawn
def test_reshape(data: st.DataObject) -> None:
    """Shapes that are data, with one extent left to infer where that is possible."""
    shape = data.draw(p.shapes(3))
    allow = data.draw(st.booleans())
    model = p.graph(
        [p.node("Reshape", ["x", "to"], allowzero=int(allow))], {"x": ("int32", 3), "to": ("int64", [2])}
    )
    x = p.array("int32", shape, data.draw(p.seeds))
    ways = [[shape[0] * shape[1], shape[2]], [shape[0], shape[1] * shape[2]]]
    if x.size:
        ways += [[-1, shape[2]], [shape[0], -1], [1, -1]]
        if not allow:
            ways += [[0, -1]]
    elif not allow:  # a zero copies: it stands only where the input has one
        ways = [[0, 0]] if 0 in shape[:2] else [[shape[0], 0]] if shape[1] == 0 else []
        if not ways:
            return
    p.check(model, {"x": x, "to": _int64(data.draw(st.sampled_from(ways)))})


@pytest.mark.parametrize("count", [2, 3])
@p.drawn
def test_concat(count: int, data: st.DataObject) -> None:
    axis, dtype = data.draw(st.sampled_from([(0, "float32"), (-1, "int8"), (1, "int64")]))
    names = [f"x{i}" for i in range(count)]
    model = p.graph([p.node("Concat", names, axis=axis)], dict.fromkeys(names, (dtype, 3)))
    shape = list(data.draw(p.shapes(3)))
    feeds = {}
    for name in names:
        shape[axis] = data.draw(p.extents)
        feeds[name] = p.array(dtype, shape, data.draw(p.seeds))
    p.check(model, feeds)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@p.drawn
def test_pad(mode: str, data: st.DataObject) -> None:
    """Paddings are data; a reflection needs enough elements to reflect."""
    dtype = data.draw(st.sampled_from(["float32", "int64"]))
    least = 0 if mode == "constant" else 3
    shape = data.draw(p.shapes(2, least))
    pads = [data.draw(st.integers(0, 2)) for _ in range(4)]
    inputs: dict[str, tuple[str, int | list[int]]] = {"x": (dtype, 2), "pads": ("int64", [4])}
    feeds = {"x": p.array(dtype, shape, data.draw(p.seeds)), "pads": _int64(pads)}
    names = ["x", "pads"]
    if mode == "constant":
        inputs["value"] = (dtype, 0)
        feeds["value"] = p.array(dtype, [], data.draw(p.seeds))
        names.append("value")
    p.check(p.graph([p.node("Pad", names, mode=mode)], inputs), feeds)


@p.drawn
def test_negative_padding_crops(data: st.DataObject) -> None:
    """NumPy, and with it the reference, does not."""
    model = p.graph([p.node("Pad", ["x", "pads"])], {"x": ("int32", 2), "pads": ("int64", [4])})
    x = p.array("int32", data.draw(p.shapes(2, 2)), data.draw(p.seeds))
    low, high = ([data.draw(st.integers(-1, 2)) for _ in range(2)] for _ in range(2))
    crop = tuple(slice(max(0, -a), n - max(0, -b)) for a, b, n in zip(low, high, x.shape, strict=True))
    wanted = np.pad(x[crop], [(max(0, a), max(0, b)) for a, b in zip(low, high, strict=True)])
    [y] = p.run(model, {"x": x, "pads": _int64([*low, *high])})
    p.same(y, wanted)


@p.drawn
def test_expand_and_tile(data: st.DataObject) -> None:
    """Both sizes are data; Expand stretches in both directions."""
    model = p.graph(
        [p.node("Expand", ["x", "sizes"], ["expanded"]), p.node("Tile", ["x", "times"], ["tiled"])],
        {"x": ("float32", 2), "sizes": ("int64", [3]), "times": ("int64", [2])},
        ["expanded", "tiled"],
    )
    shape, sizes = data.draw(p.broadcasting([2, 3]))
    times = [data.draw(st.integers(0, 3)) for _ in shape]
    p.check(model, {"x": p.array("float32", shape, data.draw(p.seeds)), "sizes": _int64(sizes), "times": _int64(times)})


@p.drawn
def test_split(data: st.DataObject) -> None:
    """Given sizes, and equal parts of which the last may be smaller."""
    axis = data.draw(st.sampled_from([0, -1]))
    shape = list(data.draw(p.shapes(2)))
    sizes = [data.draw(st.integers(0, 3)) for _ in range(3)]
    shape[axis] = sum(sizes)
    names = ["a", "b", "c"]
    model = p.graph(
        [p.node("Split", ["x", "sizes"], names, axis=axis)], {"x": ("int32", 2), "sizes": ("int64", [3])}, names
    )
    p.check(model, {"x": p.array("int32", shape, data.draw(p.seeds)), "sizes": _int64(sizes)})


@p.drawn
def test_split_into_equal_parts(data: st.DataObject) -> None:
    extent = data.draw(st.sampled_from([3, 5, 6, 8, 9]))
    model = p.graph(
        [p.node("Split", ["x"], ["a", "b", "c"], axis=0, num_outputs=3)], {"x": ("float32", 2)}, ["a", "b", "c"]
    )
    p.check(model, {"x": p.array("float32", (extent, data.draw(p.extents)), data.draw(p.seeds))})


@p.drawn
def test_dimensions_of_one(data: st.DataObject) -> None:
    """Squeeze, Unsqueeze, Shape and Size of one input."""
    nodes = [
        p.node("Squeeze", ["x", "at"], ["squeezed"]),
        p.node("Unsqueeze", ["x", "new"], ["unsqueezed"]),
        p.node("Shape", ["x"], ["shape"], start=-2),
        p.node("Size", ["x"], ["size"]),
    ]
    names = [n.output[0] for n in nodes]
    model = p.graph(nodes, {"x": ("int8", 3)}, names, {"at": _int64([-2]), "new": _int64([0, -1])})
    first, _, last = data.draw(p.shapes(3))
    p.check(model, {"x": p.array("int8", (first, 1, last), data.draw(p.seeds))})


@p.drawn
def test_range_and_filled(data: st.DataObject) -> None:
    """Sizes that follow from data: backwards, and empty where the limit lies on the other side."""
    model = p.graph(
        [p.node("Range", ["first", "limit", "step"], ["range"]), p.node("ConstantOfShape", ["sizes"], ["zeros"])],
        {"first": ("int64", 0), "limit": ("int64", 0), "step": ("int64", 0), "sizes": ("int64", [2])},
        ["range", "zeros"],
    )
    small = st.integers(-7, 7)
    feeds = {"first": _int64(data.draw(small)), "limit": _int64(data.draw(small))}
    step = data.draw(small.filter(bool))
    p.check(model, {**feeds, "step": _int64(step), "sizes": _int64(data.draw(p.shapes(2)))})


@p.drawn
def test_blocks_of_depth(data: st.DataObject) -> None:
    """DepthToSpace in both orders, and SpaceToDepth back."""
    batch, height, width = data.draw(p.shapes(3))
    x = p.array("float32", (batch, 8, height, width), data.draw(p.seeds))
    nodes = [
        p.node("DepthToSpace", ["x"], ["dcr"], blocksize=2, mode="DCR"),
        p.node("DepthToSpace", ["x"], ["crd"], blocksize=2, mode="CRD"),
        p.node("SpaceToDepth", ["crd"], ["back"], blocksize=2),
    ]
    p.check(p.graph(nodes, {"x": ("float32", [None, 8, None, None])}, ["dcr", "crd", "back"]), {"x": x})


@p.drawn
def test_reverse_sequence(data: st.DataObject) -> None:
    batch, time, width = data.draw(p.shapes(3, 1))
    lengths = _int64([data.draw(st.integers(1, time)) for _ in range(batch)])
    model = p.graph(
        [p.node("ReverseSequence", ["x", "lengths"], batch_axis=0, time_axis=1)],
        {"x": ("float32", 3), "lengths": ("int64", 1)},
    )
    p.check(model, {"x": p.array("float32", (batch, time, width), data.draw(p.seeds)), "lengths": lengths})


@p.drawn
def test_a_chain_keeps_shapes_together(data: st.DataObject) -> None:
    """Sizes computed by the model itself: rows of a batch flattened, and put back by the shape of the input. The
    reference cannot flatten what is empty."""
    nodes = [
        p.node("Shape", ["x"], ["shape"]),
        p.node("Flatten", ["x"], ["flat"], axis=2),
        p.node("Transpose", ["flat"], ["turned"], perm=[1, 0]),
        p.node("Mul", ["turned", "two"], ["doubled"]),
        p.node("Transpose", ["doubled"], ["again"], perm=[1, 0]),
        p.node("Reshape", ["again", "shape"], ["y"], allowzero=1),
    ]
    model = p.graph(nodes, {"x": ("float32", 3)}, constants={"two": np.array(2, np.float32)})
    x = p.array("float32", data.draw(p.shapes(3)), data.draw(p.seeds), special=False)
    [y] = p.run(model, {"x": x})
    p.same(y, 2 * x)
