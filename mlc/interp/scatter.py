"""`scatter_elements`, `scatter_nd` and `insert`."""

from __future__ import annotations

import numpy as np

from mlc.interp.dtypes import unsigned_view, widen
from mlc.interp.indexing import nd_index, normal_indices
from mlc.interp.registry import Call, InterpError, evaluates

_COMBINE: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def _update(x: np.ndarray, at: tuple[np.ndarray, ...], updates: np.ndarray, reduction: str) -> np.ndarray:
    """A copy of `x` with `updates` combined in at the index `at`; of equal indices the last one wins for
    `none`.
    """
    if reduction == "none":
        result = x.copy()
        result[at] = updates
        return result
    if reduction not in _COMBINE:
        raise InterpError(f"scatter: unknown reduction '{reduction}'")
    result = np.array(widen(x))
    combine = _COMBINE[reduction]
    if x.dtype.kind == "b":
        combine = {"add": np.logical_or, "mul": np.logical_and}.get(reduction, combine)
    combine.at(result, at, widen(updates))
    return result


def _compared(call: Call, value: np.ndarray) -> np.ndarray:
    """`value` as the reductions compare it."""
    return unsigned_view(value) if call.unsigned else value


@evaluates("mlc.scatter_elements", "input indices updates")
def scatter_elements(call: Call, x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """A copy of `x` with single elements updated: at the coordinates of each update, but at its index along
    `axis`.
    """
    axis = int(call.attr("axis", 0))
    x, updates = _compared(call, x), _compared(call, updates)
    at = normal_indices(indices, x.shape[axis], call.op)
    index = [np.arange(n).reshape([-1 if i == j else 1 for j in range(at.ndim)]) for i, n in enumerate(at.shape)]
    index[axis] = at
    full = tuple(np.broadcast_to(part, at.shape) for part in index)
    return _update(x, full, updates, call.attr("reduction", "none"))


@evaluates("mlc.scatter_nd", "input indices updates")
def scatter_nd(call: Call, x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """A copy of `x` with the slices addressed by coordinate vectors updated."""
    at = nd_index(x, indices, 0, call.op)
    x, updates = _compared(call, x), _compared(call, updates)
    if not at:
        at = (np.zeros(indices.shape[:-1], np.int64),)
        return _update(x[None], at, updates, call.attr("reduction", "none"))[0]
    return _update(x, at, updates, call.attr("reduction", "none"))


@evaluates("mlc.insert", "input update starts")
def insert(call: Call, x: np.ndarray, update: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """A copy of `x` with `update` along `axis`, of each entry of the batch from its start on."""
    axis, result = int(call.attr("axis", 1)), x.copy()
    for old, new, start in zip(result, update, starts.tolist(), strict=True):
        lines, fresh = np.moveaxis(old, axis - 1, 0), np.moveaxis(new, axis - 1, 0)
        first, end = max(start, 0), min(start + len(fresh), len(lines))
        if first < end:
            lines[first:end] = fresh[first - start : end - start]
    return result
