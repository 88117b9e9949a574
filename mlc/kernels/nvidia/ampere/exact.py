"""Products of tiles of f32 by ordinary arithmetic, each thread the rows that it would have of `mma.sync`.

Thread 4r + t of a warp has the rows r and r + 8 of every 16, and the columns 2t and 2t + 1 of every eight. It takes 16
bytes, four terms of the sum, of a row at a time: eight rows, or four columns, of a warp's load are lines whose pieces
lie in banks of their own. With eight threads `across` a row, thread 8r + t has the rows r and r + 4 of every eight, and
the columns t and t + 8 of every 16: tiles of many columns are nearer to squares, which take fewer loads.

A row's terms stay in registers for all of its columns ("register blocking"; Volkov and Demmel, "Benchmarking GPUs to
Tune Dense Linear Algebra", 2008). Terms are added one after another, without rounding in between.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import llvm, vector
from mlir.dialects import math as math_dialect

from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.ampere.fragments import BLOCK
from mlc.kernels.nvidia.tensor_cores.epilogue import Epilogue
from mlc.kernels.nvidia.tensor_cores.tiles import ROW, Tile
from mlc.kernels.nvidia.tensor_cores.words import Words
from mlc.kernels.nvidia.threads import WARP

TERMS = 4  # of the sum in a load
FEW, MANY = 4, 8  # threads across a row
_EIGHT = 8
_PIECE = 16  # bytes
PIECES = ROW // _PIECE  # of a line
_AT_A_TIME = 2  # pieces of a line in the body of the loop


class ExactProduct:
    """The products of a warp: `rows` of the left tile, at byte `offsets[0]` of a stage, from row `first[0]` on, and
    `columns` of the right one, over which `across` threads are spread. Both tiles lie along the sum."""

    def __init__(
        self,
        words: Words,
        offsets: tuple[int, int],
        first: tuple[Scalar, Scalar],
        rows: int,
        columns: int,
        across: int = FEW,
    ) -> None:
        self.words, self.rows, self.columns, self.across = words, rows, columns, across
        self.apart = WARP // across  # rows of a thread
        self.pair = 1 if across == FEW else across  # columns from one to the next of a pair
        math, lane = words.math, words.math.rem(words.thread(), WARP)
        own = math.div(lane, across), math.mul(math.rem(lane, across), 2 if across == FEW else 1)
        self.along = [
            math.add(math.add(math.mul(math.add(begin, line), ROW), math.mul(line, _PIECE)), offset)
            for offset, begin, line in zip(offsets, first, own, strict=True)
        ]
        self.type = ir.VectorType.get([TERMS], words.f32)

    def add(self, stage: Scalar, sums: Sequence[ir.Value]) -> list[ir.Value]:
        """The accumulators, in the order of `mma.sync`'s, plus the products of a stage."""
        both = stage, stage
        return self.words.loop(0, PIECES, _AT_A_TIME, sums, lambda at, now: self._pieces(both, at, list(now)))

    def add_chunks(self, depth: int, sizes: tuple[int, int], sums: Sequence[ir.Value]) -> list[ir.Value]:
        """The same for `depth` terms, a multiple of eight, in tiles behind each other of `sizes` bytes."""
        math = self.words.math

        def step(at: ir.Value, now: Sequence[ir.Value]) -> list[ir.Value]:
            if depth <= PIECES * TERMS:
                return self._pieces((0, 0), at, list(now))
            chunk = math.div(at, PIECES)
            stages = math.mul(chunk, sizes[0]), math.mul(chunk, sizes[1])
            return self._pieces(stages, math.rem(at, PIECES), list(now))

        return self.words.loop(0, depth // TERMS, _AT_A_TIME, sums, step)

    def _pieces(self, stages: tuple[Scalar, Scalar], first: Scalar, sums: list[ir.Value]) -> list[ir.Value]:
        for number in range(_AT_A_TIME):
            self._piece(stages, self.words.math.mul(first, _PIECE), number, sums)
        return sums

    def _piece(self, stages: tuple[Scalar, Scalar], piece: Scalar, number: int, sums: list[ir.Value]) -> None:
        """Adds the products of four terms."""
        rows = [self._load(0, stages[0], piece, number, self.apart * i) for i in range(self.rows // self.apart)]
        groups = self.columns // (2 * self.across)
        for group in range(groups):
            for odd in range(2):
                column = self._load(1, stages[1], piece, number, 2 * self.across * group + self.pair * odd)
                for i, row in enumerate(rows):
                    block, half = divmod(i, 2)
                    at = 4 * (block * groups + group) + 2 * half + odd
                    for a, b in zip(row, column, strict=True):
                        sums[at] = math_dialect.FmaOp(a, b, sums[at]).result

    def _load(self, which: int, stage: Scalar, piece: Scalar, number: int, line: int) -> list[ir.Value]:
        """Four terms of the line `line` behind this thread's first one."""
        words, math = self.words, self.words.math
        place = words.xor(words.xor(math.add(self.along[which], stage), piece), (number ^ line % PIECES) * _PIECE)
        found = llvm.LoadOp(self.type, words.place(math.add(place, line * ROW)), alignment=_PIECE).res
        return [vector.extract(found, [], [i]) for i in range(TERMS)]


class ExactPowers:
    """The products of a warp's powers of `rows` queries and 32 keys, which its threads share through shared memory at
    byte `offset`, with a tile of values across the sum at byte `values`.

    Thread 4r + t has four columns from 4t on of every 16, of the rows r and r + 8 of every 16: accumulators are in the
    order in which `mma.sync` has the first two and the last two of them as neighbours of eight columns each. With eight
    threads `across` a row, thread 8r + t has four from 4t on of every 32, of the rows r and r + 4 of every eight.
    """

    def __init__(
        self, words: Words, tile: Tile, offset: Scalar, values: int, rows: int, columns: int, across: int = FEW
    ) -> None:
        self.words, self.tile, self.rows, self.columns, self.across = words, tile, rows, columns, across
        self.apart = WARP // across
        math, lane = words.math, words.math.rem(words.thread(), WARP)
        row, self.quad = math.div(lane, across), math.rem(lane, across)
        line = math.add(math.mul(row, ROW), offset)
        self.along = math.add(line, math.mul(row, _PIECE))  # the row's first piece
        beside = 2 if across == FEW else TERMS  # threads whose powers are a piece
        own = words.xor(math.div(self.quad, beside), row)
        inside = math.mul(math.rem(self.quad, beside), _PIECE // beside)
        self.place = math.add(line, math.add(math.mul(own, _PIECE), inside))
        self.values = [math.add(math.mul(words.xor(self.quad, j), _PIECE), values) for j in range(TERMS)]
        self.type = ir.VectorType.get([TERMS], words.f32)

    def share(self, block: int, powers: Sequence[ir.Value]) -> None:
        """Stores the powers of both rows of every thread as accumulators have them, number `block` of the warp's."""
        words = self.words
        lanes = 2 if self.across == FEW else 1
        type_ = ir.VectorType.get([lanes], words.f32)
        for number in range(0, len(powers), lanes):
            group, half = divmod(number // 2, 2)
            line = self.apart * (2 * block + half)
            piece = (2 * group if lanes == 2 else 2 * (2 * group + number % 2)) ^ line % PIECES
            place = words.math.add(words.xor(self.place, piece * _PIECE), line * ROW)
            own = vector.from_elements(type_, list(powers[number : number + lanes]))
            llvm.StoreOp(own, words.place(place), alignment=4 * lanes)

    def add(self, sums: Sequence[ir.Value], offset: int = 0) -> list[ir.Value]:
        """The accumulators plus the products of all keys, whose values lie `offset` bytes behind the first tile."""

        def pieces(first: ir.Value, now: Sequence[ir.Value]) -> list[ir.Value]:
            now = list(now)
            for number in range(_AT_A_TIME):
                self._piece(first, number, offset, now)
            return now

        return self.words.loop(0, PIECES, _AT_A_TIME, sums, pieces)

    def _piece(self, first: ir.Value, number: int, offset: int, sums: list[ir.Value]) -> None:
        """Adds the products of four keys."""
        words, math = self.words, self.words.math
        place = words.xor(words.xor(self.along, math.mul(first, _PIECE)), number * _PIECE)
        lines = range(0, self.rows, self.apart)
        rows = [self._load(math.add(words.xor(place, line % PIECES * _PIECE), line * ROW)) for line in lines]
        begin = math.mul(first, TERMS * ROW)
        for key in range(TERMS):
            for group in range(self.columns // (TERMS * self.across)):
                block, inside = divmod(group, PIECES // self.across)
                moved = words.xor(self.values[key], (inside ^ number) * TERMS * _PIECE)
                at = math.add(math.add(moved, begin), offset + block * self.tile.block + (TERMS * number + key) * ROW)
                self._multiply([row[key] for row in rows], self._load(at), group, sums)

    def _multiply(self, rows: list[ir.Value], values: list[ir.Value], group: int, sums: list[ir.Value]) -> None:
        """Adds the products of a key's powers and four of its values."""
        each = 2 * self.columns // self.across  # accumulators of two rows of a thread
        for i, power in enumerate(rows):
            block, half = divmod(i, 2)
            for number, value in enumerate(values):
                at = block * each + _EIGHT * group + 4 * (number // 2) + 2 * half + number % 2
                sums[at] = math_dialect.FmaOp(power, value, sums[at]).result

    def _load(self, place: Scalar) -> list[ir.Value]:
        found = llvm.LoadOp(self.type, self.words.place(place), alignment=_PIECE).res
        return [vector.extract(found, [], [i]) for i in range(TERMS)]


class QuadEpilogue(Epilogue):
    """That of accumulators as `ExactPowers` has them, of tiles whose columns are a multiple of 16."""

    def _stage(
        self,
        accumulators: Sequence[ir.Value],
        base: Scalar,
        lane: ir.Value,
        origin: tuple[Scalar, Scalar],
        outer: Sequence[Scalar],
    ) -> None:
        words, math = self.words, self.words.math
        type_ = ir.VectorType.get([TERMS], words.f32)
        row, column = math.div(lane, 4), math.mul(math.rem(lane, 4), TERMS)
        for group in range(self.chunk // BLOCK):
            for half in range(BLOCK // _EIGHT):
                first = _EIGHT * group + 2 * half
                own = [accumulators[first + i] for i in (0, 1, 4, 5)]
                place = self._place(math.add(row, _EIGHT * half), math.add(column, BLOCK * group))
                llvm.StoreOp(vector.from_elements(type_, own), words.place(math.add(base, place)), alignment=_PIECE)


class WideEpilogue(Epilogue):
    """That of accumulators with eight threads across a row (`wide`), of tiles whose columns are a multiple of 32."""

    def _stage(
        self,
        accumulators: Sequence[ir.Value],
        base: Scalar,
        lane: ir.Value,
        origin: tuple[Scalar, Scalar],
        outer: Sequence[Scalar],
    ) -> None:
        words, math = self.words, self.words.math
        type_ = ir.VectorType.get([TERMS], words.f32)
        row, column = math.div(lane, MANY), math.mul(math.rem(lane, MANY), TERMS)
        for number in range(0, len(accumulators), TERMS):
            group, part = divmod(number // TERMS, TERMS)
            place = self._place(math.add(row, TERMS * part), math.add(column, MANY * TERMS * group))
            own = vector.from_elements(type_, list(accumulators[number : number + TERMS]))
            llvm.StoreOp(own, words.place(math.add(base, place)), alignment=_PIECE)


def wide(upper: Sequence[ir.Value], lower: Sequence[ir.Value]) -> list[ir.Value]:
    """The accumulators of 16 rows, by 32 columns and row, from those of the first eight rows and of the others."""
    found: list[ir.Value] = []
    for group in range(len(upper) // _EIGHT):
        for part in (upper, lower):
            for half in range(2):
                found += [part[_EIGHT * group + i + 2 * half] for i in (0, 1, 4, 5)]
    return found
