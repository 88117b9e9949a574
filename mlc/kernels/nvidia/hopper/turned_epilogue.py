"""The epilogue of 16-bit results whose columns are the rows of the accumulators.

A tile's columns come in steps of eight or sixteen, its rows in steps of 64: where the operands change places, the
result's rows have the finer steps. Accumulators are computed in the registers and written as transposed matrices (PTX
ISA, `stmatrix.trans`); the four warps of a group, which have 64 columns of the result together, stage rows of 128
bytes, so that stores are whole cache lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common.evaluate import Evaluator, Override
from mlc.kernels.common.frame import defining_op, if_then
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.nvidia.hopper.barriers import synchronize
from mlc.kernels.nvidia.tensor_cores.epilogue import WARP_ROWS
from mlc.kernels.nvidia.tensor_cores.packed_epilogue import LANES, PackedEpilogue, packed_chunk
from mlc.kernels.nvidia.tensor_cores.tiles import ROW, ROWS
from mlc.kernels.nvidia.tensor_cores.words import assembly

_SIZE = ROW // ROWS  # bytes of an element
_PIECES = ROW // (LANES * _SIZE)  # of a staged row
_WARP = 32  # threads of a warp
_WARPS = ROWS // WARP_ROWS  # of a group
_FIRST = 2  # number of the barrier of the first group


class TurnedEpilogue(PackedEpilogue):
    """Stores the one result of `source`, which `takes` accepts and which reads no other matrix. `domain` and the shape
    of a tile are those of the result: `tile` is (the accumulators' columns, their rows). Extents of columns are
    multiples of eight."""

    def store(
        self,
        accumulators: Sequence[ir.Value],
        warp: ir.Value,
        lane: ir.Value,
        origin: tuple[Scalar, Scalar],
        outer: Sequence[Scalar],
        block: int = 0,
    ) -> None:
        """The 16 columns of a warp from column and row `origin` of the result on; the other warps of its group store
        those beside them at the same time."""
        math, words = self.words.math, self.words
        group, number = math.div(warp, _WARPS), math.rem(warp, _WARPS)
        barrier, chunk = math.add(group, _FIRST), packed_chunk(self.rows)
        base = math.add(math.mul(group, chunk * ROW), self.offset)
        beside = math.sub(origin[0], math.mul(number, WARP_ROWS))
        thread = math.add(math.mul(number, _WARP), lane)
        for first in range(0, self.rows, chunk):
            row, sums = math.add(origin[1], first), accumulators[first // 2 : (first + chunk) // 2]
            synchronize(words, barrier, _WARPS * _WARP)
            self._stage_turned(sums, base, (number, lane), (row, origin[0]), outer)
            synchronize(words, barrier, _WARPS * _WARP)
            unload = partial(self._unload_one, base, thread, (row, beside), outer)
            words.loop(0, chunk * _PIECES, _WARPS * _WARP, [], unload)

    def _stage_turned(
        self,
        accumulators: Sequence[ir.Value],
        base: Scalar,
        thread: tuple[Scalar, ir.Value],
        origin: tuple[Scalar, Scalar],
        outer: Sequence[Scalar],
    ) -> None:
        """Computes and stages rows of the result. Thread 4r + t of a warp has, of every eight rows, 2t and 2t + 1
        of the columns r and r + 8; thread l says where the row l % 8 of the matrix l / 8 of four goes."""
        math, words = self.words.math, self.words
        warp, lane = thread
        columns = [
            self._clamped(math.add(math.add(origin[1], math.div(lane, 4)), 8 * half), 1, 1) for half in range(2)
        ]
        pair = math.mul(math.rem(lane, 4), 2)
        row = math.add(math.rem(lane, 8), math.mul(math.div(lane, 16), 8))
        piece = math.add(math.mul(warp, 2), math.rem(math.div(lane, 8), 2))
        for group in range(len(accumulators) // 8):
            where = self._place_of(math.add(row, 16 * group), piece)
            address = words.value(math.add(words.shared_address, math.add(base, where)))
            values = []
            for half in range(2):
                at = math.add(math.add(origin[0], 16 * group + 8 * half), pair)
                rows = [self._clamped(math.add(at, one), 0, 1) for one in range(2)]
                for number, column in enumerate(columns):
                    first = 8 * group + 4 * half + 2 * number
                    values.append(self._word(accumulators[first : first + 2], rows, column, outer))
            text = "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [$0], {$1, $2, $3, $4};"
            assembly(None, [address, *values], text, "r,r,r,r,r")

    def _word(
        self, sums: Sequence[ir.Value], rows: Sequence[Scalar], column: Scalar, outer: Sequence[Scalar]
    ) -> ir.Value:
        """Two results below each other as a word. Both are rounded by one instruction: ptxas takes single roundings for
        reads while products are under way, and serializes those (C7514)."""
        results = self.source.results
        found = []
        for value, row in zip(sums, rows, strict=True):
            override: Override = lambda _, value=value: value  # type: ignore[misc]  # noqa: E731
            scope = Evaluator(self.frame, 1, overrides={self.root.results[0]: override})
            found.append(scope.tensor(results[0], self._at(row, column, outer)))
        wide = [op.operands[0] for v in found if (op := defining_op(v)) is not None and op.name == "arith.truncf"]
        if len(wide) == 2 and all(isinstance(v.type, ir.F32Type) for v in wide):
            both = vector.from_elements(ir.VectorType.get([2], self.words.f32), wide)
            both = arith.truncf(ir.VectorType.get([2], found[0].type), both)
        else:
            both = vector.from_elements(ir.VectorType.get([2], found[0].type), found)
        word = vector.bitcast(ir.VectorType.get([1], self.words.i32), both)
        return vector.extract(word, [], [0])

    def _unload_one(
        self,
        base: Scalar,
        thread: Scalar,
        origin: tuple[Scalar, Scalar],
        outer: Sequence[Scalar],
        number: ir.Value,
        _: list[ir.Value],
    ) -> list[ir.Value]:
        """Stores a vector of 16 bytes of what the group has staged, from vector `number` on one for each thread."""
        math, words = self.words.math, self.words
        place = math.add(number, thread)
        row, piece = math.div(place, _PIECES), math.rem(place, _PIECES)
        at = math.add(origin[0], row), math.add(origin[1], math.mul(piece, LANES))
        value = self._staged(words.place(math.add(base, self._place_of(row, piece))))
        inside, write = self._is_inside(*at), partial(self._store, [value], at, outer)
        if inside is None:
            write()
        else:
            if_then(inside, write)
        return []

    def _at(self, row: Scalar, column: Scalar, outer: Sequence[Scalar]) -> list[Idx]:
        """The point of one element of the result."""
        words = self.words
        place = [Idx(words.widen(i), level=2) for i in (row, column)]
        return self.domain.point([Idx(words.widen(o), level=1) for o in outer], place[0], place[1])

    def _place_of(self, row: Scalar, piece: Scalar) -> Scalar:
        """Byte of a piece of 16 bytes of a staged row. Pieces are permuted so that neither those of eight rows nor
        those of one lie in the same banks."""
        math = self.words.math
        permuted = self.words.xor(piece, math.rem(row, _PIECES))
        return math.add(math.mul(row, ROW), math.mul(permuted, LANES * _SIZE))
