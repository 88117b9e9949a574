"""What a `linalg.generic` says of itself: maps, iterators, and bodies of one operation."""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.frame import defining_op


def operand_map(generic: ir.Operation, operand: int) -> ir.AffineMap:
    """Indexing map of operand number `operand` of a linalg.generic."""
    return ir.AffineMapAttr(generic.attributes["indexing_maps"][operand]).value


def is_reduction(generic: ir.Operation) -> bool:
    """Does a linalg.generic have a reduction iterator?"""
    return any("reduction" in str(t) for t in generic.attributes["iterator_types"])


def is_identity(op: ir.Operation, operand: int) -> bool:
    """Is `op` a generic whose map of an operand is the identity: does it read or write that at its own point?"""
    if op.name != "linalg.generic":
        return False
    return operand_map(op, operand) == ir.AffineMap.get_identity(len(op.attributes["iterator_types"]))


def body_of(op: ir.Operation | None) -> list[ir.Operation]:
    """Operations of the body of a generic with one result; none for anything else."""
    if op is None or op.name != "linalg.generic" or len(op.results) != 1:
        return []
    return [o.operation for o in op.regions[0].blocks[0].operations]


def only_operation(op: ir.Operation | None, name: str) -> ir.Operation | None:
    """The operation `name` when it is all that the body of an elementwise generic computes."""
    ops = body_of(op)
    if op is None or len(ops) != 2 or ops[0].name != name or is_reduction(op):
        return None
    return ops[0] if ops[1].operands[0] == ops[0].results[0] else None


def input_number(op: ir.Operation, value: ir.Value) -> int | None:
    """Number of the input of a generic whose body argument is `value`."""
    arguments = list(op.regions[0].blocks[0].arguments)[: len(op.operands) - len(op.results)]
    return arguments.index(value) if value in arguments else None


def reduces_by(op: ir.Operation | None, name: str) -> bool:
    """Does a generic reduce its only input, read at its own point, by the operation `name` alone?"""
    ops = body_of(op)
    if op is None or len(op.operands) != 2 or len(ops) != 2 or ops[0].name != name or not is_reduction(op):
        return False
    arguments = set(op.regions[0].blocks[0].arguments)
    plain = set(ops[0].operands) == arguments and ops[1].operands[0] == ops[0].results[0]
    return plain and is_identity(op, 0)


def is_number(value: ir.Value, number: float) -> bool:
    """Is `value` the floating-point constant `number`?"""
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return False
    attribute = op.attributes["value"]
    return isinstance(attribute, ir.FloatAttr) and attribute.value == number
