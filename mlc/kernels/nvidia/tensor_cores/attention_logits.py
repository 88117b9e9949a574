"""From scores to logits: what stands between the products of attention, applied to accumulators.

A positive factor that the scores are multiplied by first is left to the softmax. Rounding on the way to it is not done:
scores stay in f32. A mask that hides all keys behind a row's own position, or in front of such a place (a window), or
behind a place that the run says (the length of a cache), bounds the blocks that are read. Anything else is evaluated
for every pair of scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common.attention import Attention
from mlc.kernels.common.attention_chain import Chain
from mlc.kernels.common.attention_limits import RowLimits
from mlc.kernels.common.evaluate import Evaluator, Override
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.nvidia.tensor_cores.attention_softmax import HALVES
from mlc.kernels.nvidia.tensor_cores.words import Words


@dataclass(frozen=True)
class Seen:
    """The visible columns of either row of a thread: from `first` up to `last`, or all where there is nothing."""

    last: Sequence[Scalar] = ()
    first: Sequence[Scalar] = ()


def _in_type(value: ir.Value, element: ir.Type) -> ir.Value:
    """Numbers of f32 as narrower floats, where operations on these follow, or back."""
    is_vector = isinstance(value.type, ir.VectorType)
    own = value.type.element_type if is_vector else value.type
    if own == element:
        return value
    type_ = ir.VectorType.get(value.type.shape, element) if is_vector else element
    return arith.truncf(type_, value) if own == ir.F32Type.get() else arith.extf(type_, value)


class Logits:
    """Logits of a thread's scores. `rows` and `keys` are the extents of the score matrix."""

    def __init__(self, words: Words, attention: Attention, chain: Chain, extents: tuple[Scalar, Scalar]) -> None:
        self.words, self.a, self.chain = words, attention, chain
        self.rows, self.keys = extents
        keys = attention.scores.op.results[0].type.shape[-1]
        self.lanes = 2 if keys > 0 and keys % 2 == 0 else 1
        self.low = words.frame.constants.get(words.f32, float("-inf"))
        self.limits = RowLimits(words.frame, attention, chain, words.math, extents, words.widen, self._word)

    def _word(self, value: ir.Value) -> ir.Value:
        return arith.trunci(self.words.i32, value)

    def evaluate(
        self, scores: Sequence[ir.Value], batch: Sequence[Idx], rows: Sequence[Scalar], first: Scalar, *, at_end: bool
    ) -> list[ir.Value]:
        """What the chain makes of a block whose first column of this thread is `first`, but for what `hide` does. Rows
        and, `at_end`, columns beyond the end get anything."""
        if self.chain.is_plain:
            return list(scores)
        math, result = self.words.math, list(scores)
        for half in range(HALVES):
            row = Idx(self.words.widen(math.minimum(rows[half], math.sub(self.rows, 1))), level=2)
            for group in range(len(scores) // 4):
                for i in range(0, 2, self.lanes):
                    column = math.add(first, 8 * group + i)
                    if at_end:
                        column = math.minimum(column, math.sub(self.keys, self.lanes))
                    at = 4 * group + 2 * half + i
                    key = Idx(self.words.widen(column), int(self.lanes > 1), level=3)
                    result[at : at + self.lanes] = self._pair(scores[at : at + self.lanes], [*batch, row, key])
        return result

    def _pair(self, scores: Sequence[ir.Value], point: list[Idx]) -> list[ir.Value]:
        """The logits of neighbours."""
        type_ = ir.VectorType.get([self.lanes], self.words.f32)
        value = scores[0] if self.lanes == 1 else vector.from_elements(type_, list(scores))
        if self.chain.scale != 1.0:
            factor = self.words.frame.constants.get(self.words.f32, self.chain.scale)
            value = arith.mulf(value, factor if self.lanes == 1 else vector.broadcast(type_, factor))
        value = _in_type(value, self.chain.start.type.element_type)
        overrides: dict[ir.Value, Override] = {self.chain.start: lambda _: value}
        scope = Evaluator(self.words.frame, self.lanes, overrides=overrides)
        for op, operand in self.chain.hiding:
            shown = op.operands[operand]
            scope.overrides[op.results[0]] = partial(scope.tensor, shown)
        found = _in_type(scope.splat(scope.tensor(self.a.logits, point)), self.words.f32)
        if self.lanes == 1:
            return [found]
        return [vector.extract(found, [], [i]) for i in range(self.lanes)]

    def seen(self, batch: Sequence[Idx], rows: Sequence[Scalar], end: Scalar | None, *, is_masked: bool) -> Seen:
        """What either of `rows` sees of a block, which limits cut where it `is_masked`, up to column `end` of all."""
        limits, math = self.limits, self.words.math
        lasts: list[Scalar] = [] if end is None else [end] * HALVES
        if is_masked and self.chain.lasts:
            lasts = [limits.last(batch, row) for row in rows]
            lasts = lasts if end is None else [math.minimum(column, end) for column in lasts]
        has_front = is_masked and bool(self.chain.firsts)
        return Seen(lasts, [limits.first(batch, row) for row in rows] if has_front else [])

    def hide(
        self,
        logits: Sequence[ir.Value],
        seen: Seen,
        first: Scalar,
        spread: tuple[int, int] = (8, 1),
        more: Sequence[int] = (0, 0),
    ) -> list[ir.Value]:
        """-inf in the place of logits that are not `seen`, with `more` added to either row's columns; `spread` is how
        far pairs of columns, and the two of a pair, are apart."""
        result = list(logits)
        kinds = ((seen.last, arith.CmpIPredicate.sgt), (seen.first, arith.CmpIPredicate.slt))
        for columns, predicate in kinds:
            if columns:
                limits = [self.words.value(self.words.math.sub(column, first)) for column in columns]
                result = self._hidden(result, limits, predicate, spread, more)
        return result

    def _hidden(
        self,
        logits: Sequence[ir.Value],
        limits: Sequence[ir.Value],
        predicate: arith.CmpIPredicate,
        spread: tuple[int, int],
        more: Sequence[int],
    ) -> list[ir.Value]:
        result = list(logits)
        for number in range(len(logits)):
            group, half, i = number // 4, number // 2 % 2, number % 2
            column = self.words.value(spread[0] * group + spread[1] * i - more[half])
            is_hidden = arith.cmpi(predicate, column, limits[half])
            result[number] = arith.select(is_hidden, self.low, logits[number])
        return result
