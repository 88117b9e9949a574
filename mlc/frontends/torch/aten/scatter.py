"""Elements and slices that are written to places of a tensor, or combined with what is there."""

from __future__ import annotations

import math

import numpy as np

from mlc.frontends.common import elementwise, indexing, reduction, shape
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.aten.shape import as_vectors
from mlc.frontends.torch.registry import Call, as_size, aten

_KINDS = {
    "add": "add", "sum": "add", "multiply": "mul", "prod": "mul", "amax": "max", "amin": "min", "mean": "add",
}  # fmt: skip


def _scattered(b: Builder, x: Tensor, places: Tensor, updates: Tensor, axis: int, kind: str = "none") -> Tensor:
    """`updates` at `places` along `axis`; there may be more updates than places, at the ends of dimensions."""
    if updates.shape != places.shape or None in places.shape:
        updates = shape.slice_(b, updates, [0] * updates.rank, b.dims(places), [1] * updates.rank)
    return indexing.scatter(b, x, places, updates, axis, kind)


def _kind(name: str) -> str:
    if name not in _KINDS:
        raise NodeError(f"the reduction {name!r}", f"known are {', '.join(sorted(_KINDS))}")
    return _KINDS[name]


@aten("scatter", "scatter_add")
@as_vectors
def scatter(call: Call) -> Tensor:
    """Updates along one dimension: written, added or multiplied."""
    b, x = call.b, call.tensor(0)
    axis = shape.normalize_axis(call.int(1), x.rank)
    places, updates, name = indexing.as_indices(b, call.tensor(2)), call[3], call.get("reduce")
    if not isinstance(updates, Tensor) or updates.rank == 0 < places.rank:
        value = b.like(updates, x) if not isinstance(updates, Tensor) else updates
        updates = shape.expand(b, value, b.dims(places))
    kind = "add" if call.op == "aten::scatter_add" else "none" if name is None else _kind(name)
    return _scattered(b, x, places, elementwise.cast(b, updates, x.dtype), axis, kind)


@aten("scatter_reduce")
@as_vectors
def scatter_reduce(call: Call) -> Tensor:
    """Sums, products, extreme values or means of what goes to the same place, with or without what is there."""
    b, x, updates = call.b, call.tensor(0), call.tensor(3)
    axis, places = shape.normalize_axis(call.int(1), x.rank), indexing.as_indices(b, call.tensor(2))
    return _combined(b, x, axis, places, updates, str(call[4]), bool(call.get("include_self", True)))


@aten("index_reduce")
@as_vectors
def index_reduce(call: Call) -> Tensor:
    """The same of slices along a dimension, each of which goes to one place."""
    b, x, updates = call.b, call.tensor(0), call.tensor(3)
    axis, line = shape.normalize_axis(call.int(1), x.rank), shape.reshape_codes(b, call.tensor(2), [-1])
    column = shape.unsqueeze(b, indexing.as_indices(b, line), [i for i in range(x.rank) if i != axis])
    places = shape.broadcast(b, column, b.dims(updates))
    return _combined(b, x, axis, places, updates, str(call[4]), bool(call.get("include_self", True)))


@aten("put")
def put(call: Call) -> Tensor:
    """Elements written to, or added at, places of the flattened tensor."""
    b, x = call.b, call.tensor(0)
    places, updates = indexing.as_indices(b, call.tensor(1)), elementwise.cast(b, call.tensor(2), x.dtype)
    flat, places, updates = (shape.reshape_codes(b, tensor, [-1]) for tensor in (x, places, updates))
    result = _scattered(b, flat, places, updates, 0, "add" if call.get("accumulate") else "none")
    return shape.reshape(b, result, b.dims(x))


def _combined(b: Builder, x: Tensor, axis: int, places: Tensor, updates: Tensor, name: str, with_self: bool) -> Tensor:
    """`x` with what goes to the same place of `axis` combined as `name` says, with or without what is there."""
    kind, base = _kind(name), x
    if not with_self:
        start = updates if kind in ("max", "min") else shape.full(b, b.dims(places), b.like(int(kind == "mul"), x))
        base = _scattered(b, x, places, start, axis)
    total = _scattered(b, base, places, updates, axis, kind)
    if name != "mean":
        return total
    ones, each = (shape.full(b, b.dims(t), b.like(1, x)) for t in (x, places))
    if not with_self:
        ones = _scattered(b, ones, places, shape.full(b, b.dims(places), b.like(0, x)), axis)
    count = _scattered(b, ones, places, each, axis, "add")
    quotient = elementwise.binary(b, "div", total, count)
    if x.is_float:
        return quotient
    rest = elementwise.binary(b, "mod", total, count)  # integers are rounded down
    return elementwise.binary(b, "div", elementwise.binary(b, "sub", total, rest), count)


@aten("segment_reduce")
def segment_reduce(call: Call) -> Tensor:
    """Sums, means, products or extreme values of stretches of the first dimension, `[segments, …]`: of each length, or
    between offsets. A mean of nothing is not a number.
    """
    b, x, name, lengths, offsets = call.b, call.tensor(0), str(call[1]), call.get("lengths"), call.get("offsets")
    bounds = offsets if lengths is None else lengths
    if bounds is None or bounds.rank != 1 or int(call.get("axis", 0)):
        raise NodeError("segments along another dimension than the first", "transpose, or flatten what is in front")
    call.get("unsafe")  # what is checked
    if lengths is None:
        ends = shape.slice_axes(b, elementwise.cast(b, bounds, "int64"), [0], [1], [shape.INT64_MAX], [1])
    else:
        ends = reduction.scan(b, "sum", elementwise.cast(b, bounds, "int64"), 0, False, False)
    place = shape.unsqueeze(b, shape.iota(b, [b.dim(x, 0)], 0, "int64"), [1])
    passed = elementwise.cast(b, elementwise.compare(b, "le", ends, place), "int64")
    points = reduction.reduce(b, "sum", passed, [1], True)
    kind, initial = {"max": "max", "min": "min"}.get(name) or _kind(name), call.get("initial")
    start = {"max": -math.inf, "min": math.inf, "mul": 1.0}.get(kind, 0.0) if initial is None else float(initial)
    count = b.dim(ends, 0)
    result = shape.full(b, [count, *b.dims(x)[1:]], b.like(start, x))
    result = indexing.scatter_nd(b, result, points, x, kind)
    if name != "mean":
        return result
    each = shape.full(b, [b.dim(x, 0)], b.like(1, x))
    members = indexing.scatter_nd(b, shape.full(b, [count], b.like(0, x)), points, each, "add")
    if initial is not None:
        members = elementwise.binary(b, "max", members, b.like(1, members))
    members = shape.unsqueeze(b, members, list(range(1, x.rank)))
    return elementwise.binary(b, "div", result, members)


@aten("bincount")
def bincount(call: Call) -> Tensor:
    """How often each number from 0 on stands in a vector, or the sum of what stands beside it: as many as the largest
    one says, `minlength` at least; int64, or the dtype of the weights (float64 of those that are no floats)."""
    b, x, weights = call.b, elementwise.cast(call.b, call.tensor(0), "int64"), call.get("weights")
    least = as_size(b, call.get("minlength", 0))
    highest = reduction.reduce(b, "max", shape.concat(b, [x, b.constant(np.array([-1]))], 0), [0], False)
    count = b.arith("maxsi", b.element(elementwise.binary(b, "add", highest, b.like(1, highest))), least)
    if weights is None:
        weights = shape.full(b, b.dims(x), b.like(1, x))
    elif weights.dtype != "float32":
        weights = elementwise.cast(b, weights, "float64")
    return indexing.scatter(b, shape.full(b, [count], b.like(0, weights)), x, weights, 0, "add")


@aten("select_scatter", "slice_scatter")
def slices(call: Call) -> Tensor:
    """A copy with one slice, or several, of a dimension replaced."""
    b, x, updates = call.b, call.tensor(0), elementwise.cast(call.b, call.tensor(1), call.tensor(0).dtype)
    axis = shape.normalize_axis(int(call.get("dim", 0)), x.rank)
    line = shape.iota(b, [b.dim(x, axis)], 0, "int64")
    if call.op == "aten::select_scatter":
        places = shape.slice_axes(b, line, [0], [as_size(b, call[3])], [shape.INT64_MAX], [1])
        places = shape.window(b, places, 0, 0, 1)
        updates = shape.unsqueeze(b, updates, [axis])
    else:
        start = 0 if call[3] is None else as_size(b, call[3])
        end = shape.INT64_MAX if call[4] is None else as_size(b, call[4])
        places = shape.slice_axes(b, line, [0], [start], [end], [int(call.get("step", 1))])
    column = shape.unsqueeze(b, places, [i for i in range(x.rank) if i != axis])
    return _scattered(b, x, shape.expand(b, column, b.dims(updates)), updates, axis)
