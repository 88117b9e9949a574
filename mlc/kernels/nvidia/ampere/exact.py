"""Products of tiles of f32 by ordinary arithmetic, each thread the elements that it would have of `mma.sync`.

Thread 4r + t of a warp has the rows r and r + 8 of every 16, and the columns 2t and 2t + 1 of every eight. It takes 16
bytes, four terms of the sum, of a row at a time: eight rows, or four columns, of a warp's load are lines whose pieces
lie in banks of their own. A row's terms stay in registers for all of its columns ("register blocking"; Volkov and
Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra", 2008). Terms are added one after another, without rounding in
between.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import llvm, vector
from mlir.dialects import math as math_dialect

from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.ampere.fragments import BLOCK
from mlc.kernels.nvidia.tensor_cores.tiles import ROW
from mlc.kernels.nvidia.tensor_cores.words import Words

TERMS = 4  # of the sum in a load
_EIGHT = 8
_PIECE = 16  # bytes
_AT_A_TIME = 2  # pieces of a line in the body of the loop


class ExactProduct:
    """The products of a warp: `rows` of the left tile, at byte `left` of a stage, from row `first[0]` on, and `columns`
    of the right one. Both tiles lie along the sum."""

    def __init__(
        self, words: Words, offsets: tuple[int, int], first: tuple[Scalar, Scalar], rows: int, columns: int
    ) -> None:
        self.words, self.rows, self.columns = words, rows, columns
        math, lane = words.math, words.math.rem(words.thread(), 32)
        own = math.div(lane, 4), math.mul(math.rem(lane, 4), 2)
        self.along = [
            math.add(math.add(math.mul(math.add(begin, line), ROW), math.mul(line, _PIECE)), offset)
            for offset, begin, line in zip(offsets, first, own, strict=True)
        ]
        self.type = ir.VectorType.get([TERMS], words.f32)

    def add(self, stage: Scalar, sums: Sequence[ir.Value]) -> list[ir.Value]:
        """The accumulators, in the order of `mma.sync`'s, plus the products of a stage."""
        return self.words.loop(0, ROW // _PIECE, _AT_A_TIME, sums, lambda at, now: self._pieces(stage, at, list(now)))

    def _pieces(self, stage: Scalar, first: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        for number in range(_AT_A_TIME):
            self._piece(stage, self.words.math.mul(first, _PIECE), number, sums)
        return sums

    def _piece(self, stage: Scalar, piece: Scalar, number: int, sums: list[ir.Value]) -> None:
        """Adds the products of four terms."""
        rows = [self._load(0, stage, piece, number, _EIGHT * i) for i in range(self.rows // _EIGHT)]
        for group in range(self.columns // _EIGHT):
            for odd in range(2):
                column = self._load(1, stage, piece, number ^ odd, _EIGHT * group + odd)
                for i, row in enumerate(rows):
                    block, half = divmod(i, BLOCK // _EIGHT)
                    at = 4 * (block * (self.columns // _EIGHT) + group) + 2 * half + odd
                    for a, b in zip(row, column, strict=True):
                        sums[at] = math_dialect.FmaOp(a, b, sums[at]).result

    def _load(self, which: int, stage: Scalar, piece: Scalar, number: int, line: int) -> list[ir.Value]:
        """Four terms of the line `line` behind this thread's first one."""
        words, math = self.words, self.words.math
        place = words.xor(words.xor(math.add(self.along[which], stage), piece), number * _PIECE)
        found = llvm.LoadOp(self.type, words.place(math.add(place, line * ROW)), alignment=_PIECE).res
        return [vector.extract(found, [], [i]) for i in range(TERMS)]
