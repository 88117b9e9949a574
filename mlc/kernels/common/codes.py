"""Rounding to codes of few bits: `saturate(round(x) + zero point)`, the end of every kernel that quantizes.

Operation by operation that is a rounding, an addition, two bounds and a conversion that would round once more. Bounds
that are moved by the zero point may come first, as rounding keeps whole numbers and is monotonic. What is within them
is rounded by adding 1.5 * 2^23: the sum has no bits behind the point, ties go to even, and the lowest bits of the
float are the whole number. An even zero point is part of what is added; one that is an input is added behind that, as
it may be odd. The same codes come out, NaN's too.

Where the same kernel goes on with the codes as numbers (`cast(code) - zero point`), subtracting what was added gives
them: nothing is narrowed and widened again.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common import memory
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import body_of, input_number, is_identity, only_operation
from mlc.kernels.common.index import Constants

_ROUNDER = 12582912.0  # 1.5 * 2^23: floats about it are whole numbers
_FLOATS = ("arith.sitofp", "arith.uitofp")
_MOST_BITS = 16  # of a code: bounds and zero points are far below 2^22
MOST_WHOLE = 1 << _MOST_BITS
WHOLE = "mlc.whole"
"""Attribute of what reads a number from an input: it is whole, and its magnitude is below `MOST_WHOLE`."""


@dataclass(frozen=True)
class Rounded:
    """A generic that is `saturate(round(x) + zero)` to `type`: `first` is the generic whose input 0 is x, and the
    code is between `low` and `high`. Where `guarded`, NaN counts as a rounded 0 in place of the lowest code.
    `skipped` is what the generics in between compute. A `given` zero point is an input, and `zero` is 0 then.
    """

    skipped: list[ir.Value]
    first: ir.Operation
    zero: int
    low: int
    high: int
    guarded: bool
    type: ir.Type
    given: ir.Value | None = None


@dataclass(frozen=True)
class Restored:
    """A generic that is `float(code) - zero` of codes that its kernel rounds; `skipped` is what those in between
    compute, the codes among it. `given` is a zero point that is an input, a float: `zero` is then 0."""

    rounded: Rounded
    skipped: list[ir.Value]
    zero: int
    given: ir.Value | None = None


def ends_in_codes(op: ir.Operation) -> bool:
    """A quick look: is the last thing that the body of `op` does a conversion to an integer of few bits?"""
    ops = op.regions[0].blocks[0].operations
    if len(ops) < 2 or ops[len(ops) - 2].operation.name != "arith.trunci":
        return False
    return bool(ops[len(ops) - 2].operation.results[0].type.width <= _MOST_BITS)


def rounded_to_codes(op: ir.Operation) -> Rounded | None:
    """What the elementwise generic `op` and those in front of it round, which nothing else reads; None for others."""
    found = _saturation(op)
    if found is None:
        return None
    value, low, high, guarded, type_ = found
    number = input_number(op, value)
    if number is None or not is_identity(op, number):
        return None
    skipped = [op.operands[number]]
    producer, zero, given = _only_reader(skipped[0]), 0, None
    add = only_operation(producer, "arith.addf")
    if producer is not None and add is not None and is_identity(producer, 0):
        given = add.operands[1] if _is_whole(add.operands[1]) else None
        offset = _constant(add.operands[1]) if given is None else 0.0
        if offset is None or not offset.is_integer() or abs(offset) >= MOST_WHOLE:
            return None
        if input_number(producer, add.operands[0]) != 0:
            return None
        skipped.append(producer.operands[0])
        producer, zero = _only_reader(skipped[1]), int(offset)
    if producer is None or only_operation(producer, "math.roundeven") is None or not is_identity(producer, 0):
        return None
    first = producer if given is not None else _above(producer, low - zero, skipped)
    return Rounded(skipped, first, zero, low, high, guarded, type_, given)


def ends_in_numbers(op: ir.Operation) -> bool:
    """A quick look: is the body of `op` a conversion of an integer to f32?"""
    ops = op.regions[0].blocks[0].operations
    return len(ops) == 2 and ops[0].operation.name in _FLOATS and isinstance(ops[0].result.type, ir.F32Type)


def restored_from_codes(op: ir.Operation) -> Restored | None:
    """What the elementwise generic `op` makes numbers of again; None where its kernel does not round that."""
    convert = only_operation(op, "arith.sitofp") or only_operation(op, "arith.uitofp")
    if convert is None or not is_identity(op, 0):
        return None
    skipped, zero, given = [op.operands[0]], 0, None
    producer = _in_order(skipped[-1])
    subtract = only_operation(producer, "arith.subi")
    if producer is not None and subtract is not None:
        given = _given_number(subtract.operands[1])
        offset = _whole_constant(subtract.operands[1]) if given is None else 0
        if offset is None or abs(offset) >= MOST_WHOLE or input_number(producer, subtract.operands[0]) != 0:
            return None
        skipped.append(producer.operands[0])
        producer, zero = _in_order(skipped[-1]), offset
    unsigned = convert.name == "arith.uitofp"
    widen = only_operation(producer, "arith.extui") or only_operation(producer, "arith.extsi")
    if producer is not None and widen is not None:
        if unsigned or convert.operands[0].type.width != 32:
            return None
        unsigned = widen.name == "arith.extui"
        skipped.append(producer.operands[0])
        producer = _in_order(skipped[-1])
    rounded = None if producer is None or not ends_in_codes(producer) else rounded_to_codes(producer)
    if rounded is None or not _is_inside(rounded, unsigned):
        return None
    return Restored(rounded, skipped, zero, given)


def _is_inside(rounded: Rounded, unsigned: bool) -> bool:
    """Is every code the number that its bits are, without a sign or with one?"""
    width = rounded.type.width
    low, high = (0, 1 << width) if unsigned else (-1 << width - 1, 1 << width - 1)
    return low <= rounded.low and rounded.high < high


def _in_order(value: ir.Value) -> ir.Operation | None:
    """The generic that makes `value`, with its input 0 and its result in the order of its loops."""
    op = defining_op(value)
    if op is None or op.name != "linalg.generic" or len(op.results) != 1:
        return None
    return op if is_identity(op, 0) and is_identity(op, len(op.operands) - 1) else None


def _above(rounding: ir.Operation, low: int, skipped: list[ir.Value]) -> ir.Operation:
    """The generic whose input 0 is to be rounded: that in front of `rounding` where it gives at least a number not
    above `low`, as a ReLU does, else `rounding` itself."""
    before = _only_reader(rounding.operands[0])
    maximum = only_operation(before, "arith.maximumf")
    if before is None or maximum is None or not is_identity(before, 0):
        return rounding
    if input_number(before, maximum.operands[0]) != 0:
        return rounding
    bound = _constant(maximum.operands[1])
    if bound is None or bound > low:
        return rounding
    skipped.append(rounding.operands[0])
    return before


def emit_codes(x: ir.Value, rounded: Rounded, constants: Constants, given: Given | None = None) -> ir.Value:
    """The code of `x`, what is to be rounded: f32, one or a vector; `given` is the zero point that is an input."""
    i32, odd = ir.IntegerType.get_signless(32), rounded.zero % 2
    shape = x.type.shape if isinstance(x.type, ir.VectorType) else None
    total = _rounded_sum(x, rounded, constants, given)
    bits = arith.bitcast(i32 if shape is None else ir.VectorType.get(shape, i32), total)
    shift = given.zero if given is not None else constants.get(i32, odd) if odd else None
    code = bits if shift is None else arith.addi(bits, _every(shift, bits))
    return arith.trunci(rounded.type if shape is None else ir.VectorType.get(shape, rounded.type), code)


def emit_numbers(
    x: ir.Value, restored: Restored, constants: Constants, given: Given | None = None, less: ir.Value | None = None
) -> ir.Value:
    """`float(code) - zero` of the code of `x`; `less` is what has to be subtracted where a zero point is an input
    (`emit_less`)."""
    total = _rounded_sum(x, restored.rounded, constants, given)
    if less is None:
        less = constants.get(ir.F32Type.get(), _ROUNDER - restored.rounded.zero % 2 + restored.zero)
    return arith.subf(total, _every(less, total))


def emit_less(
    restored: Restored, zero: ir.Value | None, subtracted: ir.Value | None, constants: Constants
) -> ir.Value:
    """What `emit_numbers` subtracts where the zero point of the codes or the one that is subtracted is an input, as
    floats; for the prologue. All of it are whole numbers below 2^24."""
    added = constants.get(ir.F32Type.get(), _ROUNDER - restored.rounded.zero % 2 + restored.zero)
    less = added if zero is None else arith.subf(added, zero)
    return less if subtracted is None else arith.addf(less, subtracted)


def _rounded_sum(x: ir.Value, rounded: Rounded, constants: Constants, given: Given | None) -> ir.Value:
    """1.5 * 2^23, the even part of a known zero point, and `x` between the bounds, which the sum rounds."""
    f32 = ir.F32Type.get()

    def bound(number: int, moved: ir.Value | None) -> ir.Value:
        return _every(moved if moved is not None else constants.get(f32, float(number - rounded.zero)), x)

    if rounded.guarded:
        none = bound(0, given.none if given is not None else None)
        x = arith.select(arith.cmpf(arith.CmpFPredicate.ORD, x, x), x, none)
    low = bound(rounded.low, given.low if given is not None else None)
    high = bound(rounded.high, given.high if given is not None else None)
    x = arith.select(arith.cmpf(arith.CmpFPredicate.OGT, x, low), x, low)
    x = arith.select(arith.cmpf(arith.CmpFPredicate.OLT, x, high), x, high)
    return arith.addf(x, _every(constants.get(f32, _ROUNDER + rounded.zero - rounded.zero % 2), x))


def _every(value: ir.Value, like: ir.Value) -> ir.Value:
    """`value` in every lane, where `like` is a vector."""
    return memory.splat(value, like.type.shape[0]) if isinstance(like.type, ir.VectorType) else value


@dataclass(frozen=True)
class Given:
    """A zero point that is an input, as an integer, and what moves with it: the bounds, and what becomes code 0."""

    zero: ir.Value
    none: ir.Value
    low: ir.Value
    high: ir.Value


def emit_given(number: ir.Value, rounded: Rounded, constants: Constants) -> Given:
    """What codes about the zero point `number`, a float, take; for the prologue."""
    none, low, high = (
        arith.subf(constants.get(number.type, float(n)), number) for n in (0, rounded.low, rounded.high)
    )
    return Given(arith.fptosi(ir.IntegerType.get_signless(32), number), none, low, high)


def _saturation(op: ir.Operation) -> tuple[ir.Value, int, int, bool, ir.Type] | None:
    """The value that the body of `op` makes an integer of, its bounds, whether NaN becomes 0 before, and the type."""
    ops = [o for o in body_of(op) if o.name != "arith.constant"]
    if len(ops) < 3 or [o.name for o in ops[-3:]] != ["arith.fptosi", "arith.trunci", "linalg.yield"]:
        return None
    convert, truncate, end = ops[-3:]
    if end.operands[0] != truncate.results[0] or truncate.operands[0] != convert.results[0]:
        return None
    above = _bounded(convert.operands[0], arith.CmpFPredicate.OLT)
    below = None if above is None else _bounded(above[0], arith.CmpFPredicate.OGT)
    if above is None or below is None or not isinstance(above[0].type, ir.F32Type):
        return None
    value, guarded = _without_nan(below[0])
    whole = below[1].is_integer() and above[1].is_integer()
    if not whole or len(ops) != (9 if guarded else 7):
        return None
    return value, int(below[1]), int(above[1]), guarded, truncate.results[0].type


def _bounded(value: ir.Value, predicate: arith.CmpFPredicate) -> tuple[ir.Value, float] | None:
    """`x` and `c` where `value` is `x if x <predicate> c else c`."""
    select = defining_op(value)
    if select is None or select.name != "arith.select":
        return None
    compare, bound = defining_op(select.operands[0]), _constant(select.operands[2])
    if compare is None or bound is None or not _compares(compare, predicate):
        return None
    same = compare.operands[0] == select.operands[1] and _constant(compare.operands[1]) == bound
    return (select.operands[1], bound) if same else None


def _without_nan(value: ir.Value) -> tuple[ir.Value, bool]:
    """`x` where `value` is `x if x == x else 0`, and that it is; else `value` itself."""
    select = defining_op(value)
    if select is None or select.name != "arith.select" or _constant(select.operands[2]) != 0.0:
        return value, False
    compare, x = defining_op(select.operands[0]), select.operands[1]
    if compare is None or not _compares(compare, arith.CmpFPredicate.ORD) or list(compare.operands) != [x, x]:
        return value, False
    return x, True


def _compares(op: ir.Operation, predicate: arith.CmpFPredicate) -> bool:
    return op.name == "arith.cmpf" and ir.IntegerAttr(op.attributes["predicate"]).value == int(predicate)


def _constant(value: ir.Value) -> float | None:
    """The number that a constant of floats is; None for anything else."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant" or not isinstance(op.attributes["value"], ir.FloatAttr):
        return None
    return float(op.attributes["value"].value)


def _whole_constant(value: ir.Value) -> int | None:
    op = defining_op(value)
    if op is None or op.name != "arith.constant" or not isinstance(op.attributes["value"], ir.IntegerAttr):
        return None
    return int(op.attributes["value"].value)


def _given_number(value: ir.Value) -> ir.Value | None:
    """The float that an integer is the whole number of, where an input has that."""
    op = defining_op(value)
    if op is None or op.name != "arith.fptosi" or not _is_whole(op.operands[0]):
        return None
    return op.operands[0]


def _is_whole(value: ir.Value) -> bool:
    """Is it a small whole number that an input has?"""
    op = defining_op(value)
    return op is not None and WHOLE in op.attributes


def _only_reader(value: ir.Value) -> ir.Operation | None:
    """The operation that makes `value`, with results in the order of its loops, where a single one reads that."""
    op = defining_op(value)
    if op is None or len(op.results) != 1 or len(list(value.uses)) != 1 or op.name != "linalg.generic":
        return None
    return op if is_identity(op, len(op.operands) - 1) else None
