"""Attention whose keys the blocks of a cluster share: each has the largest logits, sums and products of its part, and
the first block puts them together, over shared memory of the others ("Flash-Decoding", Dao et al., 2023).

Parts are written as they lie in the registers, by warps that have queries, and where there are no more than eight of
them only the first row of each thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, llvm, vector

from mlc.kernels.common.frame import if_then
from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.hopper.barriers import synchronize
from mlc.kernels.nvidia.hopper.clusters import PAIR, meet, read_pair
from mlc.kernels.nvidia.hopper.groups import GROUP
from mlc.kernels.nvidia.tensor_cores.attention_softmax import Softmax, fused, places
from mlc.kernels.nvidia.tensor_cores.words import Words

_ALL = 1  # number of the barrier of all that multiply
_AT_ONCE = 32  # reads that are under way


@dataclass(frozen=True)
class Part:
    """What a thread has of its two rows: their largest logits, the sums of the powers relative to these, and the sums
    of powers times values."""

    largest: list[ir.Value]
    totals: list[ir.Value]
    output: list[ir.Value]


class Parts:
    """The parts of the `split` blocks of a cluster, of which this is number `rank`; `halves`: how many of a thread's
    rows there are. They lie at the start of the shared memory: nothing else may be there any more."""

    def __init__(self, words: Words, softmax: Softmax, rank: Scalar, split: int, halves: int) -> None:
        self.words, self.softmax, self.rank, self.split, self.halves = words, softmax, rank, split, halves

    def put_together(
        self, mine: Part, member: Scalar, has_rows: ir.Value, use: Callable[[Part], None]
    ) -> None:
        """`use` the whole in the first block, where a warp `has_rows`; `member` is the number of this thread."""
        words = self.words
        synchronize(words, _ALL, GROUP)  # the tensor cores have read the last tiles
        is_other = words.is_below(0, self.rank)
        is_first = words.is_equal(self.rank, 0)
        if_then(arith.andi(is_other, has_rows), lambda: self._write(mine, member))
        meet()
        if_then(arith.andi(is_first, has_rows), lambda: use(self._whole(mine, member)))
        meet()  # nobody leaves while its memory is read

    def _pairs(self, part: Part, half: int) -> list[tuple[ir.Value, ir.Value]]:
        """Neighbouring accumulators of a row, behind its largest logit and its sum."""
        mine = places(half, len(part.output))
        found = [(part.output[a], part.output[b]) for a, b in zip(mine[::2], mine[1::2], strict=True)]
        return [(part.largest[half], part.totals[half]), *found]

    def _write(self, mine: Part, member: Scalar) -> None:
        pair = ir.VectorType.get([2], self.words.f32)
        each = 1 + len(mine.output) // 4
        for half in range(self.halves):
            for number, values in enumerate(self._pairs(mine, half)):
                place = self._place(half * each + number, member)
                value = vector.from_elements(pair, list(values))
                llvm.StoreOp(value, self.words.place(place), alignment=PAIR)

    def _whole(self, mine: Part, member: Scalar) -> Part:
        largest, totals, output = list(mine.largest), list(mine.totals), list(mine.output)
        each = 1 + len(output) // 4
        for half in range(self.halves):
            heads = [self._read(half * each, member, other) for other in range(1, self.split)]
            for top, _ in heads:
                largest[half] = arith.maxnumf(largest[half], top)
            shift = self.softmax.shift(largest[half])
            factors = [self.softmax.power(top, shift) for top in (mine.largest[half], *(top for top, _ in heads))]
            totals[half] = arith.mulf(mine.totals[half], factors[0])
            for factor, (_, total) in zip(factors[1:], heads, strict=True):
                totals[half] = fused(total, factor, totals[half])
            numbers = places(half, len(output))
            for i in numbers:
                output[i] = arith.mulf(output[i], factors[0])
            self._add(output, numbers, half * each + 1, member, factors)
        return Part(largest, totals, output)

    def _add(
        self, output: list[ir.Value], numbers: list[int], first: int, member: Scalar, factors: list[ir.Value]
    ) -> None:
        """Adds the other blocks' accumulators `numbers`, whose pairs lie from `first` on."""
        count = len(numbers) // 2
        for other in range(1, self.split):
            for start in range(0, count, _AT_ONCE):
                these = range(start, min(start + _AT_ONCE, count))
                found = [self._read(first + n, member, other) for n in these]
                for n, pair in zip(these, found, strict=True):
                    for i, value in zip(numbers[2 * n : 2 * n + 2], pair, strict=True):
                        output[i] = fused(value, factors[other], output[i])

    def _read(self, number: int, member: Scalar, block: int) -> tuple[ir.Value, ir.Value]:
        first, second = read_pair(self.words, self._place(number, member), block)
        return first, second

    def _place(self, number: int, member: Scalar) -> Scalar:
        """Byte of pair `number` of a thread: neighbours' pairs are neighbours."""
        return self.words.math.mul(self.words.math.add(member, number * GROUP), PAIR)
