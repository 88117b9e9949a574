"""Register-tiled contractions of 8-bit integers by products of 16 bits, for targets without `vpdpbusd`.

The tiles, loops and epilogues of `contraction`. `vpmaddwd` adds two products of 16 bits each to one of 32, exactly and
for operands with and without signs. A step takes two adjacent elements of the innermost reduction dimension. Those of
the weight are stored as pairs of bytes, `[panels, …, K / 2, panel, 2]` with a zero behind an odd K
(`mlc-pack-weights`), and widened as they are loaded, once for all rows of a tile. Those of the other operand, of which
every pair is wanted in all lanes, are widened before: a tile's rows are written as words to a buffer of the stack,
`DEPTH` elements at a time, so that a broadcast is a load and nothing else. Whatever is computed in front of the product
(highest bits that are turned over, a padding) is computed there, for a vector of elements at a time.

Sixteen registers hold six rows by two vectors of sums, two vectors of the weight, a pair and a product. A loop's body
is one step: of several ones LLVM adds the products first, for which there are no registers.

Schedule parameters: those of `contraction`; `vector_operand`: the input with the vector dimension, the weight;
`stored`: `pairs`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Frame, KernelSource
from mlc.kernels.common.generics import is_unsigned_input
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.cpu.contraction_grid import GroupedSchedule, tile_grid
from mlc.kernels.cpu.dot_quads import pair_products
from mlc.kernels.cpu.register_tile import Position, Tile
from mlc.kernels.cpu.widened_rows import WidenedRows

DEPTH = 512  # elements of the sum whose rows are widened at a time: with their panel they stay in the first cache


class DotWordsSchedule(GroupedSchedule):
    """Parameters of the template; see the module's description."""


def expand(source: KernelSource, schedule: DotWordsSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [_DotWords(source, schedule).emit(), tile_grid(source, schedule)]


class _DotWords(WidenedRows):
    s: DotWordsSchedule

    def __init__(self, source: KernelSource, schedule: DotWordsSchedule) -> None:
        super().__init__(source, schedule, schedule.vector_operand)
        self.i16 = ir.IntegerType.get_signless(16)
        self._prepare(self.i16, DEPTH, schedule.vectors)
        self.unsigned = [is_unsigned_input(self.root, i) for i in range(2)]

    def _wider(self, value: ir.Value, type_: ir.Type) -> ir.Value:
        return (arith.extui if self.unsigned[self.data] else arith.extsi)(type_, value)

    def _add_group(
        self, ev: Evaluator, tile: Tile, position: Position, at: Scalar, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        rows: dict[tuple[int, int], ir.Value] = {}
        panels: dict[int, ir.Value] = {}
        results = []
        for ((row, column), point), accumulator in zip(tile.points.items(), carried, strict=True):
            lanes = tile.columns[column].lanes
            if column not in panels:
                scope = ev.child(lanes, tile.columns[column].mask)
                panels[column] = self._weights(scope, self._iteration(point, position))
            if (row, lanes) not in rows:
                rows[row, lanes] = self._pair(row, at, lanes)
            results.append(arith.addi(accumulator, pair_products(rows[row, lanes], panels[column])))
        return results

    def _pair(self, row: int, at: Scalar, lanes: int) -> ir.Value:
        """Two words of a row in every 32 bits; by way of a float, which is one load."""
        words = vector.LoadOp(ir.VectorType.get([2], self.i16), self.widened, [self._place(row, at)]).result
        number = vector.extract(vector.bitcast(ir.VectorType.get([1], ir.F32Type.get()), words), [], [0])
        spread = vector.broadcast(ir.VectorType.get([lanes], ir.F32Type.get()), number)
        return vector.bitcast(ir.VectorType.get([2 * lanes], self.i16), spread)

    def _weights(self, ev: Evaluator, dims: list[Idx]) -> ir.Value:
        """A vector of pairs of the packed weight, whose panels are full, as words."""
        operand = self.s.vector_operand
        buffer = self.frame.buffers[self.root.operands[operand]]
        coords = [ev.idx.affine(e, dims) for e in self.reads[operand][0]]
        base = [self.frame.constants.index(memory.address(buffer, coords, ev.idx).base)]
        bytes_ = vector.LoadOp(ir.VectorType.get([2 * ev.lanes], buffer.element), buffer.memory, base).result
        widened = arith.extui if self.unsigned[operand] else arith.extsi
        return widened(ir.VectorType.get([2 * ev.lanes], self.i16), bytes_)
