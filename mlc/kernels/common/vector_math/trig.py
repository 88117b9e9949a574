"""sin, cos and tan.

x = n pi/2 + r with |r| <= pi/4: three-part Cody-Waite reduction with FMA up to MEDIUM; beyond it, only when some lane
needs it, the exact reduction of `payne_hanek`. Both polynomials are evaluated and the quadrant selects.
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


def reduce_medium(e: Emitter, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Returns (i32 whose two low bits are n mod 4, r) for |x| <= MEDIUM."""
    shifted = e.fma(x, k.TWO_OVER_PI[0], ROUND)
    n = e.sub(shifted, ROUND)
    r = x
    for part in k.HALF_PI:
        r = e.fma(n, -part, r)
    return e.bits(shifted), r


def reduce_argument(e: Emitter, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Returns (i32 whose two low bits are n mod 4, r) for any x >= 0; r is NaN for inf and NaN."""
    quadrant, r = reduce_medium(e, x)
    large = e.compare("ogt", x, MEDIUM)
    branch = scf.IfOp(payne_hanek.any_lane(large), [quadrant.type, r.type], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        inner = Emitter(e.type)
        exact_quadrant, exact = payne_hanek.reduce(inner, x)
        exact = inner.select(inner.compare("olt", x, INF), exact, inner.sub(x, x))
        scf.YieldOp([inner.select_int(large, exact_quadrant, quadrant), inner.select(large, exact, r)])
    with ir.InsertionPoint(branch.else_block):
        scf.YieldOp([quadrant, r])
    return branch.results[0], branch.results[1]


def kernels(e: Emitter, r: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Returns (sin r, cos r) for |r| <= 0.79."""
    square = e.mul(r, r)
    sine = e.fma(e.mul(r, square), e.horner(square, k.SIN), r)
    cosine = e.horner(square, (1.0, -0.5, *k.COS))
    return sine, cosine


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
