"""Floats of eight and four bits in a body: conversion from and to `f32` by integer arithmetic, as LLVM knows none.

Formats as in ONNX and the OCP specifications of 8-bit floats and of microscaling formats; rounding is half to even.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, math


@dataclass(frozen=True)
class Format:
    """A format with a sign bit: `infinity` is the code of +inf where there is one, `nan` that of a NaN (sign bit clear
    unless the format has one NaN only), `largest` the code of the largest finite number."""

    exponent_bits: int
    mantissa_bits: int
    bias: int
    largest: int
    nan: int | None
    infinity: int | None = None
    negative_zero: bool = True

    @property
    def width(self) -> int:
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.width - 1)


FORMATS: dict[str, Format] = {
    "f8E4M3FN": Format(4, 3, 7, 0x7E, 0x7F),
    "f8E5M2": Format(5, 2, 15, 0x7B, 0x7E, 0x7C),
    "f8E4M3FNUZ": Format(4, 3, 8, 0x7F, 0x80, negative_zero=False),
    "f8E5M2FNUZ": Format(5, 2, 16, 0x7F, 0x80, negative_zero=False),
    "f4E2M1FN": Format(2, 1, 1, 0x7, None),
}


EXPONENT = "f8E8M0FNU"
"""The format of scales: an exponent and nothing else."""


def _i32(value: int) -> ir.Value:
    i32 = ir.IntegerType.get_signless(32)
    wrapped = value - (1 << 32) if value >= 1 << 31 else value
    return arith.ConstantOp(i32, ir.IntegerAttr.get(i32, wrapped)).result


def _f32(value: float) -> ir.Value:
    f32 = ir.F32Type.get()
    return arith.ConstantOp(f32, ir.FloatAttr.get(f32, value)).result


def _is(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.cmpi(arith.CmpIPredicate.eq, a, b)


def widened(value: ir.Value) -> ir.Value | None:
    """A small float as `f32`, exactly; None for a value of another type."""
    if str(value.type) == EXPONENT:
        return _decode_exponent(value)
    form = FORMATS.get(str(value.type))
    return None if form is None else _decode(value, form)


def narrowed(value: ir.Value, type_: ir.Type, saturate: bool) -> ir.Value | None:
    """An `f32` as a small float; None for another type.

    Rounds half to even, to a power of two always up (ONNX's default). Too large a value becomes the largest number with
    `saturate`, else infinity, or NaN in a format without one; in a format without either, the largest number.
    """
    if str(type_) == EXPONENT:
        return _encode_exponent(value, type_, saturate)
    form = FORMATS.get(str(type_))
    return None if form is None else _encode(value, type_, form, saturate)


def _decode_exponent(value: ir.Value) -> ir.Value:
    """A power of two: the exponent's bits are those of `f32`, but 0 stands for 2^-127 and 255 for NaN."""
    i32, f32 = ir.IntegerType.get_signless(32), ir.F32Type.get()
    code = arith.extui(i32, arith.bitcast(ir.IntegerType.get_signless(8), value))
    moved = arith.bitcast(f32, arith.shli(code, _i32(23)))
    number = arith.select(_is(code, _i32(0)), _f32(2.0**-127), moved)
    return arith.select(_is(code, _i32(255)), _f32(float("nan")), number)


def _encode_exponent(value: ir.Value, type_: ir.Type, saturate: bool) -> ir.Value:
    """The next power of two that is not less. Without `saturate` what lies outside of 2^-127 to 2^127 is NaN, and
    negative numbers always are."""
    i32, unsigned = ir.IntegerType.get_signless(32), arith.CmpIPredicate.ugt
    bits = arith.bitcast(i32, value)
    code = arith.shrui(arith.addi(bits, _i32(0x7FFFFF)), _i32(23))
    # Of the numbers below 2^-126 the upper half rounds up to it, the lower half to 2^-127.
    upper = arith.extui(i32, arith.cmpi(unsigned, bits, _i32(0x400000)))
    code = arith.select(arith.cmpi(unsigned, bits, _i32(0x7FFFFF)), code, upper)
    code = arith.minui(code, _i32(254 if saturate else 255))
    if not saturate:
        small = arith.cmpi(arith.CmpIPredicate.ult, bits, _i32(0x400000))
        code = arith.select(small, _i32(255), code)
    is_nan = arith.cmpi(unsigned, bits, _i32(0x7F800000))  # or negative
    is_zero = _is(arith.andi(bits, _i32(0x7FFFFFFF)), _i32(0))
    code = arith.select(is_nan, _i32(255), code)
    code = arith.select(is_zero, _i32(0 if saturate else 255), code)
    return arith.bitcast(type_, arith.trunci(ir.IntegerType.get_signless(8), code))


def _decode(value: ir.Value, form: Format) -> ir.Value:
    bits, i32, f32 = ir.IntegerType.get_signless(form.width), ir.IntegerType.get_signless(32), ir.F32Type.get()
    code = arith.extui(i32, arith.bitcast(bits, value))
    magnitude = arith.andi(code, _i32(form.sign - 1))
    shift = 23 - form.mantissa_bits
    moved = arith.addi(arith.shli(magnitude, _i32(shift)), _i32((127 - form.bias) << 23))
    tiny = arith.mulf(arith.sitofp(f32, magnitude), _f32(2.0 ** (1 - form.bias - form.mantissa_bits)))
    is_tiny = arith.cmpi(arith.CmpIPredicate.ult, magnitude, _i32(1 << form.mantissa_bits))
    number = arith.select(is_tiny, tiny, arith.bitcast(f32, moved))
    if form.infinity is not None:
        number = arith.select(_is(magnitude, _i32(form.infinity)), _f32(float("inf")), number)
        is_nan = arith.cmpi(arith.CmpIPredicate.ugt, magnitude, _i32(form.infinity))
        number = arith.select(is_nan, _f32(float("nan")), number)
    elif form.nan is not None:
        is_nan = _is(magnitude if form.negative_zero else code, _i32(form.nan))
        number = arith.select(is_nan, _f32(float("nan")), number)
    negative = arith.cmpi(arith.CmpIPredicate.uge, code, _i32(form.sign))
    return arith.select(negative, arith.negf(number), number)


def _encode(value: ir.Value, type_: ir.Type, form: Format, saturate: bool) -> ir.Value:
    i32 = ir.IntegerType.get_signless(32)
    bits = arith.bitcast(i32, value)
    magnitude = arith.andi(bits, _i32(0x7FFFFFFF))
    code = _rounded(value, magnitude, form)
    overflow = arith.cmpi(arith.CmpIPredicate.sgt, code, _i32(form.largest))
    special = form.nan if form.infinity is None else form.infinity
    beyond = form.largest if saturate or special is None else special
    code = arith.select(overflow, _i32(beyond), code)
    sign = arith.andi(arith.shrui(bits, _i32(32 - form.width)), _i32(form.sign))
    signed = arith.ori(code, sign)
    if not form.negative_zero:
        # The code of -0 is the NaN.
        signed = arith.select(_is(code, _i32(0)), code, signed)
    is_nan = arith.cmpi(arith.CmpIPredicate.ugt, magnitude, _i32(0x7F800000))
    if form.nan is not None:
        signed = arith.select(is_nan, arith.ori(_i32(form.nan), sign), signed)
    else:  # the reference makes it a zero of the other sign
        signed = arith.select(is_nan, arith.xori(sign, _i32(form.sign)), signed)
    return arith.bitcast(type_, arith.trunci(ir.IntegerType.get_signless(form.width), signed))


def _rounded(value: ir.Value, magnitude: ir.Value, form: Format) -> ir.Value:
    """The code of |value| if the format went on beyond its largest number."""
    i32 = ir.IntegerType.get_signless(32)
    shift = 23 - form.mantissa_bits
    odd = arith.andi(arith.shrui(magnitude, _i32(shift)), _i32(1))
    up = arith.addi(arith.addi(magnitude, _i32((1 << (shift - 1)) - 1)), odd)
    normal = arith.subi(arith.shrui(up, _i32(shift)), _i32((127 - form.bias) << form.mantissa_bits))
    scaled = arith.mulf(math.absf(value), _f32(2.0 ** (form.bias - 1 + form.mantissa_bits)))
    smallest_normal = _i32((128 - form.bias) << 23)
    is_tiny = arith.cmpi(arith.CmpIPredicate.ult, magnitude, smallest_normal)
    # Large values have no place in the conversion to an integer.
    tiny = arith.fptosi(i32, math.roundeven(arith.select(is_tiny, scaled, _f32(0.0))))
    return arith.select(is_tiny, tiny, normal)
