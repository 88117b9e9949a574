"""log, log2, log10 and log1p.

x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), taken from the bit pattern; log(1 + f) is f plus a
polynomial.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from . import coefficients as k
from .emitter import INF, NAN, Emitter

#: The bit pattern of sqrt(1/2).
SQRT_HALF = 0x3F3504F3
MIN_NORMAL = 2.0**-126


def split_exponent(e: Emitter, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Returns (n as i32, mantissa in [sqrt(1/2), sqrt(2))) of a positive normal x."""
    offset = e.isub(e.bits(x), SQRT_HALF)
    mantissa = e.float(e.iadd(e.iand(offset, 0x007FFFFF), SQRT_HALF))
    return e.sar(offset, 23), mantissa


def normalise(e: Emitter, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Returns (n as f32, f) with x = 2^n (1 + f), for any positive finite x, subnormal ones included."""
    tiny = e.compare("olt", x, MIN_NORMAL)
    exponent, mantissa = split_exponent(e, e.select(tiny, e.mul(x, 2.0**23), x))
    n = e.to_float(exponent)
    return e.select(tiny, e.add(n, -23.0), n), e.sub(mantissa, 1.0)


def log_domain(e: Emitter, x: ir.Value, result: ir.Value) -> ir.Value:
    """Puts in the results for x outside (0, inf): -inf at zero, NaN below, inf at inf, NaN for NaN."""
    outside = e.select(e.compare("oeq", x, 0.0), -INF, NAN)
    finite = e.select(e.compare("oeq", x, INF), INF, result)
    return e.select(e.compare("ogt", x, 0.0), finite, outside)


def natural(e: Emitter, n: ir.Value, f: ir.Value) -> ir.Value:
    """ln(2^n (1 + f))."""
    small = e.fma(n, k.LN2[1], e.mul(e.mul(f, f), e.horner(f, k.LOG)))
    return e.fma(n, k.LN2[0], e.add(f, small))


def scaled(
    e: Emitter, x: ir.Value, unit: Sequence[float] | None, slope: Sequence[float], poly: Sequence[float]
) -> ir.Value:
    """log_b(x) = n unit + f slope + f^2 poly(f), `unit` None meaning 1."""
    n, f = normalise(e, x)
    small = e.fma(f, slope[1], e.mul(e.mul(f, f), e.horner(f, poly)))
    if unit is None:
        return log_domain(e, x, e.add(n, e.fma(f, slope[0], small)))
    small = e.fma(n, unit[1], small)
    return log_domain(e, x, e.fma(n, unit[0], e.fma(f, slope[0], small)))


def log(e: Emitter, x: ir.Value) -> ir.Value:
    """Natural logarithm."""
    n, f = normalise(e, x)
    return log_domain(e, x, natural(e, n, f))


def log2(e: Emitter, x: ir.Value) -> ir.Value:
    """Binary logarithm."""
    return scaled(e, x, None, k.LOG2_E, k.LOG2)


def log10(e: Emitter, x: ir.Value) -> ir.Value:
    """Decimal logarithm."""
    return scaled(e, x, k.LOG10_2, k.LOG10_E, k.LOG10)


def log1p_parts(e: Emitter, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Returns (n as f32, f) with 1 + x = 2^n (1 + f), x > -1.

    The rounding error of the sum 1 + x (Knuth's two-sum) is scaled along and added to f.
    """
    total = e.add(x, 1.0)
    part = e.sub(total, 1.0)
    error = e.add(e.sub(1.0, e.sub(total, part)), e.sub(x, part))
    exponent, mantissa = split_exponent(e, total)
    # 2^-n, or 0 when n is so large that the error does not matter.
    scale = e.float(e.imax(e.isub(0x3F800000, e.shl(exponent, 23)), 0))
    return e.to_float(exponent), e.fma(error, scale, e.sub(mantissa, 1.0))


def log1p(e: Emitter, x: ir.Value) -> ir.Value:
    """ln(1 + x)."""
    n, f = log1p_parts(e, x)
    outside = e.select(e.compare("oeq", x, -1.0), -INF, NAN)
    result = e.select(e.compare("oeq", x, INF), INF, natural(e, n, f))
    return e.copysign(e.select(e.compare("ogt", x, -1.0), result, outside), x)
