"""A thin builder of elementwise arithmetic on one f32 scalar or vector type.

All helpers insert at the current MLIR insertion point and location. No fast-math flag is ever set. The
consumers are compiled with FMA contraction (`a * b + c` may become one rounding), so an expansion whose
accuracy needs a product to be rounded on its own must not feed that product to an addition: it uses `fma` for
the error term instead.
"""

from __future__ import annotations

import math as _pymath
from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, math

from mlc.kernels.common.intrinsics import x86

SIGN_BIT = 0x80000000
INF = _pymath.inf
NAN = _pymath.nan


def same_shape(type_: ir.Type, element: ir.Type) -> ir.Type:
    """Returns `element`, or the vector of `element` with the shape of `type_`."""
    if isinstance(type_, ir.VectorType):
        return ir.VectorType.get(type_.shape, element)
    return element


class Emitter:
    """Emits operations on values of `type_` (f32 or a vector of it) and i32/i1 values of the same shape."""

    def __init__(self, type_: ir.Type) -> None:
        self.type = type_
        self.int_type = same_shape(type_, ir.IntegerType.get_signless(32))
        self._constants: dict[tuple[str, object], ir.Value] = {}

    # Constants. `f` also takes a value already emitted, so formulas can mix both.

    def f(self, value: float | ir.Value) -> ir.Value:
        """Returns the f32 splat of a Python number (rounded to f32); passes values through."""
        if isinstance(value, ir.Value):
            return value
        key = ("f", float(value).hex())
        if key not in self._constants:
            self._constants[key] = self.constant(self.type, ir.FloatAttr.get(ir.F32Type.get(), float(value)))
        return self._constants[key]

    def i(self, value: int | ir.Value) -> ir.Value:
        """Returns the i32 splat of a 32-bit pattern, given signed or unsigned; passes values through."""
        if isinstance(value, ir.Value):
            return value
        key = ("i", value & 0xFFFFFFFF)
        if key not in self._constants:
            signed = (value & 0x7FFFFFFF) - (value & SIGN_BIT)
            attribute = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), signed)
            self._constants[key] = self.constant(self.int_type, attribute)
        return self._constants[key]

    @staticmethod
    def constant(type_: ir.Type, attribute: ir.Attribute) -> ir.Value:
        """Emits a scalar constant or the splat of it."""
        if isinstance(type_, ir.VectorType):
            attribute = ir.DenseElementsAttr.get_splat(type_, attribute)
        return arith.ConstantOp(type_, attribute).result

    # Floating point.

    def add(self, a: float | ir.Value, b: float | ir.Value) -> ir.Value:
        """Returns a + b."""
        return arith.AddFOp(self.f(a), self.f(b)).result

    def sub(self, a: float | ir.Value, b: float | ir.Value) -> ir.Value:
        """Returns a - b."""
        return arith.SubFOp(self.f(a), self.f(b)).result

    def mul(self, a: float | ir.Value, b: float | ir.Value) -> ir.Value:
        """Returns a * b."""
        return arith.MulFOp(self.f(a), self.f(b)).result

    def div(self, a: float | ir.Value, b: float | ir.Value) -> ir.Value:
        """Returns a / b."""
        return arith.DivFOp(self.f(a), self.f(b)).result

    def neg(self, a: ir.Value) -> ir.Value:
        """Returns -a (the sign bit flipped)."""
        return arith.NegFOp(a).result

    def fma(self, a: float | ir.Value, b: float | ir.Value, c: float | ir.Value) -> ir.Value:
        """Returns a * b + c with one rounding."""
        return math.FmaOp(self.f(a), self.f(b), self.f(c)).result

    def sqrt(self, a: ir.Value) -> ir.Value:
        """Returns the correctly rounded square root."""
        return math.SqrtOp(a).result

    def abs(self, a: ir.Value) -> ir.Value:
        """Returns |a|."""
        return math.AbsFOp(a).result

    def trunc(self, a: ir.Value) -> ir.Value:
        """Returns a rounded towards zero."""
        return math.TruncOp(a).result

    def round(self, a: ir.Value) -> ir.Value:
        """Returns the nearest integer of a, the even one of two."""
        return math.RoundEvenOp(a).result

    def scalef(self, a: ir.Value, n: ir.Value) -> ir.Value:
        """Returns a * 2^floor(n) for a vector of 16 elements by AVX-512's `vscalefps`; 0 for a NaN and n = -inf."""
        return self._avx512("mask.scalef.ps.512", a, n, a)

    def fraction(self, a: ir.Value) -> ir.Value:
        """Returns a - floor(a), at most 1 as it is rounded, for a vector of 16 elements by AVX-512's `vreduceps`."""
        down = arith.ConstantOp(ir.IntegerType.get_signless(32), 9).result  # towards -inf, without an exception
        return self._avx512("mask.reduce.ps.512", a, down, a)

    def _avx512(self, name: str, *operands: ir.Value) -> ir.Value:
        """An instruction for all 16 lanes, with the rounding that is set."""
        kinds = {width: ir.IntegerType.get_signless(width) for width in (16, 32)}
        mask, rounding = ((16, -1), (32, 4))
        operands = (*operands, *(arith.ConstantOp(kinds[w], v).result for w, v in (mask, rounding)))
        return x86(f"avx512.{name}", self.type, operands)

    def copysign(self, magnitude: float | ir.Value, sign: ir.Value) -> ir.Value:
        """Returns `magnitude` with the sign bit of `sign`."""
        return math.CopySignOp(self.f(magnitude), sign).result

    def horner(self, x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
        """Returns sum coefficients[j] x^j (lowest power first), at least one coefficient."""
        result = self.f(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            result = self.fma(result, x, coefficient)
        return result

    # Comparison and selection. `at_least` and `at_most` are single instructions on x86, where minps and maxps
    # return their second operand when one is NaN.

    def compare(self, predicate: str, a: float | ir.Value, b: float | ir.Value) -> ir.Value:
        """Returns the i1 result of an `arith.cmpf` predicate such as "olt"."""
        return arith.CmpFOp(getattr(arith.CmpFPredicate, predicate.upper()), self.f(a), self.f(b)).result

    def compare_int(self, predicate: str, a: int | ir.Value, b: int | ir.Value) -> ir.Value:
        """Returns the i1 result of an `arith.cmpi` predicate such as "ult"."""
        return arith.CmpIOp(getattr(arith.CmpIPredicate, predicate), self.i(a), self.i(b)).result

    def select(self, condition: ir.Value, on_true: float | ir.Value, on_false: float | ir.Value) -> ir.Value:
        """Returns on_true where condition, else on_false (f32)."""
        return arith.SelectOp(condition, self.f(on_true), self.f(on_false)).result

    def select_int(self, condition: ir.Value, on_true: int | ir.Value, on_false: int | ir.Value) -> ir.Value:
        """Returns on_true where condition, else on_false (i32)."""
        return arith.SelectOp(condition, self.i(on_true), self.i(on_false)).result

    def at_least(self, a: ir.Value, low: float) -> ir.Value:
        """Returns max(a, low), and NaN when a is NaN."""
        return self.select(self.compare("ogt", low, a), low, a)

    def at_most(self, a: ir.Value, high: float) -> ir.Value:
        """Returns min(a, high), and NaN when a is NaN."""
        return self.select(self.compare("olt", high, a), high, a)

    @staticmethod
    def both(a: ir.Value, b: ir.Value) -> ir.Value:
        """Returns the conjunction of two conditions."""
        return arith.AndIOp(a, b).result

    @staticmethod
    def either(a: ir.Value, b: ir.Value) -> ir.Value:
        """Returns the disjunction of two conditions."""
        return arith.OrIOp(a, b).result

    @staticmethod
    def differ(a: ir.Value, b: ir.Value) -> ir.Value:
        """Returns the exclusive disjunction of two conditions."""
        return arith.XOrIOp(a, b).result

    # Bit patterns.

    def bits(self, a: ir.Value) -> ir.Value:
        """Reinterprets f32 as i32."""
        return arith.BitcastOp(self.int_type, a).result

    def float(self, a: ir.Value) -> ir.Value:
        """Reinterprets i32 as f32."""
        return arith.BitcastOp(self.type, a).result

    def to_float(self, a: ir.Value) -> ir.Value:
        """Converts a signed i32 to f32."""
        return arith.SIToFPOp(self.type, a).result

    def to_int(self, a: ir.Value) -> ir.Value:
        """Converts f32 to a signed i32, towards zero; the value must be in range in every lane."""
        return arith.FPToSIOp(self.int_type, a).result

    def iadd(self, a: int | ir.Value, b: int | ir.Value) -> ir.Value:
        """Returns a + b (wraps)."""
        return arith.AddIOp(self.i(a), self.i(b)).result

    def isub(self, a: int | ir.Value, b: int | ir.Value) -> ir.Value:
        """Returns a - b (wraps)."""
        return arith.SubIOp(self.i(a), self.i(b)).result

    def imax(self, a: int | ir.Value, b: int | ir.Value) -> ir.Value:
        """Returns the larger of two signed i32."""
        return arith.MaxSIOp(self.i(a), self.i(b)).result

    def iand(self, a: int | ir.Value, b: int | ir.Value) -> ir.Value:
        """Returns a & b."""
        return arith.AndIOp(self.i(a), self.i(b)).result

    def ior(self, a: int | ir.Value, b: int | ir.Value) -> ir.Value:
        """Returns a | b."""
        return arith.OrIOp(self.i(a), self.i(b)).result

    def ixor(self, a: int | ir.Value, b: int | ir.Value) -> ir.Value:
        """Returns a ^ b."""
        return arith.XOrIOp(self.i(a), self.i(b)).result

    def shl(self, a: ir.Value, count: int) -> ir.Value:
        """Returns a << count."""
        return arith.ShLIOp(a, self.i(count)).result

    def sar(self, a: ir.Value, count: int) -> ir.Value:
        """Returns a >> count, arithmetic."""
        return arith.ShRSIOp(a, self.i(count)).result

    def flip_sign(self, a: ir.Value, mask: ir.Value) -> ir.Value:
        """Returns a with its sign bit flipped where the top bit of the i32 `mask` is set."""
        return self.float(self.ixor(self.bits(a), self.iand(mask, SIGN_BIT)))
