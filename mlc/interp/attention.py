"""The composite `attention`: scaled dot-product attention as in ONNX `Attention` without its cache
operands.
"""

from __future__ import annotations

import math

import numpy as np

from mlc.interp.dtypes import widen
from mlc.interp.registry import Call, InterpError, evaluates


def _bias(mask: np.ndarray | None, causal: bool, queries: int, keys: int, dtype: np.dtype) -> np.ndarray | None:
    """The sum of the additive masks, broadcastable to the scores; None when nothing is masked."""
    minus_inf = dtype.type(-np.inf)
    bias = None
    if mask is not None:
        bias = np.where(mask, dtype.type(0), minus_inf) if mask.dtype.kind == "b" else widen(mask).astype(dtype)
    if causal:
        allowed = np.arange(keys)[None, :] <= np.arange(queries)[:, None]
        triangle = np.where(allowed, dtype.type(0), minus_inf)
        bias = triangle if bias is None else bias + triangle
    return bias


def _softmax(scores: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """Softmax over the keys; a row whose every key is masked gives zeros, as ONNX and PyTorch do."""
    if scores.shape[-1] == 0:
        return scores
    if bias is not None:
        scores = scores + bias
    top = np.max(scores, axis=-1, keepdims=True)
    exponential = np.exp(scores - np.where(np.isneginf(top), scores.dtype.type(0), top))
    total = np.sum(exponential, axis=-1, keepdims=True)
    result = exponential / np.where(total == 0, scores.dtype.type(1), total)
    if bias is None:
        return result
    masked = np.isneginf(np.max(np.broadcast_to(bias, scores.shape), axis=-1, keepdims=True))
    return np.where(masked, scores.dtype.type(0), result)


@evaluates("mlc.attention", "query key value mask?")
def attention(call: Call, query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """softmax(softcap(query key^T * scale) + mask) value on `[batch, heads, seq, dim]`; key heads may divide
    query heads.
    """
    q, k, v = widen(query), widen(key), widen(value)
    if q.shape[1] != k.shape[1]:
        if k.shape[1] == 0 or q.shape[1] % k.shape[1]:
            raise InterpError(f"mlc.attention: {q.shape[1]} query heads are no multiple of {k.shape[1]} key heads")
        k, v = (np.repeat(a, q.shape[1] // k.shape[1], axis=1) for a in (k, v))
    scale = call.attr("scale")
    scale = 1.0 / math.sqrt(q.shape[-1]) if scale is None else float(scale)
    scores = np.matmul(q * q.dtype.type(scale), np.swapaxes(k, -1, -2))
    softcap = call.attr("softcap", 0.0)
    if softcap:
        cap = scores.dtype.type(softcap)
        scores = np.tanh(scores / cap) * cap
    bias = _bias(mask, bool(call.attr("causal", False)), q.shape[2], k.shape[2], scores.dtype)
    return np.matmul(_softmax(scores, bias), v)
