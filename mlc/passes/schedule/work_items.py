"""How many rows of a contraction on CPUs one work item has."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlc.passes.schedule.extents import ITEMS_ENOUGH, Extent, at_least, known
from mlc.passes.schedule.pairs import Schedule

ENOUGH_ROWS = 48  # of one image, which tell how the rows of a number of images are best cut
MOST_TILES, UNKNOWN_TILES = 64, 8  # of rows in a work item, at most and where rows are not known
# Results of a work item that takes longer than to begin it: of smaller ones there are `ITEMS_ENOUGH`. How many products
# each is the sum of does not count: kernels that differ in that only are one.
LEAST_RESULTS = 512


def size_of_tile(schedule: Schedule) -> tuple[int, int]:
    """Rows and columns of the tile of a schedule."""
    return int(schedule["rows"]), int(schedule["lanes"]) * int(schedule["vectors"])


def rows_of(shape: Sequence[Extent], schedule: Schedule) -> Extent:
    """The rows of a result of `shape`, with those between two lines that nobody wants (`flat` of `tile_product`)."""
    first, last, apart = int(schedule["row_first"]), int(schedule["row_last"]), int(schedule.get("flat", 0))
    rows = known(shape[first : last + 1]) if first >= 0 else 1
    if not apart or rows is None:
        return rows
    pixels = shape[last] or 1
    return (rows // pixels - 1) * apart + pixels


def row_block(shape: Sequence[Extent], schedule: Schedule, items: int = ITEMS_ENOUGH, beside: int = 0) -> int:
    """Row tiles per work item of a contraction with a result of `shape`: `items` of about one size, or as many as have
    enough results. `beside` of the columns belong to no panel."""
    axis, first, last = (int(schedule[name]) for name in ("vector_dim", "row_first", "row_last"))
    height, panel = size_of_tile(schedule)
    rows = rows_of(shape, schedule) or at_least(shape[first : last + 1], ENOUGH_ROWS)
    if rows is None:
        return UNKNOWN_TILES
    columns = shape[axis]
    panels = 1 if columns is None else -(-(columns - beside) // panel)
    outer = math.prod(e or 1 for i, e in enumerate(shape) if i != axis and not first <= i <= last)
    items = max(ITEMS_ENOUGH, min(items, rows * outer * panels * panel // LEAST_RESULTS))
    tiles, blocks = -(-rows // height), -(-items // max(1, panels * outer))
    return max(1, min(MOST_TILES, -(-tiles // blocks)))
