"""tanh and the other hyperbolic functions."""

from __future__ import annotations

from mlir import ir

from . import coefficients as k
from .emitter import Emitter
from .exp import ROUND_EXPONENT, reduce_exp, scale


def tanh(e: Emitter, x: ir.Value) -> ir.Value:
    """Hyperbolic tangent: an odd polynomial near 0, 1 - 2 / (e^2|x| + 1) elsewhere."""
    magnitude = e.abs(x)
    square = e.mul(x, x)
    small = e.fma(e.mul(magnitude, square), e.horner(square, k.TANH), magnitude)
    # From 9.1 on tanh rounds to 1; the clamp keeps 2^n in range.
    doubled = e.at_most(e.add(magnitude, magnitude), 20.0)
    biased, _, r = reduce_exp(e, doubled, ROUND_EXPONENT)
    p = e.horner(r, (1.0, 1.0, *k.EXP))
    power = e.mul(p, scale(e, biased))
    large = e.sub(1.0, e.div(2.0, e.add(power, 1.0)))
    return e.copysign(e.select(e.compare("olt", magnitude, k.TANH_SPLIT), small, large), x)
