"""Reductions and row operations: the axes are renamed, and what is left of the order goes on."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlc.passes.adaptor import OpAdaptor
from mlc.passes.decompose import build as b
from mlc.passes.layout import Moved, moves
from mlc.passes.layout.context import Layouts, rebuilt


def without(permutation: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """The order of the dimensions that are left when `axes` of the value are gone."""
    left = [source for position, source in enumerate(permutation) if position not in axes]
    return tuple(sorted(left).index(source) for source in left)


@moves("reduce", "statistic")
def reduce(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """Any set of axes, kept or not."""
    moved, axes = layouts.of(op.operands[0]), OpAdaptor(op).ints("axes")
    assert moved is not None
    changes: dict[str, ir.Attribute] = {"axes": b.integers(sorted(moved.permutation[a] for a in axes))}
    return _reduced(op, moved, axes, changes)


@moves("arg_reduce")
def arg_reduce(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """One axis, kept or not."""
    moved, axis = layouts.of(op.operands[0]), OpAdaptor(op).int("axis")
    assert moved is not None
    return _reduced(op, moved, [axis], {"axis": b.integer(moved.permutation[axis])})


def _reduced(
    op: ir.Operation, moved: Moved, axes: Sequence[int], changes: dict[str, ir.Attribute]
) -> list[Moved | None]:
    kept = OpAdaptor(op).flag("keepdims")
    permutation = moved.permutation if kept else without(moved.permutation, axes)
    new = rebuilt(op, [moved.inner], permutation, changes)
    return [Moved(new.results[0], permutation)]


@moves("softmax", "scan", "sort", "lp_normalize")
def along_axis(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """Results of the input's shape, computed along one axis."""
    moved = layouts.of(op.operands[0])
    assert moved is not None
    changes: dict[str, ir.Attribute] = {"axis": b.integer(moved.permutation[OpAdaptor(op).int("axis")])}
    new = rebuilt(op, [moved.inner], moved.permutation, changes)
    return [Moved(r, moved.permutation) for r in new.results]
