"""Contractions of bf16 and of 8-bit integers on matrix tiles (AMX), with sums in f32 and in 32 bits.

The panels, blocks of rows, windows and epilogues of `contraction`; the sums are tiles of 16 rows by 16 columns, two by
two of them at a time, so that every tile that is loaded is multiplied twice. A step takes 64 bytes of the innermost
reduction dimension, 32 elements of bf16 or 64 of eight bits, or somewhat fewer where these leave no rest (`step_of`).
The operand that is read along the reduction is loaded as it lies in memory, 16 rows at a time. The operand with the
columns is in groups of 32 bits, as in `dot_product`: a weight is stored so, with zeros up to 64 bytes
(`mlc-pack-weights`), and what only a run knows is interleaved by every work item on its stack, a panel at a time. Sums
go through the stack to the epilogue, which is on vectors.

The last rows are computed in tiles that begin earlier, among rows that are done, and store what is new; fewer than 16
rows are a lower tile. Where rows are those of a line that is no longer than that, the two tiles of rows are of two
lines side by side. A padded image is copied to the stack where it is small enough. Else rows of which a tap of a
window is outside of the image, and steps beyond the end of the reduction, are copied with zeros to the stack.

`tdpbf16ps` takes denormal numbers for zeros, rounds to nearest even whatever the mode, and rounds after each product
of a pair (Intel, "Architecture Instruction Set Extensions Programming Reference", TDPBF16PS).

Schedule parameters: those of `dot_product`, with `lanes` 16, `rows` 16 or 32; `vector_operand`: the input with the
columns; `stored`: `tiles` or `rows`; `instruction`: what multiplies tiles (`tdpbf16ps`, `tdpbssd`, `tdpbsud`, ...);
`line_dim`: the output dimension of which a work item has two points, with 16 `rows` of each (-1: there is none);
`halo`: 1 where the padded image is copied;
`flat`: how many pixels lie between two lines of that copy, where rows go over the whole of it: results of the zeros
between lines are left out (0: rows are those of a line, or of all where these lie behind each other);
`joined`: 1 where the taps along a line of a window and the channels are one stretch of memory, and of steps: rows of a
packed weight then;
`unfolded`: how many lines of an image a work item keeps on the stack as rows of whole steps, for `joined` (0: none);
`mixed`: how many rows of the epilogue of a block are with each step of the next one (0: none are).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Frame, KernelSource, for_loop
from mlc.kernels.common.generics import starts_at
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.cpu.contraction_grid import tile_grid
from mlc.kernels.cpu.dot_product import interleaved
from mlc.kernels.cpu.next_panel import NextPanel, number_of
from mlc.kernels.cpu.once import Once
from mlc.kernels.cpu.register_tile import Column, Ends, Loops, Position, Tile
from mlc.kernels.cpu.tile_rows import LINES, Block, Step, TileProductSchedule, TileRows
from mlc.kernels.cpu.tiles import LINE, ROWS, Place


def expand(source: KernelSource, schedule: TileProductSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [_TileProduct(source, schedule).emit(), tile_grid(source, schedule)]


class _TileProduct(TileRows):
    def __init__(self, source: KernelSource, schedule: TileProductSchedule) -> None:
        super().__init__(source, schedule)
        self.copied = Once(self.frame) if schedule.stored == "rows" else None  # the panel that is there
        self.sum_type = self.root.results[0].type.element_type
        self.groups = -(-self.depth // self.whole) * ROWS
        self.sums = self.frame.on_stack(self.sum_type, schedule.high * ROWS * schedule.panel)
        if schedule.stored == "rows":
            parts = math.prod(self._known(extent) for _, extent in self.outer)
            self.copy = self.frame.on_stack(self.element, parts * self.groups * self.group * schedule.panel)

    # -- rows -------------------------------------------------------------------------------------------------------

    def _rows(self, point: list[Idx], columns: list[Column], block: Scalar) -> None:
        """Blocks of two tiles of rows, and of one where no more than that is left."""
        math, s, extent = self.frame.math, self.s, self.row_extent
        if self.copied is not None:
            number = self._number_of_panel(s.vector_operand, point, columns[0])
            self.copied.make(number, lambda: self._copy(point, columns))
        start = math.mul(block, s.row_block)
        end = math.minimum(math.add(start, s.row_block), extent)
        if self.image is not None:
            self._fill(self.image, point, (start, end))
        if s.unfolded:
            self._unfold(Block(point, columns, 1, 0, (0, extent)))
        position = start
        if s.rows > ROWS and not (isinstance(extent, int) and extent < s.rows):
            number = math.div(math.add(math.sub(end, start), s.rows - ROWS - 1), s.rows)
            if not isinstance(extent, int):
                number = arith.select(self._at_least(extent, s.rows), self.frame.constants.index(number), self._zero())
            position = math.add(start, math.mul(number, s.rows))
            self._row_loop(point, columns, (start, position, end), s.rows)
            if isinstance(extent, int) and not 0 < extent % s.rows <= ROWS:
                return
        self._row_loop(point, columns, (position, end, end), ROWS)

    def _zero(self) -> ir.Value:
        return self.frame.constants.index(0)

    def _at_least(self, value: ir.Value, least: int) -> ir.Value:
        return arith.cmpi(arith.CmpIPredicate.sge, value, self.frame.constants.index(least))

    def _row_loop(
        self, point: list[Idx], columns: list[Column], bounds: tuple[Scalar, Scalar, Scalar], height: int
    ) -> None:
        """Blocks of `height` rows; `bounds` are the first row, the end of the loop, and that of the rows.

        The epilogue of a block is with the products of the next one, and waits for none of them: the processor has both
        under way at the same time. What it looks ahead are a few hundred instructions, so that some rows are with each
        step (`mixed`), and only what is left then behind all of them.
        """
        math, dim = self.frame.math, self.s.line_dim
        low, high, end = bounds
        line, lines, tiles = 0, (0, 1), height // ROWS
        if dim >= 0:
            first = math.mul(point[dim].base, LINES)
            lines = first, math.minimum(math.add(first, LINES), self.shape[dim])
            line, tiles = self._first_line(point), LINES

        def block(first: Scalar, rows: tuple[Scalar, Scalar]) -> Block:
            begin = math.minimum(first, math.maximum(0, math.sub(self.row_extent, height)))
            return Block(point, columns, tiles, begin, rows, line, lines)

        def before(position: Scalar) -> Block:
            first = math.sub(position, height)
            return block(first, (math.maximum(low, first), math.minimum(position, end)))

        def body(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            waiting = before(variable)
            rows = variable, math.minimum(math.add(variable, height), end)
            sums, done = self._sums(replace(block(variable, rows), before=waiting))
            self._finish(replace(waiting, rows=(done, waiting.rows[1])))
            self._put_down(sums, len(columns))
            return []

        for_loop(self.frame, low, high, height, [], body)
        self._finish(before(math.add(low, math.mul(math.ceildiv(math.sub(high, low), height), height))))

    # -- sums -------------------------------------------------------------------------------------------------------

    def _sums(self, block: Block) -> tuple[list[ir.Value], ir.Value]:
        """The sums of `block`, as tiles, and the first row of the block in front that has no epilogue yet."""
        assert block.before is not None
        zeros = [self.tiles.zero(self.tile_rows) for _ in range(block.high * len(block.columns))]
        first = self.frame.constants.index(block.before.rows[0])
        *sums, done = self._over(block, self.outer, {}, [*zeros, first])
        return sums, done

    def _put_down(self, sums: Sequence[ir.Value], columns: int) -> None:
        """Stores the tiles of `sums`, `columns` of them side by side, to the stack."""
        width = self.s.panel * 4
        for number, tile in enumerate(sums):
            i, j = divmod(number, columns)
            self.tiles.store(self.tile_rows, self.tiles.place(self.sums, i * ROWS * width + j * LINE, width), tile)

    def _over(
        self,
        block: Block,
        loops: Loops,
        position: Position,
        carried: Sequence[ir.Value],
    ) -> list[ir.Value]:
        """Loops over the reduction dimensions around the products of one step. What is carried are the sums, and the
        first row without an epilogue."""
        if not loops:
            return self._over_steps(block, {**position, **dict.fromkeys(self.inner, Idx(0))}, carried)
        (dim, extent), rest = loops[0], loops[1:]
        low, high = self._taps_of(block, dim, extent)
        if (low, high) == (0, 1):
            return self._over(block, rest, {**position, dim: Idx(0)}, carried)

        def body(variable: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            at = Idx(variable, level=3 + len(position))
            return self._over(block, rest, {**position, dim: at}, sums)

        return for_loop(self.frame, low, high, 1, carried, body)

    def _over_steps(self, block: Block, position: Position, carried: Sequence[ir.Value]) -> list[ir.Value]:
        """The innermost dimension, a step at a time; what is left at the end is one with zeros."""
        full, rest = divmod(self.depth, self.steps)

        def body(variable: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            if self.next is not None:
                outer = [(position[d].base, extent) for d, extent in self.outer]
                self.next.fetch(block.rows[0], self._rows_fetching(block), [*outer, (variable, full)])
            return self._mixed_step(block, position, variable, self.steps, carried)

        values = list(carried)
        if full == 1:
            values = self._mixed_step(block, position, 0, self.steps, values)
        elif full:
            values = for_loop(self.frame, 0, full, 1, values, body)
        return self._mixed_step(block, position, full, rest, values) if rest else values

    def _next_panel(self, point: list[Idx], panel: Scalar, panels: Scalar, rows: tuple[Scalar, Scalar]) -> NextPanel:
        """The first level of cache has no room for what is not multiplied yet."""
        return replace(super()._next_panel(point, panel, panels, rows), level=2)

    def _rows_fetching(self, block: Block) -> int:
        """How many of the rows that fetch the next panel (`ahead`) a block has."""
        if self.s.line_dim < 0:
            return block.high * ROWS
        return self.tile_rows if isinstance(self.tile_rows, int) else ROWS

    def _mixed_step(
        self, block: Block, position: Position, number: Scalar, live: int, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The products of a step, and `mixed` rows of the epilogue of the block in front."""
        *sums, done = carried
        sums = self._step(block, position, number, live, sums)
        if not self.s.mixed:
            return [*sums, done]
        assert block.before is not None
        math = self.frame.math
        then = math.minimum(math.add(done, self.s.mixed), block.before.rows[1])
        self._finish(replace(block.before, rows=(done, then)))
        return [*sums, self.frame.constants.index(then)]

    def _step(
        self, block: Block, position: Position, number: Scalar, live: int, sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The products of step `number`, of which `live` elements exist. Every tile is loaded right before the first
        product that takes it: where two threads share a core, there are few registers beside those with names."""
        rows, tiles, columns, width = self.tile_rows, self.tiles, range(len(block.columns)), self.steps * self.bytes
        right: list[ir.Value] = []
        results = []
        for i in range(block.high):
            left = tiles.load(rows, self._rows_at(Step(block, i, position, number, live)), width)
            for j in columns:
                if i == 0:
                    right.append(tiles.load(self.steps // self.group, self._columns_at(block, j, position, number)))
                before = sums[i * len(block.columns) + j]
                results.append(tiles.multiply(self.s.instruction, rows, before, left, right[j], width))
        return results

    # -- the operand with the columns -------------------------------------------------------------------------------

    def _columns_at(self, block: Block, j: int, position: Position, number: Scalar) -> Place:
        """The groups of step `number` for tile `j` of the columns."""
        math = self.frame.math
        width, groups = self.s.panel * 4, math.mul(number, self.steps // self.group)
        if self.s.stored == "rows":
            line = math.add(math.mul(self._part(position), self.groups), groups)
            return self.tiles.place(self.copy, math.add(math.mul(line, width), j * LINE), width)
        start = self._start_in_columns(self._at(block, 0, 0, block.columns[j]), position)
        first = math.add(math.mul(start, self.bytes), math.mul(groups, width))
        return self.tiles.place(self.frame.buffers[self.root.operands[self.s.vector_operand]].memory, first, width)

    def _start_in_columns(self, point: Sequence[Idx], position: Position) -> Scalar:
        """The element of the operand with the columns for an output point at a position of the reduction."""
        operand, ev = self.s.vector_operand, Evaluator(self.frame, self.s.lanes)
        coords = [ev.idx.affine(e, self._iteration(point, position)) for e in self.reads[operand][0]]
        return memory.address(self.frame.buffers[self.root.operands[operand]], coords, ev.idx).base

    def _part(self, position: Position) -> Scalar:
        """The number of a position of the outer reduction dimensions."""
        return number_of(self.frame.math, [(position[dim].base, extent) for dim, extent in self.outer])

    def _copy(self, point: list[Idx], columns: list[Column]) -> None:
        """The panel of `columns` in groups of the reduction, zeros behind its end, for all of the outer dimensions."""

        def part(loops: Loops, position: Position) -> None:
            if not loops:
                self._copy_part(point, columns, {**position, **dict.fromkeys(self.inner, Idx(0))})
                return
            (dim, extent), rest = loops[0], loops[1:]

            def body(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                part(rest, {**position, dim: Idx(variable, level=3 + len(position))})
                return []

            for_loop(self.frame, 0, extent, 1, [], body)

        part(self.outer, {})

    def _copy_part(self, point: list[Idx], columns: list[Column], position: Position) -> None:
        """The groups of one position of the outer dimensions."""
        math, c = self.frame.math, self.frame.constants
        whole, rest = divmod(self.depth, self.group)
        first = math.mul(self._part(position), self.groups)

        def line(number: Scalar, live: int) -> None:
            for j, column in enumerate(columns):
                place = math.mul(
                    math.add(math.mul(math.add(first, number), self.s.panel), j * self.s.lanes), self.group
                )
                groups = self._group_of(point, column, position, number, live)
                vector.StoreOp(groups, self.copy, [c.index(place)], alignment=LINE)

        def full(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            line(variable, self.group)
            return []

        def empty(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            type_ = ir.VectorType.get([self.s.panel * self.group], self.element)
            place = c.index(math.mul(math.add(first, variable), self.s.panel * self.group))
            vector.StoreOp(self._zeros(type_), self.copy, [place], alignment=LINE)
            return []

        for_loop(self.frame, 0, whole, 1, [], full)
        done = whole
        if rest:
            line(whole, rest)
            done += 1
        if done < self.groups:
            for_loop(self.frame, done, self.groups, 1, [], empty)

    def _group_of(self, point: list[Idx], column: Column, position: Position, number: Scalar, live: int) -> ir.Value:
        """Group `number` of the reduction in a vector of columns, of which `live` elements exist."""
        math, operand = self.frame.math, self.s.vector_operand
        at = self._point(point, Idx(0), column.at)
        ev = Evaluator(self.frame, column.lanes, column.mask)
        if not self.s.joined:
            inner = Idx(math.mul(number, self.group), level=3)
            return self._interleaved(ev, operand, self._iteration(at, {**position, self.inner[0]: inner}), live)
        buffer, start = self.frame.buffers[self.root.operands[operand]], self._start_in_columns(at, position)
        type_, rows = ir.VectorType.get([self.s.lanes], self.element), []
        for k in range(live):
            row = math.add(math.mul(number, self.group), k)
            place = self.frame.constants.index(math.add(start, math.mul(row, self.s.panel)))
            rows.append(vector.LoadOp(type_, buffer.memory, [place]).result)
        rows += [self._zeros(type_)] * (self.group - live)
        return interleaved(rows)

    # -- epilogue ---------------------------------------------------------------------------------------------------

    def _finish(self, block: Block) -> None:
        """The epilogue of what is new in `block`, of sums that wait on the stack."""
        math, s = self.frame.math, self.s
        if isinstance(block.rows[0], int) and block.rows[0] == block.rows[1]:
            return

        def row(line: Scalar, variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            tile, pixel = math.sub(line, block.line), variable
            point = list(block.point)
            if s.line_dim >= 0:
                point[s.line_dim] = Idx(line, level=2)
            if s.flat:
                tile, pixel = 0, math.sub(variable, math.mul(line, s.flat))
                point[s.row_first] = Idx(line, level=2)
            points = {
                (0, j): self._point(point, Idx(pixel, level=3), column.at) for j, column in enumerate(block.columns)
            }
            before = math.mul(math.add(math.mul(tile, ROWS), math.sub(variable, block.begin)), s.panel)
            sums = {}
            for j, column in enumerate(block.columns):
                type_ = ir.VectorType.get([column.lanes], self.sum_type)
                place = self.frame.constants.index(math.add(before, j * s.lanes))
                sums[0, j] = vector.LoadOp(type_, self.sums, [place], alignment=LINE).result
            there = Tile(variable, points, block.columns, Ends.INSIDE)
            self._epilogue(there, self._with_start(there, sums))
            return []

        def line(variable: Scalar, _: list[ir.Value]) -> list[ir.Value]:
            first, end = block.rows
            if s.flat:
                begin = math.mul(variable, s.flat)
                first, end = math.maximum(first, begin), math.minimum(end, math.add(begin, self.shape[s.row_last]))
            for_loop(self.frame, first, end, 1, [], partial(row, variable))
            return []

        if s.flat:
            first, end = block.rows
            for_loop(self.frame, math.div(first, s.flat), math.ceildiv(end, s.flat), 1, [], line)
        elif s.line_dim < 0:
            line(0, [])
        else:
            for_loop(self.frame, *block.lines, 1, [], line)

    def _with_start(self, tile: Tile, sums: dict[tuple[int, int], ir.Value]) -> dict[tuple[int, int], ir.Value]:
        """What the sums begin with is added at the end."""
        if starts_at(self.root, 0.0):
            return sums
        start = self._initial(Evaluator(self.frame, self.s.lanes), tile)
        add = arith.addf if isinstance(self.sum_type, ir.FloatType) else arith.addi
        return {name: add(value, value_0) for (name, value), value_0 in zip(sums.items(), start, strict=True)}
