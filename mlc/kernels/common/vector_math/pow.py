"""powf, rsqrt and cbrt.

x^y = e^(y ln|x|) with ln|x| as an unevaluated sum of two floats (about 2^-32 relative), because y ln|x| may
be as large as 104 and its absolute error becomes the relative error of the result. With |x| = 2^n m and q =
(m-1)/(m+1), ln|x| = n ln(2) + 2 atanh(q); q, q^2, q^3 are sums of two floats, the higher terms single ones.
Every error term is an explicit `fma`, so that contraction by the code generator changes nothing.

Source of the two-float scheme: T. Dekker, "A floating-point technique for extending the available precision",
Numerische Mathematik 18, 1971, with the error-free product by FMA.
"""

from __future__ import annotations

from mlir import ir

from . import coefficients as k
from .emitter import INF, NAN, Emitter
from .exp import EXP_HIGH, EXP_LOW, ROUND_BIASED, scale_factors
from .log import normalise

#: With |y| beyond this every |x| != 1 over- or underflows.
LARGEST_EXPONENT = 2.0**40
#: Two thirds of the exponent bias in the bit pattern, less the mean error of a linear logarithm.
CBRT_GUESS = 0x2A5137A0


def atanh_two_sum(e: Emitter, f: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Returns (q, rest) with atanh(f / (2 + f)) = q + rest, q = f / (2 + f) rounded."""
    reciprocal = e.div(1.0, e.add(f, 2.0))
    q = e.mul(f, reciprocal)
    q_low = e.mul(reciprocal, e.fma(e.neg(q), f, e.fma(q, -2.0, f)))
    square = e.mul(q, q)
    square_low = e.fma(q, e.add(q_low, q_low), e.fma(q, q, e.neg(square)))
    cube = e.mul(square, q)
    cube_low = e.fma(square, q_low, e.fma(square_low, q, e.fma(square, q, e.neg(cube))))
    factor = e.horner(square, k.ATANH_THIRD)
    return q, e.fma(factor, cube, e.fma(factor, cube_low, q_low))


def log_two_sum(e: Emitter, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Returns (high, low) with ln(x) = high + low, low within half an ulp of high, for positive finite x."""
    n, f = normalise(e, x)
    q, rest = atanh_two_sum(e, f)
    doubled = e.add(q, q)
    total = e.fma(n, k.LN2[0], doubled)
    # n * LN2[0] is exact, so the fma below gives back `doubled` as it went into `total`.
    lost = e.sub(doubled, e.fma(n, -k.LN2[0], total))
    low = e.fma(n, k.LN2[1], e.fma(rest, 2.0, lost))
    high = e.add(total, low)
    return high, e.add(e.sub(total, high), low)


def magnitude_power(e: Emitter, base: ir.Value, exponent: ir.Value) -> ir.Value:
    """base^exponent for base >= 0, by continuity at 0 and infinity; NaN for NaN."""
    high, low = log_two_sum(e, base)
    high = e.select(e.compare("olt", base, INF), high, base)
    high = e.select(e.compare("oeq", base, 0.0), -INF, high)
    product = e.mul(exponent, high)
    error = e.fma(exponent, low, e.fma(exponent, high, e.neg(product)))
    # Where the result is 0 or inf anyway, the error term is meaningless (or NaN).
    error = e.select(e.compare("olt", e.abs(product), 128.0), error, 0.0)
    product = e.at_most(e.at_least(product, EXP_LOW), EXP_HIGH)
    biased = e.fma(product, k.LOG2_E[0], ROUND_BIASED)
    n = e.sub(biased, ROUND_BIASED)
    r = e.add(e.fma(n, -k.LN2[0], product), e.fma(n, -k.LN2[1], error))
    first, second = scale_factors(e, biased)
    return e.mul(e.mul(e.horner(r, (1.0, 1.0, *k.EXP)), first), second)


def splat_value(value: ir.Value) -> float | None:
    """The number that every lane of `value` is known to be: a constant, or the broadcast of one."""
    owner = value.owner
    if not isinstance(owner, ir.Operation | ir.OpView):
        return None
    operation = owner.operation
    if operation.name == "vector.broadcast":
        return splat_value(operation.operands[0])
    if operation.name != "arith.constant":
        return None
    attribute = operation.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    return ir.FloatAttr(attribute).value


def fixed_power(e: Emitter, x: ir.Value, exponent: float) -> ir.Value | None:
    """x^exponent by products and square roots, for the exponents that models are full of; None for others."""
    if exponent in (2.0, 3.0):
        square = e.mul(x, x)
        return square if exponent == 2.0 else e.mul(square, x)
    if exponent == -1.0:
        return e.div(1.0, x)
    if exponent in (0.5, -0.5):
        # Unlike the square root, a power of -0 is positive and that of -inf is not NaN.
        root = e.sqrt(e.select(e.compare("oeq", x, -INF), INF, e.add(x, 0.0)))
        return root if exponent == 0.5 else e.div(1.0, root)
    return {0.0: e.f(1.0), 1.0: x}.get(exponent)


def powf(e: Emitter, x: ir.Value, y: ir.Value) -> ir.Value:
    """x^y with the special cases of C99 `powf` (Annex F.9.4.4)."""
    exponent = splat_value(y)
    simple = None if exponent is None else fixed_power(e, x, exponent)
    return general_power(e, x, y) if simple is None else simple


def general_power(e: Emitter, x: ir.Value, y: ir.Value) -> ir.Value:
    """x^y for any y."""
    base = e.abs(x)
    # A finite exponent keeps (-1)^inf = 1 out of inf * 0.
    bounded = e.at_most(e.at_least(y, -LARGEST_EXPONENT), LARGEST_EXPONENT)
    magnitude = magnitude_power(e, base, bounded)
    half = e.mul(y, 0.5)
    integral = e.compare("oeq", e.trunc(y), y)
    odd = e.both(integral, e.compare("one", e.trunc(half), half))
    result = e.select(odd, e.copysign(magnitude, x), magnitude)
    negative = e.both(e.compare("olt", x, 0.0), e.compare("ogt", x, -INF))
    fractional = e.compare("une", e.trunc(y), y)
    result = e.select(e.both(negative, fractional), NAN, result)
    return e.select(e.either(e.compare("oeq", y, 0.0), e.compare("oeq", x, 1.0)), 1.0, result)


def rsqrt(e: Emitter, x: ir.Value) -> ir.Value:
    """1 / sqrt(x); -0 gives -inf as in IEEE 754 and C23."""
    return e.div(1.0, e.sqrt(x))


def cbrt(e: Emitter, x: ir.Value) -> ir.Value:
    """Cube root: a third of the bit pattern as the first guess, error 3.5%, two of Halley's steps."""
    magnitude = e.abs(x)
    # An eighth (or 2^24 times) of x keeps 2 root^3 + x finite and subnormal numbers exact.
    tiny = e.compare("olt", magnitude, 2.0**-100)
    scaled = e.mul(magnitude, e.select(tiny, 2.0**24, 0.125))
    # The bits as a float may be off by 2^6 in 2^30: immaterial for a guess.
    third = e.mul(e.to_float(e.bits(scaled)), 1 / 3)
    root = e.float(e.iadd(e.to_int(third), CBRT_GUESS))
    for _ in range(2):
        cube = e.mul(e.mul(root, root), root)
        step = e.div(e.sub(cube, scaled), e.add(e.add(cube, cube), scaled))
        root = e.fma(e.neg(root), step, root)
    root = e.mul(root, e.select(tiny, 2.0**-8, 2.0))
    plain = e.both(e.compare("ogt", magnitude, 0.0), e.compare("olt", magnitude, INF))
    return e.copysign(e.select(plain, root, magnitude), x)
