"""`gather` with a list of positions (or a single one) along one dimension; `topk`."""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import OpAdaptor
from mlc.passes.decompose import build as b
from mlc.passes.layout import Moved, moves
from mlc.passes.layout.context import Layouts, rebuilt
from mlc.passes.layout.reduction import without


@moves("gather")
def gather(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """The axis is renamed; a single position removes the dimension."""
    moved, positions = layouts.of(op.operands[0]), op.operands[1]
    if moved is None or layouts.of(positions) is not None or positions.type.rank > 1:
        return None
    axis = OpAdaptor(op).int("axis")
    permutation = moved.permutation if positions.type.rank else without(moved.permutation, [axis])
    new = rebuilt(op, [moved.inner, positions], permutation, {"axis": b.integer(moved.permutation[axis])})
    return [Moved(new.results[0], permutation)]


@moves("topk")
def topk(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """The axis is renamed."""
    moved = layouts.of(op.operands[0])
    assert moved is not None
    axis = moved.permutation[OpAdaptor(op).int("axis")]
    new = rebuilt(op, [moved.inner, op.operands[1]], moved.permutation, {"axis": b.integer(axis)})
    return [Moved(r, moved.permutation) for r in new.results]
