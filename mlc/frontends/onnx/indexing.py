"""Gathers, scatters, and operators whose result depends on the data's order."""

from __future__ import annotations

import numpy as np

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import indexing as common
from mlc.frontends.common import shape
from mlc.frontends.common.builder import Size, Tensor, unit
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError


@onnx_op("Gather")
def gather(g: GraphImporter, node: Node) -> Tensor:
    """`numpy.take`."""
    return common.gather(g.b, node[0], node[1], shape.normalize_axis(node.attr("axis", 0), node[0].rank))


@onnx_op("GatherElements")
def gather_elements(g: GraphImporter, node: Node) -> Tensor:
    """`numpy.take_along_axis`."""
    axis = shape.normalize_axis(node.attr("axis", 0), node[0].rank)
    return common.gather_elements(g.b, node[0], node[1], axis)


@onnx_op("GatherND")
def gather_nd(g: GraphImporter, node: Node) -> Tensor:
    """Slices addressed by coordinate vectors."""
    batch = int(node.attr("batch_dims", 0))
    return g.b.op("gather_nd", [node[0], node[1]], batch_dims=batch, unsigned=node[0].unsigned)


@onnx_op("Scatter", "ScatterElements")
def scatter_elements(g: GraphImporter, node: Node) -> Tensor:
    """Single elements along an axis updated."""
    x = node[0]
    axis = shape.normalize_axis(node.attr("axis", 0), x.rank)
    return common.scatter(g.b, x, node[1], node[2], axis, node.attr("reduction", "none"))


@onnx_op("ScatterND")
def scatter_nd(g: GraphImporter, node: Node) -> Tensor:
    """Slices addressed by coordinate vectors updated."""
    return common.scatter_nd(g.b, node[0], node[1], node[2], node.attr("reduction", "none"))


@onnx_op("NonZero")
def nonzero(g: GraphImporter, node: Node) -> Tensor:
    """Coordinates of the elements that are not zero."""
    x = node[0]
    if x.rank == 0:
        # A scalar has no coordinates: zero rows, and a column if it is not zero.
        places = g.b.op("nonzero", [shape.reshape(g.b, x, [1])])
        return shape.window(g.b, places, 0, 0, 0)
    return g.b.op("nonzero", [x])


@onnx_op("TopK")
def topk_attribute(g: GraphImporter, node: Node) -> list[Tensor]:
    """Before opset 10: k as an attribute."""
    axis = shape.normalize_axis(node.attr("axis", -1), node[0].rank)
    return list(common.topk(g.b, node[0], int(node.required("k")), axis))


@onnx_op("TopK", since=10)
def topk(g: GraphImporter, node: Node) -> list[Tensor]:
    """The k largest or smallest elements."""
    axis = shape.normalize_axis(node.attr("axis", -1), node[0].rank)
    largest, sorted_ = bool(node.attr("largest", 1)), bool(node.attr("sorted", 1))
    return list(common.topk(g.b, node[0], g.b.scalar(node[1]), axis, largest, sorted_))


@onnx_op("Unique")
def unique(g: GraphImporter, node: Node) -> list[Tensor]:
    """Distinct elements, flattened, or distinct slices along an axis."""
    b, x = g.b, node[0]
    given = node.attr("axis")
    ordered = bool(node.attr("sorted", 1))
    if given is None or x.rank == 1:
        flat = shape.reshape_codes(b, x, [-1])
        operation = b.emit("unique", [flat], sorted=ordered, is_unsigned=unit(x.unsigned))
        return [Tensor(result, x.unsigned and position == 0) for position, result in enumerate(operation.results)]
    axis = shape.normalize_axis(given, x.rank)
    order = [axis, *(dim for dim in range(x.rank) if dim != axis)]
    slices = shape.transpose(b, x, order)
    rest = b.product(b.dims(slices)[1:])
    numbers = common.ranks(b, shape.reshape(b, slices, [b.dim(slices, 0), rest]))
    _, first, *others = (Tensor(result) for result in b.emit("unique", [numbers], sorted=ordered).results)
    return [common.gather(b, x, first, axis), first, *others]


@onnx_op("OneHot")
def one_hot(g: GraphImporter, node: Node) -> Tensor:
    """`values[1]` at the index along a new axis; negative indices count from the depth."""
    b = g.b
    indices = ew.cast(b, node[0], "int64")
    depth_tensor = ew.cast(b, shape.reshape(b, node[1], []), "int64")
    axis = shape.normalize_axis(node.attr("axis", -1), indices.rank + 1)
    depth = b.element(depth_tensor)
    result = b.op("one_hot", [indices, b.as_index(depth), node[2]], axis=axis, unsigned=node[2].unsigned)
    extents = indices.shape
    extents.insert(axis, depth if isinstance(depth, int) else None)
    return b.refined(result, extents)


@onnx_op("Trilu")
def trilu(g: GraphImporter, node: Node) -> Tensor:
    """The upper or lower triangle."""
    if node[0].dtype == "string":
        raise NodeError("triangles of texts are not supported", "the rest of a triangle is zero, which no text is")
    k = node.optional(1)
    shift: Size = 0 if k is None else g.b.scalar(k)
    x = node[0]
    return g.b.op("trilu", [x, g.b.as_index(shift)], upper=bool(node.attr("upper", 1)), unsigned=x.unsigned)


@onnx_op("Compress")
def compress(g: GraphImporter, node: Node) -> Tensor:
    """The slices (or elements, without an axis) where a condition holds."""
    axis = node.attr("axis")
    if axis is None:
        return common.compress(g.b, shape.reshape_codes(g.b, node[0], [-1]), node[1], 0)
    return common.compress(g.b, node[0], node[1], shape.normalize_axis(axis, node[0].rank))


@onnx_op("ReverseSequence")
def reverse_sequence(g: GraphImporter, node: Node) -> Tensor:
    """The first `sequence_lens[i]` elements of each batch entry reversed along the time axis."""
    b, x = g.b, node[0]
    batch, time = int(node.attr("batch_axis", 1)), int(node.attr("time_axis", 0))
    if sorted((batch, time)) != [0, 1]:
        raise NodeError(f"batch_axis {batch} and time_axis {time} must be 0 and 1")
    extents = b.dims(x)
    places = shape.iota(b, extents[:2], time, "int64")
    line: list[Size] = [1, 1]
    line[batch] = extents[batch]
    lengths = shape.reshape(b, ew.cast(b, node[1], "int64"), line)
    one = b.constant(np.array(1, np.int64))
    mirrored = ew.binary(b, "sub", ew.binary(b, "sub", lengths, one), places)
    chosen = ew.select(b, ew.compare(b, "lt", places, lengths), mirrored, places)
    wide = shape.reshape(b, chosen, [*extents[:2], *([1] * (x.rank - 2))])
    return common.gather_elements(b, x, shape.broadcast(b, wide, extents), time)


@onnx_op("TensorScatter")
def tensor_scatter(g: GraphImporter, node: Node) -> Tensor:
    """Writes an update into a cache, for each batch entry from its own position on (modulo the length if circular)."""
    b, cache, update = g.b, node[0], node[1]
    axis = shape.normalize_axis(node.attr("axis", -2), cache.rank)
    extents, starts = b.dims(update), node.optional(2)
    first = ew.cast(b, starts, "int64") if starts is not None else shape.full(b, [extents[0]], b.constant(0, "int64"))
    is_circular = node.attr("mode", "linear") == "circular"
    if is_circular:
        first = ew.binary(b, "mod", first, shape.size_tensor(b, cache, axis))
    if not is_circular or extents[axis] == 1:
        return common.insert(b, cache, update, first, axis)
    places = shape.iota(b, extents, axis, "int64")
    offset = shape.reshape(b, first, [extents[0], *([1] * (cache.rank - 1))])
    places = ew.binary(b, "add", places, offset)
    places = ew.binary(b, "mod", places, shape.size_tensor(b, cache, axis))
    return common.scatter(b, cache, places, update, axis)
