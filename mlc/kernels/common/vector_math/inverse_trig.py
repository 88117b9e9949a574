"""asin, acos, atan and atan2."""

from __future__ import annotations

from mlir import ir

from . import coefficients as k
from .emitter import INF, Emitter


def atan_unit(e: Emitter, t: ir.Value) -> ir.Value:
    """atan(t) for 0 <= t <= 1."""
    square = e.mul(t, t)
    return e.fma(e.mul(t, square), e.horner(square, k.ATAN), t)


def atan(e: Emitter, x: ir.Value) -> ir.Value:
    """Arc tangent; pi/2 - atan(1/|x|) beyond 1."""
    magnitude = e.abs(x)
    beyond = e.compare("ogt", magnitude, 1.0)
    angle = atan_unit(e, e.div(e.select(beyond, 1.0, magnitude), e.select(beyond, magnitude, 1.0)))
    complement = e.add(k.HALF_PI[0], e.sub(k.HALF_PI[1], angle))
    return e.copysign(e.select(beyond, complement, angle), x)


def atan2(e: Emitter, y: ir.Value, x: ir.Value) -> ir.Value:
    """The angle of the point (x, y), with the special cases of C99 `atan2f` (Annex F.9.1.4).

    The first-octant angle a becomes c pi/2 +- a, c = 0, 1, 2.
    """
    over, up = e.abs(x), e.abs(y)
    steep = e.compare("ogt", up, over)
    low, high = e.select(steep, over, up), e.select(steep, up, over)
    ratio = e.select(e.compare("oeq", high, 0.0), 0.0, e.div(low, high))
    ratio = e.select(e.compare("oeq", low, INF), 1.0, ratio)
    angle = atan_unit(e, ratio)
    left = e.compare_int("slt", e.bits(x), 0)
    backwards = e.differ(steep, left)
    angle = e.select(backwards, e.neg(angle), angle)
    turns = e.select(steep, 1.0, e.select(left, 2.0, 0.0))
    result = e.fma(turns, k.HALF_PI[0], e.fma(turns, k.HALF_PI[1], angle))
    result = e.select(e.compare("uno", x, y), e.add(x, y), result)
    return e.copysign(result, y)


def asin_core(e: Emitter, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Returns (|x| <= ASIN_SPLIT, p): p is asin|x| there, and asin(sqrt((1 - |x|) / 2)) elsewhere."""
    magnitude = e.abs(x)
    inner = e.compare("ole", magnitude, k.ASIN_SPLIT)
    halved = e.fma(magnitude, -0.5, 0.5)
    square = e.select(inner, e.mul(x, x), halved)
    root = e.select(inner, magnitude, e.sqrt(halved))
    return inner, e.fma(e.mul(root, square), e.horner(square, k.ASIN), root)


def asin(e: Emitter, x: ir.Value) -> ir.Value:
    """Arc sine; pi/2 - 2 asin(sqrt((1 - |x|) / 2)) beyond ASIN_SPLIT; NaN beyond 1."""
    inner, p = asin_core(e, x)
    outer = e.add(k.HALF_PI[0], e.fma(p, -2.0, k.HALF_PI[1]))
    return e.copysign(e.select(inner, p, outer), x)


def acos(e: Emitter, x: ir.Value) -> ir.Value:
    """Arc cosine: pi/2 - asin x inside, 2 asin(sqrt((1 - |x|) / 2)) or pi minus it outside; NaN beyond 1."""
    inner, p = asin_core(e, x)
    signed = e.copysign(p, x)
    near = e.sub(k.HALF_PI[0], e.sub(signed, k.HALF_PI[1]))
    doubled = e.add(signed, signed)
    behind = e.add(2 * k.HALF_PI[0], e.add(doubled, 2 * k.HALF_PI[1]))
    far = e.select(e.compare("olt", x, 0.0), behind, doubled)
    return e.select(inner, near, far)
