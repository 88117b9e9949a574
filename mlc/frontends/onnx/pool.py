"""Pooling."""

from __future__ import annotations

import numpy as np

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import pool as common
from mlc.frontends.common import reduction, shape
from mlc.frontends.common.builder import Size, Tensor
from mlc.frontends.common.indexing import scatter
from mlc.frontends.onnx.conv import window_of
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError


@onnx_op("MaxPool")
def max_pool(g: GraphImporter, node: Node) -> list[Tensor]:
    """The maxima, and their flat positions when they are used."""
    x = node[0]
    window = window_of(g, node, x, None)
    ceil_mode = bool(node.attr("ceil_mode", 0))
    if not node.wants(1):
        return [common.pool(g.b, "max", x, window, ceil_mode)]
    if not window.is_static:
        raise NodeError("positions with SAME padding need static extents", "fix the input's shape")
    values, indices = common.pool_indices(g.b, x, window, ceil_mode, bool(node.attr("storage_order", 0)))
    return [values, indices]


@onnx_op("AveragePool")
def average_pool(g: GraphImporter, node: Node) -> Tensor:
    """Means; padding counts when `count_include_pad`."""
    x = node[0]
    window = window_of(g, node, x, None)
    include = bool(node.attr("count_include_pad", 0))
    ceil_mode = bool(node.attr("ceil_mode", 0))
    if not window.is_static and not include:
        # The padding is not known to the pool then: divide the sums by the number of elements that are there.
        ones = shape.full(g.b, [1, 1, *g.b.dims(x)[2:]], g.b.like(1, x))
        counts = common.pool(g.b, "sum", ones, window, ceil_mode)
        return ew.binary(g.b, "div", common.pool(g.b, "sum", x, window, ceil_mode), counts)
    return common.pool(g.b, "avg", x, window, ceil_mode, include)


@onnx_op("LpPool")
def lp_pool(g: GraphImporter, node: Node) -> Tensor:
    """Power means without the division: (sum |x|^p)^(1/p)."""
    power = float(node.attr("p", 2))
    window = window_of(g, node, node[0], None)
    total = common.pool(g.b, "sum", common.power_sum(g.b, node[0], power), window, bool(node.attr("ceil_mode", 0)))
    return common.root(g.b, total, power)


@onnx_op("GlobalAveragePool", "GlobalMaxPool")
def global_pool(g: GraphImporter, node: Node) -> Tensor:
    """Over all spatial dimensions."""
    return common.global_pool(g.b, "avg" if node.op == "GlobalAveragePool" else "max", node[0])


@onnx_op("GlobalLpPool")
def global_lp_pool(g: GraphImporter, node: Node) -> Tensor:
    """The p-norm over all spatial dimensions."""
    power = float(node.attr("p", 2))
    powers = common.power_sum(g.b, node[0], power)
    return common.root(g.b, reduction.reduce(g.b, "sum", powers, common.spatial_axes(powers), True), power)


@onnx_op("MaxUnpool")
def max_unpool(g: GraphImporter, node: Node) -> Tensor:
    """Scatters values to the flat positions that MaxPool gave, zero elsewhere."""
    b, x, indices = g.b, node[0], node[1]
    window = window_of(g, node, x, None)
    spatial = x.rank - 2
    natural: list[Size] = b.dims(x)[:2]
    for axis in range(spatial):
        steps = b.arith("muli", b.arith("subi", b.dim(x, axis + 2), 1), window.strides[axis])
        extent = b.arith("addi", steps, window.spans[axis])
        extent = b.arith("subi", b.arith("subi", extent, window.low[axis]), window.high[axis])
        natural.append(extent)
    given = node.optional(2)
    sizes = natural if given is None else b.elements(given, "output_shape")
    flat = shape.full(b, [b.product(sizes)], b.like(0, x))
    places = _repositioned(g, indices, natural, sizes, given)
    result = scatter(b, flat, places, shape.reshape_codes(b, x, [-1]), 0)
    return shape.reshape(b, result, sizes)


def _repositioned(
    g: GraphImporter, indices: Tensor, natural: list[Size], sizes: list[Size], given: Tensor | None
) -> Tensor:
    """The flat positions in a tensor of `sizes`: those given count in the natural output shape."""
    b = g.b
    flat = shape.reshape_codes(b, indices, [-1])
    if given is None or natural == sizes:
        return flat
    line = ew.cast(b, given, "int64")
    result: Tensor | None = None
    weight = b.constant(np.array(1, np.int64))
    for axis in range(len(natural) - 1, -1, -1):
        have = natural[axis]
        if not isinstance(have, int):
            raise NodeError("an output_shape that differs from the natural one needs static input extents")
        base = b.constant(np.array(have, np.int64))
        term = ew.binary(b, "mul", ew.binary(b, "mod", flat, base), weight)
        flat = ew.binary(b, "div", flat, base)
        result = term if result is None else ew.binary(b, "add", result, term)
        weight = ew.binary(b, "mul", weight, shape.reshape(b, shape.slice_(b, line, [axis], [1], [1]), []))
    assert result is not None
    return result


@onnx_op("MaxRoiPool")
def max_roi_pool(g: GraphImporter, node: Node) -> Tensor:
    """Maxima over a grid of cells in each region, through a mask for each row and column of cells."""
    b, x, rois = g.b, node[0], node[1]
    rows, columns = (int(size) for size in node.required("pooled_shape"))
    scale = float(node.attr("spatial_scale", 1.0))
    batch = ew.cast(b, shape.reshape_codes(b, shape.window(b, rois, 1, 0, 1), [-1]), "int64")
    image = b.op("gather", [x, batch], axis=0)
    by_row = _cell_max(g, image, rois, 2, (2, 4), rows, scale)
    return _cell_max(g, by_row, rois, 3, (1, 3), columns, scale)


def _cell_max(
    g: GraphImporter, x: Tensor, rois: Tensor, axis: int, corners: tuple[int, int], cells: int, scale: float
) -> Tensor:
    """The maximum over each of `cells` bins of one spatial axis; an empty bin gives 0."""
    b = g.b
    start, end = (_rounded(g, rois, corner, scale) for corner in corners)
    extent = ew.binary(b, "max", ew.binary(b, "add", ew.binary(b, "sub", end, start), b.like(1, x)), b.like(1, x))
    size = ew.binary(b, "div", extent, b.like(cells, x))
    limit = ew.cast(b, shape.size_tensor(b, x, axis), x.dtype)
    parts = []
    extents: list[Size] = [1] * x.rank
    extents[axis] = b.dim(x, axis)
    place = ew.cast(b, shape.iota(b, extents, axis, "int64"), x.dtype)
    for cell in range(cells):
        low = ew.unary(b, "floor", ew.binary(b, "mul", size, b.like(cell, x)))
        high = ew.unary(b, "ceil", ew.binary(b, "mul", size, b.like(cell + 1, x)))
        low, high = (
            ew.binary(b, "min", ew.binary(b, "max", ew.binary(b, "add", edge, start), b.like(0, x)), limit)
            for edge in (low, high)
        )
        inside = ew.binary(b, "and", ew.compare(b, "ge", place, low), ew.compare(b, "lt", place, high))
        masked = ew.select(b, inside, x, common.lowest(b, x))
        best = reduction.reduce(b, "max", masked, [axis], True)
        parts.append(ew.select(b, ew.compare(b, "gt", high, low), best, b.like(0, x)))
    return shape.concat(b, parts, axis)


def _rounded(g: GraphImporter, rois: Tensor, corner: int, scale: float) -> Tensor:
    column = ew.scaled(g.b, shape.window(g.b, rois, 1, corner, 1), scale)
    half_up = ew.unary(g.b, "floor", ew.binary(g.b, "add", column, g.b.like(0.5, rois)))
    return shape.reshape(g.b, half_up, [g.b.dim(rois, 0), 1, 1, 1])
