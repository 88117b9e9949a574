"""Resampling and detection."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import indexing, linalg, reduction, shape, vision
from mlc.frontends.common.builder import Size, Tensor
from mlc.frontends.common.resample import Filter, resample
from mlc.frontends.onnx.conv import filter_kernel, window_of
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError

_OLD = {"coordinate": "asymmetric", "nearest_mode": "floor", "cut": True}
"""What Upsample and the first Resize do; as in onnxruntime, linear samples of integers are cut."""
_MODES = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "cubic": "cubic"}


@onnx_op("Upsample")
def upsample(g: GraphImporter, node: Node) -> Tensor:
    """Scales as an attribute (for height and width in opset 1) or an input; nearest rounds down."""
    scales = node.attr("scales")
    if node.attr("height_scale") is not None:
        scales = [1.0, 1.0, float(node.attr("height_scale")), float(node.attr("width_scale"))]
    tensor = node[1] if scales is None else g.b.constant(np.array(scales, np.float32))
    return vision.resize_by(g.b, node[0], tensor, _mode(node), **_OLD)


@onnx_op("Resize")
def resize_old(g: GraphImporter, node: Node) -> Tensor:
    """Opset 10: scales as an input."""
    return vision.resize_by(g.b, node[0], node[1], _mode(node), **_OLD)


@onnx_op("Resize", since=11)
def resize(g: GraphImporter, node: Node) -> Tensor:
    """By scales or to sizes, of all dimensions or of `axes`."""
    b, x = g.b, node[0]
    given = node.attr("axes")
    axes = [shape.normalize_axis(axis, x.rank) for axis in (range(x.rank) if given is None else given)]
    sizes = node.optional(3)
    if sizes is None or sizes.shape == [0]:
        return _resize_by(g, node, _complete_scales(g, x, node[2], axes), axes)
    policy = node.attr("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        return _keeping_aspect(g, node, sizes, axes, policy)
    wanted = b.dims(x)
    for axis, size in zip(axes, b.elements(sizes, "sizes"), strict=True):
        wanted[axis] = size
    return _resize_to(g, node, sizes, wanted, axes)


_COORDINATES = (
    *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"),
    *("tf_half_pixel_for_nn", "tf_crop_and_resize"),
)
_NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def _choice(node: Node, name: str, allowed: tuple[str, ...]) -> str:
    """The value of an attribute, by default the first one allowed; NodeError for any other."""
    value = node.attr(name, allowed[0])
    if value not in allowed:
        raise NodeError(f"its {name} is {value!r}", f"it must be one of {', '.join(allowed)}")
    return value


def _options(node: Node) -> dict[str, Any]:
    return {
        "coordinate": _choice(node, "coordinate_transformation_mode", _COORDINATES),
        "nearest_mode": _choice(node, "nearest_mode", _NEAREST),
        "cubic_coeff": float(node.attr("cubic_coeff_a", -0.75)),
        "exclude_outside": bool(node.attr("exclude_outside", 0)),
        "cut": _mode(node) == "linear",
    }


def _needs_weights(node: Node) -> bool:
    crops = node.attr("coordinate_transformation_mode") == "tf_crop_and_resize"
    if crops and _mode(node) == "nearest":
        raise NodeError("tf_crop_and_resize with mode nearest is not supported", "use mode linear")
    return crops or bool(node.attr("antialias", 0) and _mode(node) != "nearest")


def _resize_by(g: GraphImporter, node: Node, scales: Tensor, axes: list[int]) -> Tensor:
    if not _needs_weights(node):
        return vision.resize_by(g.b, node[0], scales, _mode(node), **_options(node))
    return _resampled(g, node, scales, vision.scaled_sizes(g.b, node[0], scales), axes)


def _resize_to(g: GraphImporter, node: Node, sizes: Tensor, wanted: list[Size], axes: list[int]) -> Tensor:
    b, x = g.b, node[0]
    scales = vision.static_scales(b, x, wanted)
    if scales is None:
        extents = indexing.gather(b, shape.shape_of(b, x), b.constant(np.array(axes, np.int64)), 0)
        ratios = ew.binary(b, "div", ew.cast(b, sizes, "float32"), ew.cast(b, extents, "float32"))
        scales = _complete_scales(g, x, ratios, axes)
    if not _needs_weights(node):
        return vision.resize(b, x, scales, wanted, _mode(node), **_options(node))
    return _resampled(g, node, scales, wanted, axes)


def _resampled(g: GraphImporter, node: Node, scales: Tensor, sizes: list[Size], axes: list[int]) -> Tensor:
    """Antialiasing and crop-and-resize, whose weights `mlc.resize` does not have."""
    b, x = g.b, node[0]
    options = _options(node)
    filter_ = Filter(
        _mode(node),
        options["coordinate"],
        bool(node.attr("antialias", 0)),
        options["cubic_coeff"],
        options["exclude_outside"],
    )
    roi = None
    if filter_.coordinate == "tf_crop_and_resize":
        starts = [b.constant(np.zeros(x.rank, np.float32)), b.constant(np.ones(x.rank, np.float32))]
        edges = []
        for half, line in enumerate(starts):
            parts = [shape.window(b, line, 0, axis, 1) for axis in range(x.rank)]
            for position, axis in enumerate(axes):
                window = shape.window(b, node[1], 0, half * len(axes) + position, 1)
                parts[axis] = ew.cast(b, window, "float32")
            edges.extend(parts)
        roi = shape.concat(b, edges, 0)
    return resample(b, x, axes, scales, sizes, filter_, roi, float(node.attr("extrapolation_value", 0.0)))


def _mode(node: Node) -> str:
    mode = node.attr("mode", "nearest")
    if mode not in _MODES:
        raise NodeError(f'mode "{mode}"', "use nearest, linear or cubic")
    return _MODES[mode]


def _complete_scales(g: GraphImporter, x: Tensor, scales: Tensor, axes: list[int]) -> Tensor:
    """Scales of all dimensions, from those of `axes`."""
    b = g.b
    if axes == list(range(x.rank)):
        return scales
    parts = [b.constant(np.ones(1, np.float32)) for _ in range(x.rank)]
    for position, axis in enumerate(axes):
        parts[axis] = shape.window(b, scales, 0, position, 1)
    return shape.concat(b, parts, 0)


def _keeping_aspect(g: GraphImporter, node: Node, sizes: Tensor, axes: list[int], policy: str) -> Tensor:
    """One scale for all axes: the smallest (`not_larger`) or largest (`not_smaller`) of those wanted."""
    b, x = g.b, node[0]
    extents = shape.concat(b, [shape.slice_(b, shape.shape_of(b, x), [axis], [1], [1]) for axis in axes], 0)
    wide = ew.cast(b, extents, "float64")
    ratios = ew.binary(b, "div", ew.cast(b, sizes, "float64"), wide)
    scale = reduction.reduce(b, "min" if policy == "not_larger" else "max", ratios, [0], True)
    rounded = ew.unary(b, "floor", ew.binary(b, "add", ew.binary(b, "mul", wide, scale), b.like(0.5, wide)))
    final = ew.cast(b, rounded, "int64")
    wanted = b.dims(x)
    for position, axis in enumerate(axes):
        wanted[axis] = b.element(final, position)
    spread = shape.broadcast(b, ew.cast(b, scale, "float32"), [len(axes)])
    scales = _complete_scales(g, x, spread, axes)
    return vision.resize(b, x, scales, wanted, _mode(node), **_options(node))


@onnx_op("NonMaxSuppression")
def nms(g: GraphImporter, node: Node) -> Tensor:
    """Boxes that do not overlap better ones; without a maximum nothing is selected."""
    b = g.b
    count = node.optional(2)
    limit: Size = 0 if count is None else b.scalar(count)
    overlap, score = node.optional(3), node.optional(4)
    overlap = b.constant(np.array(0, np.float32)) if overlap is None else shape.reshape(b, overlap, [])
    score = b.constant(np.array(-np.inf, np.float32)) if score is None else shape.reshape(b, score, [])
    center = bool(node.attr("center_point_box", 0))
    return b.op("nms", [node[0], node[1], b.as_index(limit), overlap, score], center_point_box=center)


@onnx_op("GridSample")
def grid_sample(g: GraphImporter, node: Node) -> Tensor:
    """Sampling at normalised coordinates."""
    mode = {"bilinear": "linear", "linear": "linear", "nearest": "nearest", "bicubic": "cubic", "cubic": "cubic"}
    given = node.attr("mode", "linear")
    if given not in mode:
        raise NodeError(f'mode "{given}"', "use nearest, linear or cubic")
    padding = node.attr("padding_mode", "zeros")
    return vision.grid_sample(g.b, node[0], node[1], mode[given], padding, bool(node.attr("align_corners", 0)))


@onnx_op("RoiAlign")
def roi_align(g: GraphImporter, node: Node) -> Tensor:
    """Means (or the largest) of bilinear samples on a grid in each region."""
    ratio = int(node.attr("sampling_ratio", 0))
    pooled = vision.roi_align if node.attr("mode", "avg") == "avg" else vision.roi_align_max
    half = node.version >= 16 and node.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    grid = (int(node.attr("output_height", 1)), int(node.attr("output_width", 1)))
    scale = float(node.attr("spatial_scale", 1.0))
    return pooled(g.b, node[0], node[1], node[2], grid, ratio, scale, half)


@onnx_op("Col2Im")
def col2im(g: GraphImporter, node: Node) -> Tensor:
    """Sums sliding blocks back into an image."""
    b, x = g.b, node[0]
    image, block = b.elements(node[1], "image_shape"), b.elements(node[2], "block_shape")
    rank = len(image)
    strides = list(node.attr("strides") or [1] * rank)
    dilations = list(node.attr("dilations") or [1] * rank)
    pads = list(node.attr("pads") or [0] * 2 * rank)
    return vision.col2im(b, x, image, block, strides, dilations, pads)


@onnx_op("AffineGrid")
def affine_grid(g: GraphImporter, node: Node) -> Tensor:
    """The sampling grid of affine maps, for GridSample."""
    sizes = g.b.elements(node[1], "size")
    return vision.affine_grid(g.b, node[0], sizes, bool(node.attr("align_corners", 0)))


@onnx_op("DeformConv")
def deform_conv(g: GraphImporter, node: Node) -> Tensor:
    """Convolution with taps that are shifted by offsets and weighted by a mask, both inputs."""
    b, x, filter_, offset = g.b, node[0], node[1], node[2]
    if x.rank != 4:
        raise NodeError(f"an input of rank {x.rank}", "deformable convolutions have two spatial dimensions")
    window = window_of(g, node, x, filter_kernel(filter_))
    groups = int(node.attr("group", 1))
    samples = vision.deform_samples(b, x, offset, node.optional(4), window, int(node.attr("offset_group", 1)))
    taps = int(np.prod(window.kernel))
    depth = b.arith("muli", b.arith("divsi", b.dim(x, 1), groups), taps)
    batch, positions = b.dim(x, 0), b.dim(samples, 3)
    columns = shape.reshape(b, samples, [batch, groups, depth, positions])
    rows = shape.reshape(b, filter_, [groups, b.arith("divsi", b.dim(filter_, 0), groups), depth])
    y = shape.reshape(b, linalg.matmul(b, rows, columns), [batch, b.dim(filter_, 0), *b.dims(offset)[2:]])
    bias = node.optional(3)
    return y if bias is None else ew.binary(b, "add", y, shape.reshape(b, bias, [b.dim(bias, 0), 1, 1]))
