"""`pool` and the composite `pool_indices`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlc.interp.conv import channels_first, from_channels_first
from mlc.interp.dtypes import is_int, lowest
from mlc.interp.elementwise import divide, prepare
from mlc.interp.registry import Call, InterpError, evaluates
from mlc.interp.windows import output_extents, pad_spatial, taps


@dataclass(frozen=True)
class _Window:
    kernel: list[int]
    strides: list[int]
    padding: list[int]
    dilations: list[int]
    out: list[int]

    @staticmethod
    def of(call: Call, extents: Sequence[int]) -> _Window:
        kernel, rank = call.ints("kernel"), len(call.ints("kernel"))
        strides, dilations = call.ints("strides", [1] * rank), call.ints("dilations", [1] * rank)
        padding = call.ints("padding", [0] * 2 * rank)
        return _Window(
            kernel, strides, padding, dilations, output_extents(extents, kernel, strides, padding, dilations)
        )

    def reduce(self, x: np.ndarray, ufunc: np.ufunc, identity: float | int | bool) -> np.ndarray:
        """`ufunc` over the windows of `x [N, C, spatial...]`, padding counted as `identity`."""
        padded = pad_spatial(x, self.padding, identity, 2)
        total = np.full((*x.shape[:2], *self.out), identity, x.dtype)
        for _, view in taps(padded, 2, self.kernel, self.strides, self.dilations, self.out):
            total = ufunc(total, view)
        return total


def _counted(window: _Window, extents: Sequence[int], include_pad: bool, extra: Sequence[int]) -> np.ndarray:
    """How many elements each window averages over, `[1, 1, out...]`."""
    rank = len(extents)
    ones = np.ones((1, 1, *extents), np.float64)
    if not include_pad:
        return window.reduce(ones, np.add, 0)
    high = [window.padding[rank + i] - extra[i] for i in range(rank)]
    ones = pad_spatial(ones, [*window.padding[:rank], *high], 1, 2)
    outside = _Window(window.kernel, window.strides, [0] * rank + list(extra), window.dilations, window.out)
    return outside.reduce(ones, np.add, 0)


@evaluates("mlc.pool", "input")
def pool(call: Call, x: np.ndarray) -> np.ndarray:
    """`kind` over sliding windows; `avg` divides by what `count_include_pad` and `ceil_extra` say."""
    kind, layout = call.need("kind"), call.attr("layout", "nchw")
    value = channels_first(prepare(x, call.unsigned), layout)
    extents = value.shape[2:]
    window = _Window.of(call, extents)
    if kind == "max":
        result = window.reduce(value, np.maximum, lowest(value.dtype))
    elif kind in ("sum", "avg"):
        result = window.reduce(value, np.add, 0)
    else:
        raise InterpError(f"mlc.pool: unknown kind '{kind}'")
    if kind == "avg":
        extra = call.ints("ceil_extra", [0] * len(extents))
        count = _counted(window, extents, bool(call.attr("count_include_pad", False)), extra).astype(value.dtype)
        result = divide(result, np.maximum(count, 1)) if is_int(value.dtype) else result / count
    return from_channels_first(result, layout)


def _flat_positions(shape: Sequence[int], column_major: bool) -> np.ndarray:
    """Offset of each element of `[N, C, spatial...]`, spatial dimensions counted row- or column-major."""
    batch, channels, *spatial = shape
    plane = int(np.prod(spatial, dtype=np.int64))
    inner = np.arange(plane, dtype=np.int64).reshape(spatial, order="F" if column_major else "C")
    outer = np.arange(batch * channels, dtype=np.int64).reshape(batch, channels, *[1] * len(spatial))
    return outer * plane + inner


@evaluates("mlc.pool_indices", "input")
def pool_indices(call: Call, x: np.ndarray) -> list[np.ndarray]:
    """Maximum of each window, and the offset of its first occurrence in the whole `[N, C, spatial...]`
    tensor.
    """
    layout = call.attr("layout", "nchw")
    value = channels_first(prepare(x, call.unsigned), layout)
    window = _Window.of(call, value.shape[2:])
    positions = _flat_positions(value.shape, bool(call.attr("column_major", False)))
    low = lowest(value.dtype)
    padded = pad_spatial(value, window.padding, low, 2)
    padded_positions = pad_spatial(positions, window.padding, -1, 2)
    best = np.full((*value.shape[:2], *window.out), low, value.dtype)
    where = np.full(best.shape, -1, np.int64)
    geometry = (2, window.kernel, window.strides, window.dilations, window.out)
    for (_, view), (_, at) in zip(taps(padded, *geometry), taps(padded_positions, *geometry), strict=True):
        # The first real element always wins over padding; a NaN wins once and stays.
        better = (at >= 0) & ((where < 0) | (view > best) | (np.isnan(view) & ~np.isnan(best)))
        best, where = np.where(better, view, best), np.where(better, at, where)
    return [from_channels_first(best, layout), from_channels_first(where, layout)]
