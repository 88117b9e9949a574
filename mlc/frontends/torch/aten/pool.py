"""Pooling."""

from __future__ import annotations

import itertools

import numpy as np

from mlc.frontends.common import elementwise, indexing, linalg, pool, reduction, shape
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.common.conv import Window
from mlc.frontends.report import NodeError
from mlc.frontends.torch.aten.conv import spread
from mlc.frontends.torch.registry import Call, aten


def _window(call: Call, x: Tensor) -> Window:
    spatial = x.rank - 2
    kernel = spread(call.ints(1), spatial)
    given = call.ints(2) if call[2] else []
    strides = spread(given, spatial) if given else list(kernel)
    padding = spread(call.ints(3), spatial)
    dilations = spread(call.ints(call.names.index("dilation")), spatial) if "dilation" in call.names else [1] * spatial
    return Window(kernel, strides, dilations, list(padding), list(padding))


def _batched(call: Call) -> tuple[Tensor, bool]:
    """The input with a batch dimension, which modules need not be given."""
    x, rank = call.tensor(0), int(call.op.split("pool")[1][0]) + 2
    return (shape.unsqueeze(call.b, x, [0]), True) if x.rank == rank - 1 else (x, False)


def _as_given(call: Call, y: Tensor, lifted: bool) -> Tensor:
    return shape.squeeze(call.b, y, [0]) if lifted else y


@aten("max_pool1d", "max_pool2d", "max_pool3d")
def max_pool(call: Call) -> Tensor:
    """Maxima of windows."""
    x, lifted = _batched(call)
    y = pool.pool(call.b, "max", x, _window(call, x), bool(call.get("ceil_mode", False)))
    return _as_given(call, y, lifted)


@aten("max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool_indices(call: Call) -> list[Tensor]:
    """Maxima of windows and where they are."""
    x, lifted = _batched(call)
    found = _placed(call, x, _window(call, x), bool(call.get("ceil_mode", False)))
    return [_as_given(call, value, lifted) for value in found]


def _placed(call: Call, x: Tensor, window: Window, ceil_mode: bool = False) -> list[Tensor]:
    """Maxima, and their positions in their own plane."""
    b = call.b
    values, places = pool.pool_indices(b, x, window, ceil_mode, False)
    plane = shape.size_scalar(b, b.product(b.dims(x)[2:]))
    return [values, elementwise.binary(b, "mod", places, plane)]


@aten("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(call: Call) -> Tensor:
    """Means of windows."""
    x, lifted = _batched(call)
    include, divisor = bool(call.get("count_include_pad", True)), call.get("divisor_override")
    if not x.is_float:  # means of integers, without their fractions
        x = elementwise.cast(call.b, x, "float64")
    kind = "avg" if divisor is None else "sum"
    y = pool.pool(call.b, kind, x, _window(call, x), bool(call.get("ceil_mode", False)), include)
    if divisor is not None:
        y = elementwise.binary(call.b, "div", y, call.b.like(float(divisor), y))
    return _as_given(call, elementwise.cast(call.b, y, call.tensor(0).dtype), lifted)


@aten(*(f"{prefix}adaptive_avg_pool{rank}d" for prefix in ("", "_") for rank in (1, 2, 3)))
def adaptive(call: Call) -> Tensor:
    """Means of as many regions as the result has places."""
    x, lifted = _batched(call)
    sizes = spread(call.ints(1), x.rank - 2)
    if all(s == 1 for s in sizes):
        return _as_given(call, pool.global_pool(call.b, "avg", x), lifted)
    extents = x.shape[2:]
    if None in extents:
        raise NodeError(f"adaptive pooling of {x} to {sizes}", "fix the extents of the input with --input or --dim")
    known = [extent for extent in extents if extent is not None]
    if 0 in [*x.shape[:2], *sizes]:
        none = shape.full(call.b, [*call.b.dims(x)[:2], *sizes], call.b.like(0, x))
        return _as_given(call, none, lifted)
    window = _regions(known, sizes)
    if window is not None:
        return _as_given(call, pool.pool(call.b, "avg", x, window), lifted)
    for axis, (extent, size) in enumerate(zip(known, sizes, strict=True), 2):
        last = x.rank - 1
        order = [i for i in range(x.rank) if i != axis]
        order.insert(last, axis)
        means = call.b.constant(_means(extent, size), x.dtype)
        moved = linalg.matmul(call.b, shape.transpose(call.b, x, order), means)
        x = shape.transpose(call.b, moved, [int(i) for i in np.argsort(order)])
    return _as_given(call, x, lifted)


def _places(extent: int, size: int) -> list[tuple[int, int]]:
    """Where each of `size` regions begins and ends; regions may overlap, and differ in length by one."""
    return [(place * extent // size, -(-(place + 1) * extent // size)) for place in range(size)]


def _means(extent: int, size: int) -> np.ndarray:
    """`[extent, size]`: what each element adds to the mean of each region."""
    matrix = np.zeros([extent, size], np.float32)
    for place, (begin, end) in enumerate(_places(extent, size)):
        matrix[begin:end, place] = 1 / (end - begin)
    return matrix


def _regions(extents: list[int], sizes: list[int]) -> Window | None:
    """The regions as windows of one length, equally far apart; None where they are not."""
    kernel, strides = [], []
    for extent, size in zip(extents, sizes, strict=True):
        places = _places(extent, size)
        steps = {after[0] - before[0] for before, after in itertools.pairwise(places)} or {extent}
        lengths = {end - begin for begin, end in places}
        if len(steps) > 1 or len(lengths) > 1:
            return None
        kernel.append(lengths.pop())
        strides.append(steps.pop())
    none = [0] * len(kernel)
    return Window(kernel, strides, [1] * len(kernel), list(none), list(none))


@aten("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max(call: Call) -> list[Tensor]:
    """Maxima of as many regions as the result has places, and where they are."""
    x, lifted = _batched(call)
    sizes, extents = spread(call.ints(1), x.rank - 2), x.shape[2:]
    if None in extents:
        raise NodeError(f"adaptive pooling of {x} to {sizes}", "fix the extents of the input with --input or --dim")
    known = [extent for extent in extents if extent is not None]
    window = _regions(known, sizes)
    found = _unequal_maxima(call.b, x, known, sizes) if window is None else _placed(call, x, window)
    return [_as_given(call, value, lifted) for value in found]


def _unequal_maxima(b: Builder, x: Tensor, extents: list[int], sizes: list[int]) -> list[Tensor]:
    """Maxima of regions of several lengths and their positions in the plane, one dimension after the other.

    The last dimension goes first, so that of equal elements the first one in the plane is found, as PyTorch does.
    """
    values, places, step = x, None, 1
    for axis in reversed(range(2, x.rank)):
        parts = []
        for begin, end in _places(extents[axis - 2], sizes[axis - 2]):
            region = shape.window(b, values, axis, begin, end - begin)
            best = reduction.arg_reduce(b, "max", region, axis, True, False)
            where = elementwise.scaled(b, elementwise.binary(b, "add", best, b.like(begin, best)), step)
            if places is not None:
                inner = shape.window(b, places, axis, begin, end - begin)
                where = elementwise.binary(b, "add", where, indexing.gather_elements(b, inner, best, axis))
            parts.append((reduction.reduce(b, "max", region, [axis], True), where))
        values, places = (shape.concat(b, list(column), axis) for column in zip(*parts, strict=True))
        step *= extents[axis - 2]
    assert places is not None
    return [values, places]
