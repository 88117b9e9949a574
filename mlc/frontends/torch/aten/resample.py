"""Images of another size, at other places, and with channels as pixels."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlc.frontends.common import elementwise, resample, shape, vision
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.registry import Call, Value, as_size, as_tensor, aten

_KINDS = {"nearest": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}
_NAMES = [f"upsample_{kind}" for kind in ("linear1d", "bilinear2d", "trilinear3d", "bicubic2d")]
_NAMES += [f"{prefix}{rank}d" for prefix in ("upsample_nearest", "_upsample_nearest_exact") for rank in (1, 2, 3)]
_NAMES += ["_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"]


@aten(*_NAMES)
def upsample(call: Call) -> Tensor:
    """To a size, or by factors; the factors place the samples where they are given. Bytes are rounded."""
    b, x = call.b, call.tensor(0)
    name = call.op.removeprefix("aten::").removeprefix("_").removeprefix("upsample_")
    mode = next(_KINDS[kind] for kind in _KINDS if name.startswith(kind))
    align, smooth = bool(call.get("align_corners")), name.endswith("_aa")
    given = call.get("output_size")
    factors = None if given is not None else [float(factor) for factor in call.get("scale_factors")]
    if factors is None:
        sizes = [*b.dims(x)[:2], *(_size(b, size) for size in given)]
    else:
        sizes = [*b.dims(x)[:2], *(_scaled(b, b.dim(x, axis), f) for axis, f in enumerate(factors, 2))]
    told = _told(call, x) if factors is None else factors
    if told is not None and not align:
        scales = b.constant(np.array([1.0, 1.0, *told], np.float32))
    else:
        scales = _ratios(b, x, sizes, 1 if align and smooth else 0)
    coordinate, rounding = "half_pixel", "round_prefer_ceil"
    if smooth:  # the corners change how far apart samples are, not where the first one is
        filter_ = resample.Filter(mode, coordinate, True, -0.5, True)
        return resample.resample(b, x, list(range(2, x.rank)), scales, sizes, filter_)
    if align:
        coordinate = "align_corners"
    elif mode == "nearest" and "exact" not in name:
        coordinate, rounding = "asymmetric", "floor"
    options: dict[str, Any] = {"cubic_coeff": -0.75, "exclude_outside": False}
    return vision.resize(b, x, scales, sizes, mode, coordinate=coordinate, nearest_mode=rounding, **options)


def _size(b: Builder, value: Value) -> Size:
    """A size, which may have been rounded down from a product with a factor."""
    return as_size(b, elementwise.cast(b, value, "int64") if isinstance(value, Tensor) else value)


def _scaled(b: Builder, extent: Size, factor: float) -> Size:
    """The integer part of an extent times a factor, in the double precision in which PyTorch multiplies them."""
    if isinstance(extent, int):
        return int(extent * factor)
    if factor == int(factor):
        return b.arith("muli", extent, int(factor))
    wide = elementwise.cast(b, shape.size_scalar(b, extent), "float64")
    return b.element(elementwise.cast(b, elementwise.scaled(b, wide, factor), "int64"))


def _told(call: Call, x: Tensor) -> list[float] | None:
    """The factors of the spatial dimensions that the operator is given beside the size of the result."""
    names = ["scales_d", "scales_h", "scales_w"][5 - x.rank :] if x.rank > 3 else ["scales"]
    told = [call.get(name) for name in names]
    return None if any(factor is None for factor in told) else told


def _ratios(b: Builder, x: Tensor, sizes: list[Size], ends: int) -> Tensor:
    """The ratio of `sizes` to the extents of `x`, both less `ends`: `f32` with an element a dimension."""
    known = None if ends else vision.static_scales(b, x, sizes)
    if known is not None:
        return known
    parts = [b.constant(np.ones(2, np.float32))]
    for axis in range(2, x.rank):
        pair = [b.arith("subi", size, ends) for size in (sizes[axis], b.dim(x, axis))]
        if ends and 0 in [extent for extent in pair if isinstance(extent, int)]:  # all samples at the first place
            parts.append(b.constant(np.array([np.inf], np.float32)))
            continue
        floats = [elementwise.cast(b, as_tensor(b, size), "float32") for size in pair]
        parts.append(shape.unsqueeze(b, elementwise.binary(b, "div", *floats), [0]))
    return shape.concat(b, parts, 0)


@aten("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(call: Call) -> Tensor:
    """Sampling at normalised coordinates."""
    mode = ("linear", "nearest", "cubic")[call.int(2)]
    padding = ("zeros", "border", "reflection")[call.int(3)]
    return vision.grid_sample(call.b, call.tensor(0), call.tensor(1), mode, padding, bool(call[4]))


@aten("affine_grid_generator")
def affine_grid(call: Call) -> Tensor:
    """Coordinates for `grid_sampler`."""
    return vision.affine_grid(call.b, call.tensor(0), call.sizes(1), bool(call[2]))


@aten("pixel_shuffle", "pixel_unshuffle")
def pixels(call: Call) -> Tensor:
    """Channels as blocks of pixels, and back."""
    b, x, factor = call.b, call.tensor(0), call.int(1)
    *lead, channels, height, width = b.dims(x)
    n, square = len(lead), factor * factor
    if call.op == "aten::pixel_shuffle":
        parts = [*lead, b.arith("divsi", channels, square), factor, factor, height, width]
        order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
        final = [*parts[: n + 1], b.arith("muli", height, factor), b.arith("muli", width, factor)]
    else:
        low, wide = b.arith("divsi", height, factor), b.arith("divsi", width, factor)
        parts = [*lead, channels, low, factor, wide, factor]
        order = [*range(n), n, n + 2, n + 4, n + 1, n + 3]
        final = [*lead, b.arith("muli", channels, square), low, wide]
    return shape.reshape(b, shape.transpose(b, shape.reshape(b, x, parts), order), final)


@aten("channel_shuffle")
def channel_shuffle(call: Call) -> Tensor:
    """Channels of groups in turns."""
    b, x, groups = call.b, call.tensor(0), call.int(1)
    dims = b.dims(x)
    parts = [dims[0], groups, b.arith("divsi", dims[1], groups), *dims[2:]]
    mixed = shape.transpose(b, shape.reshape(b, x, parts), [0, 2, 1, *range(3, len(parts))])
    return shape.reshape(b, mixed, dims)


@aten("torchvision::nms")
def nms(call: Call) -> Tensor:
    """Positions of boxes that do not overlap better ones, the best first."""
    b, boxes, scores = call.b, call.tensor(0), call.tensor(1)
    lowest = b.constant(np.array(-np.inf, np.float32))
    overlap = b.constant(np.array(call[2], np.float32))
    batches = [shape.unsqueeze(b, boxes, [0]), shape.unsqueeze(b, scores, [0, 1])]
    operands = [*batches, b.as_index(b.dim(boxes, 0)), overlap, lowest]
    found = b.op("nms", operands, center_point_box=False)
    return shape.reshape_codes(b, shape.window(b, found, 1, 2, 1), [-1])


@aten("torchvision::roi_align")
def roi_align(call: Call) -> Tensor:
    """Means of bilinear samples in the cells of regions, whose first column is the image."""
    b, x, rois = call.b, call.tensor(0), call.tensor(1)
    if not isinstance(call[2], int | float):
        raise NodeError("the scale of its regions is known at run time only", "trace the model with it constant")
    image = elementwise.cast(b, shape.reshape_codes(b, shape.window(b, rois, 1, 0, 1), [-1]), "int64")
    corners = shape.window(b, rois, 1, 1, 4)
    grid, ratio = (call.int(3), call.int(4)), max(call.int(5), 0)
    return vision.roi_align(b, x, corners, image, grid, ratio, float(call[2]), bool(call[6]))
