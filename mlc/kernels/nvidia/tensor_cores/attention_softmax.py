"""The softmax of blocks of scores in registers ("Online normalizer calculation for softmax", Milakov and Gimelshein,
2018).

Of the accumulators of an instruction, thread 4r + t of a warp has columns 2t and 2t + 1 of every eight, of the rows r
and r + 8. So a row is spread over four threads, and pairs of accumulators, rounded, are what the next product takes
from registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from mlir import ir
from mlir.dialects import arith, nvvm
from mlir.dialects import math as math_dialect

from mlc.kernels.common.attention import Attention
from mlc.kernels.common.evaluate import Evaluator, Override
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.index import Idx
from mlc.kernels.nvidia.tensor_cores.words import Words, assembly

HALVES = 2  # rows of a thread
_CHAINS = 2  # independent chains of maxima and sums
_LOG2_E = math.log2(math.e)
_ROUND = {"bf16": "cvt.rn.bf16x2.f32", "f16": "cvt.rn.f16x2.f32"}

Both = Callable[[ir.Value, ir.Value], ir.Value]


@dataclass(frozen=True)
class Block:
    """What the softmax makes of a block: `powers` in the place of the scores, the largest logits of the rows so far,
    the `factors` of what was summed before, and the sums of this thread's powers."""

    powers: list[ir.Value]
    largest: list[ir.Value]
    factors: list[ir.Value]
    sums: list[ir.Value]


class Softmax:
    """Powers of logits in units of `scale`: exp(scale · (x - largest)).

    With `scale` 1 the difference is taken first, which no finite logit makes overflow; otherwise the product with the
    scale is one instruction with the difference, which is for scores as they come. `across` neighbouring threads have a
    row.
    """

    def __init__(self, words: Words, scale: float | None, across: int = 4) -> None:
        self.words, self.across, self.scale = words, across, scale
        self.is_folded = scale is not None
        self.unit = words.frame.constants.get(words.f32, _LOG2_E * (1.0 if scale is None else scale))
        self.low = words.frame.constants.get(words.f32, float("-inf"))
        self.zero = words.frame.constants.get(words.f32, 0.0)
        self.minus = words.frame.constants.get(words.f32, -_LOG2_E * (1.0 if scale is None else scale))

    def block(self, scores: Sequence[ir.Value], before: Sequence[ir.Value]) -> Block:
        """The powers of a block whose rows had the largest logits `before`; none for the first block."""
        largest = []
        for half in range(HALVES):
            top = reduced(arith.maxnumf, [scores[i] for i in places(half, len(scores))])
            if before:
                top = arith.maxnumf(top, before[half])
            largest.append(self._shared(arith.maxnumf, top))
        powers, factors, sums = list(scores), [], []
        for half in range(HALVES):
            shift = self.shift(largest[half])
            if before:
                factors.append(self.power(before[half], shift))
            mine = places(half, len(scores))
            for i in mine:
                powers[i] = self.power(scores[i], shift)
            sums.append(reduced(arith.addf, [powers[i] for i in mine]))
        return Block(powers, largest, factors, sums)

    def total(self, partial: ir.Value) -> ir.Value:
        """The sum of a row from those of its threads."""
        return self._shared(arith.addf, partial)

    def shift(self, largest: ir.Value) -> ir.Value:
        """What is subtracted from the row's logits: nothing while all of them are hidden."""
        is_hidden = arith.cmpf(arith.CmpFPredicate.OEQ, largest, self.low)
        shift = arith.select(is_hidden, self.zero, largest)
        return arith.mulf(shift, self.minus) if self.is_folded else shift

    def logit(self, largest: ir.Value) -> ir.Value:
        """The logit that the largest one of a row stands for."""
        if self.scale is None:
            return largest
        return arith.mulf(largest, self.words.frame.constants.get(self.words.f32, self.scale))

    def factor(self, attention: Attention, total: ir.Value, largest: ir.Value, point: Sequence[Idx]) -> ir.Value:
        """What the products of powers and values of the row at `point` of the logits are multiplied with: one over what
        they are divided by. `total` is the sum of the powers relative to the `largest` one. Where a sink takes part,
        the powers become relative to what it leaves the largest logit."""
        frame, zero = self.words.frame, self.zero
        known, down = {attention.total.results[0]: total}, None
        if attention.sink:
            top = self.logit(largest)
            above = self._at(attention.difference, attention.shifted_by, point, {attention.maximum.results[0]: top})
            is_hidden = arith.cmpf(arith.CmpFPredicate.OEQ, largest, self.low)
            less = arith.minimumf(arith.subf(arith.select(is_hidden, zero, top), above), zero)
            down = _exp2(self.words, arith.mulf(less, frame.constants.get(self.words.f32, _LOG2_E)))
            known = {attention.total.results[0]: arith.mulf(total, down), attention.maximum.results[0]: top}
        found = reciprocal(self.words, self._at(attention.quotient, 1, point, known))
        return found if down is None else arith.mulf(found, down)

    def _at(
        self, reader: ir.Operation, operand: int, point: Sequence[Idx], known: Mapping[ir.Value, ir.Value]
    ) -> ir.Value:
        """What `reader` reads as an operand for the row at `point`."""
        overrides: dict[ir.Value, Override] = {v: partial(_given, number) for v, number in known.items()}
        scope = Evaluator(self.words.frame, 1, overrides=overrides)
        exprs = operand_map(reader, operand).results
        return scope.tensor(reader.operands[operand], [scope.idx.affine(e, point) for e in exprs])

    def power(self, x: ir.Value, shift: ir.Value) -> ir.Value:
        """The power of a logit; of -inf it is 0."""
        if self.is_folded:
            exponent = math_dialect.FmaOp(x, self.unit, shift).result
        else:
            exponent = arith.mulf(arith.subf(x, shift), self.unit)
        return _exp2(self.words, exponent)

    def _shared(self, both: Both, x: ir.Value) -> ir.Value:
        """Combined over the threads of a row."""
        for distance in (1, 2, 4)[: self.across.bit_length() - 1]:
            words = self.words
            other = nvvm.ShflOp(x.type, words.value(-1), x, words.value(distance), words.value(31), nvvm.ShflKind.bfly)
            x = both(x, other.res)
        return x


def _given(number: ir.Value, _: Sequence[Idx]) -> ir.Value:
    return number


def _exp2(words: Words, x: ir.Value) -> ir.Value:
    result = assembly(words.f32, [x], "ex2.approx.ftz.f32 $0, $1;", "=f,f", pure=True)
    assert result is not None
    return result


def places(half: int, count: int) -> list[int]:
    """The accumulators of a thread's row, of `count`."""
    return [4 * group + 2 * half + i for group in range(count // 4) for i in range(2)]


def scaled(values: Sequence[ir.Value], factors: Sequence[ir.Value]) -> list[ir.Value]:
    """Accumulators times a factor for either row."""
    return [arith.mulf(value, factors[(i >> 1) & 1]) for i, value in enumerate(values)]


def rounded(words: Words, values: Sequence[ir.Value], element: str) -> list[ir.Value]:
    """Accumulators as words of the next product's left operand: pairs of 16-bit numbers; or numbers of tf32, both rows
    of a column behind each other."""
    if element == "tf32":
        order = [4 * group + i for group in range(len(values) // 4) for i in (0, 2, 1, 3)]
        return [_nearest(words, values[i]) for i in order]
    pairs = []
    for i in range(0, len(values), 2):
        text = f"{_ROUND[element]} $0, $1, $2;"
        pair = assembly(words.i32, [values[i + 1], values[i]], text, "=r,f,f", pure=True)
        assert pair is not None
        pairs.append(pair)
    return pairs


def _nearest(words: Words, x: ir.Value) -> ir.Value:
    result = assembly(words.i32, [x], "cvt.rna.tf32.f32 $0, $1;", "=r,f", pure=True)
    assert result is not None
    return result


def reciprocal(words: Words, x: ir.Value) -> ir.Value:
    """1 / x, to the last bit but one."""
    result = assembly(words.f32, [x], "rcp.approx.ftz.f32 $0, $1;", "=f,f", pure=True)
    assert result is not None
    return result


def fused(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """a b + c."""
    return math_dialect.FmaOp(a, b, c).result


def reduced(both: Both, values: Sequence[ir.Value]) -> ir.Value:
    """All values combined."""
    chains = list(values[:_CHAINS])
    for number, value in enumerate(values[_CHAINS:]):
        chains[number % _CHAINS] = both(chains[number % _CHAINS], value)
    result = chains[0]
    for chain in chains[1:]:
        result = both(result, chain)
    return result
