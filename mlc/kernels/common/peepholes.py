"""Shorter code for small patterns of a kernel's graph, where the pattern says more than its operations one by one.

* `1 + erf(x)`, `1 + tanh(x)` (GELU): no accuracy is needed near 0, where the 1 swamps it.
* `exp(x - max(x))` over a row (softmax): the argument is never positive.
* the sum of those over the row is at least 1: dividing by it is multiplying by its reciprocal, one division per row.
* `1 / (1 + exp(-x))` (sigmoid): one scale in place of the two that keep `exp` from overflowing; and where there is an
  instruction for 1 / x, it will do for `1 / (1 + exp(x))`, in which nothing is subnormal.
* the maximum of such a row need not care for NaN: a NaN of the row makes the sum NaN, and with it every result.

Every pattern is matched where its last operation is evaluated; what it skips must have no other reader.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common import vector_math
from mlc.kernels.common.frame import Frame, defining_op
from mlc.kernels.common.generics import (
    body_of,
    input_number,
    is_identity,
    is_number,
    only_operation,
    operand_map,
    reduces_by,
)

_PLUS_ONE = {"math.erf": vector_math.one_plus_erf, "math.tanh": vector_math.one_plus_tanh}


def _users(value: ir.Value) -> list[ir.Operation]:
    return [use.owner.operation for use in value.uses]


def may_match(op: ir.Operation) -> bool:
    """A quick look: is the body one of the operations that patterns end in?"""
    ops = op.regions[0].blocks[0].operations
    return len(ops) == 2 and ops[0].operation.name in ("arith.addf", "math.exp", "arith.divf")


def plus_one(op: ir.Operation) -> tuple[ir.Operation, str] | None:
    """The producer and its function when `op` computes 1 + erf(x) or 1 + tanh(x) on f32 and nothing else reads that."""
    add = only_operation(op, "arith.addf")
    if add is None or not _is_f32(op):
        return None
    for value, other in (list(add.operands), list(add.operands)[::-1]):
        number = input_number(op, value)
        if number is None or not is_number(other, 1.0) or not is_identity(op, number):
            continue
        producer = defining_op(op.operands[number])
        name = next((n for n in _PLUS_ONE if only_operation(producer, n)), None)
        if producer is not None and name is not None and len(_users(producer.results[0])) == 1:
            return producer, name
    return None


def emit_plus_one(frame: Frame, name: str, x: ir.Value) -> ir.Value:
    """1 + the function `name` of `x`."""
    return frame.call(_PLUS_ONE[name].__name__, lambda v: _PLUS_ONE[name](v, frame.has_exp2), x)


def exp_nonpositive(frame: Frame, x: ir.Value) -> ir.Value:
    """e^x for an x without positive elements, by the instructions that the target has for it."""
    name = f"exp_nonpositive{frame.scalef or ''}"
    return frame.call(name, lambda v: vector_math.exp_nonpositive(v, frame.scalef, frame.has_exp2), x)


def divides_by_one_plus_exp(op: ir.Operation) -> bool:
    """Is an operation of a body 1 / (1 + exp(x)) on f32, as in a sigmoid? The divisor is at least 1."""
    if op.name != "arith.divf" or not isinstance(op.results[0].type, ir.F32Type) or not is_number(op.operands[0], 1.0):
        return False
    total = defining_op(op.operands[1])
    if total is None or total.name != "arith.addf":
        return False
    terms = [defining_op(v) for v in total.operands]
    return any(t is not None and t.name == "math.exp" for t in terms) and any(is_number(v, 1.0) for v in total.operands)


def sigmoid_argument(op: ir.Operation) -> ir.Value | None:
    """The x of an operation of a body that is 1 / (1 + exp(-x)) on f32, where nothing else reads what is in between."""
    if not divides_by_one_plus_exp(op):
        return None
    total = defining_op(op.operands[1])
    assert total is not None
    [exp] = [t for t in map(defining_op, total.operands) if t is not None and t.name == "math.exp"][:1]
    minus = defining_op(exp.operands[0])
    if minus is None or minus.name != "arith.negf":
        return None
    return minus.operands[0] if all(len(_users(o.results[0])) == 1 for o in (total, exp, minus)) else None


def is_inside_sigmoid(op: ir.Operation) -> bool:
    """Is an operation of a body one of those between the x and the division of `sigmoid_argument`?"""
    step = op
    for name in ("arith.negf", "math.exp", "arith.addf"):
        users = _users(step.results[0]) if step.name == name else [step]
        if len(users) != 1:
            return False
        [step] = users
    return step != op and sigmoid_argument(step) is not None


def _is_f32(op: ir.Operation) -> bool:
    return isinstance(op.results[0].type.element_type, ir.F32Type)


@dataclass(frozen=True)
class Shift:
    """`difference` is x - max(x) over a row: operand `value` less operand `maximum`."""

    difference: ir.Operation
    value: int
    maximum: int

    @property
    def reduction(self) -> ir.Operation:
        """The maximum of the row."""
        found = defining_op(self.difference.operands[self.maximum])
        assert found is not None
        return found


def _shift(op: ir.Operation) -> Shift | None:
    """The x - max(x) when `op` is `exp(x - max(x))`, else None."""
    exp = only_operation(op, "math.exp")
    number = None if exp is None else input_number(op, exp.operands[0])
    if number is None or not is_identity(op, number):
        return None
    difference = defining_op(op.operands[number])
    sub = only_operation(difference, "arith.subf")
    if difference is None or sub is None:
        return None
    value, maximum = (input_number(difference, v) for v in sub.operands)
    if value is None or maximum is None or not is_identity(difference, value):
        return None
    reduction = defining_op(difference.operands[maximum])
    if reduction is None or not _is_f32(reduction) or not reduces_by(reduction, "arith.maximumf"):
        return None
    same_row = _is_of_row(difference, maximum, reduction)
    same = same_row and reduction.operands[0] == difference.operands[value]
    return Shift(difference, value, maximum) if same else None


def shifted_by_maximum(op: ir.Operation) -> ir.Operation | None:
    """The maximum of the row when `op` is `exp(x - max(x))`, else None."""
    shift = _shift(op)
    return None if shift is None else shift.reduction


def divided_shift(op: ir.Operation) -> Shift | None:
    """The x - max(x) when `op` is `exp(x - max(x))` and all that is made of it are quotients by its sum over the row,
    which do not feel by how much exactly x was shifted. Else None."""
    shift = _shift(op)
    if shift is None or not ignores_nan(shift.reduction):
        return None
    totals = [r for r in _users(op.results[0]) if reduces_by(r, "arith.addf")]
    return shift if all(_is_quotient(u, op) for total in totals for u in _users(total.results[0])) else None


def row_sum(op: ir.Operation) -> int | None:
    """The operand of a division `op` that is the sum of `exp(x - max(x))` over the row of this point, else None."""
    division = only_operation(op, "arith.divf")
    if division is None or input_number(op, division.operands[0]) is None:  # a number by the sum
        return None
    number = input_number(op, division.operands[1])
    if number is None:
        return None
    reduction = defining_op(op.operands[number])
    if reduction is None or not _is_f32(reduction) or not reduces_by(reduction, "arith.addf"):
        return None
    exponentials = defining_op(reduction.operands[0])
    if exponentials is None or shifted_by_maximum(exponentials) is None:
        return None
    return number if _is_of_row(op, number, reduction) else None


def _is_of_row(op: ir.Operation, number: int, reduction: ir.Operation) -> bool:
    """Is operand `number`, the result of `reduction`, read at the row of this point? There is one row where an extent
    is 1, whatever its coordinate is called."""
    shape = reduction.results[0].type.shape
    pairs = zip(operand_map(op, number).results, operand_map(reduction, 1).results, shape, strict=True)
    return all(extent == 1 or here == there for here, there, extent in pairs)


def ignores_nan(op: ir.Operation) -> bool:
    """Is the reduction `op` the maximum of a softmax, all of whose results are divided by the sum of the row?"""
    if not reduces_by(op, "arith.maximumf") or not _is_f32(op):
        return False
    shifts = _users(op.results[0])
    if len(shifts) != 1 or len(shifts[0].results) != 1:
        return False
    exponentials = _users(shifts[0].results[0])
    if len(exponentials) != 1 or not body_of(exponentials[0]):
        return False
    maximum = shifted_by_maximum(exponentials[0])
    if maximum is None or maximum != op:
        return False
    readers = _users(exponentials[0].results[0])
    return all(reduces_by(r, "arith.addf") or _is_divided(r, exponentials[0]) for r in readers)


def _is_divided(op: ir.Operation, exponentials: ir.Operation) -> bool:
    number = row_sum(op)
    if number is None:
        return False
    total = defining_op(op.operands[number])
    return total is not None and total.operands[0] == exponentials.results[0]


def _is_quotient(op: ir.Operation, exponentials: ir.Operation) -> bool:
    """Is `op` each of the `exponentials` by the sum of its row?"""
    numbers = [i for i, v in enumerate(op.operands) if v == exponentials.results[0]]
    return len(numbers) == 1 and is_identity(op, numbers[0]) and _is_divided(op, exponentials)


def maximum_of_numbers(accumulator: ir.Value, x: ir.Value) -> ir.Value:
    """The larger of two values; the accumulator when `x` is NaN. One instruction on x86."""
    greater = arith.cmpf(arith.CmpFPredicate.OGT, x, accumulator)
    return arith.select(greater, x, accumulator)
