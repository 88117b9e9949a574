"""Resampling and detection."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.frontends.common import shape, vision
from mlc.frontends.common.builder import Size, Tensor
from mlc.frontends.onnx.graph import GraphImporter
from mlc.frontends.onnx.registry import Node, onnx_op
from mlc.frontends.report import NodeError

_MODES = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "cubic": "cubic"}


@onnx_op("Upsample")
def upsample(g: GraphImporter, node: Node) -> Tensor:
    """Scales as an attribute (opset 7) or an input; nearest rounds down."""
    scales = node.attr("scales")
    tensor = node[1] if scales is None else g.b.constant(np.array(scales, np.float32))
    mode = _mode(node)
    return vision.resize_by(g.b, node[0], tensor, mode, coordinate="asymmetric", nearest_mode="floor")


@onnx_op("Resize")
def resize_old(g: GraphImporter, node: Node) -> Tensor:
    """Opset 10: scales as an input."""
    return vision.resize_by(g.b, node[0], node[1], _mode(node), coordinate="asymmetric", nearest_mode="floor")


@onnx_op("Resize", since=11)
def resize(g: GraphImporter, node: Node) -> Tensor:
    """By scales or to sizes, of all dimensions or of `axes`."""
    b, x = g.b, node[0]
    coordinate = node.attr("coordinate_transformation_mode", "half_pixel")
    if coordinate == "tf_crop_and_resize":
        raise NodeError("tf_crop_and_resize is not supported", "crop with Slice, then resize")
    if node.attr("antialias", 0):
        raise NodeError("antialias is not supported", "export the model without antialiasing")
    options: dict[str, Any] = {
        "coordinate": coordinate,
        "nearest_mode": node.attr("nearest_mode", "round_prefer_floor"),
        "cubic_coeff": float(node.attr("cubic_coeff_a", -0.75)),
        "exclude_outside": bool(node.attr("exclude_outside", 0)),
    }
    given = node.attr("axes")
    axes = [shape.normalize_axis(axis, x.rank) for axis in (range(x.rank) if given is None else given)]
    sizes = node.optional(3)
    if sizes is not None and sizes.shape != [0]:
        wanted = b.elements(sizes, "sizes")
        policy = node.attr("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            return _keeping_aspect(g, node, wanted, axes, policy, options)
        return vision.resize_to(b, x, _complete(g, x, wanted, axes), _mode(node), **options)
    scales = node[2]
    return vision.resize_by(b, x, _complete_scales(g, x, scales, axes), _mode(node), **options)


def _mode(node: Node) -> str:
    mode = node.attr("mode", "nearest")
    if mode not in _MODES:
        raise NodeError(f'mode "{mode}"', "use nearest, linear or cubic")
    return _MODES[mode]


def _complete(g: GraphImporter, x: Tensor, wanted: list[Size], axes: list[int]) -> list[Size]:
    sizes = g.b.dims(x)
    for axis, size in zip(axes, wanted, strict=True):
        sizes[axis] = size
    return sizes


def _complete_scales(g: GraphImporter, x: Tensor, scales: Tensor, axes: list[int]) -> Tensor:
    if axes == list(range(x.rank)):
        return scales
    if scales.constant is None:
        raise NodeError("scales of some axes that are computed at run time are not supported")
    line = np.ones(x.rank, np.float32)
    line[axes] = scales.constant
    return g.b.constant(line)


def _keeping_aspect(
    g: GraphImporter, node: Node, wanted: list[Size], axes: list[int], policy: str, options: dict[str, Any]
) -> Tensor:
    """One scale for all axes: the smallest (`not_larger`) or largest (`not_smaller`) of those wanted."""
    x = node[0]
    extents = [x.shape[axis] for axis in axes]
    ratios = [size / extent for size, extent in zip(wanted, extents, strict=True) if isinstance(size, int) and extent]
    if len(ratios) != len(axes):
        raise NodeError(f"{policy} needs static extents and sizes", "fix the input's shape")
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    sizes = _complete(g, x, [int(np.floor(scale * extent + 0.5)) for extent in extents if extent], axes)
    scales = np.ones(x.rank, np.float32)
    scales[axes] = scale
    return vision.resize(g.b, x, g.b.constant(scales), sizes, _mode(node), **options)


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
    """Means of bilinear samples on a grid in each region."""
    ratio = int(node.attr("sampling_ratio", 0))
    if ratio < 1 or node.attr("mode", "avg") != "avg":
        raise NodeError("RoiAlign needs mode avg and a sampling_ratio of 1 or more")
    half = node.version >= 16 and node.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    grid = (int(node.attr("output_height", 1)), int(node.attr("output_width", 1)))
    scale = float(node.attr("spatial_scale", 1.0))
    return vision.roi_align(g.b, node[0], node[1], node[2], grid, ratio, scale, half)


@onnx_op("Col2Im")
def col2im(g: GraphImporter, node: Node) -> Tensor:
    """Sums sliding blocks back into an image."""
    b, x = g.b, node[0]
    image, block = b.elements(node[1], "image_shape"), b.elements(node[2], "block_shape")
    fixed = [size for size in [*image, *block] if isinstance(size, int)]
    if len(fixed) != len(image) + len(block):
        raise NodeError("image_shape and block_shape must be constant")
    rank = len(image)
    strides = list(node.attr("strides") or [1] * rank)
    dilations = list(node.attr("dilations") or [1] * rank)
    pads = list(node.attr("pads") or [0] * 2 * rank)
    places, width = vision.block_places(fixed[:rank], fixed[rank:], strides, dilations, pads)
    area = int(np.prod(fixed[rank:]))
    channels = b.arith("divsi", b.dim(x, 1), area)
    padded = int(np.prod(width))
    rows = shape.reshape(b, x, [b.arith("muli", b.dim(x, 0), channels), int(places.size)])
    zero = shape.full(b, [b.dim(rows, 0), padded], b.like(0, x))
    spread = shape.broadcast(b, b.constant(places.reshape(1, -1)), b.dims(rows))
    total = b.op("scatter_elements", [zero, spread, rows], axis=1, reduction="add")
    grown = shape.reshape(b, total, [b.dim(x, 0), channels, *width])
    offsets: list[Size] = [0, 0, *pads[:rank]]
    return shape.slice_(b, grown, offsets, [b.dim(x, 0), channels, *image], [1] * (rank + 2))


@onnx_op("AffineGrid")
def affine_grid(g: GraphImporter, node: Node) -> Tensor:
    """The sampling grid of affine maps, for GridSample."""
    sizes = g.b.elements(node[1], "size")
    return vision.affine_grid(g.b, node[0], sizes, bool(node.attr("align_corners", 0)))
