"""Pass `mlc-invert-scales`: codes are rounded from two multiplications instead of a division.

    %0 = linalg.generic ins(%x) { arith.divf %in, %scale }               ; of what is rounded to codes of 8 bits, alone
becomes
    %0 = linalg.generic ins(%x) { math.fma(%in, %high, %in * %low) }     ; high + low = 1 / scale

A division of a vector takes 16 cycles on CPUs where a multiplication takes one half. 1 / scale in two floats and one
rounding at the end come to the quotient that a division gives (N. Brisebarre, J.-M. Muller, S. K. Raina, "Accelerating
Correctly Rounded Floating-Point Division when the Divisor Is Known in Advance", IEEE Transactions on Computers 53(8),
2004) but for rare numbers. Here only codes count, which change where the quotient passes a half: the floats about each
of these places are tried, and a scale keeps its division where one of them gives another code.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from mlir import ir
from mlir.dialects import arith, math

from mlc.kernels.common.codes import Rounded, ends_in_codes, rounded_to_codes
from mlc.kernels.common.frame import defining_op
from mlc.kernels.common.generics import input_number, is_identity, only_operation
from mlc.passes.base import Pass
from mlc.passes.walk import functions, operations

_MOST_BITS = 8  # of a code: each of its values has a place to try
_AROUND = 6  # floats on either side of such a place: both ways are within two of the quotient
_LARGEST = 2.0**64  # scale, and one over the smallest: nothing that counts is near the ends of the floats


class InvertScales(Pass):
    """Rounds codes from products with one over their scale."""

    dialects = ("arith", "math", "linalg")
    statistics = {"inverted": "divisions that are multiplications now"}

    def run(self, op: ir.OpView) -> None:
        for function in functions(op):
            for inner in operations(function):
                if inner.name == "linalg.generic" and len(inner.results) == 1 and ends_in_codes(inner):
                    rounded = rounded_to_codes(inner)
                    if rounded is not None and _invert(rounded):
                        self.count("inverted")


def _invert(rounded: Rounded) -> bool:
    """Replaces the division in front of `rounded`; whether there is one and the codes stay the same."""
    value = rounded.first.operands[0]
    generic = defining_op(value)
    divide = only_operation(generic, "arith.divf")
    if generic is None or divide is None or len(list(value.uses)) != 1:
        return False
    if rounded.given is not None or rounded.type.width > _MOST_BITS:
        return False
    scale = _number(divide.operands[1])
    if input_number(generic, divide.operands[0]) is None or not is_identity(generic, len(generic.operands) - 1):
        return False
    parts = None if scale is None else inverse(scale, rounded.low - rounded.zero, rounded.high - rounded.zero)
    if parts is None:
        return False
    x, f32 = divide.operands[0], ir.F32Type.get()
    with ir.InsertionPoint(generic), generic.location:
        high, low = (arith.constant(f32, part) for part in parts)
    with ir.InsertionPoint(divide), divide.location:
        quotient = math.FmaOp(x, high, arith.mulf(x, low)).result
    divide.results[0].replace_all_uses_with(quotient)
    divide.erase()
    return True


def _number(value: ir.Value) -> float | None:
    """The number that a constant of f32 is; None for anything else."""
    op = defining_op(value)
    if op is None or op.name != "arith.constant" or not isinstance(op.results[0].type, ir.F32Type):
        return None
    return float(ir.FloatAttr(op.attributes["value"]).value)


@lru_cache(maxsize=4096)
def inverse(scale: float, low: int, high: int) -> tuple[float, float] | None:
    """Two floats that add up to one over `scale`, of which x times the larger plus x times the smaller, rounded twice,
    gives the same codes between `low` and `high` as x divided by `scale`; None where they do not, or `scale` is zero,
    negative or next to the ends of what a float can be.

    Both have the same sign, so that infinities stay what they are.
    """
    if not 1 / _LARGEST < scale < _LARGEST:
        return None
    exact = 1 / Fraction(scale)
    first = np.float32(float(exact))
    if Fraction(float(first)) >= exact:
        first = np.nextafter(first, np.float32(0))
    second = np.float32(float(exact - Fraction(float(first))))
    halves = np.arange(low - 1, high + 1, dtype=np.float64) + 0.5
    places = (halves * scale).astype(np.float32)
    steps = np.arange(-_AROUND, _AROUND + 1, dtype=np.int32)
    x = (places.view(np.int32)[:, np.newaxis] + steps).view(np.float32)
    same = np.rint(x / np.float32(scale)) == np.rint(_fused(x, first, x * second))
    return (float(first), float(second)) if bool(np.all(same)) else None


def _fused(x: np.ndarray, factor: np.float32, addend: np.ndarray) -> np.ndarray:
    """`x * factor + addend` of f32, rounded once: the product is exact in f64, and the sum is rounded to odd there,
    which does not get in the way of the second rounding (S. Boldo, G. Melquiond, "Emulation of FMA and Correctly
    Rounded Sums: Proved Algorithms Using Rounding to Odd", IEEE Transactions on Computers 57(4), 2008)."""
    a, b = x.astype(np.float64) * np.float64(factor), addend.astype(np.float64)
    total = a + b
    back = total - a
    error = (a - (total - back)) + (b - back)
    even = total.view(np.int64) % 2 == 0
    nudged = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where((error != 0) & even, nudged, total).astype(np.float32)
