"""Operators on shapes: reshape, slice, concat, split, pad, and shapes as values."""

from __future__ import annotations

import numpy as np
import onnx

from mlc.frontends.common import axes as run_time
from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import shape, text
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.onnx import load
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.reduction import constant_axes, is_run_time
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.onnx.values import elem_dtype
from mlc.frontends.report import NodeError


@onnx_op("Constant")
def constant(g: GraphImporter, node: Node) -> Tensor:
    """A tensor, or a number or list given as an attribute."""
    from mlc.frontends.onnx.functions import densified

    for name, value in node.attributes.items():
        if name == "value":
            return g.tensor(g.scope.prefix + (node.outputs[0] or node.name), value)
        if name == "sparse_value":
            return g.b.constant(densified(value))
        if name in ("value_int", "value_ints"):
            return g.b.constant(np.array(value, np.int64))
        if name in ("value_float", "value_floats"):
            return g.b.constant(np.array(value, np.float32))
        if name in ("value_string", "value_strings"):
            return text.constant(g.b, np.array(value, object))
    raise NodeError("it has no value", "the operator requires one")


@onnx_op("ConstantOfShape")
def constant_of_shape(g: GraphImporter, node: Node) -> Tensor:
    """A tensor of copies of one value."""
    value = node.attr("value")
    if value is not None and value.data_type == onnx.TensorProto.STRING:
        one = text.constant(g.b, load.texts_of(value).reshape([]))
    else:
        one = g.b.constant(np.float32(0) if value is None else onnx.numpy_helper.to_array(value).reshape([]))
    return shape.full(g.b, g.b.elements(node[0]), one)


@onnx_op("Shape")
def shape_(g: GraphImporter, node: Node) -> Tensor:
    """The extents, or (opset 15) a range of them."""
    line = shape.shape_of(g.b, node[0])
    rank = node[0].rank
    start, end, _ = slice(node.attr("start", 0), node.attr("end"), 1).indices(rank)
    return shape.slice_(g.b, line, [start], [max(end - start, 0)], [1])


@onnx_op("Size")
def size(g: GraphImporter, node: Node) -> Tensor:
    """The number of elements."""
    return shape.element_count(g.b, node[0])


@onnx_op("Reshape")
def reshape_attribute(g: GraphImporter, node: Node) -> Tensor:
    """Before opset 5: the shape as an attribute."""
    return shape.reshape_codes(g.b, node[0], [int(size) for size in node.required("shape")])


@onnx_op("Reshape", since=5)
def reshape(g: GraphImporter, node: Node) -> Tensor:
    """0 copies an extent unless `allowzero`, -1 is inferred."""
    codes = g.b.elements(node[1])
    return shape.reshape_codes(g.b, node[0], codes, zero_copies=not node.attr("allowzero", 0))


@onnx_op("Flatten")
def flatten(g: GraphImporter, node: Node) -> Tensor:
    """To two dimensions."""
    axis = int(node.attr("axis", 1))
    if not -node[0].rank <= axis <= node[0].rank:
        raise NodeError(f"axis {axis} is out of range for rank {node[0].rank}")
    return shape.flatten(g.b, node[0], axis + node[0].rank if axis < 0 else axis)


@onnx_op("Squeeze")
def squeeze(g: GraphImporter, node: Node) -> Tensor:
    """Axes come as an attribute, from opset 13 on as an input."""
    axes = node.attr("axes")
    if is_run_time(node.optional(1)):
        return run_time.without(g.b, node[0], g.b.elements(node[1], "axes"))
    return shape.squeeze(g.b, node[0], constant_axes(node.optional(1)) if axes is None else axes)


@onnx_op("Unsqueeze")
def unsqueeze(g: GraphImporter, node: Node) -> Tensor:
    """Axes come as an attribute, from opset 13 on as an input."""
    axes = node.attr("axes")
    if is_run_time(node.optional(1)):
        return run_time.with_ones(g.b, node[0], g.b.elements(shape.reshape_codes(g.b, node[1], [-1]), "axes"))
    return shape.unsqueeze(g.b, node[0], (constant_axes(node[1]) or []) if axes is None else axes)


@onnx_op("Transpose")
def transpose(g: GraphImporter, node: Node) -> Tensor:
    """Reverses the dimensions without `perm`."""
    rank = node[0].rank
    permutation = list(node.attr("perm") or range(rank - 1, -1, -1))
    if sorted(permutation) != list(range(rank)):
        raise NodeError(f"perm {permutation} is no permutation of {rank} dimensions")
    return shape.transpose(g.b, node[0], permutation)


@onnx_op("Concat")
def concat(g: GraphImporter, node: Node) -> Tensor:
    """Concatenation."""
    tensors = node.present()
    axis = node.attr("axis", 1) if node.version < 4 else node.required("axis")
    return shape.concat(g.b, tensors, shape.normalize_axis(axis, tensors[0].rank))


@onnx_op("Expand")
def expand(g: GraphImporter, node: Node) -> Tensor:
    """Broadcast to a shape that may itself broadcast."""
    return shape.expand(g.b, node[0], g.b.elements(node[1]))


@onnx_op("Tile")
def tile_axis(g: GraphImporter, node: Node) -> Tensor:
    """Before opset 6: one axis, and how often it is repeated."""
    repeats: list[Size] = [1] * node[0].rank
    axis = g.b.scalar(node[2])
    if not isinstance(axis, int):
        raise NodeError("its axis is computed at run time", "make the axis constant")
    repeats[shape.normalize_axis(axis, node[0].rank)] = g.b.scalar(node[1])
    return shape.tile(g.b, node[0], repeats)


@onnx_op("Tile", since=6)
def tile(g: GraphImporter, node: Node) -> Tensor:
    """Repetition along each dimension."""
    repeats = g.b.elements(node[1], "repeats")
    if len(repeats) != node[0].rank:
        raise NodeError(f"{len(repeats)} repeats for rank {node[0].rank}")
    return shape.tile(g.b, node[0], repeats)


@onnx_op("Slice")
def slice_attributes(g: GraphImporter, node: Node) -> Tensor:
    """Before opset 10: starts, ends and axes as attributes."""
    starts, ends = list(node.required("starts")), list(node.required("ends"))
    axes = node.attr("axes") or range(len(starts))
    chosen = [shape.normalize_axis(axis, node[0].rank) for axis in axes]
    return shape.slice_axes(g.b, node[0], chosen, starts, ends, [1] * len(starts))


@onnx_op("Slice", since=10)
def slice_inputs(g: GraphImporter, node: Node) -> Tensor:
    """Starts, ends, axes and steps as inputs."""
    x, places, strides = node[0], node.optional(3), node.optional(4)
    if places is None and node[1].shape == [None]:
        starts, ends = _filled(g.b, node[1], 0, x.rank), _filled(g.b, node[2], shape.INT64_MAX, x.rank)
        by = [1] * x.rank if strides is None else _filled(g.b, strides, 1, x.rank)
        return run_time.slice_axes(g.b, x, list(range(x.rank)), starts, ends, by)
    starts, ends = g.b.elements(node[1], "starts"), g.b.elements(node[2], "ends")
    if is_run_time(places) or is_run_time(strides):
        given: list[Size] = list(range(len(starts))) if places is None else g.b.elements(places, "axes")
        by = [1] * len(starts) if strides is None else g.b.elements(strides, "steps")
        return run_time.slice_axes(g.b, x, given, starts, ends, by)
    axes = constant_axes(places)
    steps = constant_axes(strides, "steps")
    chosen = [shape.normalize_axis(axis, x.rank) for axis in (range(len(starts)) if axes is None else axes)]
    return shape.slice_axes(g.b, x, chosen, starts, ends, steps or [1] * len(starts))


def _filled(b: Builder, vector: Tensor, default: int, rank: int) -> list[Size]:
    """A number for each of `rank` dimensions: those of a vector whose length the run knows, then `default`."""
    tail = b.constant(np.full(rank, min(default, np.iinfo(vector.dtype).max)), vector.dtype)
    longer = shape.concat(b, [vector, tail], 0)
    return [b.element(longer, axis) for axis in range(rank)]


@onnx_op("Split")
def split(g: GraphImporter, node: Node) -> list[Tensor]:
    """Sizes as an attribute, from opset 13 on as an input; else equal parts, the last one smaller."""
    b, x = g.b, node[0]
    axis = shape.normalize_axis(node.attr("axis", 0), x.rank)
    given = node.attr("split")
    if given is None and node.optional(1) is not None:
        given = b.elements(node[1], "split")
    if given is not None:
        return shape.split_whole(b, x, axis, given)
    count = int(node.attr("num_outputs", len(node.outputs)))
    extent = b.dim(x, axis)
    step = b.arith("ceildivsi", extent, count)
    sizes: list[Size] = [step] * (count - 1)
    sizes.append(b.arith("subi", extent, b.arith("muli", step, count - 1)))
    return shape.split(b, x, axis, sizes)


@onnx_op("Pad")
def pad_attributes(g: GraphImporter, node: Node) -> Tensor:
    """Before opset 11: pads and value as attributes."""
    pads = list(node.attr("pads") or node.required("paddings"))
    x = node[0]
    value = g.b.like(float(node.attr("value", 0.0)), x)
    return shape.pad(g.b, x, pads[: x.rank], pads[x.rank :], node.attr("mode", "constant"), value)


@onnx_op("Pad", since=11)
def pad_inputs(g: GraphImporter, node: Node) -> Tensor:
    """Pads, value and (opset 18) axes as inputs."""
    b, x = g.b, node[0]
    pads = b.elements(node[1], "pads")
    value = node.optional(2)
    value = None if value is None else shape.reshape(b, value, [])
    mode = node.attr("mode", "constant")
    if is_run_time(node.optional(3)):
        places = b.elements(node[3], "axes")
        zeros: list[Size] = [0] * x.rank
        below = run_time.placed(b, places, pads[: len(places)], zeros)
        return shape.pad(b, x, below, run_time.placed(b, places, pads[len(places) :], zeros), mode, value)
    axes = constant_axes(node.optional(3))
    chosen = list(range(x.rank)) if axes is None else [shape.normalize_axis(axis, x.rank) for axis in axes]
    if len(pads) != 2 * len(chosen):
        raise NodeError(f"{len(pads)} pads for {len(chosen)} dimensions")
    low: list[Size] = [0] * x.rank
    high: list[Size] = [0] * x.rank
    for position, axis in enumerate(chosen):
        low[axis], high[axis] = pads[position], pads[position + len(chosen)]
    return shape.pad(b, x, low, high, mode, value)


@onnx_op("Range")
def range_(g: GraphImporter, node: Node) -> Tensor:
    """start, start + delta, … up to but without limit."""
    b = g.b
    start, limit, delta = (shape.reshape(b, node[position], []) for position in range(3))
    parts = [tensor.constant for tensor in (start, limit, delta)]
    if all(part is not None for part in parts):
        low, high, step = (np.asarray(part).item() for part in parts)
        line = (low + step * np.arange(max(int(np.ceil((high - low) / step)), 0))).astype(start.dtype)
        return b.constant(line)
    if delta.constant is None and not delta.is_float:
        shape.require(b, "ne", b.element(delta), 0, "delta is 0")
    count = _range_count(g, start, limit, delta)
    line_tensor = ew.cast(b, shape.iota(b, [count], 0, "int64"), start.dtype)
    return ew.binary(b, "add", start, ew.binary(b, "mul", line_tensor, delta))


def _range_count(g: GraphImporter, start: Tensor, limit: Tensor, delta: Tensor) -> Size:
    """max(ceil((limit - start) / delta), 0); in index arithmetic where the step is a constant."""
    b = g.b
    step = None if delta.constant is None else delta.constant.item()
    if not start.is_float and step:
        span = b.arith("subi", b.element(limit), b.element(start))
        span = span if step > 0 else b.arith("subi", 0, span)
        return b.arith("maxsi", b.arith("ceildivsi", span, abs(int(step))), 0)
    wide = [ew.cast(b, tensor, "float64") for tensor in (start, limit, delta)]
    ratio = ew.binary(b, "div", ew.binary(b, "sub", wide[1], wide[0]), wide[2])
    count = ew.cast(b, ew.unary(b, "ceil", ratio), "int64")
    return b.arith("maxsi", b.element(count), 0)


@onnx_op("EyeLike")
def eye_like(g: GraphImporter, node: Node) -> Tensor:
    """Ones on a diagonal of a matrix of the input's shape."""
    b, x = g.b, node[0]
    to = node.attr("dtype")
    dtype = x.dtype if to is None else elem_dtype(to)
    sizes = b.dims(x)
    rows = shape.iota(b, sizes, 0, "int64")
    columns = shape.iota(b, sizes, 1, "int64")
    shifted = ew.binary(b, "add", rows, b.constant(np.array(node.attr("k", 0), np.int64)))
    return ew.cast(b, ew.compare(b, "eq", shifted, columns), dtype)


@onnx_op("DepthToSpace")
def depth_to_space(g: GraphImporter, node: Node) -> Tensor:
    """Channels to blocks of pixels, in DCR or CRD order."""
    b, x = g.b, node[0]
    block = int(node.required("blocksize"))
    batch, channels, height, width = b.dims(x)
    depth = b.arith("divsi", channels, block * block)
    if node.attr("mode", "DCR") == "DCR":
        parts, order = [batch, block, block, depth, height, width], [0, 3, 4, 1, 5, 2]
    else:
        parts, order = [batch, depth, block, block, height, width], [0, 1, 4, 2, 5, 3]
    mixed = shape.transpose(b, shape.reshape(b, x, parts), order)
    return shape.reshape(b, mixed, [batch, depth, b.arith("muli", height, block), b.arith("muli", width, block)])


@onnx_op("SpaceToDepth")
def space_to_depth(g: GraphImporter, node: Node) -> Tensor:
    """Blocks of pixels to channels."""
    b, x = g.b, node[0]
    block = int(node.required("blocksize"))
    batch, channels, height, width = b.dims(x)
    rows, columns = b.arith("divsi", height, block), b.arith("divsi", width, block)
    split_ = shape.reshape(b, x, [batch, channels, rows, block, columns, block])
    order = [0, 3, 5, 1, 2, 4] if node.attr("mode", "DCR") == "DCR" else [0, 1, 3, 5, 2, 4]
    mixed = shape.transpose(b, split_, order)
    return shape.reshape(b, mixed, [batch, b.arith("muli", channels, block * block), rows, columns])


@onnx_op("CenterCropPad")
def center_crop_pad(g: GraphImporter, node: Node) -> Tensor:
    """Crops or pads evenly on both sides to the given extents; the odd element goes to the high side."""
    b, x = g.b, node[0]
    wanted = b.elements(node[1])
    given = node.attr("axes")
    axes = [shape.normalize_axis(axis, x.rank) for axis in (range(x.rank) if given is None else given)]
    low: list[Size] = [0] * x.rank
    high: list[Size] = [0] * x.rank
    for axis, size_ in zip(axes, wanted, strict=True):
        extent = b.dim(x, axis)
        grow = b.arith("maxsi", b.arith("subi", size_, extent), 0)
        crop = b.arith("maxsi", b.arith("subi", extent, size_), 0)
        below = b.arith("subi", b.arith("floordivsi", grow, 2), b.arith("floordivsi", crop, 2))
        low[axis] = below
        high[axis] = b.arith("subi", b.arith("subi", size_, extent), below)
    return shape.pad(b, x, low, high)
