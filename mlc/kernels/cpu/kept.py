"""Which value of a row kernel is kept in its destination between the reduction that needs it and the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from mlc.kernels.common.frame import KernelSource, defining_op
from mlc.kernels.common.fusion import is_expensive
from mlc.kernels.common.generics import is_identity, is_reduction


@dataclass(frozen=True)
class Kept:
    """`value` is stored while `reduction` is computed from it, and loaded afterwards."""

    value: ir.Value
    reduction: ir.Value


def kept_value(source: KernelSource, reductions: Sequence[ir.Value]) -> Kept | None:
    """What the only result and a reduction over its rows both read at their own points, and takes long to compute.

    `reductions` are those that are computed in front of the row's results, in this order; later ones may read the value
    as well. None when there is no such value of the result's type, or when it is read at other points too.
    """
    if len(source.results) != 1:
        return None
    result = source.results[0]
    for i, reduction in enumerate(reductions):
        op = defining_op(reduction)
        if op is None or len(op.operands) != 2 or not is_identity(op, 0):
            continue
        value = op.operands[0]
        producer = defining_op(value)
        if producer is None or not is_expensive(producer) or is_reduction(producer) or value.type != result.type:
            continue
        others = [u.owner.operation for u in value.uses if u.owner.operation != op]
        if value != result and others and all(_same_points(u, result, reductions[i + 1 :]) for u in others):
            return Kept(value, reduction)
    return None


def _same_points(op: ir.Operation, result: ir.Value, later: Sequence[ir.Value]) -> bool:
    """Does everything from `op` on to the result, and to `later` reductions, read at its own points?"""
    seen, stack = {op}, [op]
    while stack:
        reader = stack.pop()
        if not _at_own_points(reader, result, later):
            return False
        if is_reduction(reader):
            continue
        users = {use.owner.operation for r in reader.results for use in r.uses}
        fresh = {user for user in users if user.name != "func.return"} - seen
        seen |= fresh
        stack.extend(fresh)
    return True


def _at_own_points(op: ir.Operation, result: ir.Value, later: Sequence[ir.Value]) -> bool:
    """Does `op` read operands of the result's type at its own points, and is it one of `later` if it is a reduction?"""
    if op.name != "linalg.generic":
        return False
    count = len(op.operands) - len(op.results)
    if is_reduction(op):
        own = all(is_identity(op, i) for i in range(count) if op.operands[i].type == result.type)
        return own and all(r in later for r in op.results)
    same = [i for i in range(len(op.operands)) if op.operands[i].type == result.type or i >= count]
    return all(is_identity(op, i) for i in same)
