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
        shifts: list[ir.Value] = []
        factors: list[ir.Value] = []
        for half in range(self.halves):
            heads = [self._read(half * each, member, other) for other in range(1, self.split)]
            for top, _ in heads:
                largest[half] = arith.maxnumf(largest[half], top)
            shift = self.softmax.shift(largest[half])
            weights = [self.softmax.power(top, shift) for top in (mine.largest[half], *(top for top, _ in heads))]
            totals[half] = arith.mulf(mine.totals[half], weights[0])
            for factor, (_, total) in zip(weights[1:], heads, strict=True):
                totals[half] = fused(total, factor, totals[half])
            for i in places(half, len(output)):
                output[i] = arith.mulf(output[i], weights[0])
            shifts.append(shift)
            factors = weights
        if self.halves > 1:
            return Part(largest, totals, self._add_in_turn(output, shifts, member))
        for other in range(1, self.split):
            self._add_one(output, 0, member, (other, factors[other]))
        return Part(largest, totals, output)

    def _add_in_turn(self, output: list[ir.Value], shifts: list[ir.Value], member: Scalar) -> list[ir.Value]:
        """Adds the other blocks' accumulators of all rows, a block at a time: where the reads of all of them are in a
        row, ptxas has them all under way, and no registers for them."""
        each = 1 + len(output) // 4

        def add(other: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            for half, shift in enumerate(shifts):
                top, _ = self._read(half * each, member, other)
                self._add_one(carried, half, member, (other, self.softmax.power(top, shift)))
            return carried

        return self.words.loop(1, self.split, 1, output, add)

    def _add_one(self, output: list[ir.Value], half: int, member: Scalar, part: tuple[Scalar, ir.Value]) -> None:
        """Adds what another block has of a row, times a factor."""
        other, factor = part
        each, numbers = 1 + len(output) // 4, places(half, len(output))
        found = [self._read(half * each + 1 + n, member, other) for n in range(len(numbers) // 2)]
        for n, pair in enumerate(found):
            for i, value in zip(numbers[2 * n : 2 * n + 2], pair, strict=True):
                output[i] = fused(value, factor, output[i])

    def _read(self, number: int, member: Scalar, block: Scalar) -> tuple[ir.Value, ir.Value]:
        first, second = read_pair(self.words, self._place(number, member), block)
        return first, second

    def _place(self, number: int, member: Scalar) -> Scalar:
        """Byte of pair `number` of a thread: neighbours' pairs are neighbours."""
        return self.words.math.mul(self.words.math.add(member, number * GROUP), PAIR)
