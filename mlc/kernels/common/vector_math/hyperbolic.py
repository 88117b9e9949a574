"""tanh, sinh, cosh and their inverses."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlir import ir

from . import coefficients as k
from .emitter import INF, Emitter
from .exp import ROUND_BIASED, ROUND_EXPONENT, exp2_parts, reduce_exp, scale, scale_factors
from .log import log1p_parts, log_domain, natural, normalise

#: From here on sqrt(x^2 + 1) and sqrt(x^2 - 1) round to x.
SQUARE_DOMINATES = 8192.0


def odd(e: Emitter, x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
    """x + sum coefficients[j] x^(2j+3)."""
    square = e.mul(x, x)
    return e.fma(e.mul(x, square), e.horner(square, coefficients), x)


def tanh(e: Emitter, x: ir.Value) -> ir.Value:
    """Hyperbolic tangent: an odd polynomial near 0, 1 - 2 / (e^2|x| + 1) elsewhere."""
    magnitude = e.abs(x)
    small = odd(e, magnitude, k.TANH)
    # From 9.1 on tanh rounds to 1; the clamp keeps 2^n in range. e^2t = 2^n e^2r with t = n ln(2)/2 + r; one
    # part of ln(2)/2 is enough, n being small wherever e^2t counts.
    t = e.at_most(magnitude, 10.0)
    biased = e.fma(t, 2 * k.LOG2_E[0], ROUND_EXPONENT)
    r = e.fma(e.sub(biased, ROUND_EXPONENT), -0.5 * math.log(2), t)
    p = e.horner(r, tuple(c * 2.0**j for j, c in enumerate((1.0, 1.0, *k.EXP))))
    large = e.sub(1.0, e.div(2.0, e.fma(p, scale(e, biased), 1.0)))
    return e.copysign(e.select(e.compare("olt", magnitude, k.TANH_SPLIT), small, large), x)


def one_plus_tanh(e: Emitter, x: ir.Value) -> ir.Value:
    """1 + tanh(x) to within 2^-22, as 2 / (1 + e^-2x)."""
    # At 128 the factor 2^n is infinite and the result 0: a product with a huge x has to vanish.
    exponent = e.at_most(e.at_least(e.mul(x, -2 * k.LOG2_E[0]), -127.0), 128.0)
    p, biased = exp2_parts(e, exponent, ROUND_EXPONENT)
    return e.div(2.0, e.fma(p, scale(e, biased), 1.0))


def half_exp(e: Emitter, x: ir.Value) -> ir.Value:
    """e^x / 2 for x >= 0, infinite only where that is."""
    biased, _, r = reduce_exp(e, e.at_most(x, 90.0), ROUND_BIASED - 1.0)
    first, second = scale_factors(e, biased)
    return e.mul(e.mul(e.horner(r, (1.0, 1.0, *k.EXP)), first), second)


def sinh(e: Emitter, x: ir.Value) -> ir.Value:
    """Hyperbolic sine: an odd polynomial up to 1, t - 1 / 4t with t = e^|x| / 2 beyond."""
    magnitude = e.abs(x)
    half = half_exp(e, magnitude)
    large = e.sub(half, e.div(0.25, half))
    return e.copysign(e.select(e.compare("olt", magnitude, 1.0), odd(e, magnitude, k.SINH), large), x)


def cosh(e: Emitter, x: ir.Value) -> ir.Value:
    """Hyperbolic cosine: t + 1 / 4t with t = e^|x| / 2."""
    half = half_exp(e, e.abs(x))
    return e.add(half, e.div(0.25, half))


def asinh(e: Emitter, x: ir.Value) -> ir.Value:
    """Inverse hyperbolic sine: an odd polynomial up to ASINH_SPLIT, ln(|x| + sqrt(x^2 + 1)) beyond."""
    magnitude = e.abs(x)
    huge = e.compare("ogt", magnitude, SQUARE_DOMINATES)
    total = e.add(magnitude, e.sqrt(e.fma(magnitude, magnitude, 1.0)))
    n, f = normalise(e, e.select(huge, magnitude, total))
    # For huge x the argument is 2|x|: one more in the exponent.
    large = natural(e, e.select(huge, e.add(n, 1.0), n), f)
    large = e.select(e.compare("olt", magnitude, INF), large, magnitude)
    return e.copysign(e.select(e.compare("olt", magnitude, k.ASINH_SPLIT), odd(e, magnitude, k.ASINH), large), x)


def acosh(e: Emitter, x: ir.Value) -> ir.Value:
    """Inverse hyperbolic cosine: log1p(t + sqrt(2t + t^2)) with t = x - 1, ln(2x) for huge x; NaN below 1."""
    t = e.sub(x, 1.0)
    huge = e.compare("ogt", x, SQUARE_DOMINATES)
    argument = e.add(t, e.sqrt(e.fma(t, t, e.add(t, t))))
    n, f = log1p_parts(e, e.select(huge, t, argument))
    result = natural(e, e.select(huge, e.add(n, 1.0), n), f)
    result = e.select(e.compare("olt", x, INF), result, x)
    # A NaN of the square root (x < 1) does not survive the bit operations.
    return e.select(e.compare("oge", x, 1.0), result, e.sqrt(e.select(e.compare("olt", x, 1.0), -1.0, x)))


def atanh(e: Emitter, x: ir.Value) -> ir.Value:
    """Inverse hyperbolic tangent: an odd polynomial up to 1/2, ln((1 + |x|) / (1 - |x|)) / 2 beyond."""
    magnitude = e.abs(x)
    ratio = e.div(e.add(magnitude, 1.0), e.sub(1.0, magnitude))
    n, f = normalise(e, ratio)
    large = e.mul(log_domain(e, ratio, natural(e, n, f)), 0.5)
    return e.copysign(e.select(e.compare("olt", magnitude, 0.5), odd(e, magnitude, k.ATANH), large), x)
