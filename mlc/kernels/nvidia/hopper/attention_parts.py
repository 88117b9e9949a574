"""Attention whose keys the blocks of a cluster share: each has the largest logits, sums and products of its part, over
shared memory that the others read ("Flash-Decoding", Dao et al., 2023). Each block adds a share of the columns and
writes it to the memory of the first, which has the whole then: a block that reads all of the others' parts alone waits
for them the longer the more there are.

Parts are written as they lie in the registers, by warps that have queries, and where there are no more than eight of
them only the first row of each thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from mlir import ir
from mlir.dialects import arith, llvm, vector

from mlc.kernels.common.frame import if_then
from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.hopper.barriers import synchronize
from mlc.kernels.nvidia.hopper.clusters import PAIR, meet, read_pair, write_pair
from mlc.kernels.nvidia.hopper.groups import GROUP
from mlc.kernels.nvidia.tensor_cores.attention_softmax import HALVES, Softmax, fused, places
from mlc.kernels.nvidia.tensor_cores.words import Words

_ALL = 1  # number of the barrier of all that multiply
_PAIR_COLUMNS = 8  # columns of a row in which each thread has a pair


def parts_bytes(width: int) -> int:
    """Shared memory for a block's part of `width` columns, and for the whole, which is as large."""
    return 2 * HALVES * (1 + -(-width // _PAIR_COLUMNS)) * GROUP * PAIR


def weights(softmax: Softmax, tops: Sequence[ir.Value]) -> tuple[ir.Value, list[ir.Value]]:
    """The largest logit of a row whose parts have the largest ones `tops`, and what each part is multiplied with."""
    largest = tops[0]
    for top in tops[1:]:
        largest = arith.maxnumf(largest, top)
    shift = softmax.shift(largest)
    return largest, [softmax.power(top, shift) for top in tops]


def weighted_sum(parts: Sequence[ir.Value], factors: Sequence[ir.Value]) -> ir.Value:
    """The sum of numbers of f32, or of vectors of them, each times its factor."""
    found = arith.mulf(parts[0], factors[0])
    for part, factor in zip(parts[1:], factors[1:], strict=True):
        found = fused(part, factor, found)
    return found


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
        if_then(has_rows, lambda: self._write(mine, member))
        meet()
        if_then(has_rows, lambda: self._add_share(len(mine.output), member))
        meet()
        is_first = words.is_equal(self.rank, 0)
        if_then(arith.andi(is_first, has_rows), lambda: use(self._whole(len(mine.output), member)))

    def _pairs(self, part: Part, half: int) -> list[tuple[ir.Value, ir.Value]]:
        """Neighbouring accumulators of a row, behind its largest logit and its sum."""
        mine = places(half, len(part.output))
        found = [(part.output[a], part.output[b]) for a, b in zip(mine[::2], mine[1::2], strict=True)]
        return [(part.largest[half], part.totals[half]), *found]

    def _write(self, mine: Part, member: Scalar) -> None:
        """This block's part, into its own memory."""
        pair = ir.VectorType.get([2], self.words.f32)
        each = 1 + len(mine.output) // 4
        for half in range(self.halves):
            for number, values in enumerate(self._pairs(mine, half)):
                place = self._place(half * each + number, member)
                value = vector.from_elements(pair, list(values))
                llvm.StoreOp(value, self.words.place(place), alignment=PAIR)

    def _add_share(self, columns: int, member: Scalar) -> None:
        """Adds what all blocks have in this block's share of `columns` accumulators, into the memory of the first.
        Nothing that is read depends on what was read before: all reads are under way at a time."""
        words, math, pairs = self.words, self.words.math, columns // 4
        share = -(-pairs // self.split)
        first = math.mul(self.rank, share)
        # Behind the last pair it comes again: several blocks write the same.
        numbers = [math.add(math.minimum(math.add(first, n), pairs - 1), 1) for n in range(share)]
        for half in range(self.halves):
            begin = half * (1 + pairs)
            heads = [self._read(begin, member, other) for other in range(self.split)]
            found = [
                [self._read(math.add(number, begin), member, other) for other in range(self.split)]
                for number in numbers
            ]
            largest, factors = weights(self.softmax, [top for top, _ in heads])
            total = weighted_sum([sums for _, sums in heads], factors)
            is_first = words.is_equal(self.rank, 0)
            place = self._place(begin + self._behind(pairs), member)
            if_then(is_first, partial(write_pair, words, place, 0, (largest, total)))
            for number, parts in zip(numbers, found, strict=True):
                sums = [weighted_sum([part[i] for part in parts], factors) for i in range(2)]
                place = self._place(math.add(number, begin + self._behind(pairs)), member)
                write_pair(words, place, 0, (sums[0], sums[1]))

    def _whole(self, columns: int, member: Scalar) -> Part:
        """What the blocks wrote into the memory of this one; rows that are not there are as the others."""
        pairs = columns // 4
        pair = ir.VectorType.get([2], self.words.f32)

        def read(half: int, number: int) -> list[ir.Value]:
            place = self._place(half * (1 + pairs) + self._behind(pairs) + number, member)
            value = llvm.LoadOp(pair, self.words.place(place), alignment=PAIR).res
            return [vector.extract(value, [], [i]) for i in range(2)]

        output = [self.words.frame.constants.get(self.words.f32, 0.0)] * columns
        heads = [read(half, 0) for half in range(self.halves)]
        for half in range(self.halves):
            mine = places(half, columns)
            for number, (a, b) in enumerate(zip(mine[::2], mine[1::2], strict=True)):
                output[a], output[b] = read(half, 1 + number)
        heads = [heads[min(half, self.halves - 1)] for half in range(HALVES)]
        return Part([top for top, _ in heads], [total for _, total in heads], output)

    def _behind(self, pairs: int) -> int:
        """Number of the first pair of the whole, behind those of the part."""
        return self.halves * (1 + pairs)

    def _read(self, number: Scalar, member: Scalar, block: Scalar) -> tuple[ir.Value, ir.Value]:
        first, second = read_pair(self.words, self._place(number, member), block)
        return first, second

    def _place(self, number: Scalar, member: Scalar) -> Scalar:
        """Byte of pair `number` of a thread: neighbours' pairs are neighbours."""
        math = self.words.math
        return math.mul(math.add(member, math.mul(number, GROUP)), PAIR)
