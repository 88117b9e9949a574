"""sin, cos and tan.

x = n pi/2 + r with |r| <= pi/4: three-part Cody-Waite reduction with FMA up to MEDIUM; beyond it, only when
some lane needs it, the exact reduction of `payne_hanek`. Both polynomials are evaluated and the quadrant
selects.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import scf

from . import coefficients as k
from . import payne_hanek
from .emitter import INF, Emitter
from .exp import ROUND

#: Largest |x| of the three-part reduction: n * HALF_PI[0] is then cancelled exactly.
MEDIUM = 131072.0


def reduce_medium(e: Emitter, x: ir.Value, precise: bool) -> list[ir.Value]:
    """Returns [i32 whose two low bits are n mod 4, r] with x = n pi/2 + r for |x| <= MEDIUM.

    r is within an ulp. With `precise` a third value `low` makes x = n pi/2 + r + low, unless r is small.
    """
    shifted = e.fma(x, k.TWO_OVER_PI[0], ROUND)
    n = e.sub(shifted, ROUND)
    first = e.fma(n, -k.HALF_PI[0], x)
    second = e.fma(n, -k.HALF_PI[1], first)
    if not precise:
        return [e.bits(shifted), e.fma(n, -k.HALF_PI[2], second)]
    # What `second` lost in rounding; the difference is exact only where first is larger than n * HALF_PI[1].
    lost = e.fma(n, -k.HALF_PI[1], e.sub(first, second))
    lost = e.select(e.compare("ogt", e.abs(first), 0.0078125), lost, 0.0)
    low = e.fma(n, -k.HALF_PI[2], lost)
    r = e.add(second, low)
    return [e.bits(shifted), r, e.add(e.sub(second, r), low)]


def reduce_argument(e: Emitter, x: ir.Value, precise: bool = False) -> list[ir.Value]:
    """Returns `reduce_medium`'s values for any x >= 0; r is NaN for inf and NaN."""
    medium = reduce_medium(e, x, precise)
    large = e.compare("ogt", x, MEDIUM)
    branch = scf.IfOp(payne_hanek.any_lane(large), [value.type for value in medium], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        inner = Emitter(e.type)
        quadrant, r, low = payne_hanek.reduce(inner, x)
        r = inner.select(inner.compare("olt", x, INF), r, inner.sub(x, x))
        merged = [inner.select_int(large, quadrant, medium[0])]
        merged += [inner.select(large, a, b) for a, b in zip((r, low), medium[1:], strict=False)]
        scf.YieldOp(merged)
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp(medium)
    return list(branch.results)


def kernels(e: Emitter, r: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Returns (sin r, cos r) for |r| <= 0.79."""
    square = e.mul(r, r)
    sine = e.fma(e.mul(r, square), e.horner(square, k.SIN), r)
    return sine, e.horner(square, (1.0, -0.5, *k.COS))


def sin(e: Emitter, x: ir.Value) -> ir.Value:
    """Sine."""
    quadrant, r = reduce_argument(e, e.abs(x))
    sine, cosine = kernels(e, r)
    odd = e.compare_int("ne", e.iand(quadrant, 1), 0)
    sign = e.ixor(e.shl(quadrant, 30), e.bits(x))
    return e.flip_sign(e.select(odd, cosine, sine), sign)


def cos(e: Emitter, x: ir.Value) -> ir.Value:
    """Cosine."""
    quadrant, r = reduce_argument(e, e.abs(x))
    sine, cosine = kernels(e, r)
    odd = e.compare_int("ne", e.iand(quadrant, 1), 0)
    return e.flip_sign(e.select(odd, sine, cosine), e.shl(e.iadd(quadrant, 1), 30))


def tan(e: Emitter, x: ir.Value) -> ir.Value:
    """Tangent: a polynomial in r, inverted in odd quadrants."""
    quadrant, r, low = reduce_argument(e, e.abs(x), precise=True)
    square = e.mul(r, r)
    excess = e.fma(e.mul(r, square), e.horner(square, k.TAN), low)
    tangent = e.add(r, e.fma(e.mul(square, low), 1.5, excess))
    odd = e.compare_int("ne", e.iand(quadrant, 1), 0)
    result = e.div(e.select(odd, -1.0, tangent), e.select(odd, tangent, 1.0))
    return e.flip_sign(result, e.bits(x))
