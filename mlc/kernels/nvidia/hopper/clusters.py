"""Blocks that share a tile: each sums a part of the terms, and adds what all of them have for a part of the columns.

The blocks of a cluster reach each other's shared memory (PTX ISA, "Cluster of Cooperative Thread Arrays"). A part is
written as it lies in the registers, so that no thread needs more than its own places in every block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from mlir import ir
from mlir.dialects import arith, llvm, nvvm, vector

from mlc.kernels.common.frame import if_then
from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.hopper.barriers import synchronize
from mlc.kernels.nvidia.tensor_cores.words import Words, assembly, fields

PAIR = 8  # bytes of two accumulators
_ALL = 1  # number of the barrier of all that multiply
_AT_ONCE = 16  # reads that are under way: each takes some hundred clocks


class Parts:
    """What the `threads` of each of `split` blocks have summed; `rank` is the number of this block, `member` that of
    this thread. Parts lie at the start of the shared memory: nothing else may be there any more."""

    def __init__(self, words: Words, rank: Scalar, split: int, member: Scalar, threads: int) -> None:
        self.words, self.rank, self.split, self.member, self.threads = words, rank, split, member, threads

    def add(self, accumulators: Sequence[ir.Value], rows: int, use: Callable[[list[ir.Value]], None]) -> None:
        """`use` the sums of all blocks' accumulators, which are those of `rows` blocks of rows: in each block those of
        its share of every one's columns, the first share in the first."""
        words = self.words
        pairs = range(len(accumulators) // 2)
        each = len(pairs) // (rows * self.split)
        shares = [[n for n in pairs if n // each % self.split == share] for share in range(self.split)]
        synchronize(words, _ALL, self.threads)  # the tensor cores have read the last tiles
        for number, share in enumerate(shares):
            is_others = arith.cmpi(arith.CmpIPredicate.ne, words.value(self.rank), words.value(number))
            if_then(is_others, partial(self._write, accumulators, share))
        meet()
        sums = self._sums(accumulators, shares)
        nvvm.ClusterArriveOp(aligned=True)
        use(sums)
        nvvm.ClusterWaitOp(aligned=True)  # nobody leaves while its memory is read

    def _write(self, accumulators: Sequence[ir.Value], share: Sequence[int]) -> None:
        pair = ir.VectorType.get([2], self.words.f32)
        for number in share:
            value = vector.from_elements(pair, list(accumulators[2 * number : 2 * number + 2]))
            llvm.StoreOp(value, self.words.place(self._place(number)), alignment=PAIR)

    def _sums(self, accumulators: Sequence[ir.Value], shares: Sequence[Sequence[int]]) -> list[ir.Value]:
        """The sums of this block's share: its own, and those of the blocks behind it in turn."""
        words, math = self.words, self.words.math
        sums = list(self._own(accumulators, shares))
        first = shares[0]
        distance = math.mul(self.rank, (shares[1][0] - first[0]) * self.threads * PAIR)
        for step in range(1, self.split):
            other = math.rem(math.add(self.rank, step), self.split)
            for begin in range(0, len(first), _AT_ONCE):
                at_once = first[begin : begin + _AT_ONCE]
                places = [math.add(self._place(number), distance) for number in at_once]
                found = [v for place in places for v in read_pair(words, place, other)]
                for number, value in enumerate(found, 2 * begin):
                    sums[number] = arith.addf(sums[number], value)
        return sums

    def _own(self, accumulators: Sequence[ir.Value], shares: Sequence[Sequence[int]]) -> list[ir.Value]:
        found = [[accumulators[2 * n + i] for n in share for i in range(2)] for share in shares]
        own = found[-1]
        for number, values in enumerate(found[:-1]):
            is_mine = self.words.is_equal(self.rank, number)
            own = [arith.select(is_mine, mine, others) for mine, others in zip(values, own, strict=True)]
        return own

    def _place(self, number: int) -> Scalar:
        """Byte of pair `number` of this thread: neighbours' pairs are neighbours."""
        return self.words.math.mul(self.words.math.add(self.member, number * self.threads), PAIR)


def read_pair(words: Words, place: Scalar, block: Scalar) -> list[ir.Value]:
    """The two f32 at byte `place` of another block's shared memory."""
    address = words.value(words.math.add(words.shared_address, place))
    text = "{ .reg .b32 a; mapa.shared::cluster.u32 a, $2, $3; ld.shared::cluster.v2.f32 {$0, $1}, [a]; }"
    struct = ir.Type.parse("!llvm.struct<(f32, f32)>")
    result = assembly(struct, [address, words.value(block)], text, "=f,=f,r,r")
    assert result is not None
    return fields(result, [words.f32] * 2)


def write_pair(words: Words, place: Scalar, block: Scalar, values: tuple[ir.Value, ir.Value]) -> None:
    """Writes two f32 to byte `place` of a block's shared memory."""
    address = words.value(words.math.add(words.shared_address, place))
    text = "{ .reg .b32 a; mapa.shared::cluster.u32 a, $0, $1; st.shared::cluster.v2.f32 [a], {$2, $3}; }"
    assembly(None, [address, words.value(block), *values], text, "r,r,f,f")


def meet() -> None:
    """Waits for all threads of the cluster that have not ended; what they wrote before is seen afterwards. Operations
    of the dialect: assembly would be copied into both sides of a branch, where a warp's threads may come apart."""
    nvvm.ClusterArriveOp(aligned=True)
    nvvm.ClusterWaitOp(aligned=True)
