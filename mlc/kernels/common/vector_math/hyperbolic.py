"""sinh, cosh, the inverses, and 1 + tanh (tanh itself: `halves`)."""

from __future__ import annotations

from mlir import ir

from . import coefficients as k
from .emitter import INF, Emitter
from .exp import ROUND_BIASED, ROUND_EXPONENT, reduce_exp, scale, scale_factors
from .halves import odd
from .log import log1p_parts, log_domain, natural, normalise

#: From here on sqrt(x^2 + 1) and sqrt(x^2 - 1) round to x.
SQUARE_DOMINATES = 8192.0


def one_plus_tanh(e: Emitter, x: ir.Value) -> ir.Value:
    """1 + tanh(x) to within 2^-22.3, as 2s / (s + 2^-r) with e^2x = s 2^r, s a power of two."""
    # At -44.5 the factor 2s is 0, and so is the result: a product with a huge x has to vanish. At 20 it is 2.
    x, factor = e.at_most(e.at_least(x, -44.5), 20.0), 2 * k.LOG2_E[0]
    biased = e.fma(x, factor, ROUND_EXPONENT + 1.0)
    r = e.fma(x, factor, e.sub(ROUND_EXPONENT + 1.0, biased))
    twice = scale(e, biased)
    inverse = e.horner(e.neg(r), (1.0, *k.EXP2_SHORT))
    return e.div(twice, e.fma(twice, 0.5, inverse))


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
