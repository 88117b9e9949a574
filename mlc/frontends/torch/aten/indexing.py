"""Gathers, embeddings, selection."""

from __future__ import annotations

import numpy as np

from mlc.frontends.common import elementwise, indexing, reduction, shape
from mlc.frontends.common.builder import Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.aten.elementwise import coordinates
from mlc.frontends.torch.aten.shape import as_vectors
from mlc.frontends.torch.registry import Call, aten, promoted


@aten("index_select")
@as_vectors
def index_select(call: Call) -> Tensor:
    """Slices along one dimension."""
    x, places = call.tensor(0), shape.reshape_codes(call.b, call.tensor(2), [-1])
    return indexing.gather(call.b, x, places, shape.normalize_axis(call.int(1), x.rank))


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
    return indexing.gather_elements(b, wide, spread, axis)


@aten("gather")
def gather(call: Call) -> Tensor:
    """Elements along one dimension, an index each."""
    b, x, places = call.b, call.tensor(0), indexing.as_indices(call.b, call.tensor(2))
    axis = shape.normalize_axis(call.int(1), max(x.rank, 1))
    if 0 in places.shape:  # of any rank
        return shape.full(b, b.dims(places), b.like(0, x))
    if x.rank == 0:
        return indexing.gather(b, shape.unsqueeze(b, x, [0]), places, 0)
    if places.rank == 0:
        return shape.reshape(b, indexing.gather(b, x, places, 0), [])
    return indexing.gather_elements(b, x, places, axis)


@aten("nonzero", "argwhere", "nonzero_numpy")
def nonzero(call: Call) -> Tensor | list[Tensor]:
    """Coordinates of the non-zero elements, one row each; or a vector of them for each dimension."""
    b, x = call.b, call.tensor(0)
    if call.op == "aten::nonzero_numpy":
        return coordinates(b, x)
    return shape.transpose(b, b.op("nonzero", [x]), [1, 0])


@aten("nonzero_static")
def nonzero_static(call: Call) -> Tensor:
    """As many coordinates of non-zero elements as are wanted, `[size, rank]`; those that are missing are filled."""
    b, found, size = call.b, shape.transpose(call.b, call.b.op("nonzero", [call.tensor(0)]), [1, 0]), call.sizes(1)[0]
    rest = shape.full(b, [size, b.dim(found, 1)], b.like(int(call.get("fill_value", -1)), found))
    return shape.window(b, shape.concat(b, [found, rest], 0), 0, 0, size)


@aten("masked_scatter")
def masked_scatter(call: Call) -> Tensor:
    """The first elements of a tensor where a mask is set, in the order of both."""
    b, x, source = call.b, call.tensor(0), call.tensor(2)
    mask = elementwise.cast(b, call.tensor(1), "bool")
    x = shape.expand(b, x, b.dims(mask))
    flat = shape.reshape_codes(b, shape.expand(b, mask, b.dims(x)), [-1])
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
    sorter, side = call.get("sorter"), call.get("side")
    if sorter is not None:
        edges = indexing.gather_elements(b, edges, sorter, edges.rank - 1)
    edges = shape.unsqueeze(b, edges, [edges.rank - 1]) if edges.rank > 1 else edges
    right = bool(call.get("right", False)) or side == "right"
    each = shape.unsqueeze(b, x, [x.rank])
    before = elementwise.compare(b, "le" if right else "lt", edges, each)
    if x.is_float:  # what is not a number comes last
        before = elementwise.binary(b, "or", before, elementwise.compare(b, "ne", each, each))
    count = reduction.reduce(b, "sum", elementwise.cast(b, before, "int64"), [x.rank], False)
    return elementwise.cast(b, count, "int32") if call.get("out_int32") else count


@aten("topk")
@as_vectors
def topk(call: Call) -> list[Tensor]:
    """The k largest or smallest, with their positions."""
    x = call.tensor(0)
    axis = shape.normalize_axis(call.int(2), x.rank)
    return list(indexing.topk(call.b, x, call.sizes(1)[0], axis, bool(call[3]), bool(call[4])))


@aten("sort", "argsort")
@as_vectors
def sort(call: Call) -> Tensor | list[Tensor]:
    """Values in order, with their positions."""
    x = call.tensor(0)
    axis = shape.normalize_axis(int(call.get("dim", -1)), x.rank)
    values, positions = indexing.sort(call.b, x, axis, bool(call.get("descending", False)))
    return positions if call.op == "aten::argsort" else [values, positions]


@aten("tril", "triu")
def triangle(call: Call) -> Tensor:
    """The lower or upper triangle; the rest is zero."""
    offset = call.b.index_constant(int(call.get("diagonal", 0)))
    return call.b.op("trilu", [call.tensor(0), offset], upper=call.op == "aten::triu", unsigned=call.tensor(0).unsigned)


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
    x = shape.expand(b, x, b.dims(mask))
    mask = shape.expand(b, mask, b.dims(x))
    return indexing.compress(b, shape.reshape_codes(b, x, [-1]), shape.reshape_codes(b, mask, [-1]), 0)


@aten("_unique2", "unique_dim")
def unique(call: Call) -> list[Tensor]:
    """Distinct elements of the flattened tensor in ascending order, or distinct slices along a dimension; which of them
    each element is, `i64` with the extents of the input (or `[n]`); how often each occurs. What is not wanted is empty.
    """
    b, x = call.b, call.tensor(0)
    call.get("sorted")  # unless on a GPU, they are sorted anyway
    if call.op == "aten::_unique2":
        flat = shape.reshape_codes(b, x, [-1])
        values, _, inverse, counts = indexing.unique(b, flat)
        return _wanted(call, values, shape.reshape(b, inverse, b.dims(x)), counts)
    axis = shape.normalize_axis(call.int(1), x.rank)
    _, first, inverse, counts = indexing.unique(b, indexing.ranks(b, indexing.rows(b, x, axis)))
    return _wanted(call, indexing.gather(b, x, first, axis), inverse, counts)


@aten("unique_consecutive", "unique_dim_consecutive")
def unique_consecutive(call: Call) -> list[Tensor]:
    """The first element of each stretch of equal ones, or of equal slices along a dimension, and as `unique` does."""
    b, x, given = call.b, call.tensor(0), call.get("dim")
    source = shape.reshape_codes(b, x, [-1]) if given is None else x
    axis = 0 if given is None else shape.normalize_axis(int(given), x.rank)
    first, inverse, counts = indexing.stretches(b, indexing.rows(b, source, axis))
    inverse = shape.reshape(b, inverse, b.dims(x)) if given is None else inverse
    return _wanted(call, indexing.gather(b, source, first, axis), inverse, counts)


def _wanted(call: Call, values: Tensor, inverse: Tensor, counts: Tensor) -> list[Tensor]:
    none = call.b.constant(np.zeros([0], np.int64))
    return [
        values,
        inverse if call.get("return_inverse") else none,
        counts if call.get("return_counts") else none,
    ]
