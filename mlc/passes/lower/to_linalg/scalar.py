"""Arithmetic on the elements inside a `linalg.generic` body."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, cf, math

from mlc.passes.lower.to_linalg import small_floats

F = arith.CmpFPredicate
I = arith.CmpIPredicate  # noqa: E741 - reads as the integer counterpart of F


def is_float(type_: ir.Type) -> bool:
    return isinstance(type_, ir.FloatType)


def is_bool(type_: ir.Type) -> bool:
    return isinstance(type_, ir.IntegerType) and type_.width == 1


def compute_type(type_: ir.Type) -> ir.Type:
    """The type that a body computes in: floats narrower than 32 bits widen to `f32`."""
    return ir.F32Type.get() if is_float(type_) and type_.width < 32 else type_


def constant(type_: ir.Type, value: float | int) -> ir.Value:
    """A scalar constant; `value` is wrapped into the range of an integer type."""
    if is_float(type_):
        return arith.ConstantOp(type_, ir.FloatAttr.get(type_, float(value))).result
    if isinstance(type_, ir.IndexType):
        return arith.ConstantOp(type_, ir.IntegerAttr.get(type_, int(value))).result
    bits = int(value) & ((1 << type_.width) - 1)
    if type_.width == 1:
        return arith.ConstantOp(type_, ir.BoolAttr.get(bool(bits))).result
    signed = bits - (1 << type_.width) if bits >> (type_.width - 1) else bits
    return arith.ConstantOp(type_, ir.IntegerAttr.get(type_, signed)).result


def index(value: int) -> ir.Value:
    return constant(ir.IndexType.get(), value)


def widen(value: ir.Value) -> ir.Value:
    """A float of the type it computes in."""
    to = compute_type(value.type)
    if to == value.type:
        return value
    decoded = small_floats.widened(value)
    return arith.extf(to, value) if decoded is None else decoded


def narrow(value: ir.Value, type_: ir.Type, saturate: bool = False) -> ir.Value:
    """The inverse of `widen`; `saturate` is for formats of eight bits."""
    if value.type == type_:
        return value
    encoded = small_floats.narrowed(value, type_, saturate)
    return arith.truncf(type_, value) if encoded is None else encoded


def int_range(type_: ir.IntegerType, unsigned: bool) -> tuple[int, int]:
    if unsigned or type_.width == 1:
        return 0, (1 << type_.width) - 1
    return -(1 << (type_.width - 1)), (1 << (type_.width - 1)) - 1


def lowest(type_: ir.Type, unsigned: bool = False) -> float | int:
    """The identity of `max`."""
    return float("-inf") if is_float(type_) else int_range(type_, unsigned)[0]


def highest(type_: ir.Type, unsigned: bool = False) -> float | int:
    """The identity of `min`."""
    return float("inf") if is_float(type_) else int_range(type_, unsigned)[1]


def add(a: ir.Value, b: ir.Value) -> ir.Value:
    if is_bool(a.type):
        return arith.ori(a, b)
    return arith.addf(a, b) if is_float(a.type) else arith.addi(a, b)


def sub(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.subf(a, b) if is_float(a.type) else arith.subi(a, b)


def mul(a: ir.Value, b: ir.Value) -> ir.Value:
    if is_bool(a.type):
        return arith.andi(a, b)
    return arith.mulf(a, b) if is_float(a.type) else arith.muli(a, b)


def maximum(a: ir.Value, b: ir.Value, unsigned: bool = False) -> ir.Value:
    if is_float(a.type):
        return arith.maximumf(a, b)
    return arith.maxui(a, b) if unsigned or is_bool(a.type) else arith.maxsi(a, b)


def minimum(a: ir.Value, b: ir.Value, unsigned: bool = False) -> ir.Value:
    if is_float(a.type):
        return arith.minimumf(a, b)
    return arith.minui(a, b) if unsigned or is_bool(a.type) else arith.minsi(a, b)


_FLOAT_PREDICATES = {"eq": F.OEQ, "ne": F.UNE, "lt": F.OLT, "le": F.OLE, "gt": F.OGT, "ge": F.OGE}
_SIGNED_PREDICATES = {"eq": I.eq, "ne": I.ne, "lt": I.slt, "le": I.sle, "gt": I.sgt, "ge": I.sge}
_UNSIGNED_PREDICATES = {"eq": I.eq, "ne": I.ne, "lt": I.ult, "le": I.ule, "gt": I.ugt, "ge": I.uge}


def compare(predicate: str, a: ir.Value, b: ir.Value, unsigned: bool = False) -> ir.Value:
    """`i1`; floats ordered, `ne` unordered."""
    if is_float(a.type):
        return arith.cmpf(_FLOAT_PREDICATES[predicate], a, b)
    table = _UNSIGNED_PREDICATES if unsigned or is_bool(a.type) else _SIGNED_PREDICATES
    return arith.cmpi(table[predicate], a, b)


def is_nan(value: ir.Value) -> ir.Value:
    return arith.cmpf(F.UNO, value, value)


def to_index(value: ir.Value) -> ir.Value:
    return value if isinstance(value.type, ir.IndexType) else arith.index_cast(ir.IndexType.get(), value)


def check(condition: ir.Value, message: str) -> None:
    """A run-time error unless `condition`; the first operand of its first comparison is the reported value."""
    cf.AssertOp(condition, message)


# ---- conversions -----------------------------------------------------------------------------------------------------


def convert(
    value: ir.Value,
    to: ir.Type,
    *,
    unsigned_in: bool = False,
    unsigned_out: bool = False,
    saturate: bool = False,
) -> ir.Value:
    """`value` as `to`: floats truncate to integers, anything to `i1` is `!= 0`."""
    if is_bool(to):
        if is_bool(value.type):
            return value
        wide = widen(value)
        return compare("ne", wide, constant(wide.type, 0))
    if is_float(value.type):
        value = widen(value)
        if is_float(to):
            return _float_to_float(value, to, saturate)
        return _saturated(value, to, unsigned_out) if saturate else _float_to_int(value, to, unsigned_out)
    if is_float(to):
        return _int_to_float(value, to, unsigned_in or is_bool(value.type), saturate)
    return _int_to_int(value, to, unsigned_in or is_bool(value.type), unsigned_out, saturate)


def _float_to_float(value: ir.Value, to: ir.Type, saturate: bool = False) -> ir.Value:
    if value.type == to:
        return value
    if to.width > value.type.width:
        return arith.extf(to, value)
    if to.width < 32 and value.type.width > 32:
        value = arith.truncf(ir.F32Type.get(), value)
    return narrow(value, to, saturate)


def _int_to_float(value: ir.Value, to: ir.Type, unsigned: bool, saturate: bool = False) -> ir.Value:
    wide = compute_type(to)
    value = arith.uitofp(wide, value) if unsigned else arith.sitofp(wide, value)
    return narrow(value, to, saturate)


def _float_to_int(value: ir.Value, to: ir.IntegerType, unsigned: bool) -> ir.Value:
    """Through a wider signed integer where one is to be had, so that overflow wraps as C compilers make it."""
    if unsigned and to.width == 64:
        negative = arith.cmpf(F.OLT, value, constant(value.type, 0))
        return arith.select(negative, arith.fptosi(to, value), arith.fptoui(to, value))
    width = 64 if to.width == 64 or (unsigned and to.width == 32) else 32
    wide = arith.fptosi(ir.IntegerType.get_signless(width), value)
    return wide if width == to.width else arith.trunci(to, wide)


def _saturated(value: ir.Value, to: ir.IntegerType, unsigned: bool) -> ir.Value:
    low, high = int_range(to, unsigned)
    if to.width <= 16:
        return _clamped_first(value, to, unsigned)
    # The bounds as floats may round up to 2^n, which no longer fits: compare first, convert only what is inside.
    below = arith.cmpf(F.OLE, value, constant(value.type, float(low)))
    above = arith.cmpf(F.OGE, value, constant(value.type, float(high)))
    inside = arith.andi(arith.cmpf(F.OGT, value, constant(value.type, float(low))), _not(above))
    safe = arith.select(inside, value, constant(value.type, 0))
    result = _float_to_int(safe, to, unsigned)
    result = arith.select(above, constant(to, high), result)
    return arith.select(below, constant(to, low), result)


def _clamped_first(value: ir.Value, to: ir.IntegerType, unsigned: bool) -> ir.Value:
    """Saturation to a type whose bounds are floats: two comparisons that are maximum and minimum to the machine. They
    give the bound for a NaN, which becomes 0 before where 0 is not the lowest."""
    low, high = (constant(value.type, float(bound)) for bound in int_range(to, unsigned))
    if not unsigned:
        value = arith.select(arith.cmpf(F.ORD, value, value), value, constant(value.type, 0))
    value = arith.select(arith.cmpf(F.OGT, value, low), value, low)
    value = arith.select(arith.cmpf(F.OLT, value, high), value, high)
    return arith.trunci(to, arith.fptosi(ir.IntegerType.get_signless(32), value))


def _not(value: ir.Value) -> ir.Value:
    return arith.xori(value, constant(value.type, 1))


def _int_to_int(value: ir.Value, to: ir.IntegerType, unsigned_in: bool, unsigned_out: bool, saturate: bool) -> ir.Value:
    if saturate:
        value = _clamped(value, to, unsigned_in, unsigned_out)
    if to.width == value.type.width:
        return value
    if to.width < value.type.width:
        return arith.trunci(to, value)
    return arith.extui(to, value) if unsigned_in else arith.extsi(to, value)


def _clamped(value: ir.Value, to: ir.IntegerType, unsigned_in: bool, unsigned_out: bool) -> ir.Value:
    low_in, high_in = int_range(value.type, unsigned_in)
    low, high = int_range(to, unsigned_out)
    if low > low_in:
        value = maximum(value, constant(value.type, low), unsigned_in)
    if high < high_in:
        value = minimum(value, constant(value.type, high), unsigned_in)
    return value


# ---- functions that have no single operation -------------------------------------------------------------------------


def reciprocal(value: ir.Value) -> ir.Value:
    return arith.divf(constant(value.type, 1), value)


def sigmoid(value: ir.Value) -> ir.Value:
    return reciprocal(add(constant(value.type, 1), math.exp(arith.negf(value))))


def sign(value: ir.Value, unsigned: bool) -> ir.Value:
    """-1, 0 or 1; zeros keep their sign, NaN stays NaN."""
    zero, one = constant(value.type, 0), constant(value.type, 1)
    result = arith.select(compare("gt", value, zero, unsigned), one, value)
    if unsigned or is_bool(value.type):
        return result
    return arith.select(compare("lt", value, zero), constant(value.type, -1), result)


def power(base: ir.Value, exponent: ir.Value, unsigned: bool) -> ir.Value:
    """`base ** exponent` of the type of `base`; integer bases with float exponents go through `f64`."""
    if not is_float(base.type) and not is_float(exponent.type):
        return _int_power(base, _int_to_int(exponent, base.type, False, False, False))
    if is_float(base.type):
        exponent = convert(exponent, base.type) if not is_float(exponent.type) else widen(exponent)
        wide = base.type if base.type.width >= exponent.type.width else exponent.type
        result = math.powf(_float_to_float(base, wide), _float_to_float(exponent, wide))
        return _float_to_float(result, base.type)
    double = ir.F64Type.get()
    result = math.powf(convert(base, double, unsigned_in=unsigned), convert(exponent, double))
    return convert(result, base.type, unsigned_out=unsigned)


def _int_power(base: ir.Value, exponent: ir.Value) -> ir.Value:
    """Square and multiply over all bits of `exponent`, wrapping as integer multiplication does."""
    zero, one = constant(base.type, 0), constant(base.type, 1)
    result = one
    for bit in range(base.type.width):
        if bit:
            base, exponent = arith.muli(base, base), arith.shrui(exponent, one)
        odd = arith.cmpi(I.ne, arith.andi(exponent, one), zero)
        result = arith.select(odd, arith.muli(result, base), result)
    return result


def small_power(base: ir.Value, exponent: float) -> ir.Value | None:
    """`base ** exponent` without `pow` for the exponents that models use, else None."""
    if exponent in (1, 2, 3):
        square = base if exponent == 1 else mul(base, base)
        return mul(square, base) if exponent == 3 else square
    if not is_float(base.type):
        return None
    simple = {0.5: math.sqrt, -0.5: math.rsqrt, -1: reciprocal}.get(exponent)
    return None if simple is None else simple(base)


def floor_mod(a: ir.Value, b: ir.Value, remainder: ir.Value) -> ir.Value:
    """A remainder with the dividend's sign corrected to have the divisor's."""
    zero = constant(a.type, 0)
    differs = arith.xori(compare("lt", remainder, zero), compare("lt", b, zero))
    wrong = arith.andi(compare("ne", remainder, zero), differs)
    result = arith.select(wrong, add(remainder, b), remainder)
    return math.copysign(result, b) if is_float(a.type) else result
