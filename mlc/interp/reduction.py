"""`reduce`, `arg_reduce`, `scan` and the composite `statistic`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlc.interp.dtypes import highest, is_float, is_int, lowest
from mlc.interp.elementwise import prepare
from mlc.interp.registry import Call, InterpError, evaluates


def _sum(x: np.ndarray, axes: tuple[int, ...], keepdims: bool) -> np.ndarray:
    return np.sum(x, axis=axes, keepdims=keepdims, dtype=x.dtype)


def _prod(x: np.ndarray, axes: tuple[int, ...], keepdims: bool) -> np.ndarray:
    return np.prod(x, axis=axes, keepdims=keepdims, dtype=x.dtype)


def _max(x: np.ndarray, axes: tuple[int, ...], keepdims: bool) -> np.ndarray:
    return np.max(x, axis=axes, keepdims=keepdims, initial=lowest(x.dtype))


def _min(x: np.ndarray, axes: tuple[int, ...], keepdims: bool) -> np.ndarray:
    return np.min(x, axis=axes, keepdims=keepdims, initial=highest(x.dtype))


def _and(x: np.ndarray, axes: tuple[int, ...], keepdims: bool) -> np.ndarray:
    ufunc: Any = np.logical_and if x.dtype.kind == "b" else np.bitwise_and
    return ufunc.reduce(x, axis=axes, keepdims=keepdims)


def _or(x: np.ndarray, axes: tuple[int, ...], keepdims: bool) -> np.ndarray:
    ufunc: Any = np.logical_or if x.dtype.kind == "b" else np.bitwise_or
    return ufunc.reduce(x, axis=axes, keepdims=keepdims)


_REDUCE: dict[str, Callable[[np.ndarray, tuple[int, ...], bool], np.ndarray]] = {
    "sum": _sum,
    "prod": _prod,
    "max": _max,
    "min": _min,
    "and": _and,
    "or": _or,
}


@evaluates("mlc.reduce", "input")
def reduce(call: Call, x: np.ndarray) -> np.ndarray:
    """`x` reduced over `axes`; an empty list of axes reduces nothing, an empty extent gives the identity of
    `kind`.
    """
    kind = call.need("kind")
    if kind not in _REDUCE:
        raise InterpError(f"mlc.reduce: unknown kind '{kind}'")
    value = prepare(x, call.unsigned)
    axes = tuple(call.ints("axes"))
    return _REDUCE[kind](value, axes, bool(call.attr("keepdims", False))) if axes else value


@evaluates("mlc.arg_reduce", "input")
def arg_reduce(call: Call, x: np.ndarray) -> np.ndarray:
    """Index of the first (`select_last`: last) extreme element along `axis`; a NaN counts as the extreme."""
    kind, axis = call.need("kind"), int(call.need("axis"))
    value = prepare(x, call.unsigned)
    find = {"max": np.argmax, "min": np.argmin}[kind]
    keepdims = bool(call.attr("keepdims", False))
    if value.shape[axis] == 0:
        raise InterpError("mlc.arg_reduce: the reduced dimension is empty")
    if not call.attr("select_last", False):
        return find(value, axis=axis, keepdims=keepdims).astype(np.int64)
    from_end = find(np.flip(value, axis), axis=axis, keepdims=keepdims)
    return (value.shape[axis] - 1 - from_end).astype(np.int64)


_SCAN: dict[str, tuple[np.ufunc, Callable[[np.dtype], float | int | bool]]] = {
    "sum": (np.add, lambda dtype: 0),
    "prod": (np.multiply, lambda dtype: 1),
    "max": (np.maximum, lowest),
    "min": (np.minimum, highest),
}


@evaluates("mlc.scan", "input before?")
def scan(call: Call, x: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
    """Running `kind` along `axis`; `exclusive` starts with the identity and leaves the last element out. Every `part`
    elements are a line of their own; all but the first begin with what `before` has of the one in front of them.
    """
    axis, is_reverse = int(call.need("axis")), bool(call.attr("reverse", False))
    value = np.moveaxis(prepare(x, call.unsigned), axis, 0)
    starts = None if before is None else np.moveaxis(before, axis, 0)
    if is_reverse:
        value, starts = np.flip(value, 0), None if starts is None else np.flip(starts, 0)
    part = int(call.attr("part", 0)) or max(1, value.shape[0])
    found = []
    for number, first in enumerate(range(0, value.shape[0], part)):
        start = None if starts is None or number == 0 else starts[number - 1 : number]
        found.append(_scan_line(call, value[first : first + part], start))
    result = np.concatenate(found, axis=0) if found else value.copy()
    return np.moveaxis(np.flip(result, 0) if is_reverse else result, 0, axis)


def _scan_line(call: Call, value: np.ndarray, start: np.ndarray | None) -> np.ndarray:
    """Running combinations along the first dimension, which begin with `start`."""
    ufunc, identity = _SCAN[call.need("kind")]
    result = ufunc.accumulate(value, axis=0, dtype=value.dtype)
    if call.attr("exclusive", False):
        first = np.full_like(result[:1], identity(result.dtype))
        result = np.concatenate([first, result[:-1]], axis=0)
    return result if start is None else ufunc(start.astype(result.dtype), result)


def _log_sum_exp(x: np.ndarray, axes: tuple[int, ...], keepdims: bool) -> np.ndarray:
    top = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, x.dtype.type(0))
    total = np.log(np.sum(np.exp(x - shift), axis=axes, keepdims=True)) + shift
    return total if keepdims else np.squeeze(total, axes)


def _variance(x: np.ndarray, axes: tuple[int, ...], keepdims: bool) -> np.ndarray:
    center = np.mean(x, axis=axes, keepdims=True)
    return np.mean(np.square(x - center), axis=axes, keepdims=keepdims)


_STATISTIC: dict[str, Callable[[np.ndarray, tuple[int, ...], bool], np.ndarray]] = {
    "mean": lambda x, axes, keep: np.mean(x, axis=axes, keepdims=keep),
    "variance": _variance,
    "l1": lambda x, axes, keep: np.sum(np.abs(x), axis=axes, keepdims=keep),
    "l2": lambda x, axes, keep: np.sqrt(np.sum(np.square(x), axis=axes, keepdims=keep)),
    "log_sum": lambda x, axes, keep: np.log(np.sum(x, axis=axes, keepdims=keep)),
    "log_sum_exp": _log_sum_exp,
    "sum_square": lambda x, axes, keep: np.sum(np.square(x), axis=axes, keepdims=keep),
}


@evaluates("mlc.statistic", "input")
def statistic(call: Call, x: np.ndarray) -> np.ndarray:
    """`kind` over `axes` (population variance); integers compute in float64 and truncate."""
    kind = call.need("kind")
    if kind not in _STATISTIC:
        raise InterpError(f"mlc.statistic: unknown kind '{kind}'")
    value = prepare(x, call.unsigned)
    if is_int(value.dtype) or not is_float(value.dtype):
        # Exact for the sums that ONNX allows on integers, up to 2**53.
        value = value.astype(np.float64)
    result = _STATISTIC[kind](value, tuple(call.ints("axes")), bool(call.attr("keepdims", False)))
    return np.asarray(np.trunc(result) if is_int(x.dtype) else result)
