"""Maxima of bf16 by its bits: 16-bit integers in the order of the numbers.

A maximum of widened numbers takes two instructions to widen and three to let NaN count, on half as many lanes; LLVM
makes eight of it where the result is rounded again. Three make an integer of bf16 that is compared in one.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common.evaluate import Evaluator

LEAST = -(1 << 15)
"""The integer of minus infinity: no other is less."""

_MAGNITUDE = 0x7FFF
_NEGATIVE_NANS = 0x7F  # as many as there are lie below minus infinity, and wrap around to the largest integers


def to_integers(ev: Evaluator, value: ir.Value) -> ir.Value:
    """Numbers of bf16 as signed integers of the same order, in which any NaN is above infinity."""
    bits = arith.bitcast(ev.splat(ev.frame.constants.get(_i16(), 0)).type, ev.splat(value))
    return arith.subi(_flipped(ev, bits), _constant(ev, _NEGATIVE_NANS))


def from_integers(ev: Evaluator, integers: ir.Value, type_: ir.Type) -> ir.Value:
    """The numbers of bf16 that `to_integers` has made `integers` of; `type_` is theirs."""
    return arith.bitcast(type_, _flipped(ev, arith.addi(integers, _constant(ev, _NEGATIVE_NANS))))


def _flipped(ev: Evaluator, bits: ir.Value) -> ir.Value:
    """Sign and magnitude as an integer, and back: the greater a negative number's magnitude, the less it is."""
    sign = arith.shrsi(bits, _constant(ev, 15))
    return arith.xori(bits, arith.andi(sign, _constant(ev, _MAGNITUDE)))


def _constant(ev: Evaluator, number: int) -> ir.Value:
    return ev.splat(ev.frame.constants.get(_i16(), number))


def _i16() -> ir.Type:
    return ir.IntegerType.get_signless(16)
