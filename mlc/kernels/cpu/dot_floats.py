"""Register-tiled contractions of bf16, or of f32 and f16, by multiply-adds of f32.

For targets whose `vdpbf16ps` is slow or missing, and whose conversions of f16 take the place of multiply-adds.

The tiles, blocks of the reduction and epilogues of `deep_contraction`, and the operands of `dot_product`: a weight
that is stored as pairs, `[panels, …, K / 2, panel, 2]` with a zero behind an odd K (`mlc-pack-weights`), and another
operand that is read along the reduction. Before the tiles of a work item take a block, its part of the weight's panel
is written to the stack in f32, once for all their rows: a shift or a mask and a store for every vector. A block is as
large as leaves room for rows and sums in the first level of cache; with stores to what is behind that, all took a tenth
longer. The rows of a tile are widened before it takes the block (`widened_rows`). What is left is the inner loop of
`contraction`, and sums are added up in its order: results are those of `dot_product` with multiply-adds, bit by bit.

Halves of pairs could be split on their way into registers instead: two more instructions for as many multiply-adds as
a tile has rows by sides, which compete with these for the same units. Measured with 512 bits, tiles of twelve rows by
two vectors: 0.95 of the speed; with 256 bits there are no registers for it (0.85).

That is what is done for few rows, where only a run knows how many there are: they do not pay for writing a weight.

A weight of f16 is stored as that of `contraction`, line by line, and the rows that it multiplies are f32. They are read
where they lie unless some are in a padding.

A block that is the whole reduction begins and ends with sums in registers. Others have one tap of a window, or several
where these have few channels.

Schedule parameters: those of `deep_contraction`; `vector_operand`: the input with the vector dimension, the weight;
`stored`: `pairs`, or `rows` for f16; `side`: vectors of the tile that are multiplied at a time (`widened_rows`);
`least`: rows of a work item from which on a block is written to the stack, where it is asked (0: always).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith, memref, vector

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.cpu.contraction import Contraction
from mlc.kernels.cpu.contraction_grid import tile_grid
from mlc.kernels.cpu.deep_contraction import DeepContraction, DeepContractionSchedule
from mlc.kernels.cpu.register_tile import Column, Position, Tile
from mlc.kernels.cpu.widened_rows import Part, WidenedRows

TOGETHER = {"pairs": 2, "rows": 1}  # elements of the reduction that stand together in the weight, as it is stored


@dataclass(frozen=True)
class DotFloatsSchedule(DeepContractionSchedule):
    """Parameters of the template; see the module's description."""

    vector_operand: int = field(kw_only=True)
    stored: str = field(kw_only=True)
    side: int = field(kw_only=True)
    least: int = field(default=0, kw_only=True)


def expand(source: KernelSource, schedule: DotFloatsSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [_DotFloats(source, schedule).emit(), tile_grid(source, schedule)]


class _DotFloats(WidenedRows, DeepContraction):
    s: DotFloatsSchedule
    group = 1

    def __init__(self, source: KernelSource, schedule: DotFloatsSchedule) -> None:
        super().__init__(source, schedule, schedule.vector_operand)
        moving = [(d, int(e)) for d, e in self.reductions if e != 1]
        self.inner = self.reductions[-1][0]
        self.has_taps = self.dim != self.inner  # of which a block has several
        self.in_place = schedule.stored == "rows" and self.data not in self.padded  # rows are f32 where they lie
        self._prepare(ir.F32Type.get(), self.depth if self.has_taps else schedule.depth, schedule.side)
        self.together = TOGETHER[schedule.stored]
        whole = self.depth + self.depth % self.together
        # Lines of a panel that one step of each dimension is.
        self.lines_of = {d: whole * math.prod(e for _, e in moving[i + 1 : -1]) for i, (d, _) in enumerate(moving)}
        self.lines_of[self.inner] = 1
        lines = schedule.depth * self.lines_of[self.dim]
        self.pairs = -(-lines // self.together)  # of lines in a block
        self.weights = self.frame.on_stack(self.wide, self.pairs * self.together * schedule.panel)

    # -- the weight -------------------------------------------------------------------------------------------------

    def _panel(self, point: list[Idx], panel: Scalar, block: Scalar) -> None:
        self.start = self._panel_start(point, panel)
        super()._panel(point, panel, block)

    def _enter(self) -> None:
        """The block's part of the weight in f32."""
        s, index, c = self.s, self.frame.math, self.frame.constants
        buffer, first = self.frame.buffers[self.root.operands[s.packed_operand]], self.start
        for d, at in [*self.at.items(), (self.dim, self.low)]:
            first = index.add(first, index.mul(at, self.lines_of[d] * s.panel))
        type_ = ir.VectorType.get([self.together * s.lanes], buffer.element)

        def body(pair: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            at = index.mul(pair, self.together * s.panel)
            for v in range(s.vectors):
                place = index.add(index.add(first, at), self.together * v * s.lanes)
                pairs = vector.LoadOp(type_, buffer.memory, [c.index(place)]).result
                for half, values in enumerate(self._halves(pairs)):
                    there = c.index(index.add(at, half * s.panel + v * s.lanes))
                    vector.StoreOp(values, self.weights, [there], alignment=s.lanes * self.wide.width // 8)
            return []

        for_loop(self.frame, 0, self.pairs, 1, [], body)

    def _halves(self, pairs: ir.Value) -> list[ir.Value]:
        """The first and the second elements of pairs; of what stands by itself, that."""
        i32, lanes = ir.IntegerType.get_signless(32), self.s.lanes
        wide = ir.VectorType.get([lanes], self.wide)
        if self.together == 1:
            return [arith.extf(wide, pairs)]
        bits = vector.bitcast(ir.VectorType.get([lanes], i32), pairs)
        shift, mask = (memory.splat(self.frame.constants.get(i32, n), lanes) for n in (16, -65536))
        return [vector.bitcast(wide, arith.shli(bits, shift)), vector.bitcast(wide, arith.andi(bits, mask))]

    # -- rows and sums ----------------------------------------------------------------------------------------------

    def _rows(self, point: list[Idx], columns: list[Column], block: Scalar) -> None:
        math, c, s = self.frame.math, self.frame.constants, self.s

        def many() -> None:
            if self.outer or self.extent != s.depth or self.has_taps or self.padded:
                super(_DotFloats, self)._rows(point, columns, block)
                return
            self.stage, self.low = self._multiply_whole, 0
            self._enter()
            self._lines(point, columns, block)

        def few() -> None:
            self.stage = self._multiply_few
            Contraction._rows(self, point, columns, block)

        if not s.least or self.padded:
            many()
            return
        left = math.sub(self.row_extent, math.mul(block, s.row_block))
        if_then(arith.cmpi(arith.CmpIPredicate.slt, c.index(left), c.index(s.least)), few, many)

    def _row_taps(self) -> int | None:
        return super()._row_taps() if self.has_taps else None

    def _multiply_whole(self, ev: Evaluator, tile: Tile) -> None:
        position = self._position()
        self._widen(ev, tile, position, 0, self.s.depth)
        for number, side in enumerate(self._sides(tile)):
            part = self._part(0, self.s.depth, number)
            sums = self._multiply(ev, side, position, part, self._initial(ev, side))
            self._epilogue(side, dict(zip(side.points, sums, strict=True)))

    def _multiply_few(self, ev: Evaluator, tile: Tile) -> None:
        """The weight's pairs are taken apart in registers. Memory likes whole lines of a panel: sums of one or two rows
        leave room for all sides."""
        fits = len(tile.points) <= self.s.rows * self.s.side
        for side in [tile] if fits else self._sides(tile):

            def add(low: ir.Value, sums: list[ir.Value], side: Tile = side) -> list[ir.Value]:
                self._widen(ev, side, self._position(), low, self.s.depth)
                return self._multiply_pairs(ev, side, low, sums)

            sums = for_loop(self.frame, 0, self.extent, self.s.depth, self._initial(ev, side), add)
            self._epilogue(side, dict(zip(side.points, sums, strict=True)))

    def _multiply_pairs(self, ev: Evaluator, tile: Tile, low: Scalar, carried: Sequence[ir.Value]) -> list[ir.Value]:
        """The sums with the products of the steps of a block from `low` on."""
        pairs, odd = divmod(self.s.depth, self.together)

        def body(pair: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            return self._add_pair(ev.child(), tile, low, pair, sums, self.together)

        sums = for_loop(self.frame, 0, pairs, 1, list(carried), body)
        return self._add_pair(ev.child(), tile, low, pairs, sums, odd) if odd else sums

    def _add_pair(
        self, ev: Evaluator, tile: Tile, low: Scalar, pair: Scalar, carried: Sequence[ir.Value], live: int
    ) -> list[ir.Value]:
        """`live` steps of a block, from its pair number `pair` on."""
        index, s = self.frame.math, self.s
        buffer = self.frame.buffers[self.root.operands[s.packed_operand]]
        line = index.add(index.add(self.start, index.mul(low, s.panel)), index.mul(pair, self.together * s.panel))
        type_ = ir.VectorType.get([self.together * s.lanes], buffer.element)
        halves: dict[int, list[ir.Value]] = {}
        for column in sorted({column for _, column in tile.points}):
            place = self.frame.constants.index(index.add(line, self.together * column * s.lanes))
            halves[column] = self._halves(vector.LoadOp(type_, buffer.memory, [place]).result)
        sums = list(carried)
        for half in range(live):
            at = index.add(index.mul(pair, self.together), half)
            for number, (row, column) in enumerate(tile.points):
                value = self._element(ev, tile, row, self._position(), low, at)
                spread = vector.broadcast(sums[number].type, value)
                sums[number] = vector.FMAOp(spread, halves[column][half], sums[number]).result
        return sums

    def _add(self, ev: Evaluator, tile: Tile) -> None:
        """Of a block of one tap each side has its sums in registers once."""
        if self.has_taps:
            super()._add(ev, tile)
            return
        position, sides = self._position(), self._sides(tile)

        def widen(there: Tile) -> list[ir.Value]:
            self._widen(ev.child(), there, position, self.low, self.s.depth)
            return []

        def add() -> None:
            self._at_its_place(tile, [], widen)
            for number, side in enumerate(sides):
                part = Part(0, self.s.depth, number * self.s.depth, len(sides) * self.s.depth)
                sums = self._multiply(ev, side, position, part, self._loaded(side))
                for (name, at), value in zip(self._places(side), sums, strict=True):
                    vector.StoreOp(value, self.sums, [at], alignment=self._alignment(side, name))

        inside = self._is_inside_of_image(tile)
        if inside is None:
            add()
        else:
            if_then(inside, add)

    def _position(self) -> dict[int, Idx]:
        """The block's tap."""
        return {d: Idx(self.at.get(d, 0), level=3) for d, _ in self.reductions[:-1]}

    def _is_inside_of_image(self, tile: Tile) -> ir.Value | None:
        """Has the image what a tile reads at the block's tap, of windows over dimensions without rows? None: always."""
        c, result = self.frame.constants, None
        for tap, extent in self.reductions[:-1]:
            if tap in self.outer_windows:
                low, high = self._taps(tile, tap, extent)
                inside = arith.cmpi(arith.CmpIPredicate.slt, c.index(low), c.index(high))
                result = inside if result is None else arith.andi(result, inside)
        return result

    # -- products ---------------------------------------------------------------------------------------------------

    def _wider(self, value: ir.Value, type_: ir.Type) -> ir.Value:
        return value if value.type == type_ else arith.extf(type_, value)

    def _add_group(
        self, ev: Evaluator, tile: Tile, position: Position, at: Scalar, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        index, s = self.frame.math, self.s
        line = index.add(self._tap(position), index.mul(position[self.inner].base, s.panel))
        low = 0 if self.has_taps else self.low  # taps have all channels
        rows: dict[tuple[int, int], ir.Value] = {}
        weights: dict[int, ir.Value] = {}
        sums = []
        for (row, column), accumulator in zip(tile.points, carried, strict=True):
            lanes = tile.columns[column].lanes
            type_ = ir.VectorType.get([lanes], self.wide)
            if column not in weights:
                place = self.frame.constants.index(index.add(line, column * s.lanes))
                weights[column] = vector.LoadOp(type_, self.weights, [place]).result
            if (row, lanes) not in rows:
                value = self._element(ev, tile, row, position, low, at)
                rows[row, lanes] = vector.broadcast(type_, value)
            sums.append(vector.FMAOp(rows[row, lanes], weights[column], accumulator).result)
        return sums

    def _widen(self, ev: Evaluator, tile: Tile, position: Position, start: Scalar, count: int) -> None:
        if not self.in_place:
            super()._widen(ev, tile, position, start, count)

    def _element(self, ev: Evaluator, tile: Tile, row: int, position: Position, low: Scalar, at: Scalar) -> ir.Value:
        """Element `at` of a row behind `low`, from where on its rows have been widened unless they are read in place;
        `position` is that of the other reduction dimensions."""
        if not self.in_place:
            return memref.load(self.widened, [self._place(row, at)])
        k = Idx(self.frame.math.add(low, at), level=4 + len(position))
        point = next(point for (number, _), point in tile.points.items() if number == row)
        coords = [ev.idx.affine(e, self._iteration(point, self._at(position, k))) for e in self.reads[self.data][0]]
        return ev.child(1).tensor(self.root.operands[self.data], coords)

    def _tap(self, position: Position) -> Scalar:
        """Where the weights of a tap of the block begin."""
        index, total = self.frame.math, 0
        if not self.has_taps:
            return total
        for d, lines in self.lines_of.items():
            if d == self.inner or d in self.at:
                continue
            at = position[d].base
            if d == self.dim:
                at = 0 if self.s.depth == 1 else index.sub(at, self.low)
            total = index.add(total, index.mul(at, lines * self.s.panel))
        return total
