"""Resampling: resize, grids, and regions of interest."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import indexing, linalg, reduction, shape
from mlc.frontends.common.builder import Builder, Size, Tensor, split_sizes
from mlc.frontends.common.conv import Window
from mlc.frontends.common.resample import polynomial

Tap = tuple[Tensor, Tensor | None, Tensor]
"""Where to sample one axis, with which weight (1 when absent), and the axis' extent."""


def resize(
    b: Builder, x: Tensor, scales: Tensor, sizes: Sequence[Size], mode: str, *, cut: bool = False, **options: Any
) -> Tensor:
    """`mlc.resize`; `scales` is an `f32` vector with an element a dimension. Samples between integers are floats; the
    result has them rounded, or `cut`, within the limits of its dtype."""
    if mode != "nearest" and not x.is_float:
        wide = ew.cast(b, x, "float64" if x.dtype.endswith(("32", "64")) else "float32")
        y = resize(b, wide, scales, sizes, mode, **options)
        return ew.cast(b, y, x.dtype, saturate=True) if cut else ew.to_integers(b, y, x.dtype)
    static, dynamic = split_sizes(sizes)
    return b.op("resize", [x, scales, dynamic], static_sizes=static, mode=mode, unsigned=x.unsigned, **options)


def static_scales(b: Builder, x: Tensor, sizes: Sequence[Size]) -> Tensor | None:
    """The ratios of `sizes` to the extents of `x`, `f32` with an element a dimension, where all of them are known."""
    ratios = []
    for axis, size in enumerate(sizes):
        extent = x.shape[axis]
        if isinstance(size, int) and extent is not None:
            ratios.append(size / extent)
        elif not isinstance(size, int) and shape.same_size(size, b.dim(x, axis)):
            ratios.append(1.0)
        else:
            return None
    return b.constant(np.array(ratios, np.float32))


def _float_extent(b: Builder, x: Tensor, axis: int) -> Tensor:
    return ew.cast(b, shape.slice_(b, shape.shape_of(b, x), [axis], [1], [1]), "float32")


def resize_by(b: Builder, x: Tensor, scales: Tensor, mode: str, **options: Any) -> Tensor:
    """Resizes by scales; an output extent is floor(extent * scale)."""
    return resize(b, x, scales, scaled_sizes(b, x, scales), mode, **options)


def scaled_sizes(b: Builder, x: Tensor, scales: Tensor) -> list[Size]:
    """floor(extent * scale) of each dimension."""
    known = scales.constant
    sizes: list[Size] = []
    for axis in range(x.rank):
        extent = x.shape[axis]
        scale = None if known is None else float(known[axis])
        if scale is not None and extent is not None:
            sizes.append(int(np.floor(extent * scale)))
        elif scale is not None and scale == int(scale):
            sizes.append(b.arith("muli", b.dim(x, axis), int(scale)))
        elif scale is not None and 1 / scale == int(1 / scale):
            sizes.append(b.arith("divsi", b.dim(x, axis), int(1 / scale)))
        else:
            factor = shape.slice_(b, scales, [axis], [1], [1])
            product = ew.binary(b, "mul", _float_extent(b, x, axis), factor)
            sizes.append(b.element(ew.cast(b, ew.unary(b, "floor", product), "int64"), 0))
    return sizes


def grid_sample(b: Builder, x: Tensor, grid: Tensor, mode: str, padding: str, align_corners: bool) -> Tensor:
    """Samples `x [N, C, spatial…]` at `grid [N, out…, d]`, whose last dimension runs from the last spatial axis to the
    first and maps [-1, 1] onto the image. What is no number is in no image; where it has to be, it is at its beginning,
    as in PyTorch (`clip_coordinates` of ATen/native/GridSampler.h)."""
    grid = ew.cast(b, grid, "float32") if grid.dtype in ("float16", "bfloat16") else grid  # places between pixels
    rank = x.rank - 2
    out = b.dims(grid)[1:-1]
    points = shape.reshape(b, grid, [b.dim(grid, 0), b.product(out), rank])
    coordinates = []
    for axis in range(rank):
        column = shape.reshape(b, shape.window(b, points, 2, rank - 1 - axis, 1), b.dims(points)[:2])
        extent = ew.cast(b, shape.size_tensor(b, x, axis + 2), grid.dtype)
        place = _denormalized(b, column, extent, align_corners)
        if mode != "cubic" and padding == "border":
            place = _clamped(b, place, extent)
        elif mode != "cubic" and padding == "reflection":
            place = _number_or_zero(b, place, infinite=False)
        coordinates.append((place, extent))
    if mode == "nearest":
        taps: list[list[Tap]] = [[(ew.unary(b, "round", place), None, extent)] for place, extent in coordinates]
    elif mode == "linear":
        taps = [_linear_taps(b, place, extent) for place, extent in coordinates]
    else:
        taps = [_cubic_taps(b, place, extent) for place, extent in coordinates]
    total = _weighted(b, x, taps, padding, align_corners)
    return shape.reshape(b, total, [b.dim(x, 0), b.dim(x, 1), *out])


def _number_or_zero(b: Builder, place: Tensor, infinite: bool) -> Tensor:
    """`place` where it is a number, and finite unless `infinite`; else 0."""
    known = ew.unary(b, "abs", place)
    known = ew.compare(b, "le" if infinite else "lt", known, b.like(np.inf, place))
    return ew.select(b, known, place, b.like(0, place))


def _clamped(b: Builder, place: Tensor, extent: Tensor) -> Tensor:
    """`place`, or what is nearest to it in the image."""
    zero, last = b.like(0, place), ew.binary(b, "sub", extent, b.like(1, place))
    return ew.binary(b, "min", ew.binary(b, "max", _number_or_zero(b, place, infinite=True), zero), last)


def _weighted(b: Builder, x: Tensor, taps: Sequence[list[Tap]], padding: str, align_corners: bool) -> Tensor:
    """The weighted sum of `x` at all combinations of the taps of each axis, `[N, C, P]`."""
    total: Tensor | None = None
    for combination in itertools.product(*taps):
        value = _sampled(b, x, [(place, extent) for place, _, extent in combination], padding, align_corners)
        for _, weight, _ in combination:
            if weight is not None:
                wide = ew.cast(b, shape.unsqueeze(b, weight, [1]), x.dtype)
                value = ew.binary(b, "mul", value, wide)
        total = value if total is None else ew.binary(b, "add", total, value)
    assert total is not None
    return total


def _denormalized(b: Builder, place: Tensor, extent: Tensor, align_corners: bool) -> Tensor:
    one, half = b.like(1, place), b.like(0.5, place)
    shifted = ew.binary(b, "mul", ew.binary(b, "add", place, one), half)
    if align_corners:
        return ew.binary(b, "mul", shifted, ew.binary(b, "sub", extent, one))
    return ew.binary(b, "sub", ew.binary(b, "mul", shifted, extent), half)


def _linear_taps(b: Builder, place: Tensor, extent: Tensor) -> list[Tap]:
    low = ew.unary(b, "floor", place)
    part = ew.binary(b, "sub", place, low)
    one = b.like(1, place)
    return [(low, ew.binary(b, "sub", one, part), extent), (ew.binary(b, "add", low, one), part, extent)]


def _cubic_taps(b: Builder, place: Tensor, extent: Tensor) -> list[Tap]:
    """The four taps of the cubic convolution kernel with a = -0.75."""
    low = ew.unary(b, "floor", place)
    part = ew.binary(b, "sub", place, low)
    taps: list[Tap] = []
    for offset in (-1, 0, 1, 2):
        distance = ew.unary(b, "abs", ew.binary(b, "sub", part, b.like(offset, part)))
        taps.append((ew.binary(b, "add", low, b.like(offset, low)), _cubic(b, distance, offset in (0, 1)), extent))
    return taps


def _cubic(b: Builder, x: Tensor, near: bool) -> Tensor:
    a = -0.75
    return polynomial(b, x, (a + 2, -(a + 3), 0.0, 1.0) if near else (a, -5 * a, 8 * a, -4 * a))


def _sampled(
    b: Builder, x: Tensor, places: Sequence[tuple[Tensor, Tensor]], padding: str, align_corners: bool
) -> Tensor:
    """`x` at whole coordinates `[N, P]` per axis, with the padding rule applied; `[N, C, P]`."""
    inside: Tensor | None = None
    flat: Tensor | None = None
    for place, extent in places:
        zero, one = b.like(0, place), b.like(1, place)
        last = ew.binary(b, "sub", extent, one)
        if padding == "reflection":
            place = _reflected(b, place, extent, align_corners)
        elif padding == "zeros":
            within = ew.binary(b, "and", ew.compare(b, "ge", place, zero), ew.compare(b, "le", place, last))
            inside = within if inside is None else ew.binary(b, "and", inside, within)
        index = ew.cast(b, _clamped(b, place, extent), "int64")
        scaled = None if flat is None else ew.binary(b, "mul", flat, ew.cast(b, extent, "int64"))
        flat = index if scaled is None else ew.binary(b, "add", scaled, index)
    assert flat is not None
    image = shape.reshape(b, x, [b.dim(x, 0), b.dim(x, 1), b.product(b.dims(x)[2:])])
    wide = shape.unsqueeze(b, flat, [1])
    spread = shape.broadcast(b, wide, [b.dim(x, 0), b.dim(x, 1), b.dim(flat, 1)])
    value = indexing.gather_elements(b, image, spread, 2)
    if inside is None:
        return value
    return ew.select(b, shape.unsqueeze(b, inside, [1]), value, b.like(0, x))


def _reflected(b: Builder, place: Tensor, extent: Tensor, align_corners: bool) -> Tensor:
    """Coordinates folded back into the image at its borders (of pixels, or of their centres)."""
    one, two = b.like(1, place), b.like(2, place)
    low = b.like(0 if align_corners else -0.5, place)
    span = ew.binary(b, "sub", extent, one) if align_corners else extent
    span = ew.binary(b, "max", span, b.like(1e-6 if align_corners else 1, place))
    period = ew.binary(b, "mul", span, two)
    offset = ew.binary(b, "mod", ew.binary(b, "sub", place, low), period)
    mirrored = ew.binary(b, "sub", period, offset)
    folded = ew.binary(b, "add", ew.binary(b, "min", offset, mirrored), low)
    return ew.unary(b, "round", folded)


def roi_align(
    b: Builder,
    x: Tensor,
    rois: Tensor,
    batch: Tensor,
    grid: tuple[int, int],
    ratio: int,
    scale: float,
    half_pixel: bool,
) -> Tensor:
    """Means of `ratio`² bilinear samples in each cell: sums of the lines next to samples, a line of all channels at a
    time, then an interpolation matrix a region for the columns."""
    regions, channels, width = b.dim(rois, 0), b.dim(x, 1), b.dim(x, 3)
    line = _samples(b, x, rois, 2, 1, grid[0], ratio, scale, half_pixel)
    most = b.dim(line.counted, 2)
    near, weights = zip(*_neighbours(b, x, 2, line), strict=True)
    parts: list[Size] = [regions, grid[0], most]
    share = ew.select(b, line.counted, ew.binary(b, "div", b.like(1, rois), line.counts), b.like(0, rois))
    weight = shape.concat(b, [ew.binary(b, "mul", shape.reshape(b, w, parts), share) for w in weights], 2)
    first = ew.binary(b, "mul", ew.cast(b, batch, "int64"), shape.size_tensor(b, x, 2))
    places = shape.concat(b, [shape.reshape(b, place, parts) for place in near], 2)
    places = ew.binary(b, "add", places, shape.unsqueeze(b, first, [1, 2]))
    lines = shape.reshape(
        b, shape.transpose(b, x, [0, 2, 1, 3]), [b.arith("muli", b.dim(x, 0), b.dim(x, 2)), channels, width]
    )
    taken = b.op("gather", [lines, places], axis=0)
    by_row = ew.binary(b, "mul", taken, ew.cast(b, shape.unsqueeze(b, weight, [3, 4]), x.dtype))
    by_row = reduction.reduce(b, "sum", by_row, [2], False)
    by_row = shape.reshape(b, by_row, [regions, b.arith("muli", grid[0], channels), width])
    columns = _interpolation(b, x, rois, 3, 0, grid[1], ratio, scale, half_pixel)
    cells = linalg.matmul(b, by_row, columns, transpose_rhs=True)
    cells = shape.reshape(b, cells, [regions, grid[0], channels, grid[1]])
    return shape.transpose(b, cells, [0, 2, 1, 3])


def roi_align_max(
    b: Builder,
    x: Tensor,
    rois: Tensor,
    batch: Tensor,
    grid: tuple[int, int],
    ratio: int,
    scale: float,
    half_pixel: bool,
) -> Tensor:
    """In each cell the largest of its samples' weighted neighbours: a weight times a pixel, not their sum."""
    image = shape.transpose(b, b.op("gather", [x, batch], axis=0), [0, 2, 3, 1])
    lines = [
        _samples(b, x, rois, axis, corner, cells, ratio, scale, half_pixel)
        for axis, corner, cells in ((2, 1, grid[0]), (3, 0, grid[1]))
    ]
    neighbours = [_neighbours(b, x, axis, line) for axis, line in ((2, lines[0]), (3, lines[1]))]
    best = None
    for row, row_weight in neighbours[0]:
        for column, column_weight in neighbours[1]:
            places = shape.unsqueeze(b, row, [2]), shape.unsqueeze(b, column, [1])
            sizes = [b.dim(row, 0), b.dim(row, 1), b.dim(column, 1), 1]
            spread = [shape.broadcast(b, shape.unsqueeze(b, place, [3]), sizes) for place in places]
            pixels = b.op("gather_nd", [image, shape.concat(b, spread, 3)], batch_dims=1)
            weight = ew.binary(b, "mul", shape.unsqueeze(b, row_weight, [2]), shape.unsqueeze(b, column_weight, [1]))
            term = ew.binary(b, "mul", pixels, ew.cast(b, shape.unsqueeze(b, weight, [3]), x.dtype))
            best = term if best is None else ew.binary(b, "max", best, term)
    assert best is not None
    counted = [_flat(b, line.counted, grid[place]) for place, line in enumerate(lines)]
    taken = ew.binary(b, "and", shape.unsqueeze(b, counted[0], [2]), shape.unsqueeze(b, counted[1], [1]))
    best = ew.select(b, shape.unsqueeze(b, taken, [3]), best, b.like(float("-inf"), best))
    most = [b.dim(line.counted, 2) for line in lines]
    parts: list[Size] = [b.dim(best, 0), grid[0], most[0], grid[1], most[1], b.dim(best, 3)]
    largest = reduction.reduce(b, "max", shape.reshape(b, best, parts), [2, 4], False)
    return shape.transpose(b, largest, [0, 3, 1, 2])


class _Samples(NamedTuple):
    """Where samples lie along one axis: `[regions, cells, samples]`."""

    place: Tensor  # clamped into the image
    inside: Tensor  # whether it was inside, or close to it
    counted: Tensor  # whether the region takes that many samples
    counts: Tensor


def _flat(b: Builder, x: Tensor, cells: int) -> Tensor:
    """`[regions, cells, samples]` as `[regions, cells * samples]`; `x` may lack the regions and the cells."""
    regions, _, samples = b.dims(x)
    if x.shape[1] != cells:
        x = shape.broadcast(b, x, [regions, cells, samples])
    return shape.reshape(b, x, [regions, b.arith("muli", cells, samples)])


def _neighbours(b: Builder, x: Tensor, axis: int, line: _Samples) -> list[tuple[Tensor, Tensor]]:
    """The pixels before and behind each sample, and their weights: `[regions, cells * samples]`."""
    place = line.place
    cells = place.shape[1]
    assert cells is not None
    last = ew.cast(b, ew.binary(b, "sub", shape.size_tensor(b, x, axis), b.constant(1, "int64")), place.dtype)
    before = ew.unary(b, "floor", place)
    behind = ew.binary(b, "min", ew.binary(b, "add", before, b.like(1, place)), last)
    share = ew.binary(b, "sub", place, before)
    nothing = b.like(0, place)
    weights = [ew.binary(b, "sub", b.like(1, place), share), share]
    weights = [ew.select(b, line.inside, weight, nothing) for weight in weights]
    return [
        (_flat(b, ew.cast(b, pixel, "int64"), cells), _flat(b, weight, cells))
        for pixel, weight in zip((before, behind), weights, strict=True)
    ]


def _samples(
    b: Builder, x: Tensor, rois: Tensor, axis: int, corner: int, cells: int, ratio: int, scale: float, half: bool
) -> _Samples:
    offset = b.like(0.5 if half else 0.0, rois)
    low, high = (
        ew.binary(b, "sub", ew.scaled(b, shape.window(b, rois, 1, place, 1), scale), offset)
        for place in (corner, corner + 2)
    )
    one, zero = b.like(1, rois), b.like(0, rois)
    length = ew.binary(b, "sub", high, low)
    if not half:
        length = ew.binary(b, "max", length, one)
    cell = shape.unsqueeze(b, ew.binary(b, "div", length, b.like(cells, rois)), [2])
    counts, most = _sample_counts(b, cell, ratio)
    sample = ew.cast(b, shape.iota(b, [1, 1, most], 2, "int64"), rois.dtype)
    first = ew.cast(b, shape.iota(b, [1, cells, 1], 1, "int64"), rois.dtype)
    share = ew.binary(b, "div", ew.binary(b, "add", sample, b.like(0.5, rois)), counts)
    steps = ew.binary(b, "mul", cell, ew.binary(b, "add", first, share))
    place = ew.binary(b, "add", shape.unsqueeze(b, low, [2]), steps)
    extent = ew.cast(b, shape.size_tensor(b, x, axis), rois.dtype)
    valid = ew.binary(b, "and", ew.compare(b, "ge", place, b.like(-1, rois)), ew.compare(b, "le", place, extent))
    clamped = ew.binary(b, "min", ew.binary(b, "max", place, zero), ew.binary(b, "sub", extent, one))
    counted = shape.broadcast(b, ew.compare(b, "lt", sample, counts), [b.dim(rois, 0), 1, most])
    return _Samples(clamped, valid, counted, counts)


def _interpolation(
    b: Builder, x: Tensor, rois: Tensor, axis: int, corner: int, cells: int, ratio: int, scale: float, half: bool
) -> Tensor:
    """`[regions, cells, extent]`: the weight of each pixel line in each cell's mean."""
    line = _samples(b, x, rois, axis, corner, cells, ratio, scale, half)
    one, zero = b.like(1, rois), b.like(0, rois)
    valid = ew.binary(b, "and", line.inside, line.counted)
    pixels = ew.cast(b, shape.iota(b, [1, 1, 1, b.dim(x, axis)], 3, "int64"), rois.dtype)
    distance = ew.unary(b, "abs", ew.binary(b, "sub", shape.unsqueeze(b, line.place, [3]), pixels))
    weight = ew.binary(b, "max", ew.binary(b, "sub", one, distance), zero)
    weight = ew.select(b, shape.unsqueeze(b, valid, [3]), weight, zero)
    total = reduction.reduce(b, "sum", weight, [2], False)
    return ew.cast(b, ew.binary(b, "div", total, line.counts), x.dtype)


def _sample_counts(b: Builder, cell: Tensor, ratio: int) -> tuple[Tensor, Size]:
    """How many samples each region's cells take along an axis, and the most of all: `ratio`, or one a pixel."""
    if ratio > 0:
        return b.like(ratio, cell), ratio
    one = b.like(1, cell)
    counts = ew.binary(b, "max", ew.unary(b, "ceil", cell), one)
    most = reduction.reduce(b, "max", counts, [0, 1, 2], False)
    return counts, b.arith("maxsi", b.element(ew.cast(b, most, "int64")), 1)


def affine_grid(b: Builder, theta: Tensor, sizes: Sequence[Size], align_corners: bool) -> Tensor:
    """`[N, out…, d]` sampling positions of `theta [N, d, d + 1]` for an output of `sizes` (`[N, C, out…]`)."""
    spatial = list(sizes[2:])
    rank = len(spatial)
    columns = []
    for axis in range(rank - 1, -1, -1):
        line = ew.cast(b, shape.iota(b, [*spatial, 1], axis, "int64"), theta.dtype)
        count = ew.cast(b, shape.size_tensor(b, line, axis), theta.dtype)
        one = b.like(1, theta)
        if align_corners:
            steps = ew.binary(b, "max", ew.binary(b, "sub", count, one), one)
        else:
            line, steps = ew.binary(b, "add", line, b.like(0.5, theta)), count
        columns.append(ew.binary(b, "sub", ew.binary(b, "div", ew.scaled(b, line, 2), steps), one))
    columns.append(shape.full(b, [*spatial, 1], b.like(1, theta)))
    points = shape.reshape(b, shape.concat(b, columns, rank), [b.product(spatial), rank + 1])
    product = linalg.matmul(b, points, theta, transpose_rhs=True)
    return shape.reshape(b, product, [b.dim(theta, 0), *spatial, rank])


def block_places(
    b: Builder,
    padded: Sequence[Size],
    block: Sequence[Size],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Tensor:
    """For each element of each sliding block its flat position in the padded image, `i64 [block, positions]`."""
    rank = len(padded)
    starts: list[Size] = []
    for axis in range(rank):
        reach = b.arith("muli", b.arith("subi", block[axis], 1), dilations[axis])
        free = b.arith("subi", b.arith("subi", padded[axis], reach), 1)
        starts.append(b.arith("addi", b.arith("floordivsi", free, strides[axis]), 1))
    extents = [*block, *starts]
    flat = shape.full(b, [1] * (2 * rank), b.constant(np.array(0, np.int64)))
    image = shape.shape_of(b, shape.iota(b, list(padded), 0, "int64"))
    for axis in range(rank):
        taps = ew.scaled(b, shape.iota(b, extents, axis, "int64"), dilations[axis])
        begin = ew.scaled(b, shape.iota(b, extents, axis + rank, "int64"), strides[axis])
        width = shape.slice_(b, image, [axis], [1], [1])
        flat = ew.binary(b, "add", ew.binary(b, "mul", flat, width), ew.binary(b, "add", taps, begin))
    return shape.reshape(b, flat, [b.product(block), b.product(starts)])


_MOST_SHIFTS = 64  # images that are added up, each of them shifted; more of them are scattered


def col2im(
    b: Builder,
    x: Tensor,
    image: Sequence[Size],
    block: Sequence[Size],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> Tensor:
    """Sums sliding blocks `[batch, channels * block, positions]` back into images; `pads` are begins, then ends."""
    if x.is_bool:  # a sum of truth values is one
        counts = col2im(b, ew.cast(b, x, "int32"), image, block, strides, dilations, pads)
        return ew.cast(b, counts, "bool")
    known = [size for size in block if isinstance(size, int)]
    shifts = int(np.prod([-(-size // stride) for size, stride in zip(known, strides, strict=False)]))
    plain = all(stride == 1 or dilation == 1 for stride, dilation in zip(strides, dilations, strict=True))
    if len(known) == len(block) and plain and 0 < shifts <= _MOST_SHIFTS:
        return _shifted_blocks(b, x, image, known, strides, dilations, pads)
    return _scattered_blocks(b, x, image, block, strides, dilations, pads)


def _scattered_blocks(
    b: Builder,
    x: Tensor,
    image: Sequence[Size],
    block: Sequence[Size],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> Tensor:
    """`col2im` element by element."""
    rank = len(image)
    padded = [b.arith("addi", size, pads[axis] + pads[axis + rank]) for axis, size in enumerate(image)]
    places = block_places(b, padded, block, strides, dilations)
    channels = b.arith("divsi", b.dim(x, 1), b.product(block))
    rows = b.arith("muli", b.dim(x, 0), channels)
    count = b.product(b.dims(places))
    zero = shape.full(b, [rows, b.product(padded)], b.like(0, x))
    spread = shape.broadcast(b, shape.reshape(b, places, [1, count]), [rows, count])
    updates = shape.reshape(b, x, [rows, count])
    total = indexing.scatter(b, zero, spread, updates, 1, "add")
    grown = shape.reshape(b, total, [b.dim(x, 0), channels, *padded])
    offsets: list[Size] = [0, 0, *pads[:rank]]
    return shape.slice_(b, grown, offsets, [b.dim(x, 0), channels, *image], [1] * (rank + 2))


def _shifted_blocks(
    b: Builder,
    x: Tensor,
    image: Sequence[Size],
    block: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> Tensor:
    """`col2im` as a sum of images. What lies at the same place of all blocks, of a square of places as large as the
    strides, is an image of its own, without holes, and shifted.
    """
    rank = len(image)
    squares = [-(-size // stride) for size, stride in zip(block, strides, strict=True)]
    padded = [b.arith("addi", size, pads[axis] + pads[axis + rank]) for axis, size in enumerate(image)]
    starts = [
        b.arith("addi", b.arith("floordivsi", b.arith("subi", size, (n - 1) * d + 1), s), 1)
        for size, n, s, d in zip(padded, block, strides, dilations, strict=True)
    ]
    batch, channels = b.dim(x, 0), b.arith("divsi", b.dim(x, 1), int(np.prod(block)))
    blocks = shape.reshape(b, x, [batch, channels, *block, *starts])
    behind = [n * s - size for n, s, size in zip(squares, strides, block, strict=True)]
    blocks = shape.pad(b, blocks, [0] * (2 * rank + 2), [0, 0, *behind, *([0] * rank)])
    grown = [b.arith("addi", size, (n - 1) * d) for size, n, d in zip(starts, squares, dilations, strict=True)]
    none: list[Size] = [0] * (2 + rank)
    total: Tensor | None = None
    for square in np.ndindex(*squares):
        first = [n * s for n, s in zip(square, strides, strict=True)]
        part = shape.slice_(
            b, blocks, [0, 0, *first, *([0] * rank)], [batch, channels, *strides, *starts], [1] * (2 * rank + 2)
        )
        low = [n * d for n, d in zip(square, dilations, strict=True)]
        high = [b.arith("subi", b.arith("subi", g, c), n) for g, c, n in zip(grown, starts, low, strict=True)]
        part = shape.pad(b, part, [*none, *low], [*none, *high])
        total = part if total is None else ew.binary(b, "add", total, part)
    assert total is not None
    order = [0, 1, *(place for axis in range(rank) for place in (2 + rank + axis, 2 + axis))]
    extents = [b.arith("muli", size, stride) for size, stride in zip(grown, strides, strict=True)]
    images = shape.reshape(b, shape.transpose(b, total, order), [batch, channels, *extents])
    unreached = [stride - 1 for stride in strides]  # at most: where no block fits any more
    images = shape.pad(b, images, [0] * (rank + 2), [0, 0, *unreached])
    return shape.slice_(b, images, [0, 0, *pads[:rank]], [batch, channels, *image], [1] * (rank + 2))


def deform_samples(b: Builder, x: Tensor, offset: Tensor, mask: Tensor | None, window: Window, groups: int) -> Tensor:
    """What a deformable convolution multiplies: `x` at the shifted taps, `[N, C, taps, positions]`.

    `offset` is `[N, groups * taps * 2, out…]` (row then column), `mask` `[N, groups * taps, out…]`; taps outside are 0.
    """
    taps = int(np.prod(window.kernel))
    out = b.dims(offset)[2:]
    batch = b.arith("muli", b.dim(x, 0), groups)
    parts: list[Size] = [batch, taps, 2, b.product(out)]
    shifts = shape.reshape(b, offset, parts)
    coordinates = []
    for axis in range(2):
        line = ew.cast(b, shape.iota(b, out, axis, "int64"), x.dtype)
        low = window.low[axis]
        assert isinstance(low, int)
        base = ew.binary(b, "sub", ew.scaled(b, line, window.strides[axis]), b.like(low, x))
        grid = np.indices(window.kernel)[axis].reshape(1, -1, 1) * window.dilations[axis]
        place = shape.reshape(b, shape.window(b, shifts, 2, axis, 1), [batch, taps, b.product(out)])
        place = ew.binary(b, "add", place, b.constant(grid, x.dtype))
        place = ew.binary(b, "add", place, shape.reshape(b, base, [1, 1, b.product(out)]))
        flat = shape.reshape(b, place, [batch, b.arith("muli", taps, b.product(out))])
        coordinates.append((flat, ew.cast(b, shape.size_tensor(b, x, axis + 2), x.dtype)))
    channels = b.arith("divsi", b.dim(x, 1), groups)
    image = shape.reshape(b, x, [batch, channels, *b.dims(x)[2:]])
    total = _weighted(b, image, [_linear_taps(b, place, extent) for place, extent in coordinates], "zeros", True)
    if mask is not None:
        total = ew.binary(b, "mul", total, shape.reshape(b, mask, [batch, 1, b.dim(total, 2)]))
    return shape.reshape(b, total, [b.dim(x, 0), b.dim(x, 1), taps, b.product(out)])
