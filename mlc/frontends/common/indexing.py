"""Gathers, scatters, sorting and other data-dependent addressing."""

from __future__ import annotations

import numpy as np

from mlc.frontends.common import elementwise as ew
from mlc.frontends.common import shape
from mlc.frontends.common.builder import Builder, Size, Tensor, unit


def as_indices(b: Builder, x: Tensor) -> Tensor:
    """`x` as a tensor that the indexing operations accept, `int32` or `int64`."""
    return x if x.dtype in ("int32", "int64") else ew.cast(b, x, "int64")


def gather(b: Builder, x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """`numpy.take` along a normalised axis."""
    folded = None
    positions = indices.constant
    if x.known is not None and positions is not None and _inside(positions, x.known.shape[axis]):
        folded = np.asarray(np.take(x.known, positions, axis), x.known.dtype)
    return b.op("gather", [x, as_indices(b, indices)], axis=axis, unsigned=x.unsigned, known=folded)


def _inside(positions: np.ndarray, extent: int) -> bool:
    return bool(np.all((positions >= -extent) & (positions < extent)))


def topk(
    b: Builder, x: Tensor, k: Size, axis: int, largest: bool = True, sorted_: bool = True
) -> tuple[Tensor, Tensor]:
    """`mlc.topk`: values and `i64` positions."""
    operation = b.emit(
        "topk",
        [x, b.as_index(k)],
        axis=axis,
        largest=largest,
        sorted=sorted_,
        is_unsigned=unit(x.unsigned),
    )
    values = Tensor(operation.results[0], x.unsigned)
    extents = x.shape
    extents[axis] = k if isinstance(k, int) else None
    return b.refined(values, extents), b.refined(Tensor(operation.results[1]), extents)


def compress(b: Builder, x: Tensor, condition: Tensor, axis: int) -> Tensor:
    """The slices of `x` along `axis` where the rank-1 condition holds (it may be shorter than the dimension)."""
    places = b.op("nonzero", [condition])
    return gather(b, x, shape.reshape_codes(b, places, [-1]), axis)
