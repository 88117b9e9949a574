"""The composites `quantize` and `dequantize`: per tensor, per axis or in blocks along an axis; codes out of words."""

from __future__ import annotations

import numpy as np

from mlc.interp.dtypes import int_range, is_float, is_int, unsigned_dtype, widen, wrap_int
from mlc.interp.elementwise import cast_array, prepare
from mlc.interp.registry import Call, InterpError, evaluates


def spread(parameter: np.ndarray, shape: tuple[int, ...], axis: int, block_size: int) -> np.ndarray:
    """A scale or zero point shaped to broadcast to `shape`: rank 0, `[shape[axis]]`, or one per block along
    `axis`.
    """
    if parameter.ndim == 0 or parameter.size == 1:
        return parameter.reshape(())
    if block_size:
        return np.take(np.repeat(parameter, block_size, axis=axis), np.arange(shape[axis]), axis=axis)
    if parameter.ndim != 1:
        raise InterpError(f"quantization parameter of shape {parameter.shape} without a block size")
    return parameter.reshape([-1 if i == axis else 1 for i in range(len(shape))])


def _parameters(call: Call, x: np.ndarray, scale: np.ndarray, zero: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    axis, block_size = int(call.attr("axis", 0)), int(call.attr("block_size", 0))
    spread_scale = spread(widen(scale), x.shape, axis, block_size)
    if zero is None:
        return spread_scale, np.zeros((), np.int64)
    offset = prepare(zero, call.unsigned)
    return spread_scale, spread(offset.astype(np.int64) if is_int(offset.dtype) else offset, x.shape, axis, block_size)


@evaluates("mlc.quantize", "input scale zero_point?")
def quantize(call: Call, x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray | None) -> np.ndarray:
    """saturate(round_half_even(x / scale) + zero_point); float8 and float4 results do not round to integers
    first.
    """
    dtype = call.dtype()
    factor, offset = _parameters(call, x, scale, zero_point)
    ratio = widen(x).astype(factor.dtype) / factor if is_float(x.dtype) else x.astype(factor.dtype) / factor
    if is_float(dtype):
        return cast_array(np.asarray(ratio + offset.astype(ratio.dtype)), dtype, saturate=True)
    target = unsigned_dtype(dtype) if call.unsigned else dtype
    low, high = int_range(target)
    whole = np.rint(ratio).astype(np.float64) + offset.astype(np.float64)
    whole = np.clip(np.where(np.isnan(whole), 0.0, whole), low, high)
    return wrap_int(np.asarray(whole).astype(np.int64), target)


@evaluates("mlc.dequantize", "input scale zero_point?")
def dequantize(call: Call, x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray | None) -> np.ndarray:
    """(x - zero_point) * scale in the dtype of `scale`."""
    factor, offset = _parameters(call, x, scale, zero_point)
    value = prepare(x, call.unsigned)
    centered = value.astype(np.int64) - offset if is_int(value.dtype) else value - offset.astype(value.dtype)
    return centered.astype(factor.dtype) * factor


@evaluates("mlc.unpack", "input")
def unpack(call: Call, x: np.ndarray) -> np.ndarray:
    """Code `k` of a word is in its byte `k mod 4`, from bit `bits * (k floordiv 4)` on."""
    bits = int(call.attr("bits", 0))
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes = x.view(np.uint8)[..., None, :, :] >> shifts[:, None, None] & np.uint8((1 << bits) - 1)
    return np.swapaxes(codes, -1, -2).reshape(*x.shape[:-3], -1, x.shape[-2]).view(np.int8)
