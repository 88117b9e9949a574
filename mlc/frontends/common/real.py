"""Formulas in double precision, written as Python writes them, and the elementary functions that they need.

Special functions of float32 are computed in float64, so that they cancel and multiply errors as they like. The
functions here are arithmetic alone: `mlc.unary` has those of float64 from the C library, which GPUs have not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlc.frontends.common import elementwise
from mlc.frontends.common.builder import Builder, Tensor

_SQRT_HALF = 0x3FE6A09E667F3BCD
"""The bits of sqrt(1/2)."""
_TO_INTEGER = 1.5 * 2**52
"""What is added to a small whole number for its integer to be in the lowest bits."""
_LN2 = (0.6931471806019545, -4.2009150726810846e-11)
_PI = (3.1415926814079285, -2.781813535079891e-08, 1.2246467991473532e-16)
"""The sum is pi; the first two have 26 bits, so that their products with whole numbers below 2^27 are exact."""


@dataclass(frozen=True)
class Real:
    """A tensor of float64 in a formula; the other operand may be a number."""

    b: Builder
    x: Tensor

    def of(self, value: Real | float) -> Real:
        """A number as a scalar."""
        return value if isinstance(value, Real) else Real(self.b, self.b.like(float(value), self.x))

    def _with(self, kind: str, other: Real | float, swapped: bool = False) -> Real:
        pair = (self.of(other), self) if swapped else (self, self.of(other))
        return Real(self.b, elementwise.binary(self.b, kind, pair[0].x, pair[1].x))

    def __add__(self, other: Real | float) -> Real:
        return self._with("add", other)

    def __radd__(self, other: float) -> Real:
        return self._with("add", other, True)

    def __sub__(self, other: Real | float) -> Real:
        return self._with("sub", other)

    def __rsub__(self, other: float) -> Real:
        return self._with("sub", other, True)

    def __mul__(self, other: Real | float) -> Real:
        return self._with("mul", other)

    def __rmul__(self, other: float) -> Real:
        return self._with("mul", other, True)

    def __truediv__(self, other: Real | float) -> Real:
        return self._with("div", other)

    def __rtruediv__(self, other: float) -> Real:
        return self._with("div", other, True)

    def __pow__(self, exponent: int) -> Real:
        """A power of a whole number from 1 on."""
        if exponent == 1:
            return self
        half = self ** (exponent // 2)
        return half * half * self if exponent % 2 else half * half

    def least(self, other: Real | float) -> Real:
        """The smaller one."""
        return self._with("min", other)

    def most(self, other: Real | float) -> Real:
        """The larger one."""
        return self._with("max", other)

    def unary(self, kind: str) -> Real:
        """`mlc.unary` of a kind that machines have an instruction for: abs, neg, floor, round, sqrt."""
        return Real(self.b, elementwise.unary(self.b, kind, self.x))

    def compare(self, predicate: str, other: Real | float) -> Tensor:
        """`mlc.compare`."""
        return elementwise.compare(self.b, predicate, self.x, self.of(other).x)

    def where(self, condition: Tensor, other: Real | float) -> Real:
        """This where the condition holds, else the other."""
        return Real(self.b, elementwise.select(self.b, condition, self.x, self.of(other).x))

    def bits(self) -> Tensor:
        """The bits as `i64`."""
        return elementwise.bitcast(self.b, self.x, "int64")


def apply(b: Builder, function: Callable[..., Real], *values: Tensor) -> Tensor:
    """`function` of tensors of one float dtype, or of integers as float32, in float64; in their dtype again."""
    values = tuple(elementwise.floating(b, value) for value in values)
    result = function(*(Real(b, elementwise.cast(b, value, "float64")) for value in values))
    return elementwise.cast(b, result.x, values[0].dtype)


def polynomial(x: Real, coefficients: Sequence[float]) -> Real:
    """The polynomial with these coefficients, that of the highest power first, by Horner's rule."""
    result = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        result = result * x + coefficient
    return result


def exp(x: Real) -> Real:
    """e^x = 2^n e^r, with |r| <= ln(2) / 2; 0 below 2^-1022. Within 2 ulp of float64."""
    inside = x.most(-708.0).least(709.0)
    n = (inside * math.log2(math.e)).unary("round")
    r = inside - n * _LN2[0] - n * _LN2[1]
    series = polynomial(r, [1 / math.factorial(k) for k in range(13, -1, -1)])
    b, bits = x.b, (n + _TO_INTEGER).bits()
    biased = elementwise.binary(b, "add", bits, b.like(1023, bits))
    scale = elementwise.bitcast(b, elementwise.binary(b, "shl", biased, b.like(52, bits)), "float64")
    result = series * Real(b, scale)
    result = x.of(0.0).where(x.compare("lt", -708.0), result)
    return x.of(math.inf).where(x.compare("gt", 709.0), result)


def log(x: Real) -> Real:
    """ln x = n ln(2) + ln(m), with m between sqrt(1/2) and sqrt(2); of numbers that are not subnormal ones of float64.

    -inf at 0, NaN below. Within 2 ulp of float64.
    """
    b, bits = x.b, x.bits()
    offset = elementwise.binary(b, "sub", bits, b.like(_SQRT_HALF, bits))
    exponent = elementwise.binary(b, "shr", offset, b.like(52, bits))
    n = Real(b, elementwise.cast(b, exponent, "float64"))
    fraction = elementwise.binary(b, "and", offset, b.like(2**52 - 1, bits))
    mantissa = elementwise.binary(b, "add", fraction, b.like(_SQRT_HALF, bits))
    m = Real(b, elementwise.bitcast(b, mantissa, "float64"))
    result = n * _LN2[0] + (n * _LN2[1] + log_near_one(m - 1.0))
    result = result.where(x.compare("lt", math.inf), x)
    edge = x.of(-math.inf).where(x.compare("eq", 0.0), math.nan)
    return result.where(x.compare("gt", 0.0), edge)


def log_near_one(u: Real, terms: int = 12) -> Real:
    """ln(1 + u) = 2 atanh(s), s = u / (2 + u): 12 terms for 1 + u between sqrt(1/2) and sqrt(2), 18 from 1/2 to 2."""
    s = u / (u + 2.0)
    return s * polynomial(s * s, [2 / (2 * k + 1) for k in range(terms - 1, -1, -1)])


def sine(z: Real) -> Real:
    """sin z for |z| <= pi / 2."""
    return z * polynomial(z * z, [(-1) ** k / math.factorial(2 * k + 1) for k in range(11, -1, -1)])


def cosine(z: Real) -> Real:
    """cos z for |z| <= pi / 2, within 2^-53."""
    return polynomial(z * z, [(-1) ** k / math.factorial(2 * k) for k in range(12, -1, -1)])


def sine_and_cosine(x: Real) -> tuple[Real, Real]:
    """sin x and cos x within 2^-51 for |x| < 2^28; any numbers from -1 to 1 beyond."""
    n = (x * (1 / math.pi)).unary("round")
    z = (x - n * _PI[0] - n * _PI[1] - n * _PI[2]).most(-math.pi / 2).least(math.pi / 2)
    is_odd = (n - (n * 0.5).unary("floor") * 2.0).compare("gt", 0.5)
    sign = x.of(-1.0).where(is_odd, 1.0)
    return sine(z) * sign, cosine(z) * sign
