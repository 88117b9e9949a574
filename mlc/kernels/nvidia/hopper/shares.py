"""What the blocks of a cluster copy for each other (multicast), and whom they tell that a stage is free."""

from __future__ import annotations

from dataclasses import replace

from mlir import ir
from mlir.dialects import arith, nvvm

from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.tensor_cores.tiles import Tile
from mlc.kernels.nvidia.tensor_cores.words import Words


class Shares:
    """What the blocks of a cluster of `rows` x `columns` copy for each other: `row` and `column` are this one's place.
    A tile of the left operand is for a row of blocks, one of the right for a column; a block copies part `numbers` of
    `counts`. A right tile has columns of each of `twins`."""

    def __init__(self, words: Words, rows: int, columns: int, twins: int = 1) -> None:
        self.words, self.rows, self.columns, self.twins = words, rows, columns, twins
        self.row: Scalar = 0
        self.column: Scalar = 0
        if rows * columns > 1:
            rank = nvvm.read_ptx_sreg_cluster_ctarank(words.i32)
            self.row, self.column = words.math.rem(rank, self.rows), words.math.div(rank, self.rows)
        self.numbers, self.counts = (self.column, self.row), (self.columns, self.rows)

    @property
    def fillers(self) -> int:
        """How many blocks copy to this one."""
        return self.rows + self.columns - 1

    def part(self, which: int, tile: Tile) -> Tile:
        """What a block copies of a tile of the left (0) or the right operand: some of its rows as they lie, and those
        of one product of twins."""
        count = self.counts[which]
        tile = replace(tile, rows=tile.rows // self.twins) if which else tile
        return replace(tile, cut=count) if tile.across else replace(tile, rows=tile.rows // count)

    def offsets(self, which: int, part: Tile) -> tuple[Scalar, Scalar, Scalar]:
        """Where this block's part begins: its row of the matrix, its step, and its byte in the tile."""
        math, number = self.words.math, self.numbers[which]
        rows, steps = (0, part.depth // part.cut) if part.across else (part.rows, 0)
        lines = math.mul(number, rows + steps)
        return (lines if rows else 0), (lines if steps else 0), math.mul(lines, part.row_bytes)

    def blocks(self, which: int) -> ir.Value | None:
        """A bit for each block that a tile is for."""
        if self.counts[which] == 1:
            return None
        math = self.words.math
        bits = sum(1 << block * (1 if which else self.rows) for block in range(self.counts[which]))
        first = math.mul(self.column, self.rows) if which else self.row
        shifted = arith.shli(self.words.value(bits), self.words.value(first))
        return arith.trunci(ir.IntegerType.get_signless(16), shifted)

    def filler(self, number: ir.Value) -> Scalar:
        """The block that is `number` among those that copy to this one: those of its row, then others of its column."""
        words, math = self.words, self.words.math
        of_row = math.add(self.row, math.mul(number, self.rows))
        below = math.rem(math.add(self.row, math.add(number, 1 - self.columns)), self.rows)
        of_column = math.add(below, math.mul(self.column, self.rows))
        return arith.select(words.is_below(number, self.columns), words.value(of_row), words.value(of_column))
