"""The exponential and its relatives by the instructions that NVIDIA's GPUs have for 2^x and 1/x.

`ex2.approx` and `rcp.approx` (PTX ISA, "Floating Point Instructions") are within 2^-22 and 1 ulp. An argument in base e
is not merely multiplied by log2(e): with t = x log2(e), rounded, e^x = 2^t e^q for the small q = x - t ln(2), and e^q
is 1 + q as far as floats tell. Exponentials are within 3 ulp.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, llvm, vector

from . import coefficients as k
from . import halves
from .emitter import Emitter
from .exp import EXP_HIGH, EXP_LOW


def _each(value: ir.Value, text: str) -> ir.Value:
    """The instruction `text` on every lane."""
    if isinstance(value.type, ir.VectorType):
        lanes = [_each(vector.extract(value, [], [i]), text) for i in range(value.type.shape[0])]
        return vector.from_elements(value.type, lanes)
    dialect = ir.Attribute.parse("0 : i64")
    return llvm.InlineAsmOp(value.type, [value], text, "=f,f", asm_dialect=dialect).results[0]


def power_of_two(x: ir.Value) -> ir.Value:
    """2^x; 0 where that is subnormal."""
    return _each(x, "ex2.approx.ftz.f32 $0, $1;")


def reciprocal(x: ir.Value) -> ir.Value:
    """1 / x; 0 where that is subnormal, and infinite where x is."""
    return _each(x, "rcp.approx.ftz.f32 $0, $1;")


def _at_least(e: Emitter, x: ir.Value, low: float) -> ir.Value:
    return arith.maximumf(x, e.f(low), fastmath=ir.Attribute.parse("#arith.fastmath<nsz>"))


def exp_nonpositive(e: Emitter, x: ir.Value) -> ir.Value:
    """e^x for x <= 0; 0 where that is subnormal. As accurate as `exp.exp_nonpositive` with `scalef`."""
    return power_of_two(e.mul(x, k.LOG2_E[0]))


def exp(e: Emitter, x: ir.Value) -> ir.Value:
    """e^x."""
    clamped = e.at_most(_at_least(e, x, EXP_LOW), EXP_HIGH)
    t = e.mul(clamped, k.LOG2_E[0])
    rest = e.add(e.fma(t, -k.LN2[1], e.fma(t, -k.LN2[0], clamped)), 1.0)
    return e.mul(_each(t, "ex2.approx.f32 $0, $1;"), rest)


def _quotient(e: Emitter, above: ir.Value, below: ir.Value) -> ir.Value:
    """above / below for normal divisors: an approximation less what it has too much, without the cases of a `div.rn`.

    Of a zero there is nothing too much, with the sign that leaves the zero's as it is.
    """
    inverse = reciprocal(below)
    near = e.mul(above, inverse)
    excess = e.fma(near, below, e.neg(above))
    return e.fma(e.neg(excess), inverse, near)


def tanh(e: Emitter, x: ir.Value) -> ir.Value:
    """Hyperbolic tangent, as `halves.tanh` has it."""
    return _quotient(e, *halves.whole(e, x, halves.TANH))


def sigmoid(e: Emitter, x: ir.Value) -> ir.Value:
    """1 / (1 + e^-x) to within 2^-21 of 1."""
    return reciprocal(e.add(power_of_two(e.mul(x, -k.LOG2_E[0])), 1.0))


def erf(e: Emitter, x: ir.Value) -> ir.Value:
    """The error function, as `halves.erf` has it."""
    return _quotient(e, *halves.whole(e, x, halves.ERF))


def one_plus_erf(e: Emitter, x: ir.Value) -> ir.Value:
    """1 + erf(x) to within 2^-21, as `halves.one_plus_erf` has it."""
    magnitude = e.abs(x)
    power = power_of_two(_at_least(e, e.mul(magnitude, e.horner(magnitude, k.ERFC)), -127.0))
    return e.select(e.compare("olt", x, 0.0), power, e.sub(2.0, power))


def one_plus_tanh(e: Emitter, x: ir.Value) -> ir.Value:
    """1 + tanh(x) to within 2^-21, as 2 / (1 + e^-2x)."""
    return e.mul(reciprocal(e.add(power_of_two(e.mul(x, -2 * k.LOG2_E[0])), 1.0)), 2.0)
