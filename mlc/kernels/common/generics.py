"""What a `linalg.generic` says of itself: maps, iterators, and bodies of one operation."""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.frame import defining_op

NEVER_NEGATIVE = "mlc.never_negative"
"""Attribute of a contraction of bytes whose left operand has a sign that it does not use: it is below 128. In the body
of a generic the widening of that operand has it."""


def operand_map(generic: ir.Operation, operand: int) -> ir.AffineMap:
    """Indexing map of operand number `operand` of a linalg.generic."""
    return ir.AffineMapAttr(generic.attributes["indexing_maps"][operand]).value


def is_reduction(generic: ir.Operation) -> bool:
    """Does a linalg.generic have a reduction iterator?"""
    return "reduction" in str(generic.attributes["iterator_types"])


def reduced_loops(generic: ir.Operation) -> list[int]:
    """The loops of a linalg.generic that its results do not have."""
    return [i for i, kind in enumerate(generic.attributes["iterator_types"]) if "reduction" in str(kind)]


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
    ops = [o for o in ops if o.name != "arith.constant"]
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


def starts_at(op: ir.Operation, number: float) -> bool:
    """Is the output operand of a reduction filled with the floating-point `number`?"""
    fill = defining_op(op.operands[len(op.operands) - 1])
    return fill is not None and fill.name == "linalg.fill" and is_number(fill.operands[0], number)


def is_unsigned_input(generic: ir.Operation, number: int) -> bool:
    """Does the body widen its input `number` as an integer without a sign?"""
    uses = generic.regions[0].blocks[0].arguments[number].uses
    return any(use.owner.operation.name == "arith.extui" for use in uses)


def is_never_negative_input(generic: ir.Operation, number: int) -> bool:
    """Is the highest bit of every integer of input `number` known to be zero?"""
    uses = generic.regions[0].blocks[0].arguments[number].uses
    return any(NEVER_NEGATIVE in use.owner.operation.attributes for use in uses)


def turned_over(op: ir.Operation | None) -> ir.Value | None:
    """The bytes of which an elementwise generic turns over the highest bits, `x ^ 0x80`; None for any other `op`."""
    flip = only_operation(op, "arith.xori")
    if op is None or flip is None or not isinstance(flip.results[0].type, ir.IntegerType):
        return None
    constant = defining_op(flip.operands[1])
    if flip.results[0].type.width != 8 or constant is None or constant.name != "arith.constant":
        return None
    number = input_number(op, flip.operands[0])
    if number is None or not is_identity(op, number) or not is_identity(op, len(op.operands) - 1):
        return None
    return op.operands[number] if ir.IntegerAttr(constant.attributes["value"]).value in (-128, 128) else None
