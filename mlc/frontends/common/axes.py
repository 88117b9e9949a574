"""Axes that are known only at run time: the rank of the result is still static, the extents are index arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mlc.frontends.common import control_flow, reduction, shape
from mlc.frontends.common import elementwise as ew
from mlc.frontends.common.builder import Builder, Size, Tensor
from mlc.frontends.report import NodeError


def named(b: Builder, axes: Sequence[Size], axis: int, rank: int) -> Size:
    """1 when `axis` is among `axes` (which may count from the end), else 0."""
    flag: Size = 0
    for entry in axes:
        if isinstance(entry, int):
            flag = 1 if entry % rank == axis else flag
            continue
        for value in (axis, axis - rank):
            flag = b.choose(b.compare_index("eq", entry, value), 1, flag)
    return flag


def placed(b: Builder, axes: Sequence[Size], values: Sequence[Size], defaults: Sequence[Size]) -> list[Size]:
    """For each dimension the value given for it, or its default."""
    rank = len(defaults)
    result: list[Size] = list(defaults)
    for entry, value in zip(axes, values, strict=True):
        for axis in range(rank):
            if isinstance(entry, int):
                result[axis] = value if entry % rank == axis else result[axis]
                continue
            for name in (axis, axis - rank):
                result[axis] = b.choose(b.compare_index("eq", entry, name), value, result[axis])
    return result


def _selected(b: Builder, position: Size, values: Sequence[Size]) -> Size:
    """`values[position]`."""
    if isinstance(position, int):
        return values[position] if position < len(values) else 1
    result: Size = 1
    for number, value in enumerate(values):
        result = b.choose(b.compare_index("eq", position, number), value, result)
    return result


def without(b: Builder, x: Tensor, axes: Sequence[Size]) -> Tensor:
    """`x` without the dimensions `axes`, whose extent is 1."""
    for entry in axes:
        shape.require_axis(b, entry, x.rank)
    extents = b.dims(x)
    kept = [b.arith("subi", 1, named(b, axes, axis, x.rank)) for axis in range(x.rank)]
    sizes: list[Size] = []
    for position in range(x.rank - len(axes)):
        size: Size = 1
        before: Size = 0
        for extent, keep in zip(extents, kept, strict=True):
            here = b.arith("muli", keep, b.choose(b.compare_index("eq", before, position), 1, 0))
            size = b.choose(b.compare_index("eq", here, 1), extent, size)
            before = b.arith("addi", before, keep)
        sizes.append(size)
    return shape.reshape(b, x, sizes)


def with_ones(b: Builder, x: Tensor, axes: Sequence[Size]) -> Tensor:
    """`x` with new dimensions of extent 1 at the positions `axes` of the result."""
    rank = x.rank + len(axes)
    for entry in axes:
        shape.require_axis(b, entry, rank)
    extents = b.dims(x)
    sizes: list[Size] = []
    before: Size = 0
    for axis in range(rank):
        flag = named(b, axes, axis, rank)
        size = _selected(b, before, extents)
        sizes.append(b.choose(b.compare_index("eq", flag, 1), 1, size) if not isinstance(flag, int) else size)
        before = b.arith("addi", before, b.arith("subi", 1, flag))
    return shape.reshape(b, x, sizes)


def switch(b: Builder, axis: Tensor, rank: int, build: Callable[[int], Tensor]) -> Tensor:
    """`build(axis)` for an axis that is a run-time scalar: a chain of branches."""

    def step(number: int) -> Tensor:
        if number == rank - 1:
            return build(number)
        hit = _is_one_of(b, axis, (number, number - rank))
        return control_flow.if_(b, hit, [lambda: [build(number)], lambda: [step(number + 1)]])[0]

    shape.require_axis(b, b.element(axis, *[0] * axis.rank), rank)
    return step(0)


def _is_one_of(b: Builder, axes: Tensor, values: tuple[int, int]) -> Tensor:
    """Whether any of the elements is one of two values, an `i1` scalar."""
    pair = b.constant(np.array(values), axes.dtype)
    column = shape.reshape_codes(b, axes, [-1, 1])
    return reduction.reduce(b, "or", ew.compare(b, "eq", column, pair), [0, 1], False)


# How to reduce one axis after the other: what is done first, the reduction, what is done last.
_STAGES: dict[str, tuple[str | None, str, str | None]] = {
    "mean": (None, "mean", None),
    "l1": ("abs", "sum", None),
    "l2": ("square", "sum", "sqrt"),
    "log_sum": (None, "sum", "log"),
    "log_sum_exp": (None, "log_sum_exp", None),
    "sum_square": ("square", "sum", None),
}


def reduce(b: Builder, kind: str, x: Tensor, axes: Tensor, keepdims: bool) -> Tensor:
    """A reduction over axes that are a run-time vector of static length: a branch for each dimension."""
    if axes.rank != 1:
        raise NodeError(f"its axes are {axes}", "they must be a vector")
    count = axes.shape[0]
    if count is None:
        raise NodeError("the number of axes is known only at run time", "make the axes constant")
    first, step, last = _STAGES.get(kind, (None, kind, None))
    for entry in b.elements(axes, "axes"):
        shape.require_axis(b, entry, x.rank)
    y = _stage(b, first, x)
    for axis in range(x.rank):
        hit = _is_one_of(b, axes, (axis, axis - x.rank))
        y = _reduced_if(b, hit, step, y, axis)
    y = _stage(b, last, y)
    return y if keepdims else without(b, y, b.elements(axes, "axes"))


def _reduced_if(b: Builder, hit: Tensor, kind: str, x: Tensor, axis: int) -> Tensor:
    return control_flow.if_(b, hit, [lambda: [_one(b, kind, x, axis)], lambda: [x]])[0]


def _one(b: Builder, kind: str, x: Tensor, axis: int) -> Tensor:
    if kind in _STAGES:
        return reduction.statistic(b, kind, x, [axis], True)
    return reduction.reduce(b, kind, x, [axis], True)


def _stage(b: Builder, kind: str | None, x: Tensor) -> Tensor:
    if kind is None:
        return x
    if kind == "square":
        return ew.binary(b, "mul", x, x)
    if not x.is_float:
        return (
            ew.cast(b, ew.unary(b, kind, ew.cast(b, x, "float64")), x.dtype) if kind != "abs" else ew.unary(b, kind, x)
        )
    return ew.unary(b, kind, x)


def slice_axes(
    b: Builder, x: Tensor, axes: Sequence[Size], starts: Sequence[Size], ends: Sequence[Size], steps: Sequence[Size]
) -> Tensor:
    """Python-style slices with axes or steps that are run-time values."""
    for axis in axes:
        shape.require_axis(b, axis, x.rank)
    ones: list[Size] = [1] * x.rank
    extents = b.dims(x)
    # The lowest number has no opposite.
    steps = [step if isinstance(step, int) else b.arith("maxsi", step, -shape.INT64_MAX) for step in steps]
    strides = placed(b, axes, steps, ones)
    begin = placed(b, axes, starts, [0] * x.rank)
    end = placed(b, axes, ends, [shape.INT64_MAX] * x.rank)
    offsets: list[Size] = []
    sizes: list[Size] = []
    for extent, low, high, step in zip(extents, begin, end, strides, strict=True):
        offset, size = _range(b, extent, low, high, step)
        offsets.append(offset)
        sizes.append(size)
    return shape.slice_(b, x, offsets, sizes, strides)


def _range(b: Builder, extent: Size, start: Size, end: Size, step: Size) -> tuple[Size, Size]:
    """Offset and size for a step whose sign is known only at run time."""
    if isinstance(step, int):
        return shape.slice_range(b, extent, start, end, step)
    up, down = (_clamped(b, extent, start, end, forward) for forward in (True, False))
    forward = b.compare_index("sgt", step, 0)
    offset = b.choose(forward, up[0], down[0])
    span = b.choose(forward, up[1], down[1])
    length = b.choose(forward, step, b.arith("subi", 0, step))
    shape.require(b, "ne", step, 0, "a step is 0")
    length = b.arith("maxsi", length, 1)  # whatever the check says, nothing is divided by 0
    return offset, b.arith("maxsi", b.arith("ceildivsi", span, length), 0)


def _clamped(b: Builder, extent: Size, start: Size, end: Size, forward: bool) -> tuple[Size, Size]:
    """Offset and distance to the end, for steps in one direction."""
    offset, size = shape.slice_range(b, extent, start, end, 1 if forward else -1)
    return offset, size
