"""The schedule of attention in one kernel, and the grid of its work items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlc.kernels.common.attention import Attention, shared_dim
from mlc.kernels.common.frame import Frame
from mlc.kernels.common.index import Scalar


@dataclass(frozen=True)
class AttentionSchedule:
    """Parameters of template `attention` and of those that are like it; see its module."""

    lanes: int
    rows: int
    vectors: int
    row_block: int
    scalef: int = 0
    together: int = 1


def items(frame: Frame, attention: Attention, shape: Sequence[Scalar], s: AttentionSchedule) -> list[Scalar]:
    """Extents of the grid: blocks of rows, then batch dimensions, so that neighbours share what a mask says of them."""
    order, heads = attention.output.order, shared_dim(attention) if s.together > 1 else None
    extents = {d: shape[order.index(d)] for d in attention.output.batch}
    batch = [frame.math.div(extent, s.together) if d == heads else extent for d, extent in extents.items()]
    return [frame.math.ceildiv(shape[order.index(attention.output.row)], s.row_block), *batch]
