"""Recognising data movement: generics that only read their input at other coordinates."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import is_reduction, operand_map
from mlc.kernels.common.padding import coordinate_shift

Coordinate = tuple[int | None, int]
"""`(dimension, constant)`: the coordinate of a dimension plus a constant; the constant alone where it is None."""


@dataclass(frozen=True)
class Move:
    """`result[c] = source[coordinates of c]`, where `c` has `rank` dimensions; `is_plain`: through an indexing map,
    whose dimensions have equal extents on both sides."""

    source: ir.Value
    coordinates: tuple[Coordinate, ...]
    is_plain: bool
    rank: int

    @property
    def permutation(self) -> list[int] | None:
        """For every dimension of the source that of the result; None for other movements (to more dimensions, too)."""
        dims = [d for d, c in self.coordinates if c == 0 and d is not None]
        complete = len(dims) == len(set(dims)) == len(self.coordinates) == self.rank
        return dims if complete and self.is_plain else None


def move_of(op: ir.Operation) -> Move | None:
    """The movement that `op` does; None when it is anything else."""
    if op.name != "linalg.generic" or len(op.results) != 1 or is_reduction(op):
        return None
    count = len(op.operands) - 1
    out = list(operand_map(op, count).results)
    rank = op.results[0].type.rank
    if len(out) != rank or any(not isinstance(e, ir.AffineDimExpr) or e.position != i for i, e in enumerate(out)):
        return None
    block = op.regions[0].blocks[0]
    ops = [o.operation for o in block.operations]
    yielded = ops[-1].operands[0]
    if count == 1 and len(ops) == 1 and yielded == block.arguments[0]:
        coordinates = [_coordinate(e) for e in operand_map(op, 0).results]
        plain, source = True, op.operands[0]
    else:
        load = defining_op(yielded)
        known = {"linalg.index", "linalg.yield", "arith.constant", "arith.addi", "arith.subi", "tensor.extract"}
        if load is None or load.name != "tensor.extract" or {o.name for o in ops} - known:
            return None
        coordinates = [coordinate_shift(v) for v in list(load.operands)[1:]]
        plain, source = False, load.operands[0]
    if any(c is None for c in coordinates) or source.type.element_type != op.results[0].type.element_type:
        return None
    return Move(source, tuple(c for c in coordinates if c is not None), plain, rank)


def _coordinate(expr: ir.AffineExpr) -> Coordinate | None:
    expr = expr.maybe_downcast() if type(expr) is ir.AffineExpr else expr
    if isinstance(expr, ir.AffineDimExpr):
        return expr.position, 0
    if isinstance(expr, ir.AffineConstantExpr):
        return None, expr.value
    if isinstance(expr, ir.AffineAddExpr):
        a, b = _coordinate(expr.lhs), _coordinate(expr.rhs)
        return (a[0], a[1] + b[1]) if a is not None and b is not None and b[0] is None else None
    return None


def turned_dim(op: ir.Operation) -> int | None:
    """The only dimension that `op` reads from its end, if it does nothing else to its input of static extents."""
    if op.name != "linalg.generic" or len(op.operands) != 2 or is_reduction(op):
        return None
    block = op.regions[0].blocks[0]
    if len(list(block.operations)) != 1 or block.operations[0].operands[0] != block.arguments[0]:
        return None
    if list(operand_map(op, 1).results) != [ir.AffineExpr.get_dim(d) for d in range(op.results[0].type.rank)]:
        return None
    source, found = op.operands[0].type, []
    if source != op.results[0].type or not source.has_static_shape:
        return None
    for d, expr in enumerate(operand_map(op, 0).results):
        if expr == ir.AffineExpr.get_dim(d) or source.shape[d] == 1 and expr == ir.AffineExpr.get_constant(0):
            continue
        if expr != ir.AffineExpr.get_dim(d) * -1 + (source.shape[d] - 1):
            return None
        found.append(d)
    return found[0] if len(found) == 1 else None
