"""Shorter code for small patterns of a kernel's graph, where the pattern says more than its operations one by one.

* `1 + erf(x)`, `1 + tanh(x)` (GELU): no accuracy is needed near 0, where the 1 swamps it.
* `exp(x - max(x))` over a row (softmax): the argument is never positive.
* the sum of those over the row is at least 1: dividing by it is multiplying by its reciprocal, one division per row.
* the maximum of such a row need not care for NaN: a NaN of the row makes the sum NaN, and with it every result.

Every pattern is matched where its last operation is evaluated; what it skips must have no other reader.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common import vector_math
from mlc.kernels.common.frame import defining_op

_PLUS_ONE = {"math.erf": vector_math.one_plus_erf, "math.tanh": vector_math.one_plus_tanh}


def _body(op: ir.Operation | None) -> list[ir.Operation]:
    """Operations of the body of a generic with one result; none for anything else."""
    if op is None or op.name != "linalg.generic" or len(op.results) != 1:
        return []
    return [o.operation for o in op.regions[0].blocks[0].operations]


def _is_elementwise(op: ir.Operation) -> bool:
    return all("parallel" in str(t) for t in op.attributes["iterator_types"])


def _single(op: ir.Operation | None, name: str) -> ir.Operation | None:
    """The only operation of an elementwise body, when it is `name`."""
    ops = _body(op)
    if op is None or len(ops) != 2 or ops[0].name != name or not _is_elementwise(op):
        return None
    return ops[0] if ops[1].operands[0] == ops[0].results[0] else None


def _argument(op: ir.Operation, value: ir.Value) -> int | None:
    """Number of the input that `value` is the body's argument for."""
    arguments = list(op.regions[0].blocks[0].arguments)
    count = len(op.operands) - len(op.results)
    return arguments.index(value) if value in arguments[:count] else None


def _map(op: ir.Operation, operand: int) -> ir.AffineMap:
    return ir.AffineMapAttr(op.attributes["indexing_maps"][operand]).value


def _reads_own_point(op: ir.Operation, operand: int) -> bool:
    return _map(op, operand) == ir.AffineMap.get_identity(len(op.attributes["iterator_types"]))


def _users(value: ir.Value) -> list[ir.Operation]:
    return [use.owner.operation for use in value.uses]


def _is_one(value: ir.Value) -> bool:
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return False
    attribute = op.attributes["value"]
    return isinstance(attribute, ir.FloatAttr) and attribute.value == 1.0


def may_match(op: ir.Operation) -> bool:
    """A quick look: is the body one of the operations that patterns end in?"""
    ops = op.regions[0].blocks[0].operations
    return len(ops) == 2 and ops[0].operation.name in ("arith.addf", "math.exp", "arith.divf")


def plus_one(op: ir.Operation) -> tuple[ir.Operation, str] | None:
    """The producer and its function when `op` computes 1 + erf(x) or 1 + tanh(x) on f32 and nothing else reads that."""
    add = _single(op, "arith.addf")
    if add is None or not isinstance(op.results[0].type.element_type, ir.F32Type):
        return None
    for value, other in (list(add.operands), list(add.operands)[::-1]):
        number = _argument(op, value)
        if number is None or not _is_one(other) or not _reads_own_point(op, number):
            continue
        producer = defining_op(op.operands[number])
        name = next((n for n in _PLUS_ONE if _single(producer, n)), None)
        if producer is not None and name is not None and len(_users(producer.results[0])) == 1:
            return producer, name
    return None


def emit_plus_one(name: str, x: ir.Value) -> ir.Value:
    """1 + the function `name` of `x`."""
    return _PLUS_ONE[name](x)


def _is_reduction_by(op: ir.Operation | None, name: str) -> bool:
    """Does a generic reduce its only input, read at its own point, by `name` on f32?"""
    ops = _body(op)
    if op is None or len(op.operands) != 2 or len(ops) != 2 or ops[0].name != name or _is_elementwise(op):
        return False
    arguments = set(op.regions[0].blocks[0].arguments)
    plain = set(ops[0].operands) == arguments and ops[1].operands[0] == ops[0].results[0]
    return plain and _reads_own_point(op, 0) and isinstance(op.results[0].type.element_type, ir.F32Type)


def shifted_by_maximum(op: ir.Operation) -> ir.Operation | None:
    """The maximum of the row when `op` is `exp(x - max(x))`, else None."""
    exp = _single(op, "math.exp")
    number = None if exp is None else _argument(op, exp.operands[0])
    if number is None or not _reads_own_point(op, number):
        return None
    shift = defining_op(op.operands[number])
    sub = _single(shift, "arith.subf")
    if shift is None or sub is None:
        return None
    value, maximum = (_argument(shift, v) for v in sub.operands)
    if value is None or maximum is None or not _reads_own_point(shift, value):
        return None
    reduction = defining_op(shift.operands[maximum])
    if not _is_reduction_by(reduction, "arith.maximumf") or reduction is None:
        return None
    same_row = _map(shift, maximum) == _map(reduction, 1) and reduction.operands[0] == shift.operands[value]
    return reduction if same_row else None


def row_sum(op: ir.Operation) -> int | None:
    """The operand of a division `op` that is the sum of `exp(x - max(x))` over the row of this point, else None."""
    division = _single(op, "arith.divf")
    number = None if division is None else _argument(op, division.operands[1])
    if number is None:
        return None
    reduction = defining_op(op.operands[number])
    if not _is_reduction_by(reduction, "arith.addf") or reduction is None:
        return None
    exponentials = defining_op(reduction.operands[0])
    if exponentials is None or shifted_by_maximum(exponentials) is None:
        return None
    return number if _map(op, number) == _map(reduction, 1) else None


def ignores_nan(op: ir.Operation) -> bool:
    """Is the reduction `op` the maximum of a softmax, all of whose results are divided by the sum of the row?"""
    if not _is_reduction_by(op, "arith.maximumf"):
        return False
    shifts = _users(op.results[0])
    if len(shifts) != 1 or len(shifts[0].results) != 1:
        return False
    exponentials = _users(shifts[0].results[0])
    if len(exponentials) != 1 or not _body(exponentials[0]):
        return False
    maximum = shifted_by_maximum(exponentials[0])
    if maximum is None or maximum != op:
        return False
    readers = _users(exponentials[0].results[0])
    return all(_is_reduction_by(r, "arith.addf") or _is_divided(r, exponentials[0]) for r in readers)


def _is_divided(op: ir.Operation, exponentials: ir.Operation) -> bool:
    number = row_sum(op)
    if number is None:
        return False
    total = defining_op(op.operands[number])
    return total is not None and total.operands[0] == exponentials.results[0]


def maximum_of_numbers(accumulator: ir.Value, x: ir.Value) -> ir.Value:
    """The larger of two values; the accumulator when `x` is NaN. One instruction on x86."""
    greater = arith.cmpf(arith.CmpFPredicate.OGT, x, accumulator)
    return arith.select(greater, x, accumulator)
