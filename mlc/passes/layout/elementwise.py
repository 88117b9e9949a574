"""Elementwise operations work in any order; smaller operands are brought into it."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlc.passes.decompose import build as b
from mlc.passes.layout import Moved, moves
from mlc.passes.layout.context import Layouts, rebuilt


@moves("unary", "cast", "bitcast", "activation", "clamp")
def one_operand(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """Only the first operand has dimensions."""
    moved = layouts.of(op.operands[0])
    if moved is None:
        return None
    new = rebuilt(op, [moved.inner, *list(op.operands)[1:]], moved.permutation)
    return [Moved(new.results[0], moved.permutation)]


@moves("binary", "compare", "select", "prelu")
def broadcasting(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """Followed when at most as many full operands have to be transposed as are already moved."""
    rank = op.results[0].type.rank
    permutation = chosen(layouts, [v for v in op.operands if v.type.rank == rank])
    if permutation is None or any(layouts.of(v) and v.type.rank != rank for v in op.operands):
        return None
    operands = [_aligned(layouts, v, rank, permutation) for v in op.operands]
    new = rebuilt(op, operands, permutation)
    return [Moved(new.results[0], permutation)]


def chosen(layouts: Layouts, operands: Sequence[ir.Value]) -> tuple[int, ...] | None:
    """The order that most of the moved `operands` have, unless it costs more transpositions than it saves."""
    orders = [m.permutation for m in map(layouts.of, operands) if m is not None]
    if not orders:
        return None
    permutation = max(orders, key=orders.count)
    expensive = sum(not layouts.is_cheap(v, permutation) for v in operands)
    return permutation if expensive <= len(orders) else None


def _aligned(layouts: Layouts, value: ir.Value, rank: int, permutation: tuple[int, ...]) -> ir.Value:
    if value.type.rank == 0:
        return value
    if value.type.rank < rank:
        value = b.expand_dims(value, list(range(rank - value.type.rank)))
    return layouts.inner(value, permutation)
