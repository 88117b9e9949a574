"""`unary binary compare select cast bitcast`: one pointwise `linalg.generic` each."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir
from mlir.dialects import arith, math

from mlc.passes.adaptor import element, splat_number
from mlc.passes.lower.to_linalg import lowers, scalar
from mlc.passes.lower.to_linalg.builder import elementwise, pointwise
from mlc.passes.lower.to_linalg.context import Lowering

_MATH: dict[str, Callable[[ir.Value], ir.Value]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round": math.roundeven,
    "trunc": math.trunc,
    "sqrt": math.sqrt,
    "rsqrt": math.rsqrt,
    "exp": math.exp,
    "exp2": math.exp2,
    "expm1": math.expm1,
    "log": math.log,
    "log2": math.log2,
    "log1p": math.log1p,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "asinh": math.asinh,
    "acosh": math.acosh,
    "atanh": math.atanh,
    "erf": math.erf,
    "sigmoid": scalar.sigmoid,
    "reciprocal": scalar.reciprocal,
}


@lowers("mlc.unary")
def unary(op: Lowering) -> ir.Value:
    """`kind` on every element; `f16` and `bf16` compute in `f32`."""
    kind, unsigned = op.text(), op.flag("unsigned")
    positive, negative = op.flag("positive", True), op.flag("negative", True)
    result = op.types[0].element_type

    def body(x: ir.Value) -> ir.Value:
        if kind == "isnan":
            return scalar.is_nan(x) if scalar.is_float(x.type) else scalar.constant(result, 0)
        if kind == "isinf":
            return _is_inf(scalar.widen(x), positive, negative)
        if scalar.is_float(x.type):
            return scalar.narrow(_float_unary(kind, scalar.widen(x)), result)
        return _int_unary(kind, x, unsigned)

    return elementwise(op.operand(0), result, body)


def _is_inf(x: ir.Value, positive: bool, negative: bool) -> ir.Value:
    if not scalar.is_float(x.type) or not (positive or negative):
        return scalar.constant(ir.IntegerType.get_signless(1), 0)
    if positive and negative:
        x = math.absf(x)
    return scalar.compare("eq", x, scalar.constant(x.type, float("inf") if positive else float("-inf")))


def _float_unary(kind: str, x: ir.Value) -> ir.Value:
    if kind == "abs":
        return math.absf(x)
    if kind == "neg":
        return arith.negf(x)
    if kind == "sign":
        return scalar.sign(x, False)
    return _MATH[kind](x)


def _int_unary(kind: str, x: ir.Value, unsigned: bool) -> ir.Value:
    if kind == "abs":
        return x if unsigned or scalar.is_bool(x.type) else math.absi(x)
    if kind == "neg":
        return arith.subi(scalar.constant(x.type, 0), x)
    if kind == "sign":
        return scalar.sign(x, unsigned)
    if kind == "not":
        return arith.xori(x, scalar.constant(x.type, -1))
    if kind == "popcount":
        return math.ctpop(x)
    raise ValueError(f"unary {kind} of {x.type}")


@lowers("mlc.binary")
def binary(op: Lowering) -> ir.Value:
    """`kind` on every pair of elements. Integer division by zero is a run-time error that names the node."""
    kind, unsigned = op.text(), op.flag("unsigned")
    result = op.types[0].element_type
    divisor = splat_number(op.operand(1))  # or exponent
    safe = divisor is not None and divisor not in (0, -1)
    sources = op.broadcast([0, 1], op.types[0].rank)
    node = op.node

    def body(args: list[ir.Value]) -> ir.Value:
        a, b = args
        if kind == "pow":
            value = None if divisor is None else scalar.small_power(scalar.widen(a), divisor)
            if value is None:
                value = scalar.power(scalar.widen(a), scalar.widen(b), unsigned)
            return scalar.narrow(value, result)
        if scalar.is_float(a.type):
            return scalar.narrow(_float_binary(kind, scalar.widen(a), scalar.widen(b)), result)
        if kind in ("div", "mod", "fmod"):
            return _int_division(kind, a, b, unsigned, None if safe else node)
        return _int_binary(kind, a, b, unsigned)

    return pointwise(op.sizes(), result, sources, body)


_FLOAT: dict[str, Callable[[ir.Value, ir.Value], ir.Value]] = {
    "add": arith.addf,
    "sub": arith.subf,
    "mul": arith.mulf,
    "div": arith.divf,
    "fmod": arith.remf,
    "atan2": math.atan2,
    "max": arith.maximumf,
    "min": arith.minimumf,
}


def _float_binary(kind: str, a: ir.Value, b: ir.Value) -> ir.Value:
    if kind == "mod":
        return scalar.floor_mod(a, b, arith.remf(a, b))
    return _FLOAT[kind](a, b)


def _int_binary(kind: str, a: ir.Value, b: ir.Value, unsigned: bool) -> ir.Value:
    if kind in ("shl", "shr"):
        return _shift(kind, a, b, unsigned)
    functions: dict[str, Callable[[ir.Value, ir.Value], ir.Value]] = {
        "add": scalar.add,
        "sub": scalar.sub,
        "mul": scalar.mul,
        "and": arith.andi,
        "or": arith.ori,
        "xor": arith.xori,
        "max": lambda x, y: scalar.maximum(x, y, unsigned),
        "min": lambda x, y: scalar.minimum(x, y, unsigned),
    }
    return functions[kind](a, b)


def _shift(kind: str, a: ir.Value, b: ir.Value, unsigned: bool) -> ir.Value:
    """Shifting by the width or more leaves the fill bits (in LLVM it would be poison)."""
    width = scalar.constant(a.type, a.type.width)
    inside = arith.cmpi(scalar.I.ult, b, width)
    last = scalar.constant(a.type, a.type.width - 1)
    if kind == "shr" and not unsigned:
        return arith.shrsi(a, arith.select(inside, b, last))
    shifted = (arith.shli if kind == "shl" else arith.shrui)(a, arith.select(inside, b, last))
    return arith.select(inside, shifted, scalar.constant(a.type, 0))


def _int_division(kind: str, a: ir.Value, b: ir.Value, unsigned: bool, checked: str | None) -> ir.Value:
    """Quotient or remainder; with `checked` (a node name) the divisor may be 0 or -1, on which the hardware traps."""
    zero, one = scalar.constant(a.type, 0), scalar.constant(a.type, 1)
    divisor, minus_one = b, None
    if checked is not None:
        i64 = ir.IntegerType.get_signless(64)
        wide = scalar.convert(b, i64, unsigned_in=unsigned)
        nonzero = arith.cmpi(scalar.I.ne, wide, scalar.constant(i64, 0))
        scalar.check(nonzero, f"division by zero in node {checked}")
        divisor = arith.select(nonzero, b, one)
        if not unsigned:
            minus_one = arith.cmpi(scalar.I.eq, b, scalar.constant(b.type, -1))
            divisor = arith.select(minus_one, one, divisor)
    if unsigned:
        return arith.divui(a, divisor) if kind == "div" else arith.remui(a, divisor)
    if kind == "div":
        quotient = arith.divsi(a, divisor)
        return quotient if minus_one is None else arith.select(minus_one, arith.subi(zero, a), quotient)
    remainder = arith.remsi(a, divisor)
    return remainder if kind == "fmod" else scalar.floor_mod(a, divisor, remainder)


@lowers("mlc.compare")
def compare(op: Lowering) -> ir.Value:
    """`i1`; narrow floats compare after widening."""
    predicate, unsigned = op.text("predicate"), op.flag("unsigned")
    return pointwise(
        op.sizes(),
        op.types[0].element_type,
        op.broadcast([0, 1], op.types[0].rank),
        lambda args: scalar.compare(predicate, scalar.widen(args[0]), scalar.widen(args[1]), unsigned),
    )


@lowers("mlc.select")
def select(op: Lowering) -> ir.Value:
    """`condition ? on_true : on_false`."""
    sources = op.broadcast([0, 1, 2], op.types[0].rank)
    return pointwise(op.sizes(), op.types[0].element_type, sources, lambda args: arith.select(*args))


@lowers("mlc.cast")
def cast(op: Lowering) -> ir.Value:
    """Conversion of every element; see `scalar.convert`."""
    to = op.types[0].element_type
    if to == element(op.operand(0)):
        return op.operand(0)
    return elementwise(
        op.operand(0),
        to,
        lambda x: scalar.convert(
            x,
            to,
            unsigned_in=op.flag("unsigned_in"),
            unsigned_out=op.flag("unsigned_out"),
            saturate=op.flag("saturate"),
        ),
    )


@lowers("mlc.bitcast")
def bitcast(op: Lowering) -> ir.Value:
    """The same bits of every element as another type."""
    to = op.types[0].element_type
    return elementwise(op.operand(0), to, lambda x: x if x.type == to else arith.bitcast(to, x))
