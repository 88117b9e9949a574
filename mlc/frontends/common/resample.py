"""Resampling by a weighted sum of neighbours along one dimension after the other.

`mlc.resize` covers the usual cases; antialiasing filters and crop-and-resize are built here, because how many
neighbours there are depends on the scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import indexing, reduction, shape
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.report import NodeError


@dataclass(frozen=True)
class Filter:
    """How weights fall off with distance: `mode` is `linear` or `cubic`; the parameters are those of ONNX Resize."""

    mode: str
    coordinate: str
    antialias: bool
    cubic_coeff: float
    exclude_outside: bool


def resample(
    b: Builder,
    x: Tensor,
    axes: Sequence[int],
    scales: Tensor,
    sizes: Sequence[Size],
    filter_: Filter,
    roi: Tensor | None = None,
    extrapolation: float = 0.0,
) -> Tensor:
    """`x` resized along `axes` to `sizes` (an extent a dimension of `x`).

    `scales` has an element a dimension; `roi` (`[2 * rank]`: starts, then ends, normalised) crops first, and what lies
    outside the input then is `extrapolation`.
    """
    y = ew.cast(b, x, "float32")
    outside: Tensor | None = None
    for axis in axes:
        places = _places(b, x, axis, scales, sizes[axis], filter_, roi)
        y = _along(b, y, *_neighbours(b, x, axis, places, scales, filter_), axis)
        if roi is not None:
            beyond = _beyond(b, x, axis, places)
            extents: list[Size] = [1] * x.rank
            extents[axis] = sizes[axis]
            mask = shape.reshape(b, beyond, extents)
            outside = mask if outside is None else ew.binary(b, "or", outside, mask)
    if outside is not None:
        y = ew.select(b, outside, b.like(extrapolation, y), y)
    return ew.cast(b, y, x.dtype) if x.is_float else ew.to_integers(b, y, x.dtype)


def _scalar(b: Builder, line: Tensor, position: int) -> Tensor:
    return shape.reshape(b, ew.cast(b, shape.window(b, line, 0, position, 1), "float32"), [])


def _extent(b: Builder, x: Tensor, axis: int) -> Tensor:
    return ew.cast(b, shape.size_tensor(b, x, axis), "float32")


def _places(
    b: Builder, x: Tensor, axis: int, scales: Tensor, size: Size, filter_: Filter, roi: Tensor | None
) -> Tensor:
    """The input coordinate of each output position, `f32 [size]`."""
    line = ew.cast(b, shape.iota(b, [size], 0, "int64"), "float32")
    scale, extent = _scalar(b, scales, axis), _extent(b, x, axis)
    one, half = b.like(1, scale), b.like(0.5, scale)
    wanted = ew.binary(b, "mul", scale, extent)
    if filter_.coordinate == "tf_crop_and_resize":
        if roi is None:
            raise NodeError("tf_crop_and_resize needs a roi")
        low, high = _scalar(b, roi, axis), _scalar(b, roi, axis + x.rank)
        last = ew.binary(b, "sub", extent, one)
        span = ew.binary(b, "mul", ew.binary(b, "sub", high, low), last)
        single = ew.compare(b, "le", wanted, one)
        divisor = ew.select(b, single, one, ew.binary(b, "sub", wanted, one))
        steps = ew.binary(b, "mul", line, ew.binary(b, "div", span, divisor))
        middle = ew.select(b, single, ew.binary(b, "mul", span, half), steps)
        return ew.binary(b, "add", middle, ew.binary(b, "mul", low, last))
    if filter_.coordinate == "asymmetric":
        return ew.binary(b, "div", line, scale)
    if filter_.coordinate == "align_corners":
        divisor = ew.binary(b, "max", ew.binary(b, "sub", wanted, one), one)
        return ew.binary(b, "mul", line, ew.binary(b, "div", ew.binary(b, "sub", extent, one), divisor))
    centred = ew.binary(b, "sub", ew.binary(b, "div", ew.binary(b, "add", line, half), scale), half)
    if filter_.coordinate == "half_pixel_symmetric":
        count = ew.cast(b, shape.reshape(b, shape.shape_of(b, line), []), "float32")
        share = ew.binary(b, "sub", one, ew.binary(b, "div", count, wanted))
        return ew.binary(b, "add", centred, ew.binary(b, "mul", ew.binary(b, "mul", extent, half), share))
    return centred


def _beyond(b: Builder, x: Tensor, axis: int, places: Tensor) -> Tensor:
    last = ew.binary(b, "sub", _extent(b, x, axis), b.like(1, places))
    low = ew.compare(b, "lt", places, b.like(0, places))
    return ew.binary(b, "or", low, ew.compare(b, "gt", places, last))


def _neighbours(
    b: Builder, x: Tensor, axis: int, places: Tensor, scales: Tensor, filter_: Filter
) -> tuple[Tensor, Tensor]:
    """Which positions of the input count for each output position, `i64 [taps, size]`, and how much, `f32`. Those
    outside count for the edge, or not at all with `exclude_outside`.
    """
    radius, taps = _reach(b, scales, axis, filter_)
    first = ew.binary(b, "add", ew.unary(b, "floor", ew.binary(b, "sub", places, radius)), b.like(1, places))
    line = ew.cast(b, shape.iota(b, [taps, 1], 0, "int64"), "float32")
    positions = ew.binary(b, "add", shape.unsqueeze(b, first, [0]), line)
    distance = ew.unary(b, "abs", ew.binary(b, "sub", positions, shape.unsqueeze(b, places, [0])))
    if filter_.antialias:
        scale = _scalar(b, scales, axis)
        distance = ew.binary(b, "mul", distance, ew.binary(b, "min", scale, b.like(1, scale)))
    weights = _linear(b, distance) if filter_.mode == "linear" else _cubic(b, distance, filter_.cubic_coeff)
    last = ew.binary(b, "sub", _extent(b, x, axis), b.like(1, positions))
    inside = ew.binary(b, "min", ew.binary(b, "max", positions, b.like(0, positions)), last)
    if filter_.exclude_outside:
        weights = ew.select(b, ew.compare(b, "eq", inside, positions), weights, b.like(0, weights))
    total = reduction.reduce(b, "sum", weights, [0], True)
    return ew.cast(b, inside, "int64"), ew.binary(b, "div", weights, total)


def _reach(b: Builder, scales: Tensor, axis: int, filter_: Filter) -> tuple[Tensor, Size]:
    """How far neighbours are at most, and how many there are."""
    radius = 1.0 if filter_.mode == "linear" else 2.0
    if not filter_.antialias:
        return b.constant(np.array(radius, np.float32)), int(2 * radius)
    known = scales.constant
    if known is not None:
        radius /= min(float(known[axis]), 1.0)
        return b.constant(np.array(radius, np.float32)), int(np.ceil(2 * radius))
    scale = _scalar(b, scales, axis)
    reach = ew.binary(b, "div", b.like(radius, scale), ew.binary(b, "min", scale, b.like(1, scale)))
    count = ew.unary(b, "ceil", ew.scaled(b, reach, 2))
    return reach, b.element(ew.cast(b, count, "int64"))


def _linear(b: Builder, distance: Tensor) -> Tensor:
    one, zero = b.like(1, distance), b.like(0, distance)
    return ew.binary(b, "max", ew.binary(b, "sub", one, distance), zero)


def _cubic(b: Builder, distance: Tensor, a: float) -> Tensor:
    """The cubic convolution kernel."""
    near = polynomial(b, distance, (a + 2, -(a + 3), 0.0, 1.0))
    far = polynomial(b, distance, (a, -5 * a, 8 * a, -4 * a))
    zero = b.like(0, distance)
    outer = ew.select(b, ew.compare(b, "lt", distance, b.like(2, distance)), far, zero)
    return ew.select(b, ew.compare(b, "le", distance, b.like(1, distance)), near, outer)


def polynomial(b: Builder, x: Tensor, terms: Sequence[float]) -> Tensor:
    """A polynomial by Horner's rule, highest power first."""
    result = b.like(terms[0], x)
    for term in terms[1:]:
        result = ew.binary(b, "add", ew.binary(b, "mul", result, x), b.like(term, x))
    return result


def _along(b: Builder, x: Tensor, positions: Tensor, weights: Tensor, axis: int) -> Tensor:
    """The sums, along one dimension of `x`, of the elements at `positions` times `weights`."""
    taken = indexing.gather(b, x, positions, axis)
    extents: list[Size] = [1] * (x.rank + 1)
    extents[axis : axis + 2] = b.dims(weights)
    return reduction.reduce(b, "sum", ew.binary(b, "mul", taken, shape.reshape(b, weights, extents)), [axis], False)
