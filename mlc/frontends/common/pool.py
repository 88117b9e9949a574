"""Pooling: ceil mode, global pooling, and the power mean."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mlc.frontends.common import elementwise, reduction, shape, types
from mlc.frontends.common.builder import Builder, Size, Tensor, unit
from mlc.frontends.common.conv import Window, pad_spatial


def ceil_extra(x: Tensor, window: Window) -> tuple[list[int], list[bool]]:
    """The extra high padding that turns floor into ceil for each spatial dimension.

    A window that would start in the high padding does not count. Where that depends on a run-time extent the second
    list says that the result has to be cut to size afterwards.
    """
    extra: list[int] = []
    cut: list[bool] = []
    columns = zip(x.shape[2:], window.strides, window.spans, window.low, window.high, strict=True)
    for extent, stride, span, low, high in columns:
        assert isinstance(low, int) and isinstance(high, int)
        if extent is None:
            # floor((n + s - 1) / s) is ceil(n / s) for every n.
            extra.append(stride - 1)
            cut.append(stride - 1 > span - high - 1)
            continue
        slack = extent + low + high - span
        count = -(-slack // stride) + 1
        if (count - 1) * stride >= extent + low:
            count -= 1
        extra.append((count - 1) * stride - slack)
        cut.append(False)
    return extra, cut


def _cut(b: Builder, x: Tensor, y: Tensor, window: Window, cut: list[bool]) -> Tensor:
    """Drops the last position of the dimensions in `cut` when its window starts beyond the input."""
    sizes = b.dims(y)
    for axis, needed in enumerate(cut):
        if needed:
            reach = b.arith("addi", b.dim(x, axis + 2), window.low[axis])
            limit = b.arith("ceildivsi", reach, window.strides[axis])
            sizes[axis + 2] = b.arith("minsi", sizes[axis + 2], limit)
    return shape.slice_(b, y, [0] * y.rank, sizes, [1] * y.rank)


def _ceil_window(x: Tensor, window: Window, ceil_mode: bool) -> tuple[Window, list[int], list[bool]]:
    if not ceil_mode:
        return window, [0] * len(window.kernel), [False] * len(window.kernel)
    extra, cut = ceil_extra(x, window)
    high: list[Size] = [size + more for size, more in zip(window.high, extra, strict=True) if isinstance(size, int)]
    return replace(window, high=high), extra, cut


def lowest(b: Builder, x: Tensor) -> Tensor:
    """The identity of the maximum: -inf, or the lowest integer."""
    if x.is_float:
        return b.like(-np.inf, x)
    return b.like(int(np.iinfo(types.numpy_dtype(x.dtype)).min), x)


def pool(
    b: Builder, kind: str, x: Tensor, window: Window, ceil_mode: bool = False, count_include_pad: bool = False
) -> Tensor:
    """`mlc.pool` of an NCHW tensor; `kind` is `max`, `avg` or `sum`."""
    source = x
    value = lowest(b, x) if kind == "max" else None
    if not window.is_static:
        source, window = pad_spatial(b, x, window, value)
    window, extra, cut = _ceil_window(source, window, ceil_mode)
    result = b.op(
        "pool",
        [source],
        kind=kind,
        kernel=window.kernel,
        strides=window.strides,
        padding=window.padding,
        dilations=window.dilations,
        count_include_pad=count_include_pad,
        ceil_extra=extra if any(extra) else None,
        layout="nchw",
        unsigned=x.unsigned,
        is_unsigned=unit(x.unsigned),
    )
    return _cut(b, source, result, window, cut) if any(cut) else result


def pool_indices(b: Builder, x: Tensor, window: Window, ceil_mode: bool, column_major: bool) -> tuple[Tensor, Tensor]:
    """`mlc.pool_indices`: the maxima and their flat positions in the whole tensor."""
    window, extra, cut = _ceil_window(x, window, ceil_mode)
    operation = b.emit(
        "pool_indices",
        [x],
        kernel=window.kernel,
        strides=window.strides,
        padding=window.padding,
        dilations=window.dilations,
        ceil_extra=extra if any(extra) else None,
        layout="nchw",
        is_unsigned=unit(x.unsigned),
        column_major=column_major,
    )
    values, indices = Tensor(operation.results[0], x.unsigned), Tensor(operation.results[1])
    if any(cut):
        return _cut(b, x, values, window, cut), _cut(b, x, indices, window, cut)
    return values, indices


def spatial_axes(x: Tensor) -> list[int]:
    """All axes but batch and channel."""
    return list(range(2, x.rank))


def global_pool(b: Builder, kind: str, x: Tensor) -> Tensor:
    """The mean or maximum over all spatial dimensions, which stay with extent 1."""
    if kind == "avg":
        return reduction.statistic(b, "mean", x, spatial_axes(x), True)
    return reduction.reduce(b, "max", x, spatial_axes(x), True)


def power_sum(b: Builder, x: Tensor, exponent: float) -> Tensor:
    """|x| to the power of `exponent`, cheaply for 1 and 2."""
    if exponent == 1:
        return elementwise.unary(b, "abs", x)
    if exponent == 2:
        return elementwise.binary(b, "mul", x, x)
    return elementwise.binary(b, "pow", elementwise.unary(b, "abs", x), b.like(exponent, x))


def root(b: Builder, x: Tensor, exponent: float) -> Tensor:
    """The inverse of the power in `power_sum`."""
    if exponent == 1:
        return x
    if exponent == 2:
        return elementwise.unary(b, "sqrt", x)
    return elementwise.binary(b, "pow", x, b.like(1 / exponent, x))
