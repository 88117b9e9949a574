"""Exact reduction of large arguments modulo pi/2 (Payne and Hanek).

x = M 2^(e-23) with a 24-bit integer M. Of the binary expansion of 2/pi only a 96-bit window matters for x *
2/pi modulo 4: bits of larger weight give multiples of 4, bits of smaller weight less than 2^-70. The product
of M and the window modulo 2^96 is therefore x * 2/pi modulo 4 in units of 2^-94; its top 64 bits give the
quadrant and the fraction.

Source: M. Payne and R. Hanek, "Radian reduction for trigonometric functions", ACM SIGNUM 18(1), 1983.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, vector

from . import coefficients as k
from .emitter import Emitter, same_shape

#: 2/pi behind 32 zero bits: bit 0 has the weight 2^31.
_TABLE = (0, *k.TWO_OVER_PI_WORDS, 0)
#: (pi/2) 2^-62: one unit of the 64-bit fraction as an angle.
_UNIT = 1.5707963267948966 * 2.0**-62


class _Wide:
    """The i64 and f64 operations of the reduction, on the shape of the Emitter's type."""

    def __init__(self, e: Emitter) -> None:
        self.int_type = same_shape(e.type, ir.IntegerType.get_signless(64))
        self.float_type = same_shape(e.type, ir.F64Type.get())
        self.narrow = e.int_type
        self.constant = e.constant

    def i(self, value: int) -> ir.Value:
        """The i64 splat of `value`."""
        return self.constant(self.int_type, ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value))

    def f(self, value: float) -> ir.Value:
        """The f64 splat of `value`."""
        return self.constant(self.float_type, ir.FloatAttr.get(ir.F64Type.get(), value))

    def extend(self, value: ir.Value) -> ir.Value:
        """Zero-extends i32 to i64."""
        return arith.ExtUIOp(self.int_type, value).result

    def truncate(self, value: ir.Value) -> ir.Value:
        """The low 32 bits."""
        return arith.TruncIOp(self.narrow, value).result


def _windows(e: Emitter, wide: _Wide, position: ir.Value) -> list[ir.Value]:
    """The three 32-bit words (as i64) of the table that start at bit `position` (i32, 0 .. 159)."""
    # Positions start at 23, in word 0; every further multiple of 32 moves all four words on by one.
    words = [e.i(word) for word in _TABLE[:4]]
    for step in range(1, 5):
        beyond = e.compare_int("uge", position, 32 * step)
        words = [e.select_int(beyond, _TABLE[step + j], words[j]) for j in range(4)]
    shift = wide.extend(e.iand(position, 31))
    result = []
    for high, low in zip(words, words[1:], strict=False):
        pair = arith.OrIOp(arith.ShLIOp(wide.extend(high), wide.i(32)).result, wide.extend(low)).result
        shifted = arith.ShLIOp(pair, shift).result
        result.append(arith.ShRUIOp(shifted, wide.i(32)).result)
    return result


def reduce(e: Emitter, x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Returns (n as i32, r, low) with x = n pi/2 + r + low modulo 2 pi, |r| <= pi/4, r rounded once to f32.

    `x` is finite and at least 2^16 in the lanes that count; all others give garbage.
    """
    wide = _Wide(e)
    bits = e.bits(x)
    exponent = e.sar(bits, 23)
    mantissa = wide.extend(e.ior(e.iand(bits, 0x007FFFFF), 0x00800000))
    # The window starts 24 bits before the exponent e; the table starts 31 bits before the binary point.
    windows = _windows(e, wide, e.iadd(exponent, 31 - 24 - 127))
    first, second, third = (arith.MulIOp(mantissa, window).result for window in windows)
    total = arith.AddIOp(arith.ShLIOp(first, wide.i(32)).result, second).result
    total = arith.AddIOp(total, arith.ShRUIOp(third, wide.i(32)).result).result
    # Round to the nearest quadrant: the rest is a signed fraction.
    quadrant = arith.ShRUIOp(arith.AddIOp(total, wide.i(1 << 61)).result, wide.i(62)).result
    fraction = arith.SubIOp(total, arith.ShLIOp(quadrant, wide.i(62)).result).result
    angle = arith.MulFOp(arith.SIToFPOp(wide.float_type, fraction).result, wide.f(_UNIT)).result
    r = arith.TruncFOp(e.type, angle).result
    low = arith.SubFOp(angle, arith.ExtFOp(wide.float_type, r).result).result
    return wide.truncate(quadrant), r, arith.TruncFOp(e.type, low).result


def any_lane(condition: ir.Value) -> ir.Value:
    """Returns the i1 that says whether any lane of `condition` is set."""
    if not isinstance(condition.type, ir.VectorType):
        return condition
    i1 = ir.IntegerType.get_signless(1)
    shape = condition.type.shape
    if len(shape) != 1:
        count = 1
        for extent in shape:
            count *= extent
        condition = vector.ShapeCastOp(ir.VectorType.get([count], i1), condition).result
    return vector.ReductionOp(i1, ir.Attribute.parse("#vector.kind<or>"), condition).result
