"""Constants, shapes and data movement with a fixed pattern."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.interp.dtypes import numpy_dtype, unsigned_view, wrap_int
from mlc.interp.registry import Call, InterpError, evaluates


def constant_of(value: Any) -> np.ndarray:
    """The array of a `value` attribute: an array, or its JSON form `{"dtype", "shape", "data"}` (hexadecimal
    bytes).
    """
    if isinstance(value, dict):
        dtype = numpy_dtype(value["dtype"])
        return np.frombuffer(bytes.fromhex(value["data"]), dtype).reshape(value["shape"])
    return np.asarray(value)


@evaluates("mlc.constant", "")
def constant(call: Call) -> np.ndarray:
    """The attribute `value`."""
    return constant_of(call.need("value"))


@evaluates("mlc.reshape", "input sizes*")
def reshape(call: Call, x: np.ndarray, sizes: list[int]) -> np.ndarray:
    """The elements of `x` in row-major order in another shape."""
    shape = call.mixed("sizes", sizes)
    if min(shape, default=0) < 0 or int(np.prod(shape, dtype=np.int64)) != x.size:
        raise InterpError(f"mlc.reshape: {list(x.shape)} does not have the elements of {shape}")
    return x.reshape(shape)


@evaluates("mlc.transpose", "input")
def transpose(call: Call, x: np.ndarray) -> np.ndarray:
    """Result dimension i is input dimension `permutation[i]`."""
    return np.transpose(x, call.ints("permutation"))


@evaluates("mlc.broadcast", "input sizes*")
def broadcast(call: Call, x: np.ndarray, sizes: list[int]) -> np.ndarray:
    """`numpy.broadcast_to`."""
    return np.broadcast_to(x, call.mixed("sizes", sizes))


@evaluates("mlc.concat", "inputs*")
def concat(call: Call, inputs: list[np.ndarray]) -> np.ndarray:
    """The inputs one after the other along `axis`."""
    return np.concatenate(inputs, axis=int(call.need("axis")))


@evaluates("mlc.slice", "input offsets* sizes* strides*")
def slice_(call: Call, x: np.ndarray, offsets: list[int], sizes: list[int], strides: list[int]) -> np.ndarray:
    """`sizes[i]` elements of dimension i: `offsets[i]`, `offsets[i] + strides[i]`, ..."""
    index: list[slice] = []
    lists = (call.mixed("offsets", offsets), call.mixed("sizes", sizes), call.mixed("strides", strides))
    for axis, (offset, size, stride) in enumerate(zip(*lists, strict=True)):
        last = offset + (size - 1) * stride
        if size > 0 and not (0 <= offset < x.shape[axis] and 0 <= last < x.shape[axis]):
            raise InterpError(
                f"mlc.slice: elements {offset} to {last} of dimension {axis}, which has {x.shape[axis]} elements"
            )
        end = last + (1 if stride > 0 else -1)
        index.append(slice(0, 0) if size <= 0 else slice(offset, None if end < 0 else end, stride))
    return x[tuple(index)]


def _source_coordinates(extent: int, low: int, high: int, mode: str) -> np.ndarray:
    """For each coordinate of the padded dimension the one it reads."""
    at = np.arange(-low, extent + high, dtype=np.int64)
    if extent == 0:
        if at.size:
            raise InterpError(f"mlc.pad: mode '{mode}' cannot pad an empty dimension")
        return at
    if mode == "edge":
        return np.clip(at, 0, extent - 1)
    if mode == "wrap":
        return at % extent
    period = max(1, 2 * (extent - 1))
    folded = at % period
    return np.where(folded < extent, folded, period - folded)


@evaluates("mlc.pad", "input value? low* high*")
def pad(call: Call, x: np.ndarray, value: np.ndarray | None, low: list[int], high: list[int]) -> np.ndarray:
    """`x` with elements added (negative: cropped) below and above each dimension."""
    mode = call.attr("mode", "constant")
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise InterpError(f"mlc.pad: unknown mode '{mode}'")
    lows, highs = call.mixed("low", low), call.mixed("high", high)
    if mode == "constant":
        fill = x.dtype.type(0) if value is None else value.reshape(()).astype(x.dtype)
        return _pad_with(x, fill, lows, highs)
    for axis, (below, above) in enumerate(zip(lows, highs, strict=True)):
        if below or above:
            x = np.take(x, _source_coordinates(x.shape[axis], below, above, mode), axis=axis)
    return x


def _pad_with(x: np.ndarray, fill: np.ndarray, lows: Sequence[int], highs: Sequence[int]) -> np.ndarray:
    """`x` within a border of `fill`, cropped where the border is negative: every element is written once."""
    padded = np.empty([max(0, n + low + high) for n, low, high in zip(x.shape, lows, highs, strict=True)], x.dtype)
    inside: list[slice] = []
    kept: list[slice] = []
    for n, low, total in zip(x.shape, lows, padded.shape, strict=True):
        begin = min(max(0, low), total)
        end = max(begin, min(n + low, total))
        for border in (slice(0, begin), slice(end, None)):
            at = (*inside, border)
            padded[at] = fill
        inside.append(slice(begin, end))
        kept.append(slice(begin - low, end - low) if end > begin else slice(0, 0))
    padded[tuple(inside)] = x[tuple(kept)]
    return padded


@evaluates("mlc.shape_of", "input")
def shape_of(call: Call, x: np.ndarray) -> np.ndarray:
    """The extents of `x` as a 1-d int64 array."""
    return np.asarray(x.shape, np.int64)


@evaluates("mlc.iota", "sizes*")
def iota(call: Call, sizes: list[int]) -> np.ndarray:
    """Each element is its coordinate along `axis`."""
    shape, axis = call.mixed("sizes", sizes), int(call.need("axis"))
    steps = np.arange(shape[axis], dtype=np.int64)
    dtype = call.dtype()
    steps = wrap_int(steps, dtype) if unsigned_view(np.zeros(0, dtype)).dtype != dtype else steps.astype(dtype)
    return np.broadcast_to(steps.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)
