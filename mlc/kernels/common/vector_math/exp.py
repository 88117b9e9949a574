"""exp, exp2, expm1 and the logistic sigmoid.

x = n ln(2) + r with |r| <= ln(2)/2, so e^x = 2^n e^r, and e^r is a polynomial. The integer n is obtained by
adding 1.5 * 2^23: the sum's low bits are n in two's complement, its value minus the constant is n as a float,
and a NaN passes without an undefined conversion. 2^n is applied as two factors, so that overflow and gradual
underflow round once.
"""

from __future__ import annotations

from mlir import ir

from . import coefficients as k
from .emitter import Emitter

#: 1.5 * 2^23: floats in [2^23, 2^24) are integers.
ROUND = 12582912.0
#: Twice the exponent bias: with it in the constant, halves of the low bits are biased exponents at once.
ROUND_BIASED = ROUND + 254.0
#: With the plain bias in the constant, the low bits are the exponent field of 2^n.
ROUND_EXPONENT = ROUND + 127.0
#: e^x is 0 below and infinite above; inside, n stays in [-152, 129].
EXP_LOW, EXP_HIGH = -105.0, 89.0
#: Exponent of the powers that are 0 where a sum is divided by later.
LEAST = -104.0


def scale_factors(e: Emitter, biased: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Splits 2^n into two normal factors; `biased` is a float whose low bits are n + 254, |n| < 254."""
    whole = e.bits(biased)
    half = e.shl(e.sar(whole, 1), 23)
    return e.float(half), e.float(e.isub(e.shl(whole, 23), half))


def scale(e: Emitter, biased: ir.Value) -> ir.Value:
    """Returns 2^n for -127 < n < 128, 0 for n = -127; `biased` is a float whose low bits are n + 127."""
    return e.float(e.shl(e.bits(biased), 23))


def reduce_exp(e: Emitter, x: ir.Value, round_constant: float) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Returns (x / ln 2 rounded + round_constant, n, r) with x = n ln 2 + r."""
    biased = e.fma(x, k.LOG2_E[0], round_constant)
    n = e.sub(biased, round_constant)
    r = e.fma(n, -k.LN2[1], e.fma(n, -k.LN2[0], x))
    return biased, n, r


def exp_below(e: Emitter, x: ir.Value) -> ir.Value:
    """e^x for x <= EXP_HIGH."""
    biased, _, r = reduce_exp(e, e.at_least(x, EXP_LOW), ROUND_BIASED)
    first, second = scale_factors(e, biased)
    return e.mul(e.mul(e.horner(r, (1.0, 1.0, *k.EXP)), first), second)


def exp(e: Emitter, x: ir.Value) -> ir.Value:
    """e^x."""
    return exp_below(e, e.at_most(x, EXP_HIGH))


def exp_nonpositive(e: Emitter, x: ir.Value, scalef: int = 0) -> ir.Value:
    """e^x for x <= 0 (up to 87), with results below 2^-103.5 as 0.

    Where a mask of -100 is added, results would be subnormal, and processors take a hundred times as long to multiply
    those; below a quotient by the sum of a row of up to 2^22 elements they stay normal.

    2^y with y = x / ln(2), y = n + f; two multiply-adds say n and f, and y is never rounded itself. The factor is
    2^(n - 23), whose exponent field is 0 for n = -104, which makes it 0: one scaling step does, and the polynomial is
    2^23 times as large. With `scalef` see `power`.
    """
    if scalef:
        return power(e, e.mul(x, k.LOG2_E[0]), scalef)
    x = e.at_least(x, LEAST / k.LOG2_E[0])
    biased = e.fma(x, k.LOG2_E[0], ROUND - LEAST)
    f = e.fma(x, k.LOG2_E[0], e.sub(ROUND - LEAST, biased))
    larger = 2.0 ** (127 + LEAST)
    return e.mul(e.horner(f, [larger * c for c in (1.0, *k.EXP2_SHORT)]), scale(e, biased))


def power(e: Emitter, y: ir.Value, scalef: int) -> ir.Value:
    """2^y for y <= 126 by `vscalefps`, which needs no clamp, nothing shifted, and makes n out of what is infinite.

    With 1, n is rounded by `vrndscaleps`, and what is below 2^-103.5 is masked. As `vscalefps` takes what lies below y
    itself, with 2 nothing is rounded at all: `vreduceps` says f, which is not negative then. 3 is as 1, and nothing is
    masked: for processors that take no longer for subnormal numbers.
    """
    n = y if scalef == 2 else e.round(y)
    f = e.fraction(y) if scalef == 2 else e.sub(y, n)
    result = e.scalef(e.horner(f, (1.0, *(k.EXP2_FRACTION if scalef == 2 else k.EXP2_SHORT))), n)
    return result if scalef == 3 else e.select(e.compare("olt", n, LEAST + 0.5), 0.0, result)


def shift_by(e: Emitter, most: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The a and b of y = a x + b with 2^y = e^(x - most) times a factor that is the same for all x <= most.

    One multiply-add in place of a difference and a product. As b = -most / ln(2) is rounded, the factor is not quite 1:
    off by 2^-24 |y| for the y of `most` itself, and up to 2^64 in the end, which quotients by sums of such powers do
    not feel. From 2^30 on, floats are so far apart that only `most` itself has a power that counts: there y = x - most,
    which neither overflows nor is far from 0 for it.
    """
    near = e.compare("olt", e.abs(most), 2.0**30)
    return e.select(near, k.LOG2_E[0], 1.0), e.select(near, e.mul(most, -k.LOG2_E[0]), e.neg(most))


def exp2(e: Emitter, x: ir.Value) -> ir.Value:
    """2^x."""
    x = e.at_most(e.at_least(x, -152.0), 129.0)
    biased = e.add(x, ROUND_BIASED)
    r = e.sub(x, e.sub(biased, ROUND_BIASED))
    first, second = scale_factors(e, biased)
    return e.mul(e.mul(e.horner(r, (1.0, *k.EXP2)), first), second)


def expm1(e: Emitter, x: ir.Value) -> ir.Value:
    """e^x - 1.

    2^n (e^r - 1) + (2^n - 1) with the two halves of the factor kept apart, so that n = 128 does not overflow.
    """
    clamped = e.at_most(e.at_least(x, -20.0), EXP_HIGH)
    biased, _, r = reduce_exp(e, clamped, ROUND_BIASED)
    first, second = scale_factors(e, biased)
    square = e.mul(r, e.horner(r, k.EXPM1))
    # With s = first * second: s (r + r square) + (s - 1), divided by `second` until the last step.
    inverse = e.float(e.isub(254 << 23, e.bits(second)))
    linear = e.fma(first, r, e.sub(first, inverse))
    total = e.fma(e.mul(first, r), square, linear)
    return e.copysign(e.mul(total, second), x)


def sigmoid(e: Emitter, x: ir.Value) -> ir.Value:
    """1 / (1 + e^-x) as s / (s + e^-r) with e^x = s e^r, s a power of two.

    s is made 2^64 times as large first: where the result is subnormal, so is s, and the division rounds once.
    """
    biased, _, r = reduce_exp(e, e.at_most(e.at_least(x, -104.0), 40.0), ROUND_EXPONENT + 64.0)
    power = e.mul(scale(e, biased), 2.0**-64)
    return e.div(power, e.add(power, e.horner(e.neg(r), (1.0, *k.EXP_SHORT))))
