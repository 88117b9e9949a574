"""Blocks that share a tile: each sums a part of the terms, and the first adds the parts.

The blocks of a cluster reach each other's shared memory (PTX ISA, "Cluster of Cooperative Thread Arrays"). A part is
written as it lies in the registers, so that no thread needs more than its own places in every block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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

    def add(self, accumulators: Sequence[ir.Value], use: Callable[[list[ir.Value]], None]) -> None:
        """`use` the sums of all blocks' accumulators, in the first block."""
        words = self.words
        synchronize(words, _ALL, self.threads)  # the tensor cores have read the last tiles
        is_first = words.is_equal(self.rank, 0)
        if_then(words.is_below(0, self.rank), lambda: self._write(accumulators))
        meet()
        if_then(is_first, lambda: use(self._sums(accumulators)))
        meet()  # nobody leaves while its memory is read

    def _write(self, accumulators: Sequence[ir.Value]) -> None:
        pair = ir.VectorType.get([2], self.words.f32)
        for number in range(len(accumulators) // 2):
            value = vector.from_elements(pair, list(accumulators[2 * number : 2 * number + 2]))
            llvm.StoreOp(value, self.words.place(self._place(number)), alignment=PAIR)

    def _sums(self, accumulators: Sequence[ir.Value]) -> list[ir.Value]:
        sums = list(accumulators)
        pairs = range(len(sums) // 2)
        for other in range(1, self.split):
            for first in pairs[::_AT_ONCE]:
                found = [v for n in pairs[first : first + _AT_ONCE] for v in self._read(n, other)]
                for number, value in enumerate(found, 2 * first):
                    sums[number] = arith.addf(sums[number], value)
        return sums

    def _read(self, number: int, block: int) -> list[ir.Value]:
        """Pair `number` of this thread of another block."""
        return read_pair(self.words, self._place(number), block)

    def _place(self, number: int) -> Scalar:
        """Byte of pair `number` of this thread: neighbours' pairs are neighbours."""
        return self.words.math.mul(self.words.math.add(self.member, number * self.threads), PAIR)


def read_pair(words: Words, place: Scalar, block: int) -> list[ir.Value]:
    """The two f32 at byte `place` of another block's shared memory."""
    address = words.value(words.math.add(words.shared_address, place))
    text = "{ .reg .b32 a; mapa.shared::cluster.u32 a, $2, $3; ld.shared::cluster.v2.f32 {$0, $1}, [a]; }"
    struct = ir.Type.parse("!llvm.struct<(f32, f32)>")
    result = assembly(struct, [address, words.value(block)], text, "=f,=f,r,r")
    assert result is not None
    return fields(result, [words.f32] * 2)


def meet() -> None:
    """Waits for all threads of the cluster that have not ended; what they wrote before is seen afterwards. Operations
    of the dialect: assembly would be copied into both sides of a branch, where a warp's threads may come apart."""
    nvvm.ClusterArriveOp(aligned=True)
    nvvm.ClusterWaitOp(aligned=True)
