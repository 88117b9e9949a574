"""The epilogue of 16-bit results, which are computed in the registers where the accumulators are.

What is staged in shared memory is the result itself, half the bytes of accumulators: threads write it as matrices
(PTX ISA, `stmatrix`) and read vectors of 16 bytes. Takes epilogues that read vectors along rows or columns at most:
each thread has two columns of eight at a time, which would be a poor way to read a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import llvm, vector

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator, Override
from mlc.kernels.common.frame import KernelSource
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.nvidia.tensor_cores.epilogue import WARP_ROWS, Epilogue
from mlc.kernels.nvidia.tensor_cores.words import assembly

LANES = 8
"""16-bit elements of a vector of 16 bytes."""
_SIZE = 2  # bytes of an element
_WIDEST = 64  # columns of a block whose rows are 128 bytes


def packed_chunk(columns: int) -> int:
    """Columns that are staged at a time, of a tile of `columns`."""
    return next(c for c in (2 * _WIDEST, _WIDEST, 32, 16) if columns % c == 0)


def packed_bytes(columns: int, warps: int) -> int:
    """Shared memory that the epilogue of tiles of `columns` columns takes."""
    return warps * WARP_ROWS * packed_chunk(columns) * _SIZE


def takes(source: KernelSource, operands: Sequence[ir.Value]) -> bool:
    """Is the kernel's only result of 16 bits, and does it read nothing but vectors besides the contraction's
    `operands`?"""
    if len(source.results) != 1 or source.results[0].type.element_type.width != 16:
        return False
    if not isinstance(source.results[0].type.element_type, ir.FloatType):
        return False
    others = [t for t in source.tensors if t not in operands and t not in source.destinations]
    return all(sum(extent != 1 for extent in t.type.shape) <= 1 for t in others)


class PackedEpilogue(Epilogue):
    """Stores the one result of `source`, which `takes` accepts; extents of columns are multiples of eight."""

    _SIZE = _SIZE
    _TOGETHER = 1  # they read nothing
    _chunk_of = staticmethod(packed_chunk)

    def _stage(
        self,
        accumulators: Sequence[ir.Value],
        base: Scalar,
        lane: ir.Value,
        origin: tuple[Scalar, Scalar],
        outer: Sequence[Scalar],
    ) -> None:
        """Computes and stages columns. Thread 4r + t of a warp has, of every eight columns, 2t and 2t + 1 of the rows r
        and r + 8; thread l says where the row l % 8 of the matrix l / 8 of four goes."""
        math, words = self.words.math, self.words
        width = min(_WIDEST, 2 * len(accumulators))
        rows = [self._clamped(math.add(math.add(origin[0], math.div(lane, 4)), 8 * half), 0, 1) for half in range(2)]
        pair, row, side = math.mul(math.rem(lane, 4), 2), math.rem(lane, 16), math.div(lane, 16)
        for group in range(len(accumulators) // 8):
            values = []
            for half in range(2):
                column = math.add(math.add(origin[1], 16 * group + 8 * half), pair)
                for number in range(2):
                    first = 8 * group + 4 * half + 2 * number
                    at = rows[number], self._clamped(column, 1, 2)
                    values.append(self._value(accumulators[first : first + 2], at, outer))
            block, inside = divmod(16 * group, width)
            where = self._byte(width, block, row, words.xor(inside // 8, side))
            address = words.value(math.add(words.shared_address, math.add(base, where)))
            text = "stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};"
            assembly(None, [address, *values], text, "r,r,r,r,r")

    def _value(self, pair: Sequence[ir.Value], at: tuple[Scalar, Scalar], outer: Sequence[Scalar]) -> ir.Value:
        """Two neighbours of the result as a word."""
        words = self.words
        sums = vector.from_elements(ir.VectorType.get([2], words.f32), list(pair))
        override: Override = lambda _: sums  # noqa: E731
        scope = Evaluator(self.frame, 2, overrides={self.root.results[0]: override})
        row, column = Idx(words.widen(at[0]), level=2), Idx(words.widen(at[1]), 1, level=2)
        point = self.domain.point([Idx(words.widen(o), level=1) for o in outer], row, column)
        found = memory.splat(scope.tensor(self.source.results[0], point), 2)
        word = vector.bitcast(ir.VectorType.get([1], words.i32), found)
        return vector.extract(word, [], [0])

    def _byte(self, width: int, block: Scalar, row: Scalar, piece: Scalar) -> Scalar:
        """Byte of a piece of 16 bytes of a row of a block of `width` columns. Pieces are permuted so that neither those
        of eight rows nor those of a line lie in the same banks."""
        math, pieces = self.words.math, width // LANES
        permuted = self.words.xor(piece, math.rem(math.div(row, 8 // pieces), pieces))
        line = math.add(math.mul(block, WARP_ROWS), row)
        return math.add(math.mul(line, width * _SIZE), math.mul(permuted, LANES * _SIZE))

    def _vector(self, row: Scalar, piece: Scalar) -> Scalar:
        math, width = self.words.math, min(_WIDEST, self.chunk)
        each = width // LANES
        return self._byte(width, math.div(piece, each), row, math.rem(piece, each))

    def _staged(self, pointer: ir.Value) -> ir.Value:
        type_ = ir.VectorType.get([LANES], self.source.results[0].type.element_type)
        return llvm.LoadOp(type_, pointer, alignment=LANES * _SIZE).result

    def _computed(self, value: ir.Value, at: tuple[Scalar, Scalar], outer: Sequence[Scalar]) -> list[ir.Value]:
        return [value]
