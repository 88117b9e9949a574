"""What stored arrays are, as far as passes look at them: positions, and masks that are bands along a diagonal.

Exporters write these as weights. What is computed of coordinates instead is no weight, and kernels know what it hides.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from mlir import ir

from mlc.kernels.common.positional import Linear
from mlc.passes.simplify.weight_recipes import store_of
from mlc.weights import Store, WeightError

_LARGEST = 1 << 26  # elements that are looked at
_LONGEST = 1 << 22  # of integers
_FIRST = 64  # elements that say whether others are worth it
_LOWEST = -6e4  # numbers that hide what they are added to are smaller


Bounds = tuple["int | None", "int | None"]
"""What the first and the last column of a row are more than its number; None: all."""


class Stored:
    """The arrays of a module's weights."""

    def __init__(self, module: ir.OpView) -> None:
        self.module = module

    @cached_property
    def _store(self) -> Store:
        return store_of(self.module)

    def array(self, weight: ir.Operation) -> np.ndarray | None:
        """The elements of a `mlc.weight`; None where they are many, or cannot be had."""
        shape = weight.results[0].type.shape
        if weight.name != "mlc.weight" or len(weight.operands) or not 0 < np.prod(shape) <= _LARGEST:
            return None
        try:
            return self._store.get(ir.StringAttr(weight.attributes["name"]).value)
        except WeightError:
            return None

    def number(self, weight: ir.Operation) -> float | None:
        """What all elements are, if they are equal."""
        array = self.array(weight)
        if array is None or not (array.reshape(-1)[:_FIRST] == array.flat[0]).all() or (array != array.flat[0]).any():
            return None
        return float(array.flat[0])

    def line(self, weight: ir.Operation) -> Linear | None:
        """Integers as a sum of multiples of coordinates, if they are one."""
        if np.prod(weight.results[0].type.shape) > _LONGEST:
            return None
        array = self.array(weight)
        return None if array is None or array.dtype.kind not in "iu" else line_of(array)

    def band(self, weight: ir.Operation, holds: Callable[[np.ndarray], np.ndarray]) -> Bounds | None:
        """What the first and the last column of a row for which `holds` is true are more than the row's number, where
        it is true for those between, of each matrix; None for those of all columns."""
        array = self.array(weight)
        return None if array is None or array.ndim < 2 else band_of(holds(array))

    def mask(self, weight: ir.Operation) -> tuple[Bounds, float] | None:
        """The band in which a matrix of floats is 0, and the lowest number, which it is elsewhere."""
        if len(weight.results[0].type.shape) < 2 or (array := self.array(weight)) is None:
            return None
        start = array.reshape(-1)[:_FIRST]
        if not ((start == 0) | (start < _LOWEST)).all():
            return None
        shown, low = array == 0, float(array.min())
        if not low < _LOWEST or not (shown | (array == low)).all():
            return None
        band = band_of(shown)
        return None if band is None else (band, low)


def line_of(array: np.ndarray) -> Linear | None:
    """Integers as a sum of multiples of coordinates, if they are one."""
    if array.size == 0:
        return None
    origin = int(array.flat[0])
    corners = [tuple(int(i == d) for i in range(array.ndim)) for d in range(array.ndim)]
    steps = [int(array[at]) - origin if n > 1 else 0 for at, n in zip(corners, array.shape, strict=True)]
    made = np.full(array.shape, origin, np.int64)
    for d, (n, step) in enumerate(zip(array.shape, steps, strict=True)):
        made += (step * np.arange(n)).reshape([n if i == d else 1 for i in range(array.ndim)])
    if (made != array).any():
        return None
    return Linear(tuple((d, f) for d, f in enumerate(steps) if f), origin)


def band_of(shown: np.ndarray) -> Bounds | None:
    """What the first and the last true column of a row are more than its number, where those between are true, of each
    matrix of booleans; None for those of all columns."""
    matrices = shown.reshape(-1, *shown.shape[-2:])
    rows, columns = matrices.shape[1:]
    away = np.arange(columns) - np.arange(rows)[:, None]
    seen = away[matrices[0]]
    if seen.size == 0:
        return None
    first, last = int(seen.min()), int(seen.max())
    if (matrices != ((away >= first) & (away <= last))).any():
        return None
    return first if first > 1 - rows else None, last if last < columns - 1 else None
