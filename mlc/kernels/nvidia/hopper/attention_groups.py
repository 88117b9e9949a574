"""Attention whose keys several clusters share: the first block of each writes what its cluster has of a tile to the
workspace, and the one that does so last puts all of it together ("Stream-K", Osama et al., 2023, has such a fixup;
"Flash-Decoding", Dao et al., 2023, a second kernel).

The workspace begins with a counter for every tile, which is 0 before a launch and after it: who finds that all others
have counted is the last. Behind the counters lie the parts of each tile: a matrix of the sums of powers times values,
and for every row the largest logit and the sum of the powers relative to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, llvm, vector

from mlc.kernels.common.frame import if_then
from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.hopper.attention_parts import Part, weighted_sum, weights
from mlc.kernels.nvidia.hopper.barriers import synchronize
from mlc.kernels.nvidia.hopper.groups import GROUP
from mlc.kernels.nvidia.tensor_cores.attention_softmax import HALVES, Softmax, fused, places
from mlc.kernels.nvidia.tensor_cores.words import Words
from mlc.kernels.nvidia.tensor_maps import COUNTER_BYTES

MOST_TILES = COUNTER_BYTES // 4
_ALL = 1  # number of the barrier of all that multiply
_AT_ONCE = 32  # reads of 16 bytes that are under way
_VECTOR = 4  # elements of these
_BYTES = 4  # of an element


@dataclass(frozen=True)
class GroupLayout:
    """Where things lie: `rows` and `columns` of the parts of `groups` clusters. In shared memory that is the number of
    those who have counted, then the factors of the parts of each row, its sum and its largest logit, and the whole
    matrix."""

    groups: int
    rows: int
    columns: int

    @property
    def part_bytes(self) -> int:
        """Of a part in the workspace."""
        return -(-self.rows * (self.columns + 2) * _BYTES // 16) * 16

    @property
    def totals(self) -> int:
        """Byte of the shared memory where the sums of the rows begin, behind the factors."""
        return 16 + self.groups * self.rows * _BYTES

    @property
    def tops(self) -> int:
        """Byte of the shared memory where the largest logits of the rows begin."""
        return self.totals + self.rows * _BYTES

    @property
    def matrix(self) -> int:
        """Byte of the shared memory where the matrix begins."""
        return -(-(self.tops + self.rows * _BYTES) // 16) * 16

    @property
    def shared_bytes(self) -> int:
        """Shared memory that is used in the end."""
        return self.matrix + self.rows * self.columns * _BYTES

    def workspace(self, tiles: int) -> int:
        """Bytes for `tiles` tiles."""
        return COUNTER_BYTES + tiles * self.groups * self.part_bytes


class Groups:
    """What the clusters that share tile number `tile` have, this one as number `group`. `row` is the first of the two
    rows of the thread that is number `member` among those that multiply, `column` its first column."""

    def __init__(
        self, words: Words, softmax: Softmax, layout: GroupLayout, workspace: ir.Value, where: tuple[Scalar, Scalar]
    ) -> None:
        self.words, self.softmax, self.layout, self.workspace = words, softmax, layout, workspace
        self.tile, self.group = where

    def write(self, part: Part, row: Scalar, column: Scalar) -> None:
        """Puts a thread's numbers into the workspace."""
        words, math, at = self.words, self.words.math, self.layout
        pair = ir.VectorType.get([2], words.f32)
        for half in range(HALVES):
            line = math.add(row, 8 * half)

            def store(half: int = half, line: Scalar = line) -> None:
                mine = places(half, len(part.output))
                for number, (a, b) in enumerate(zip(mine[::2], mine[1::2], strict=True)):
                    place = math.add(math.mul(line, at.columns), math.add(column, 8 * number))
                    value = vector.from_elements(pair, [part.output[a], part.output[b]])
                    llvm.StoreOp(value, self._part(self.group, math.mul(place, _BYTES)), alignment=8)
                value = vector.from_elements(pair, [part.largest[half], part.totals[half]])
                llvm.StoreOp(value, self._part(self.group, self._head(line)), alignment=8)

            if_then(words.is_below(line, at.rows), store)

    def finish(
        self, member: Scalar, row: Scalar, column: Scalar, columns: int, use: Callable[[Part], None]
    ) -> None:
        """All threads that multiply come here when what they have is written; in the last cluster each will `use` the
        whole: `columns` accumulators of a row of its."""
        words = self.words
        synchronize(words, _ALL, GROUP)
        flag = words.place(0)
        if_then(words.is_equal(member, 0), lambda: self._count(flag))
        synchronize(words, _ALL, GROUP)
        others = llvm.LoadOp(words.i32, flag).res

        def put_together() -> None:
            if_then(words.is_equal(member, 0), lambda: self._store(words.value(0), self._counter()))
            # Under way while the rows are weighed; threads that have none read the last ones again.
            first = self._vectors(words.math.minimum(member, self._count_of_vectors - 1), 0)
            if_then(words.is_below(member, self.layout.rows), lambda: self._weigh(member))
            synchronize(words, _ALL, GROUP)
            if_then(words.is_below(member, self._count_of_vectors), lambda: self._add_one(member, first))
            if self._count_of_vectors > GROUP:
                self._add_others(member)
            synchronize(words, _ALL, GROUP)
            use(self._read(row, column, columns))

        if_then(words.is_equal(others, self.layout.groups - 1), put_together)

    def _count(self, flag: ir.Value) -> None:
        """How many have been here before, for all threads of the block. What they wrote in front of the barrier is seen
        by who counts later, and what those wrote who counted before by all behind the next one."""
        before = llvm.AtomicRMWOp(
            llvm.AtomicBinOp.add, self._counter(), self.words.value(1), llvm.AtomicOrdering.acq_rel, syncscope="device"
        ).res
        self._store(before, flag)

    def _weigh(self, row: Scalar) -> None:
        """What each part of a row is multiplied with, and the row's sum."""
        words, math, at = self.words, self.words.math, self.layout
        pair = ir.VectorType.get([2], words.f32)
        heads = [llvm.LoadOp(pair, self._part(g, self._head(row)), alignment=8).res for g in range(at.groups)]
        tops, sums = ([vector.extract(h, [], [i]) for h in heads] for i in range(2))
        largest, factors = weights(self.softmax, tops)
        total = weighted_sum(sums, factors)
        for number, factor in enumerate(factors):
            self._store(factor, words.place(math.add(math.mul(row, _BYTES), 16 + number * at.rows * _BYTES)))
        self._store(total, words.place(math.add(math.mul(row, _BYTES), at.totals)))
        self._store(largest, words.place(math.add(math.mul(row, _BYTES), at.tops)))

    @property
    def _count_of_vectors(self) -> int:
        return self.layout.rows * self.layout.columns // _VECTOR

    def _add_others(self, member: Scalar) -> None:
        """The vectors of the matrix behind the first of each thread."""

        def one(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            self._add_one(number, self._vectors(number, 0))
            return []

        self.words.loop(self.words.math.add(member, GROUP), self._count_of_vectors, GROUP, [], one)

    def _vectors(self, number: Scalar, first: int) -> list[ir.Value]:
        """Vector `number` of the parts from `first` on, of as many as are read at a time."""
        kind = ir.VectorType.get([_VECTOR], self.words.f32)
        byte = self.words.math.mul(number, _VECTOR * _BYTES)
        these = range(first, min(first + _AT_ONCE, self.layout.groups))
        return [llvm.LoadOp(kind, self._part(g, byte), alignment=16).res for g in these]

    def _add_one(self, number: Scalar, found: list[ir.Value]) -> None:
        """A vector of the matrix of a whole tile, into shared memory; `found`: those of the first parts."""
        words, math, at = self.words, self.words.math, self.layout
        kind = ir.VectorType.get([_VECTOR], words.f32)
        row, byte = math.div(number, at.columns // _VECTOR), math.mul(number, _VECTOR * _BYTES)
        total: ir.Value | None = None
        for first in range(0, at.groups, _AT_ONCE):
            parts = self._vectors(number, first) if first else found
            for g, part in enumerate(parts, first):
                place = words.place(math.add(math.mul(row, _BYTES), 16 + g * at.rows * _BYTES))
                factor = vector.broadcast(kind, llvm.LoadOp(words.f32, place).res)
                total = arith.mulf(part, factor) if total is None else fused(part, factor, total)
        assert total is not None
        llvm.StoreOp(total, words.place(math.add(byte, at.matrix)), alignment=16)

    def _read(self, row: Scalar, column: Scalar, columns: int) -> Part:
        """A thread's numbers of the whole; rows that are not there are others'."""
        words, math, at = self.words, self.words.math, self.layout
        pair = ir.VectorType.get([2], words.f32)
        output = [words.frame.constants.get(words.f32, 0.0)] * columns
        tops: list[ir.Value] = []
        totals: list[ir.Value] = []
        for half in range(HALVES):
            line = math.minimum(math.add(row, 8 * half), at.rows - 1)
            for found, begin in ((tops, at.tops), (totals, at.totals)):
                found.append(llvm.LoadOp(words.f32, words.place(math.add(math.mul(line, _BYTES), begin))).res)
            mine = places(half, columns)
            for number, (a, b) in enumerate(zip(mine[::2], mine[1::2], strict=True)):
                place = math.add(math.mul(line, at.columns), math.add(column, 8 * number))
                byte = math.add(math.mul(place, _BYTES), at.matrix)
                both = llvm.LoadOp(pair, words.place(byte), alignment=8).res
                output[a], output[b] = (vector.extract(both, [], [i]) for i in range(2))
        return Part(tops, totals, output)

    # -- places --------------------------------------------------------------------------------------------------------

    def _head(self, row: Scalar) -> Scalar:
        """Byte of a part where a row's largest logit and its sum lie."""
        math, at = self.words.math, self.layout
        return math.add(math.mul(row, 2 * _BYTES), at.rows * at.columns * _BYTES)

    def _part(self, group: Scalar, byte: Scalar) -> ir.Value:
        """Byte `byte` of a part of this tile."""
        math, at = self.words.math, self.layout
        number = math.add(math.mul(self.tile, at.groups), group)
        return self._place(math.add(math.add(math.mul(number, at.part_bytes), byte), COUNTER_BYTES))

    def _counter(self) -> ir.Value:
        return self._place(self.words.math.mul(self.tile, _BYTES))

    def _place(self, offset: Scalar) -> ir.Value:
        words = self.words
        byte = ir.TypeAttr.get(ir.IntegerType.get_signless(8))
        raw = ir.DenseI32ArrayAttr.get([-(1 << 31)])
        flags = ir.IntegerAttr.get(words.i32, 0)
        return llvm.GEPOp(self.workspace.type, self.workspace, [words.value(offset)], raw, byte, flags).result

    def _store(self, value: ir.Value, place: ir.Value) -> None:
        llvm.StoreOp(value, place)
