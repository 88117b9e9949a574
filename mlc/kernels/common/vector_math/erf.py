"""The error function."""

from __future__ import annotations

from mlir import ir

from . import coefficients as k
from .emitter import Emitter
from .exp import ROUND_EXPONENT, exp2_parts, scale


def one_plus_erf(e: Emitter, x: ir.Value) -> ir.Value:
    """1 + erf(x) to within 2^-22: 2^P(|x|) for negative x, 2 - 2^P(|x|) otherwise, P fitted to log2(erfc)."""
    magnitude = e.abs(x)
    # From -127 on the factor 2^n is 0, and so is the result: a product with a huge x has to vanish.
    exponent = e.at_least(e.mul(magnitude, e.horner(magnitude, k.ERFC)), -127.0)
    p, biased = exp2_parts(e, exponent, ROUND_EXPONENT)
    power = e.mul(p, scale(e, biased))
    return e.select(e.compare("olt", x, 0.0), power, e.sub(2.0, power))


def erf(e: Emitter, x: ir.Value) -> ir.Value:
    """erf(x): an odd polynomial near 0, 1 - 2^P(|x|) elsewhere, P fitted to log2(erfc)."""
    magnitude = e.abs(x)
    square = e.mul(x, x)
    small = e.fma(magnitude, e.horner(square, k.ERF_SMALL), magnitude)
    # From 3.92 on erf rounds to 1.
    exponent = e.horner(e.at_most(magnitude, 4.0), k.ERF_LARGE)
    p, biased = exp2_parts(e, exponent, ROUND_EXPONENT)
    power = e.mul(p, scale(e, biased))
    large = e.sub(1.0, power)
    return e.copysign(e.select(e.compare("olt", magnitude, k.ERF_SPLIT), small, large), x)
