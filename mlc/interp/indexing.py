"""Gathers, sorting and compaction; `one_hot` and `trilu`. Scatters are in `mlc.interp.scatter`."""

from __future__ import annotations

import numpy as np

from mlc.interp.dtypes import signed_view, unsigned_view, widen
from mlc.interp.registry import Call, InterpError, evaluates


def normal_indices(indices: np.ndarray, extent: int, op: str) -> np.ndarray:
    """`indices` with negative ones counted from the end. Raises `InterpError` where one is out of range."""
    wide = indices.astype(np.int64)
    bad = (wide < -extent) | (wide >= extent)
    if bad.any():
        raise InterpError(f"{op}: index {int(wide[bad].flat[0])} is out of range for {extent} elements")
    return np.where(wide < 0, wide + extent, wide)


@evaluates("mlc.gather", "input indices")
def gather(call: Call, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """`numpy.take` along `axis`."""
    axis = int(call.attr("axis", 0))
    at = normal_indices(indices, x.shape[axis], call.op)
    if at.size == 0:
        return np.zeros((*x.shape[:axis], *at.shape, *x.shape[axis + 1 :]), x.dtype)
    return np.take(x, at, axis=axis)


@evaluates("mlc.gather_elements", "input indices")
def gather_elements(call: Call, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """The element of `x` at the coordinates of each index, but at the index along `axis`."""
    axis = int(call.attr("axis", 0))
    at = normal_indices(indices, x.shape[axis], call.op)
    if at.size == 0:
        return np.zeros(at.shape, x.dtype)
    # Unlike take_along_axis, the other dimensions of the indices may be shorter than the input's.
    inner = tuple(slice(None) if i == axis else slice(0, n) for i, n in enumerate(at.shape))
    return np.take_along_axis(x[inner], at, axis=axis)


def nd_index(x: np.ndarray, indices: np.ndarray, batch_dims: int, op: str) -> tuple[np.ndarray, ...]:
    """A NumPy index into `x` out of coordinate vectors `indices [B..., I..., k]`; gives `[B..., I...,
    x.shape[b+k:]]`.
    """
    lead = indices.shape[:-1]
    batch = [
        np.arange(n).reshape([-1 if i == axis else 1 for i in range(len(lead))])
        for axis, n in enumerate(lead[:batch_dims])
    ]
    coordinates = [normal_indices(indices[..., i], x.shape[batch_dims + i], op) for i in range(indices.shape[-1])]
    return tuple(np.broadcast_to(part, lead) for part in [*batch, *coordinates])


@evaluates("mlc.gather_nd", "input indices")
def gather_nd(call: Call, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Slices of `x` addressed by the coordinate vectors in the last dimension of `indices`."""
    batch_dims = int(call.attr("batch_dims", 0))
    at = nd_index(x, indices, batch_dims, call.op)
    if not at:
        return np.broadcast_to(x, (*indices.shape[:-1], *x.shape))
    return x[at]


@evaluates("mlc.nonzero", "input")
def nonzero(call: Call, x: np.ndarray) -> np.ndarray:
    """Coordinates of the nonzero elements, `[rank, count]`, row-major."""
    if x.ndim == 0:
        return np.zeros((0, int(bool(x))), np.int64)
    return np.stack(np.nonzero(widen(x))).astype(np.int64)


def stable_order(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """Positions that sort `x` along `axis`, equal elements in their order; NaN counts as the greatest
    value.
    """
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    from_end = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - from_end, axis)


@evaluates("mlc.sort", "input")
def sort(call: Call, x: np.ndarray) -> list[np.ndarray]:
    """Sorted values along `axis` and the positions that they came from."""
    axis = int(call.need("axis"))
    order = stable_order(widen(unsigned_view(x) if call.unsigned else x), axis, bool(call.attr("descending", False)))
    return [np.take_along_axis(x, order, axis), order.astype(np.int64)]


@evaluates("mlc.topk", "input k places?")
def topk(call: Call, x: np.ndarray, k: int, places: np.ndarray | None = None) -> list[np.ndarray]:
    """The `k` largest or smallest elements along `axis` (ties: lower position first) and their positions, or the
    `places` that are there; of every `part` elements where the attribute says so.

    Without `sorted` they come in the order of their positions.
    """
    axis, k = int(call.need("axis")), int(k)
    extent = x.shape[axis]
    part = int(call.attr("part", 0)) or max(1, extent)
    if not 0 <= k <= extent:
        raise InterpError(f"mlc.topk: k = {k} of {extent} elements")
    key = widen(unsigned_view(x) if call.unsigned else x)
    found = []
    for first in range(0, max(1, extent), part):
        line = np.take(key, np.arange(first, min(first + part, extent)), axis=axis)
        order = np.take(stable_order(line, axis, bool(call.attr("largest", True))), np.arange(k), axis=axis)
        found.append(first + (order if call.attr("sorted", True) else np.sort(order, axis=axis)))
    order = np.concatenate(found, axis=axis)
    where = order if places is None else np.take_along_axis(places, order, axis)
    return [np.take_along_axis(x, order, axis), where.astype(np.int64)]


@evaluates("mlc.unique", "input")
def unique(call: Call, x: np.ndarray) -> list[np.ndarray]:
    """Distinct values, first positions, the number of each element's value, and counts, of a 1-d array."""
    key = widen(unsigned_view(x) if call.unsigned else x)
    values, first, inverse, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    if not call.attr("sorted", True):
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    del values
    return [x[first], first.astype(np.int64), inverse.reshape(-1).astype(np.int64), counts.astype(np.int64)]


@evaluates("mlc.one_hot", "indices depth values")
def one_hot(call: Call, indices: np.ndarray, depth: int, values: np.ndarray) -> np.ndarray:
    """`values[1]` where the coordinate along the new dimension `axis` is the index, else `values[0]`.

    An index in `[-depth, -1]` counts from the end; one outside `[-depth, depth)` is nowhere.
    """
    axis = int(call.need("axis"))
    at = np.expand_dims(np.trunc(widen(indices)).astype(np.int64), axis)
    at = np.where((at < 0) & (at >= -depth), at + depth, at)
    steps = np.arange(depth).reshape([-1 if i == axis else 1 for i in range(at.ndim)])
    return np.where(at == steps, values[1], values[0]).astype(values.dtype)


@evaluates("mlc.trilu", "input k")
def trilu(call: Call, x: np.ndarray, k: int) -> np.ndarray:
    """The upper or lower triangle of the last two dimensions, zero elsewhere; `k` shifts the diagonal."""
    rows, columns = x.shape[-2:]
    distance = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    keep = distance >= k if call.attr("upper", True) else distance <= k
    return signed_view(np.where(keep, x, x.dtype.type(0)).astype(x.dtype))
