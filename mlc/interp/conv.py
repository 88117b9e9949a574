"""`conv` and the composite `conv_transpose`, as one matrix product for each kernel position."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from mlc.interp.dtypes import widen
from mlc.interp.linalg import contraction_operand
from mlc.interp.registry import Call, InterpError, evaluates
from mlc.interp.windows import output_extents, pad_spatial, taps


def channels_first(x: np.ndarray, layout: str) -> np.ndarray:
    """View of an activation as `[batch, channels, spatial...]`."""
    return x if layout == "nchw" else np.moveaxis(x, -1, 1)


def from_channels_first(x: np.ndarray, layout: str) -> np.ndarray:
    """Inverse of `channels_first`."""
    return x if layout == "nchw" else np.ascontiguousarray(np.moveaxis(x, 1, -1))


def _filter_oi(filter_: np.ndarray, layout: str) -> np.ndarray:
    """View of a filter as `[O, I/g, spatial...]`."""
    return filter_ if layout == "nchw" else np.moveaxis(filter_, (-1, -2), (0, 1))


def _at(position: tuple[int, ...]) -> Any:
    """Index of one kernel position in the trailing dimensions."""
    return (Ellipsis, *position)


def _check(x: np.ndarray, filter_: np.ndarray, groups: int) -> None:
    if x.ndim < 3 or filter_.ndim != x.ndim:
        raise InterpError(f"mlc.conv: input of rank {x.ndim} and filter of rank {filter_.ndim}")
    if x.shape[1] != filter_.shape[1] * groups or filter_.shape[0] % groups:
        raise InterpError(
            f"mlc.conv: {x.shape[1]} input channels and filter {filter_.shape} do not fit {groups} groups"
        )


@evaluates("mlc.conv", "input filter bias?")
def conv(call: Call, x: np.ndarray, filter_: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """Cross-correlation of `x` with `filter`, plus `bias [O]`."""
    layout, groups = call.attr("layout", "nchw"), int(call.attr("groups", 1))
    unsigned = [bool(call.attr(f"unsigned_{name}", False)) for name in ("input", "filter")]
    weights = contraction_operand(_filter_oi(filter_, layout), call.dtype(), unsigned[1])
    value = contraction_operand(channels_first(x, layout), call.dtype(), unsigned[0])
    _check(value, weights, groups)
    strides, padding, dilations = call.ints("strides"), call.ints("padding"), call.ints("dilations")
    kernel = weights.shape[2:]
    out = output_extents(value.shape[2:], kernel, strides, padding, dilations)
    batch, channels, points = value.shape[0], value.shape[1] // groups, math.prod(out)
    features = weights.shape[0] // groups
    grouped = weights.reshape(1, groups, features, channels, *kernel)
    total = np.zeros((batch, groups, features, points), value.dtype)
    for position, view in taps(pad_spatial(value, padding, 0, 2), 2, kernel, strides, dilations, out):
        columns = np.ascontiguousarray(view).reshape(batch, groups, channels, points)
        tap = np.ascontiguousarray(grouped[_at(position)])
        total += tap * columns if channels == 1 else np.matmul(tap, columns)
    result = total.reshape(batch, groups * features, *out)
    if bias is not None:
        result = result + widen(bias).astype(result.dtype).reshape(1, -1, *[1] * len(out))
    return from_channels_first(result, layout)


@evaluates("mlc.conv_transpose", "input filter bias?")
def conv_transpose(call: Call, x: np.ndarray, filter_: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """The transpose of `conv`: `x [N, I, ...]`, `filter [I, O/g, k...]` give
    `(in - 1) * stride + (k - 1) * dilation + 1 - low - high + output_padding`."""
    groups = int(call.attr("groups", 1))
    strides, padding, dilations = call.ints("strides"), call.ints("padding"), call.ints("dilations")
    value, weights = contraction_operand(x, call.dtype()), contraction_operand(filter_, call.dtype())
    kernel, extents, rank = weights.shape[2:], value.shape[2:], len(weights.shape) - 2
    extra = call.ints("output_padding", [0] * rank)
    full = [(extents[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 for i in range(rank)]
    batch, channels, features = value.shape[0], value.shape[1] // groups, weights.shape[1]
    columns = value.reshape(batch, groups, channels, math.prod(extents))
    grouped = weights.reshape(1, groups, channels, features, *kernel)
    total = np.zeros((batch, groups * features, *full), value.dtype)
    for position in itertools.product(*(range(k) for k in kernel)):
        tap = np.swapaxes(grouped[_at(position)], 2, 3)
        product = np.matmul(tap, columns).reshape(batch, groups * features, *extents)
        index = tuple(
            slice(at * d, at * d + (n - 1) * s + 1 if n else at * d, s)
            for at, d, n, s in zip(position, dilations, extents, strides, strict=True)
        )
        total[(slice(None), slice(None)) + index] += product
    crop = [-p for p in padding[:rank]] + [extra[i] - padding[rank + i] for i in range(rank)]
    result = pad_spatial(total, crop, 0, 2)
    if bias is not None:
        result = result + widen(bias).astype(result.dtype).reshape(1, -1, *[1] * rank)
    return result
