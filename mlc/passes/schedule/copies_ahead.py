"""Whether panels of a matrix that only a run knows are copied while others are multiplied, and in which blocks."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import operand_map
from mlc.kernels.cpu.panel_copy import most_steps
from mlc.passes.schedule.extents import Extent, known
from mlc.passes.schedule.grid_order import WHOLE_LINE, innermost_extent
from mlc.passes.schedule.pairs import Schedule

MOST_DEPTH = 768  # steps in a block: two of them fit on the stack
LEAST_STEPS, LEAST_COLUMNS = 128, 384  # of a matrix whose lines are worth to be brought together
DISTANT_STEPS, DISTANT_COLUMNS = 48, 128  # the same where the second level of cache answers late
# Rows behind whose multiply-adds a copy hides, and of a matrix that is not in the second level of cache, whose lines
# tiles would wait for.
LEAST_ROWS, FEWER_ROWS, FAR_MATRIX = 160, 96, 3 << 19
ROW_TILES = 64  # of one work item, which copies a panel of several blocks anew: more tiles are several items
NEAR_ROWS = 7 << 17  # bytes of rows that stay in the second level of cache beside two blocks of a panel


def copying_ahead(
    root: ir.Operation, operand: int, shape: Sequence[Extent], schedule: Schedule, is_distant: bool
) -> Schedule | None:
    """`schedule` with panels of `operand` that are copied ahead; None where that is not possible or does not pay.
    Measured with vectors of a whole line of the cache. `is_distant`: is what is behind the caches far away?
    """
    axis, first, last = (int(schedule[name]) for name in ("vector_dim", "row_first", "row_last"))
    columns, steps, lanes = shape[axis], innermost_extent(root), int(schedule["lanes"])
    rows = known(shape[first : last + 1]) if first >= 0 else 1
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    plain = all(isinstance(e, ir.AffineDimExpr) for e in operand_map(root, operand).results)
    if not plain or kinds.count(True) != 1 or defining_op(root.operands[operand]) is not None:
        return None
    if lanes < WHOLE_LINE or columns is None or rows is None or steps is None:
        return None
    is_far = columns * steps * 4 >= FAR_MATRIX
    least = (DISTANT_STEPS, DISTANT_COLUMNS) if is_distant and rows >= LEAST_ROWS else (LEAST_STEPS, LEAST_COLUMNS)
    if steps < least[0] or columns < least[1] or rows < (FEWER_ROWS if is_far else LEAST_ROWS):
        return None
    order = _order(rows, steps, shape, schedule)
    if order is None:
        return None
    return schedule | order | {"template": "copy_ahead", "vector_operand": operand, "ahead": rows, "unroll": 1}


def _order(rows: int, steps: int, shape: Sequence[Extent], schedule: Schedule) -> Schedule | None:
    """In which blocks a panel is copied, and for how many rows.

    All work items of a panel that is one block share a copy of it. Of several blocks each item copies all: one item has
    all rows, or, where lines are too many for `panel_copy` and rows for one item, as many as stay near while all panels
    pass.
    """
    height, axis = int(schedule["rows"]), int(schedule["vector_dim"])
    depth, tiles = -(-steps // -(-steps // MOST_DEPTH)), -(-rows // height)
    if depth == steps:
        return {"depth": depth}
    if tiles <= ROW_TILES:
        return {"depth": depth, "block": tiles}
    rows_only = all(e == 1 for i, e in enumerate(shape) if i != axis and not _is_row(schedule, i))
    if steps <= most_steps(int(schedule["lanes"])) or not rows_only:
        return None
    items = -(-tiles // max(1, NEAR_ROWS // (steps * 4 * height)))
    return {"depth": depth, "block": -(-tiles // items), "part": 1}


def _is_row(schedule: Schedule, dim: int) -> bool:
    return int(schedule["row_first"]) <= dim <= int(schedule["row_last"])
