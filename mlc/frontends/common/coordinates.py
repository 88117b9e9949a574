"""Constants that their coordinates decide: positions, causal masks and windows.

Exporters write them as arrays. As functions of coordinates they are no weights, and kernels know what a mask hides.
"""

from __future__ import annotations

import numpy as np

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import shape, types
from mlc.frontends.common.builder import Builder, Tensor

LARGEST = 1 << 26  # elements that are looked at
_FIRST = 64  # elements of floats that say whether the others are worth it
_LOWEST = -6e4  # numbers that hide what they are added to are smaller


def line(b: Builder, array: np.ndarray) -> Tensor | None:
    """Integers of one dimension in equal steps that are not 0, computed from their positions; None for others."""
    steps = np.diff(array.astype(np.int64)) if array.ndim == 1 and array.dtype in (np.int32, np.int64) else np.zeros(0)
    if steps.size == 0 or steps[0] == 0 or (steps != steps[0]).any():
        return None
    dtype = array.dtype.name
    found = shape.iota(b, array.shape, 0, dtype)
    found = found if steps[0] == 1 else ew.binary(b, "mul", found, b.constant(int(steps[0]), dtype))
    return found if array[0] == 0 else ew.binary(b, "add", found, b.constant(int(array[0]), dtype))


def mask(b: Builder, array: np.ndarray) -> Tensor | None:
    """Matrices of booleans, or of floats of which one is 0 and one the lowest, in a band along the diagonal of each,
    computed from their coordinates; booleans that are all true are a constant. None for others."""
    if array.ndim < 2 or not 0 < array.size <= LARGEST:
        return None
    if array.dtype == bool:
        return _band(b, array)
    dtype = array.dtype.name
    if not types.is_dtype(dtype) or not types.is_float(types.element_type(dtype)):
        return None
    start = array.reshape(-1)[:_FIRST]
    return _choice(b, array, dtype) if ((start == 0) | (start < _LOWEST)).all() else None


def _choice(b: Builder, array: np.ndarray, dtype: str) -> Tensor | None:
    """Zeros in a band, and the lowest number elsewhere."""
    values = np.unique(array)
    if values.size != 2 or values[1] != 0 or not values[0] < _LOWEST:
        return None
    shown = _band(b, array == 0)
    return None if shown is None else ew.select(b, shown, b.constant(0.0, dtype), b.constant(float(values[0]), dtype))


def _band(b: Builder, array: np.ndarray) -> Tensor | None:
    """Booleans that say which columns lie between the row plus one number and the row plus another one."""
    if array.all():
        return shape.broadcast(b, b.constant(True, "bool"), array.shape)
    if not array.any():
        return None
    matrices = array.reshape(-1, *array.shape[-2:])
    rows, columns = matrices.shape[1:]
    away = np.arange(columns) - np.arange(rows)[:, None]
    seen = away[matrices[0]]
    first, last = (int(n) for n in (seen.min(initial=columns), seen.max(initial=-rows)))
    if (matrices != ((away >= first) & (away <= last))).any():
        return None
    one = [1] * (array.ndim - 2)
    row = shape.iota(b, [*one, rows, 1], array.ndim - 2, "int64")
    column = shape.iota(b, [*one, 1, columns], array.ndim - 1, "int64")

    def bound(predicate: str, number: int) -> Tensor:
        return ew.compare(b, predicate, column, ew.binary(b, "add", row, b.constant(number, "int64")))

    parts = [bound("le", last)] if last < columns - 1 else []
    parts += [bound("ge", first)] if first > 1 - rows else []
    found = parts[0] if len(parts) == 1 else ew.binary(b, "and", parts[0], parts[1])
    return shape.broadcast(b, found, array.shape)
