"""From accumulators to results: what the fusion plan lets a contraction compute at its end, and the stores.

The accumulators of a warp are rows of the left tile, spread over its threads in pairs. They go through shared memory,
a chunk of columns at a time, so that each thread has vectors of the result: reads of other tensors and the stores are
whole cache lines, and what lies beyond the edge of the result is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from mlir import ir
from mlir.dialects import arith, llvm, nvvm, vector

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator, Override
from mlc.kernels.common.frame import Frame, KernelSource, if_then
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.nvidia.tensor_cores.words import Words

WARP_ROWS = 16  # of the accumulators of one instruction
WIDEST_CHUNK = 64
_WARP = 32


def chunk_of(columns: int) -> int:
    """Columns that are staged at a time, of a tile of `columns`."""
    return next(c for c in (WIDEST_CHUNK, 32, 16, 8) if columns % c == 0)


def staging_bytes(columns: int, warps: int) -> int:
    """Shared memory that the epilogue of tiles of `columns` columns takes."""
    return warps * WARP_ROWS * chunk_of(columns) * 4


@dataclass(frozen=True)
class Domain:
    """The results' shape, and which of its dimensions rows and columns of a tile are (first, last); `lanes` elements
    of a row are handled at a time."""

    shape: tuple[Scalar, ...]
    rows: tuple[int, int]
    columns: tuple[int, int]
    lanes: int

    def point(self, outer: Sequence[Idx], row: Idx, column: Idx) -> list[Idx]:
        """Coordinates of a row and column; a group of dimensions is zeros and the linear coordinate last."""
        free = iter(outer)
        found = []
        for position in range(len(self.shape)):
            if self.rows[0] <= position <= self.rows[1]:
                found.append(row if position == self.rows[1] else Idx(0))
            elif self.columns[0] <= position <= self.columns[1]:
                found.append(column if position == self.columns[1] else Idx(0))
            else:
                found.append(next(free))
        return found


class Epilogue:
    """Stores what `source` returns, with accumulators in place of the contraction `root`.

    `offset` is where the staging area of the first warp lies in shared memory; `tile` are its rows and those of its
    columns that are stored here, one of `shares`.
    """

    _SIZE = 4  # bytes of what is staged of an element
    _TOGETHER = 8  # vectors that a thread has at a time
    _chunk_of = staticmethod(chunk_of)

    def __init__(
        self,
        words: Words,
        source: KernelSource,
        root: ir.Operation,
        domain: Domain,
        offset: int,
        tile: tuple[int, int],
        shares: int = 1,
    ) -> None:
        self.words, self.source, self.root, self.domain = words, source, root, domain
        self.frame: Frame = words.frame
        self.offset, self.rows, self.columns, self.shares = offset, *tile, shares
        self.chunk = self._chunk_of(self.columns)

    def store(
        self,
        accumulators: Sequence[ir.Value],
        warp: ir.Value,
        lane: ir.Value,
        origin: tuple[Scalar, Scalar],
        outer: Sequence[Scalar],
        block: int = 0,
    ) -> None:
        """The 16 rows of a warp from row and column `origin` of the result on; `warp` is its number among those that
        stage, `block` that of the rows among the warp's."""
        math = self.words.math
        area = self._area(warp, block)
        for first in range(0, self.columns, self.chunk):
            place, base = (origin[0], math.add(origin[1], first)), math.add(area, self._beside(first))
            self._synchronize()
            self._stage(accumulators[first // 2 : (first + self.chunk) // 2], base, lane, place, outer)
            self._synchronize()
            self._unload(base, lane, place, outer)

    def _area(self, warp: ir.Value, _: int) -> Scalar:
        """Byte where the staging area of a warp begins, for a block of its rows."""
        math = self.words.math
        return math.add(math.mul(warp, WARP_ROWS * self.chunk * self._SIZE), self.offset)

    def _beside(self, _: int) -> int:
        """Bytes from there to where columns from a first one on are staged: all go through the same place."""
        return 0

    def _synchronize(self) -> None:
        nvvm.SyncWarpOp(self.words.value(-1))

    def _stage(
        self,
        accumulators: Sequence[ir.Value],
        base: Scalar,
        lane: ir.Value,
        origin: tuple[Scalar, Scalar],
        outer: Sequence[Scalar],
    ) -> None:
        """Stages columns of the warp. Thread 4r + t has, of every eight, 2t and 2t + 1 of the rows r and r + 8."""
        words, math = self.words, self.words.math
        pair = ir.VectorType.get([2], words.f32)
        row, t = math.div(lane, 4), math.rem(lane, 4)
        for group in range(self.chunk // 8):
            for half in range(2):
                number = group * 4 + 2 * half
                value = vector.from_elements(pair, list(accumulators[number : number + 2]))
                place = self._place(math.add(row, 8 * half), math.add(math.mul(t, 2), 8 * group))
                llvm.StoreOp(value, words.place(math.add(base, place)), alignment=8)

    def _place(self, row: Scalar, column: Scalar) -> Scalar:
        """Byte of an element of the staging area. Pieces of 16 bytes are permuted so that neither the pairs that a
        half of a warp writes nor the pieces that a quarter reads lie in the same banks."""
        math = self.words.math
        piece = self.words.xor(math.div(column, 4), math.mul(math.rem(row, self._rows_apart), 2))
        inside = math.add(math.mul(piece, 4), math.rem(column, 4))
        return math.mul(math.add(math.mul(row, self.chunk), inside), 4)

    @property
    def _rows_apart(self) -> int:
        return max(1, min(4, self.chunk // 8))

    def _unload(self, base: Scalar, lane: ir.Value, origin: tuple[Scalar, Scalar], outer: Sequence[Scalar]) -> None:
        """Stores what is staged."""

        def read(where: Scalar, at: tuple[Scalar, Scalar]) -> list[ir.Value]:
            return self._computed(self._staged(self.words.place(self.words.math.add(base, where))), at, outer)

        def write(values: list[ir.Value], _: Scalar, at: tuple[Scalar, Scalar]) -> None:
            self._store(values, at, outer)

        self._each_vector(lane, origin, self._TOGETHER, read, write)

    def _each_vector(
        self,
        lane: ir.Value,
        origin: tuple[Scalar, Scalar],
        most: int,
        read: Callable[[Scalar, tuple[Scalar, Scalar]], list[ir.Value]],
        write: Callable[[list[ir.Value], Scalar, tuple[Scalar, Scalar]], None],
    ) -> None:
        """`write` of what `read` gives, of every vector's byte in the staging area and place in the result, of those
        inside of it; `most` are read before the first one is written, so that what is read is under way together."""
        math, lanes = self.words.math, self.domain.lanes
        vectors = self.chunk // lanes
        count = WARP_ROWS * vectors // _WARP
        together = next(n for n in range(most, 0, -1) if count % n == 0)

        def step(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            found = []
            for one in range(together):
                place = math.add(math.mul(math.add(number, one), _WARP), lane)
                row, piece = math.div(place, vectors), math.rem(place, vectors)
                where = self._vector(row, piece)
                at = math.add(origin[0], row), math.add(origin[1], math.mul(piece, lanes))
                found.append((read(where, at), where, at))
            for one_found in found:
                inside = self._is_inside(*one_found[2])
                if inside is None:
                    write(*one_found)
                else:
                    if_then(inside, partial(write, *one_found))
            return []

        self.words.loop(0, count, together, [], step)

    def _vector(self, row: Scalar, piece: Scalar) -> Scalar:
        """Byte of vector `piece` of a row of the staging area."""
        return self._place(row, self.words.math.mul(piece, self.domain.lanes))

    def _staged(self, pointer: ir.Value) -> ir.Value:
        lanes = self.domain.lanes
        type_ = self.words.f32 if lanes == 1 else ir.VectorType.get([lanes], self.words.f32)
        return llvm.LoadOp(type_, pointer, alignment=4 * lanes).result

    def _extents(self) -> tuple[Scalar, Scalar]:
        domain, math = self.domain, self.frame.math
        rows, columns = (domain.shape[a : b + 1] for a, b in (domain.rows, domain.columns))
        return math.product(rows), math.product(columns)

    def _is_inside(self, row: Scalar, column: Scalar) -> ir.Value | None:
        """Whether a vector lies in the result; None when all do."""
        conditions = []
        for at, extent, unit in zip((row, column), self._extents(), self._units(), strict=True):
            if not (isinstance(extent, int) and extent % unit == 0):
                conditions.append(self.words.is_below(at, self.words.narrow(extent)))
        if len(conditions) < 2:
            return conditions[0] if conditions else None
        return arith.andi(*conditions)

    def _units(self) -> tuple[int, int]:
        """What extents must be multiples of so that tiles have no part outside."""
        return self.rows, self.columns * self.shares

    def _clamped(self, at: Scalar, which: int, lanes: int) -> Scalar:
        """A row (0) or column (1) that exists: what is read for others is not stored."""
        extent, unit = self._extents()[which], self._units()[which]
        if isinstance(extent, int) and extent % unit == 0:
            return at
        return self.words.math.minimum(at, self.words.math.sub(self.words.narrow(extent), lanes))

    def _point(self, at: tuple[Scalar, Scalar], outer: Sequence[Scalar]) -> list[Idx]:
        """The point of the result where a vector begins."""
        words = self.words
        row = Idx(words.widen(at[0]), level=2)
        column = Idx(words.widen(at[1]), 1 if self.domain.lanes > 1 else 0, level=2)
        return self.domain.point([Idx(words.widen(o), level=1) for o in outer], row, column)

    def _computed(self, value: ir.Value, at: tuple[Scalar, Scalar], outer: Sequence[Scalar]) -> list[ir.Value]:
        """The results where the contraction is `value`."""
        lanes = self.domain.lanes
        override: Override = lambda _: value  # noqa: E731
        scope = Evaluator(self.frame, lanes, overrides={self.root.results[0]: override})
        point = self._point((self._clamped(at[0], 0, 1), self._clamped(at[1], 1, lanes)), outer)
        return [scope.tensor(result, point) for result in self.source.results]

    def _store(self, values: Sequence[ir.Value], at: tuple[Scalar, Scalar], outer: Sequence[Scalar]) -> None:
        point, scope = self._point(at, outer), Evaluator(self.frame, self.domain.lanes)
        for value, destination in zip(values, self.source.destinations, strict=True):
            memory.store(self.frame, scope.idx, self.frame.buffers[destination], point, value, None)
