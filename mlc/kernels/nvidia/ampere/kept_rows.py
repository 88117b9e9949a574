"""The softmax of a warp with 32 rows, each of whose threads keeps what is known of one row.

A thread computes with several rows, `across` threads with a row: the largest logits and the sums of all of its rows
would be registers that are needed for products. Maxima and sums are combined over the threads so that every step
leaves each with half of the rows, and one row at the end; a power of each row is made once, and comes back to all of
its threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, nvvm

from mlc.kernels.nvidia.tensor_cores.attention_softmax import HALVES, Softmax, fused, places, reduced
from mlc.kernels.nvidia.tensor_cores.words import Words
from mlc.kernels.nvidia.threads import WARP

_ALL = WARP - 1


@dataclass(frozen=True)
class Weighed:
    """What becomes of a block of logits: `powers` and the `factors` of what was summed before, for every two rows of a
    thread; the largest logit and the sum of powers of the row that the thread keeps."""

    powers: list[list[ir.Value]]
    factors: list[list[ir.Value]]
    largest: ir.Value
    total: ir.Value


class KeptRows:
    """Powers of the logits of 32 rows; thread t of the `across` ones of a row keeps the row number t of theirs."""

    def __init__(self, words: Words, softmax: Softmax, across: int) -> None:
        self.words, self.softmax, self.across = words, softmax, across
        math, lane = words.math, words.math.rem(words.thread(), across)
        self.is_upper = {}
        distance = across // 2
        while distance:
            self.is_upper[distance] = words.is_equal(math.rem(math.div(lane, distance), 2), 1)
            distance //= 2

    def weigh(self, logits: Sequence[Sequence[ir.Value]], largest: ir.Value, total: ir.Value) -> Weighed:
        """The powers of a block of logits, for every two rows of this thread, behind blocks with that largest logit and
        total of the kept row."""
        softmax = self.softmax
        rows = [(part, places(half, len(values))) for part, values in enumerate(logits) for half in range(HALVES)]
        tops = [reduced(arith.maxnumf, [logits[part][i] for i in mine]) for part, mine in rows]
        top = arith.maxnumf(largest, self._kept(arith.maxnumf, tops))
        shift = softmax.shift(top)
        factor = softmax.power(largest, shift)
        powers, sums = [list(values) for values in logits], []
        for (part, mine), own in zip(rows, self.spread(shift), strict=True):
            for i in mine:
                powers[part][i] = softmax.power(logits[part][i], own)
            sums.append(reduced(arith.addf, [powers[part][i] for i in mine]))
        factors = self.spread(factor)
        by_part = [factors[i : i + HALVES] for i in range(0, len(factors), HALVES)]
        return Weighed(powers, by_part, top, fused(total, factor, self._kept(arith.addf, sums)))

    def spread(self, value: ir.Value) -> list[ir.Value]:
        """What the keepers of this thread's rows have as `value`."""
        words, segments = self.words, (WARP - self.across) << 8 | _ALL
        return [
            nvvm.ShflOp(
                value.type, words.value(-1), value, words.value(row), words.value(segments), nvvm.ShflKind.idx
            ).res
            for row in range(self.across)
        ]

    def _kept(self, both: Callable[[ir.Value, ir.Value], ir.Value], values: Sequence[ir.Value]) -> ir.Value:
        """The kept row's combination of its threads' values, of which there is one for each row."""
        words, values = self.words, list(values)
        while len(values) > 1:
            distance = len(values) // 2
            upper, found = self.is_upper[distance], []
            for low, high in zip(values[:distance], values[distance:], strict=True):
                kept, sent = arith.select(upper, high, low), arith.select(upper, low, high)
                other = nvvm.ShflOp(
                    sent.type, words.value(-1), sent, words.value(distance), words.value(_ALL), nvvm.ShflKind.bfly
                ).res
                found.append(both(kept, other))
            values = found
        return values[0]
