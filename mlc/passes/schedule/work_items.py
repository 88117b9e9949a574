"""How many rows of a contraction on CPUs one work item has."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlir import ir

from mlc.passes.schedule.extents import Extent, at_least, known, or_many, summed
from mlc.passes.schedule.grid_order import size_of_tile
from mlc.passes.schedule.pairs import Schedule

ENOUGH_ROWS = 48  # of one image, which tell how the rows of a number of images are best cut
MOST_TILES, UNKNOWN_TILES = 64, 8  # of rows in a work item, at most and where rows are not known
# Work items that keep few threads busy, and many until the end. Few are made however small they are.
FEW_ITEMS, MANY_ITEMS = 16, 64
LEAST_WORK = 1 << 15  # multiply-adds of one of many, to begin which takes a fraction of their time,
# where more steps of the sum than these do not count: kernels that differ in their depth only are one.
MOST_STEPS = 64


def row_block(
    root: ir.Operation, shape: Sequence[Extent], schedule: Schedule, items: int = FEW_ITEMS, beside: int = 0
) -> int:
    """Row tiles per work item of the contraction `root` with a result of `shape`: `items` of about one size, or as many
    as have work enough. `beside` of the columns belong to no panel."""
    axis, first, last = (int(schedule[name]) for name in ("vector_dim", "row_first", "row_last"))
    height, panel = size_of_tile(schedule)
    rows = at_least(shape[first : last + 1], ENOUGH_ROWS) if first >= 0 else 1
    if rows is None:
        return UNKNOWN_TILES
    columns = shape[axis]
    panels = 1 if columns is None else -(-(columns - beside) // panel)
    outer = math.prod(e or 1 for i, e in enumerate(shape) if i != axis and not first <= i <= last)
    steps = min(MOST_STEPS, or_many(known(summed(root))))
    items = max(FEW_ITEMS, min(items, rows * outer * panels * panel * steps // LEAST_WORK))
    tiles, blocks = -(-rows // height), -(-items // max(1, panels * outer))
    return max(1, min(MOST_TILES, -(-tiles // blocks)))
