"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlc.frontends.common import elementwise, shape, types
from mlc.frontends.common.builder import Builder, Tensor, unit

_FOLDS: dict[str, Any] = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "and": np.all, "or": np.any}


def reduce(b: Builder, kind: str, x: Tensor, axes: Sequence[int], keepdims: bool) -> Tensor:
    """`mlc.reduce`; `max` and `min` of `i1` become `or` and `and`; no axes: `x` itself."""
    if not list(axes):
        return x
    if x.is_bool:
        kind = {"max": "or", "min": "and"}.get(kind, kind)
    return b.op(
        "reduce",
        [x],
        kind=kind,
        axes=list(axes),
        keepdims=keepdims,
        unsigned=x.unsigned,
        is_unsigned=unit(x.unsigned and kind in ("max", "min")),
        known=_known(b, kind, x, axes, keepdims),
    )


def _known(b: Builder, kind: str, x: Tensor, axes: Sequence[int], keepdims: bool) -> np.ndarray | None:
    if x.known is None or x.known.size == 0:
        return None
    if x.known.dtype != object:
        return np.asarray(_FOLDS[kind](x.known, axis=tuple(axes), keepdims=keepdims), x.known.dtype)
    if x.known.ndim != 1 or kind not in ("prod", "sum"):
        return None
    total = x.known[0]
    for item in x.known[1:]:
        total = b.arith("muli" if kind == "prod" else "addi", total, item)
    result = np.empty([1] if keepdims else [], object)
    result[...] = total
    return result


def statistic(b: Builder, kind: str, x: Tensor, axes: Sequence[int], keepdims: bool) -> Tensor:
    """`mlc.statistic` of float tensors; of integers the same from primitive operations, in their own arithmetic."""
    if x.is_float:
        return b.op("statistic", [x], kind=kind, axes=list(axes), keepdims=keepdims)
    return _integer_statistic(b, kind, x, axes, keepdims)


def _integer_statistic(b: Builder, kind: str, x: Tensor, axes: Sequence[int], keepdims: bool) -> Tensor:
    if kind == "mean":
        count = b.product([b.dim(x, axis) for axis in axes])
        total = reduce(b, "sum", x, axes, keepdims)
        if isinstance(count, int):
            return elementwise.binary(b, "div", total, b.like(count, x))
        divisor = b.like(1, x)
        for axis in axes:
            extent = elementwise.cast(b, shape.size_tensor(b, x, axis), x.dtype)
            divisor = elementwise.binary(b, "mul", divisor, extent)
        return elementwise.binary(b, "div", total, divisor)
    if kind == "l1":
        return reduce(b, "sum", elementwise.unary(b, "abs", x), axes, keepdims)
    if kind == "sum_square":
        return reduce(b, "sum", elementwise.binary(b, "mul", x, x), axes, keepdims)
    wide = elementwise.cast(b, x, "float64")
    return elementwise.cast(b, statistic(b, kind, wide, axes, keepdims), x.dtype)


def arg_reduce(b: Builder, kind: str, x: Tensor, axis: int, keepdims: bool, select_last: bool) -> Tensor:
    """`mlc.arg_reduce`: the `i64` position of the largest or smallest element."""
    return b.op(
        "arg_reduce",
        [x],
        kind=kind,
        axis=axis,
        keepdims=keepdims,
        select_last=select_last,
        is_unsigned=unit(x.unsigned),
    )


def scan(b: Builder, kind: str, x: Tensor, axis: int, exclusive: bool, reverse: bool) -> Tensor:
    """`mlc.scan`: running sums, products or extremes."""
    if x.unsigned and kind in ("max", "min"):  # without the highest bit they are ordered as signed ones are
        top = b.like(1 << (8 * types.numpy_dtype(x.dtype).itemsize - 1), x)
        signed = Tensor(elementwise.binary(b, "xor", x, top).value)
        found = Tensor(scan(b, kind, signed, axis, exclusive, reverse).value, True)
        return elementwise.binary(b, "xor", found, top)
    return b.op("scan", [x], kind=kind, axis=axis, exclusive=exclusive, reverse=reverse, unsigned=x.unsigned)
