"""`matmul` takes matrices either way round."""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import TRANSPOSED
from mlc.passes.layout import Moved, moves
from mlc.passes.layout.context import Layouts, rebuilt


@moves("matmul")
def matmul(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """Where only the rows and the columns of an operand change places its flag does as well."""
    operands, flags = [], {name: name in op.attributes for name in TRANSPOSED}
    for name, value in zip(TRANSPOSED, op.operands, strict=True):
        moved = layouts.of(value)
        if moved is not None:
            rank = len(moved.permutation)
            if moved.permutation != (*range(rank - 2), rank - 1, rank - 2):
                return None
            flags[name] = not flags[name]
        operands.append(value if moved is None else moved.inner)
    same = tuple(range(op.results[0].type.rank))
    new = rebuilt(op, operands, same, {name: ir.UnitAttr.get() for name in TRANSPOSED if flags[name]})
    for name in TRANSPOSED:
        if not flags[name] and name in new.attributes:
            del new.attributes[name]
    return [Moved(new.results[0], same)]
