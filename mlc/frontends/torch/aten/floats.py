"""The parts that floating-point numbers consist of: signs, mantissas and exponents, and their neighbours."""

from __future__ import annotations

import math

from mlc.frontends.common import elementwise
from mlc.frontends.common.builder import Builder, Tensor
from mlc.frontends.report import NodeError
from mlc.frontends.torch.registry import Call, aten, promoted

_FORMATS = {"float16": (16, 10), "bfloat16": (16, 7), "float32": (32, 23), "float64": (64, 52)}
"""Bits, and bits of the fraction. Source: IEEE 754-2019, 3.6."""


def _bits(b: Builder, x: Tensor) -> Tensor:
    """The bits of floats as integers of their width."""
    if x.dtype not in _FORMATS:
        raise NodeError(f"the bits of {x}", "convert it to float32")
    return elementwise.bitcast(b, x, f"int{_FORMATS[x.dtype][0]}")


def _is_negative(b: Builder, x: Tensor) -> Tensor:
    """Whether the sign is minus, of zeros and NaN too."""
    if x.is_bool:
        return elementwise.binary(b, "xor", x, x)
    bits = _bits(b, x) if x.is_float else x
    return elementwise.compare(b, "lt", bits, b.like(0, bits))


@aten("signbit")
def signbit(call: Call) -> Tensor:
    """Whether the sign is minus."""
    return _is_negative(call.b, call.tensor(0))


@aten("copysign")
def copysign(call: Call) -> Tensor:
    """The size of the first operand with the sign of the second."""
    b = call.b
    x, y = (elementwise.floating(b, value) for value in promoted(b, call.arguments[:2]))
    size = elementwise.unary(b, "abs", x)
    return elementwise.select(b, _is_negative(b, y), elementwise.unary(b, "neg", size), size)


@aten("nextafter")
def nextafter(call: Call) -> Tensor:
    """The next number on the way to another. Those of one sign are ordered as their bits are."""
    b, (x, y) = call.b, promoted(call.b, call.arguments[:2])
    bits, zero = _bits(b, x), b.like(0, x)
    is_up, is_positive = elementwise.compare(b, "gt", y, x), elementwise.compare(b, "gt", x, zero)
    grows = elementwise.unary(b, "not", elementwise.binary(b, "xor", is_up, is_positive))
    moved = elementwise.binary(b, "add", bits, elementwise.select(b, grows, b.like(1, bits), b.like(-1, bits)))
    least = -(2 ** (_FORMATS[x.dtype][0] - 1)) + 1
    first = elementwise.select(b, is_up, b.like(1, bits), b.like(least, bits))
    moved = elementwise.select(b, elementwise.compare(b, "eq", x, zero), first, moved)
    result = elementwise.select(b, elementwise.compare(b, "eq", x, y), y, elementwise.bitcast(b, moved, x.dtype))
    for value in (x, y):
        result = elementwise.select(b, elementwise.unary(b, "isnan", value), value, result)
    return result


@aten("frexp")
def frexp(call: Call) -> list[Tensor]:
    """A mantissa between 1/2 and 1, and the int32 power of two that it is multiplied by; zeros and what is not finite
    have themselves and 0.
    """
    b, x = call.b, call.tensor(0)
    bits, (width, digits) = _bits(b, x), _FORMATS[x.dtype]
    bias = 2 ** (width - digits - 2) - 1
    size = elementwise.unary(b, "abs", x)
    is_tiny = elementwise.compare(b, "lt", size, b.like(2.0 ** (1 - bias), x))
    bits = _bits(b, elementwise.select(b, is_tiny, elementwise.scaled(b, x, 2.0**digits), x))
    shifted = elementwise.binary(b, "shr", bits, b.like(digits, bits))
    power = elementwise.cast(b, elementwise.binary(b, "and", shifted, b.like(2 * bias + 1, bits)), "int32")
    low = elementwise.select(b, is_tiny, b.like(bias - 1 + digits, power), b.like(bias - 1, power))
    power = elementwise.binary(b, "sub", power, low)
    fraction = elementwise.binary(b, "and", bits, b.like(~((2 * bias + 1) << digits), bits))
    mantissa = elementwise.binary(b, "or", fraction, b.like((bias - 1) << digits, bits))
    is_plain = elementwise.compare(b, "lt", size, b.like(math.inf, x))
    is_plain = elementwise.binary(b, "and", is_plain, elementwise.compare(b, "gt", size, b.like(0, x)))
    result = elementwise.select(b, is_plain, elementwise.bitcast(b, mantissa, x.dtype), x)
    return [result, elementwise.select(b, is_plain, power, b.like(0, power))]
