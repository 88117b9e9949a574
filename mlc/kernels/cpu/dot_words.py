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
from mlir.dialects import arith, memref, vector

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Frame, KernelSource, for_loop
from mlc.kernels.common.generics import is_unsigned_input
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.cpu.contraction import Contraction
from mlc.kernels.cpu.contraction_grid import GroupedSchedule, tile_grid
from mlc.kernels.cpu.dot_quads import pair_products
from mlc.kernels.cpu.register_tile import Tile

DEPTH = 512  # elements of the sum whose rows are widened at a time: with their panel they stay in the first cache
_ALIGNMENT = 64  # bytes: a line of the cache


class DotWordsSchedule(GroupedSchedule):
    """Parameters of the template; see the module's description."""


def expand(source: KernelSource, schedule: DotWordsSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [_DotWords(source, schedule).emit(), tile_grid(source, schedule)]


class _DotWords(Contraction):
    s: DotWordsSchedule

    def __init__(self, source: KernelSource, schedule: DotWordsSchedule) -> None:
        super().__init__(source, schedule)
        self.unsigned = [is_unsigned_input(self.root, i) for i in range(2)]
        self.data, extent = 1 - schedule.vector_operand, self.reductions[-1][1]
        if not isinstance(extent, int):
            raise ValueError(f"kernel {self.frame.name}: sums of bytes by words have a known extent")
        self.depth = extent
        self.i8, self.i16, self.i32 = (ir.IntegerType.get_signless(bits) for bits in (8, 16, 32))
        self.stride = min(DEPTH, extent + extent % 2)  # words of a row
        with self.frame.prologue():
            type_ = ir.MemRefType.get([schedule.rows * self.stride], self.i16)
            self.words = memref.AllocaOp(type_, [], [], alignment=_ALIGNMENT).result

    def _reduce(
        self,
        ev: Evaluator,
        tile: Tile,
        loops: list[tuple[int, Scalar]],
        position: dict[int, Idx],
        carried: Sequence[ir.Value],
    ) -> list[ir.Value]:
        """The innermost dimension goes by pieces, whose rows are widened first."""
        if len(loops) != 1:
            return super()._reduce(ev, tile, loops, position, carried)
        whole, rest = divmod(self.depth, DEPTH)

        def piece(start: Scalar, count: int, sums: Sequence[ir.Value]) -> list[ir.Value]:
            self._widen(ev, tile, position, start, count)
            return self._multiply(ev, tile, position, start, count, sums)

        sums = list(carried)
        if whole:
            sums = for_loop(self.frame, 0, whole * DEPTH, DEPTH, sums, lambda start, old: piece(start, DEPTH, old))
        return piece(whole * DEPTH, rest, sums) if rest else sums

    def _at(self, position: dict[int, Idx], k: Idx) -> dict[int, Idx]:
        return {**position, self.reductions[-1][0]: k}

    # -- rows -------------------------------------------------------------------------------------------------------

    def _widen(self, ev: Evaluator, tile: Tile, position: dict[int, Idx], start: Scalar, count: int) -> None:
        """`count` elements of every row of a tile as words, and a zero behind an odd number of them."""
        points = {row: point for (row, _), point in tile.points.items()}
        wide, math = 2 * self.s.lanes, self.frame.math

        def write(at: Scalar, lanes: int) -> None:
            for row, point in points.items():
                scope = ev.child(lanes)
                k = Idx(math.add(start, at), 1 if lanes > 1 else 0, level=4 + len(position))
                value = self._elements(scope, tile, point, self._at(position, k))
                self._store(value, self._place(row, at), lanes)

        def body(at: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            write(at, wide)
            return []

        upto = count // wide * wide
        if upto:
            for_loop(self.frame, 0, upto, wide, [], body)
        for bit in reversed(range(wide.bit_length() - 1)):
            if count & 1 << bit:
                write(upto, 1 << bit)
                upto += 1 << bit
        if count % 2:
            for row in points:
                memref.store(self.frame.constants.get(self.i16, 0), self.words, [self._place(row, count)])

    def _elements(self, ev: Evaluator, tile: Tile, point: Sequence[Idx], position: dict[int, Idx]) -> ir.Value:
        """Elements of a row, as bytes."""
        coords = [ev.idx.affine(e, self._iteration(point, position)) for e in self.reads[self.data][0]]
        if self.data in self.padded:
            return self._unpadded(ev, tile, self.padded[self.data], coords)
        return ev.tensor(self.root.operands[self.data], coords)

    def _store(self, value: ir.Value, place: ir.Value, lanes: int) -> None:
        widened = arith.extui if self.unsigned[self.data] else arith.extsi
        if lanes == 1:
            memref.store(widened(self.i16, value), self.words, [place])
            return
        vector.StoreOp(widened(ir.VectorType.get([lanes], self.i16), memory.splat(value, lanes)), self.words, [place])

    def _place(self, row: int, at: Scalar) -> ir.Value:
        return self.frame.constants.index(self.frame.math.add(at, row * self.stride))

    # -- products ---------------------------------------------------------------------------------------------------

    def _multiply(
        self,
        ev: Evaluator,
        tile: Tile,
        position: dict[int, Idx],
        start: Scalar,
        count: int,
        carried: Sequence[ir.Value],
    ) -> list[ir.Value]:
        """The sums with the products of `count` elements from `start` on."""
        math, pairs, unroll = self.frame.math, -(-count // 2), self.s.unroll
        first, level = math.div(start, 2), 3 + len(position)

        def step(pair: Scalar, sums: list[ir.Value]) -> list[ir.Value]:
            number = math.add(first, pair)
            k = Idx(math.mul(number, 2), tile=(number, 2, 0), level=level)
            return self._add_pair(ev.child(), tile, self._at(position, k), math.mul(pair, 2), sums)

        def body(pair: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            if self.next is not None:
                at, steps = math.div(math.add(first, pair), unroll), -(-self.depth // 2) // unroll
                self._fetch(self.next, tile, position, at, steps)
            for u in range(unroll):
                sums = step(math.step(pair, u), sums)
            return sums

        sums, upto = list(carried), pairs // unroll * unroll
        if upto:
            sums = for_loop(self.frame, 0, upto, unroll, sums, body)
        for pair in range(upto, pairs):
            sums = step(pair, sums)
        return sums

    def _add_pair(
        self, ev: Evaluator, tile: Tile, position: dict[int, Idx], at: Scalar, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The sums with the products of the pair that is the words from `at` on."""
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
        words = vector.LoadOp(ir.VectorType.get([2], self.i16), self.words, [self._place(row, at)]).result
        number = vector.extract(vector.bitcast(ir.VectorType.get([1], ir.F32Type.get()), words), [], [0])
        spread = vector.broadcast(ir.VectorType.get([lanes], ir.F32Type.get()), number)
        return vector.bitcast(ir.VectorType.get([2 * lanes], self.i16), spread)

    def _weights(self, ev: Evaluator, dims: list[Idx]) -> ir.Value:
        """A vector of pairs of the packed weight, whose panels are full, as words."""
        buffer = self.frame.buffers[self.root.operands[self.s.vector_operand]]
        coords = [ev.idx.affine(e, dims) for e in self.reads[self.s.vector_operand][0]]
        base = [self.frame.constants.index(memory.address(buffer, coords, ev.idx).base)]
        bytes_ = vector.LoadOp(ir.VectorType.get([2 * ev.lanes], self.i8), buffer.memory, base).result
        widened = arith.extui if self.unsigned[self.s.vector_operand] else arith.extsi
        return widened(ir.VectorType.get([2 * ev.lanes], self.i16), bytes_)
