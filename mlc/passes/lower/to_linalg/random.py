"""`random`: every element computes its own numbers from the seed and its position, as `mlc/interp/random.py` says."""

from __future__ import annotations

import math as number

from mlir import ir
from mlir.dialects import arith, math

from mlc.passes.lower.to_linalg import lowers, scalar
from mlc.passes.lower.to_linalg.builder import Source, indices, pointwise, size_value
from mlc.passes.lower.to_linalg.context import Lowering

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10


@lowers("mlc.random")
def random(op: Lowering) -> ir.Value:
    """Philox 4x32-10 with the seed as key and the row-major position as counter."""
    kind, result, sizes = op.text(), op.types[0].element_type, op.sizes()
    extents = [size_value(size) for size in sizes]
    double = result.width == 64
    compute = ir.F64Type.get() if double else ir.F32Type.get()

    def body(args: list[ir.Value]) -> ir.Value:
        linear = scalar.index(0)
        for coordinate, extent in zip(indices(len(sizes)), extents, strict=True):
            linear = arith.addi(arith.muli(linear, extent), coordinate)
        words = _philox(args[0], arith.index_cast(_i64(), linear))
        value = _uniform(words, compute) if kind == "uniform" else _normal(words, compute)
        return scalar.narrow(value, result) if value.type != result else value

    return pointwise(sizes, result, [Source(op.operand(0), [])], body)


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def _wide(value: int) -> ir.Value:
    return scalar.constant(_i64(), value)


def _low(value: ir.Value) -> ir.Value:
    return arith.andi(value, _wide(0xFFFFFFFF))


def _high(value: ir.Value) -> ir.Value:
    return arith.shrui(value, _wide(32))


def _philox(seed: ir.Value, counter: ir.Value) -> list[ir.Value]:
    """Four words of 32 bits, each in an `i64`."""
    keys = [_low(seed), _high(seed)]
    words = [_low(counter), _high(counter), _wide(0), _wide(0)]
    for _ in range(_ROUNDS):
        products = [arith.muli(words[2 * i], _wide(_MULTIPLIERS[i])) for i in (0, 1)]
        words = [
            arith.xori(arith.xori(_high(products[1]), words[1]), keys[0]),
            _low(products[1]),
            arith.xori(arith.xori(_high(products[0]), words[3]), keys[1]),
            _low(products[0]),
        ]
        keys = [_low(arith.addi(key, _wide(step))) for key, step in zip(keys, _WEYL, strict=True)]
    return words


def _unit(high: ir.Value, low: ir.Value, type_: ir.Type, above_zero: bool) -> ir.Value:
    """Words as a number in [0, 1), or in (0, 1] when `above_zero`."""
    double = type_.width == 64
    if double:
        whole = arith.shrui(arith.ori(arith.shli(high, _wide(32)), low), _wide(11))
    else:
        whole = arith.shrui(high, _wide(8))
    if above_zero:
        whole = arith.addi(whole, _wide(1))
    if not double:
        whole = arith.trunci(ir.IntegerType.get_signless(32), whole)
    return arith.mulf(arith.sitofp(type_, whole), scalar.constant(type_, 2.0 ** (-53 if double else -24)))


def _uniform(words: list[ir.Value], type_: ir.Type) -> ir.Value:
    return _unit(words[0], words[1], type_, False)


def _normal(words: list[ir.Value], type_: ir.Type) -> ir.Value:
    """Box and Muller, "A note on the generation of random normal deviates", 1958."""
    double = type_.width == 64
    radius = _unit(words[0], words[1], type_, True)
    high, low = words[2:] if double else (words[1], words[1])
    turned = arith.mulf(scalar.constant(type_, 2 * number.pi), _unit(high, low, type_, False))
    length = math.sqrt(arith.mulf(scalar.constant(type_, -2.0), math.log(radius)))
    return arith.mulf(length, math.cos(turned))
