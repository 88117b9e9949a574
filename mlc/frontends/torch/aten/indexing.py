"""Gathers, embeddings, selection."""

from __future__ import annotations

import numpy as np

from mlc.frontends.common import elementwise, indexing, reduction, shape
from mlc.frontends.common.builder import Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.aten.elementwise import coordinates
from mlc.frontends.torch.registry import Call, aten, promoted


@aten("index_select")
def index_select(call: Call) -> Tensor:
    """Slices along one dimension."""
    x = call.tensor(0)
    return indexing.gather(call.b, x, call.tensor(2), shape.normalize_axis(call.int(1), x.rank))


@aten("take")
def take(call: Call) -> Tensor:
    """Elements of the flattened tensor."""
    return indexing.gather(call.b, shape.reshape_codes(call.b, call.tensor(0), [-1]), call.tensor(1), 0)


@aten("take_along_dim")
def take_along(call: Call) -> Tensor:
    """Elements along one dimension, an index each; extents of 1 repeat elsewhere."""
    b, x, places = call.b, call.tensor(0), call.tensor(1)
    if call[2] is None:
        flat = shape.reshape_codes(b, x, [-1])
        return indexing.gather(b, flat, shape.reshape_codes(b, places, [-1]), 0)
    axis = shape.normalize_axis(call.int(2), x.rank)
    pairs = enumerate(zip(b.dims(x), b.dims(places), strict=True))
    common = [0 if i == axis else shape.broadcast_size(b, *pair) for i, pair in pairs]
    sized = [[b.dim(t, axis) if i == axis else size for i, size in enumerate(common)] for t in (x, places)]
    wide, spread = (shape.broadcast(b, t, sizes) for t, sizes in zip((x, places), sized, strict=True))
    return b.op("gather_elements", [wide, indexing.as_indices(b, spread)], axis=axis, unsigned=x.unsigned)


@aten("gather")
def gather(call: Call) -> Tensor:
    """Elements along one dimension, an index each."""
    x = call.tensor(0)
    axis = shape.normalize_axis(call.int(1), x.rank)
    return call.b.op("gather_elements", [x, indexing.as_indices(call.b, call.tensor(2))], axis=axis)


@aten("nonzero", "argwhere", "nonzero_numpy")
def nonzero(call: Call) -> Tensor | list[Tensor]:
    """Coordinates of the non-zero elements, one row each; or a vector of them for each dimension."""
    b, x = call.b, call.tensor(0)
    if call.op == "aten::nonzero_numpy":
        return coordinates(b, x)
    return shape.transpose(b, b.op("nonzero", [x]), [1, 0])


@aten("masked_scatter")
def masked_scatter(call: Call) -> Tensor:
    """The first elements of a tensor where a mask is set, in the order of both."""
    b, x, source = call.b, call.tensor(0), call.tensor(2)
    mask = elementwise.cast(b, call.tensor(1), "bool")
    flat = shape.reshape_codes(b, shape.broadcast(b, mask, b.dims(x)), [-1])
    places = reduction.scan(b, "sum", elementwise.cast(b, flat, "int64"), 0, True, False)
    # Where the mask is not set, any place inside the source will do.
    safe = elementwise.select(b, flat, places, b.like(0, places))
    taken = indexing.gather(b, shape.reshape_codes(b, source, [-1]), safe, 0)
    result = elementwise.select(b, flat, taken, shape.reshape_codes(b, x, [-1]))
    return shape.reshape(b, result, b.dims(x))


@aten("bucketize", "searchsorted")
def bucketize(call: Call) -> Tensor:
    """How many of the sorted boundaries lie before each number (or are equal to it, with `right`)."""
    b, swapped = call.b, call.op == "aten::searchsorted"
    x, edges = promoted(b, [call[1], call[0]] if swapped else call.arguments[:2])
    if edges.rank != 1:
        raise NodeError(f"boundaries of rank {edges.rank}", "use a vector of boundaries")
    side = call.get("side")
    right = bool(call.get("right", False)) or side == "right"
    before = elementwise.compare(b, "le" if right else "lt", edges, shape.unsqueeze(b, x, [x.rank]))
    count = reduction.reduce(b, "sum", elementwise.cast(b, before, "int64"), [x.rank], False)
    return elementwise.cast(b, count, "int32") if call.get("out_int32") else count


@aten("topk")
def topk(call: Call) -> list[Tensor]:
    """The k largest or smallest, with their positions."""
    x = call.tensor(0)
    axis = shape.normalize_axis(call.int(2), x.rank)
    return list(indexing.topk(call.b, x, call.sizes(1)[0], axis, bool(call[3]), bool(call[4])))


@aten("sort", "argsort")
def sort(call: Call) -> Tensor | list[Tensor]:
    """Values in order, with their positions."""
    x = call.tensor(0)
    axis = shape.normalize_axis(int(call.get("dim", -1)), x.rank)
    operation = call.b.emit("sort", [x], axis=axis, descending=bool(call.get("descending", False)))
    values, positions = (Tensor(r) for r in operation.results)
    return positions if call.op == "aten::argsort" else [values, positions]


@aten("tril", "triu")
def triangle(call: Call) -> Tensor:
    """The lower or upper triangle; the rest is zero."""
    offset = call.b.index_constant(int(call.get("diagonal", 0)))
    return call.b.op("trilu", [call.tensor(0), offset], upper=call.op == "aten::triu")


@aten("one_hot")
def one_hot(call: Call) -> Tensor:
    """A one at each index, zeros elsewhere."""
    b = call.b
    depth = call.sizes(1)[0]
    if depth == -1:
        raise NodeError("how many classes there are is known at run time only", "give one_hot their number")
    values = b.constant(np.array([0, 1], np.int64))
    return b.op("one_hot", [call.tensor(0), b.as_index(depth), values], axis=call.tensor(0).rank)


@aten("masked_select")
def masked_select(call: Call) -> Tensor:
    """The elements where a mask is set, in one dimension."""
    b = call.b
    x, mask = call.tensor(0), elementwise.cast(call.b, call.tensor(1), "bool")
    sizes = b.dims(x)
    flat = shape.reshape_codes(b, shape.expand(b, mask, sizes), [-1])
    return indexing.compress(b, shape.reshape_codes(b, x, [-1]), flat, 0)
