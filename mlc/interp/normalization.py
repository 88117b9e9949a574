"""Composites that normalise: `softmax`, `batch_norm`, `layer_norm`, `group_norm`, `lrn`, `lp_normalize`."""

from __future__ import annotations

import numpy as np

from mlc.interp.dtypes import widen
from mlc.interp.registry import Call, evaluates

# Exponentials below it are 0, as in kernels: a probability that is a subnormal number, of a constant that becomes a
# weight, would take the processor a hundred times as long in whatever reads it.
LEAST_POWER = 2.0**-103.5


def softmax_of(x: np.ndarray, axis: int, log: bool = False) -> np.ndarray:
    """Softmax (or its logarithm) of a float array along `axis`, in the dtype of `x`."""
    if x.shape[axis] == 0:
        return x.copy()
    shifted = x - np.max(x, axis=axis, keepdims=True)
    exponential = np.exp(shifted)
    if not log and x.dtype == np.float32:
        exponential[exponential < LEAST_POWER] = 0
    total = np.sum(exponential, axis=axis, keepdims=True)
    return shifted - np.log(total) if log else exponential / total


@evaluates("mlc.softmax", "input")
def softmax(call: Call, x: np.ndarray) -> np.ndarray:
    """Softmax along `axis`; with `log` its logarithm."""
    return softmax_of(widen(x), int(call.need("axis")), bool(call.attr("log", False)))


def per_channel(values: np.ndarray, rank: int) -> np.ndarray:
    """A `[C]` array shaped to broadcast along axis 1 of a tensor of `rank`."""
    return widen(values).reshape(1, -1, *[1] * (rank - 2)) if rank > 1 else widen(values)


@evaluates("mlc.batch_norm", "input scale bias mean variance")
def batch_norm(
    call: Call, x: np.ndarray, scale: np.ndarray, bias: np.ndarray, mean: np.ndarray, variance: np.ndarray
) -> np.ndarray:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, per channel (axis 1)."""
    scale, bias, mean, variance = (per_channel(v, x.ndim) for v in (scale, bias, mean, variance))
    epsilon = variance.dtype.type(call.attr("epsilon", 1e-5))
    return (widen(x) - mean) / np.sqrt(variance + epsilon) * scale + bias


@evaluates("mlc.layer_norm", "input scale? bias?")
def layer_norm(call: Call, x: np.ndarray, scale: np.ndarray | None, bias: np.ndarray | None) -> np.ndarray:
    """Normalises over the dimensions from `axis` on; with `rms` by the root mean square, without the mean."""
    value = widen(x)
    axes = tuple(range(int(call.need("axis")), x.ndim))
    if not call.attr("rms", False):
        value = value - np.mean(value, axis=axes, keepdims=True)
    square = np.mean(np.square(value), axis=axes, keepdims=True)
    result = value / np.sqrt(square + value.dtype.type(call.attr("epsilon", 1e-5)))
    if scale is not None:
        result = result * widen(scale)
    return result if bias is None else result + widen(bias)


@evaluates("mlc.group_norm", "input scale bias")
def group_norm(call: Call, x: np.ndarray, scale: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Normalises each of `groups` groups of channels of each sample; scale and bias are per channel."""
    groups = int(call.need("groups"))
    value = widen(x).reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    axes = tuple(range(2, value.ndim))
    value = value - np.mean(value, axis=axes, keepdims=True)
    square = np.mean(np.square(value), axis=axes, keepdims=True)
    normal = (value / np.sqrt(square + value.dtype.type(call.attr("epsilon", 1e-5)))).reshape(x.shape)
    return normal * per_channel(scale, x.ndim) + per_channel(bias, x.ndim)


@evaluates("mlc.lrn", "input")
def lrn(call: Call, x: np.ndarray) -> np.ndarray:
    """x / (bias + alpha / size * sum of the squares of `size` neighbouring channels) ** beta."""
    size = int(call.need("size"))
    value = widen(x)
    low = (size - 1) // 2
    square = np.pad(np.square(value), [(0, 0), (low, size - 1 - low)] + [(0, 0)] * (x.ndim - 2))
    total = np.zeros_like(value)
    for shift in range(size):
        total += square[:, shift : shift + x.shape[1]]
    of = value.dtype.type
    base = of(call.attr("bias", 1.0)) + of(call.attr("alpha", 1e-4) / size) * total
    return value / np.power(base, of(call.attr("beta", 0.75)))


@evaluates("mlc.lp_normalize", "input")
def lp_normalize(call: Call, x: np.ndarray) -> np.ndarray:
    """x divided by its p-norm along `axis`; 0 where the norm is 0, as ONNX says."""
    value, axis, p = widen(x), int(call.need("axis")), int(call.attr("p", 2))
    norm = (
        np.sum(np.abs(value), axis=axis, keepdims=True)
        if p == 1
        else np.sqrt(np.sum(np.square(value), axis=axis, keepdims=True))
    )
    return np.where(norm == 0, value.dtype.type(0), value / norm)
