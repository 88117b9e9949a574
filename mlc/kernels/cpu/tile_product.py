"""Contractions of bf16 and of 8-bit integers on matrix tiles (AMX), with sums in f32 and in 32 bits.

The panels, blocks of rows, windows and epilogues of `contraction`; the sums are tiles of 16 rows by 16 columns, two by
two of them at a time, so that every tile that is loaded is multiplied twice. A step takes 64 bytes of the innermost
reduction dimension: 32 elements of bf16, 64 of eight bits. The operand that is read along the reduction is loaded as it
lies in memory, 16 rows at a time. The operand with the columns is in groups of 32 bits, as in `dot_product`: a weight
is stored so, with zeros up to whole steps (`mlc-pack-weights`), and what only a run knows is interleaved by every work
item on its stack, a panel at a time. Sums go through the stack to the epilogue, which is on vectors.

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
`joined`: 1 where the taps along a line of a window and the channels are one stretch of memory, and of steps: rows of a
packed weight then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce

from mlir import ir
from mlir.dialects import arith, memref, vector

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator, lane_mask
from mlc.kernels.common.frame import Buffer, Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.generics import starts_at
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.padding import padding_of
from mlc.kernels.cpu.contraction_grid import tile_grid
from mlc.kernels.cpu.dot_product import DotProduct, DotProductSchedule, interleaved
from mlc.kernels.cpu.haloed_image import HaloedImage
from mlc.kernels.cpu.next_panel import NextPanel, number_of
from mlc.kernels.cpu.once import Once
from mlc.kernels.cpu.padding import Window
from mlc.kernels.cpu.register_tile import Column, Ends, Tile
from mlc.kernels.cpu.tiles import LINE, PRODUCTS, ROWS, Place, Tiles


@dataclass(frozen=True)
class TileProductSchedule(DotProductSchedule):
    """Parameters of the template; see the module's description."""

    line_dim: int = field(default=-1, kw_only=True)
    joined: int = field(default=0, kw_only=True)
    halo: int = field(default=0, kw_only=True)

    @property
    def high(self) -> int:
        """The most tiles of rows that are summed up together."""
        return LINES if self.line_dim >= 0 else self.rows // ROWS

    def together(self, dim: int) -> int:
        return LINES if dim == self.line_dim else 1


LINES = 2  # points of `line_dim` of a work item


def expand(source: KernelSource, schedule: TileProductSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [_TileProduct(source, schedule).emit(), tile_grid(source, schedule)]


@dataclass(frozen=True)
class _Block:
    """One or two tiles of rows by one or two of columns, whose sums are made together: the first row and the first line
    that they read, and which of these are new, from one to another."""

    point: list[Idx]
    columns: list[Column]
    high: int
    begin: Scalar
    rows: tuple[Scalar, Scalar]
    line: Scalar = 0
    lines: tuple[Scalar, Scalar] = (0, 1)


@dataclass(frozen=True)
class _Outside:
    """Where a tile of rows may be outside of an image: a window, the first tap and the last one that a step may have,
    and the first row, or the line of all."""

    window: Window
    taps: tuple[Scalar, Scalar]
    at: Scalar
    is_row: bool


class _TileProduct(DotProduct):
    s: TileProductSchedule

    def __init__(self, source: KernelSource, schedule: TileProductSchedule) -> None:
        super().__init__(source, schedule)
        bits = PRODUCTS[schedule.instruction]
        self.group, self.bytes = 32 // bits, bits // 8
        self.steps = LINE // self.bytes
        self.outer = self.reductions[: len(self.reductions) - 1 - schedule.joined]
        self.inner = [dim for dim, _ in self.reductions[len(self.outer) :]]
        self.channels = self._known(self.reductions[-1][1])
        self.depth = self.channels * (self._known(self.reductions[-2][1]) if schedule.joined else 1)
        self.along = 1 - schedule.vector_operand
        self.image: HaloedImage | None = None
        self.copied = Once(self.frame) if schedule.stored == "rows" else None  # the panel that is there
        self.tiles = Tiles(self.frame)
        self.element = self.root.operands[schedule.vector_operand].type.element_type
        self.sum_type = self.root.results[0].type.element_type
        self.groups = -(-self.depth // self.steps) * ROWS
        self.read = self._operand_along()
        with self.frame.prologue():
            shape = self.shape[schedule.row_first : schedule.row_last + 1]
            self.tile_rows = self.frame.math.minimum(ROWS, self.frame.math.product(shape))
            self.stride = self._distance()
            self.sums = self._scratch(schedule.high * ROWS * schedule.panel, self.sum_type)
            self.staged = self._scratch(schedule.high * ROWS * self.steps, self.element)
            if schedule.stored == "rows":
                parts = math.prod(self._known(extent) for _, extent in self.outer)
                self.copy = self._scratch(parts * self.groups * self.group * schedule.panel, self.element)

    def _use_padding(self, operand: int) -> None:
        if not self.s.halo:
            super()._use_padding(operand)

    def _operand_along(self) -> Buffer:
        """Where the operand along the reduction lies, without its padding or as a copy with it."""
        value = self.root.operands[self.along]
        if not self.s.halo:
            return self.frame.buffers[self.padded[self.along].source if self.along in self.padded else value]
        padding = padding_of(value.owner.operation)
        if padding is None:
            raise ValueError(f"kernel {self.frame.name}: the operand along the reduction is not padded")
        self.image = HaloedImage(self.frame, value, padding, self.steps)
        return self.image.buffer

    def _known(self, extent: Scalar) -> int:
        if not isinstance(extent, int):
            raise ValueError(f"kernel {self.frame.name}: the extent of a reduction dimension is not known")
        return extent

    def _scratch(self, size: int, element: ir.Type) -> ir.Value:
        return memref.AllocaOp(ir.MemRefType.get([size], element), [], [], alignment=LINE).result

    # -- rows -------------------------------------------------------------------------------------------------------

    def _rows(self, point: list[Idx], columns: list[Column], block: Scalar) -> None:
        """Blocks of two tiles of rows, and of one where no more than that is left."""
        math, s, extent = self.frame.math, self.s, self.row_extent
        if self.copied is not None:
            number = self._number_of_panel(s.vector_operand, point, columns[0])
            self.copied.make(number, lambda: self._copy(point, columns))
        if self.image is not None:
            dims, ev = self._iteration(point, {}), Evaluator(self.frame, 1)
            self.image.fill([ev.idx.affine(e, dims) for e in self.reads[self.along][0][: self.image.first]])
        start = math.mul(block, s.row_block)
        end = math.minimum(math.add(start, s.row_block), extent)
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

        The epilogue of a block is behind the products of the next one, and waits for none of them: the processor has
        both under way at the same time.
        """
        math, dim = self.frame.math, self.s.line_dim
        low, high, end = bounds
        line, lines, tiles = 0, (0, 1), height // ROWS
        if dim >= 0:
            first = math.mul(point[dim].base, LINES)
            lines = first, math.minimum(math.add(first, LINES), self.shape[dim])
            line, tiles = math.minimum(first, math.sub(self.shape[dim], LINES)), LINES

        def block(first: Scalar, rows: tuple[Scalar, Scalar]) -> _Block:
            begin = math.minimum(first, math.maximum(0, math.sub(self.row_extent, height)))
            return _Block(point, columns, tiles, begin, rows, line, lines)

        def before(position: Scalar) -> _Block:
            first = math.sub(position, height)
            return block(first, (math.maximum(low, first), math.minimum(position, end)))

        def body(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            sums = self._sums(block(variable, (variable, math.minimum(math.add(variable, height), end))))
            self._finish(before(variable))
            self._put_down(sums, len(columns))
            return []

        for_loop(self.frame, low, high, height, [], body)
        self._finish(before(math.add(low, math.mul(math.ceildiv(math.sub(high, low), height), height))))

    def _at(self, block: _Block, tile: Scalar, row: Scalar, column: Column | None = None) -> list[Idx]:
        """The output coordinates of a row of one of the tiles, in its first column."""
        math, dim, point = self.frame.math, self.s.line_dim, list(block.point)
        row = math.add(block.begin, row)
        if dim >= 0:
            point[dim] = Idx(math.add(block.line, tile), level=2)
        else:
            row = math.add(row, math.mul(tile, ROWS))
        return self._point(point, Idx(row, level=2), (column or block.columns[0]).at)

    # -- sums -------------------------------------------------------------------------------------------------------

    def _sums(self, block: _Block) -> list[ir.Value]:
        """The sums of `block`, as tiles."""
        zeros = [self.tiles.zero(self.tile_rows) for _ in range(block.high * len(block.columns))]
        return self._over(block, self.outer, {}, zeros)

    def _put_down(self, sums: Sequence[ir.Value], columns: int) -> None:
        """Stores the tiles of `sums`, `columns` of them side by side, to the stack."""
        width = self.s.panel * 4
        for number, tile in enumerate(sums):
            i, j = divmod(number, columns)
            self.tiles.store(self.tile_rows, self.tiles.place(self.sums, i * ROWS * width + j * LINE, width), tile)

    def _over(
        self,
        block: _Block,
        loops: list[tuple[int, Scalar]],
        position: dict[int, Idx],
        carried: Sequence[ir.Value],
    ) -> list[ir.Value]:
        """Loops over the reduction dimensions around the products of one step."""
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

    def _taps_of(self, block: _Block, dim: int, extent: Scalar) -> tuple[Scalar, Scalar]:
        """The first tap over dimension `dim` that any tile of `block` has inside, and the end of those."""
        last = block.high - 1 if self.s.line_dim >= 0 else 0
        ends = []
        for tile in (last, 0):
            corner = Tile(block.begin, {(0, 0): self._at(block, tile, 0)}, block.columns, Ends.INSIDE)
            ends.append(self._taps(corner, dim, extent))
        return ends[0][0], ends[1][1]

    def _over_steps(self, block: _Block, position: dict[int, Idx], carried: Sequence[ir.Value]) -> list[ir.Value]:
        """The innermost dimension, 64 bytes at a time; what is left at the end is a step with zeros."""
        full, rest = divmod(self.depth, self.steps)

        def body(variable: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            if self.next is not None:
                outer = [(position[d].base, extent) for d, extent in self.outer]
                self.next.fetch(block.rows[0], self._rows_fetching(block), [*outer, (variable, full)])
            return self._step(block, position, variable, self.steps, sums)

        sums = list(carried)
        if full == 1:
            sums = self._step(block, position, 0, self.steps, sums)
        elif full:
            sums = for_loop(self.frame, 0, full, 1, sums, body)
        return self._step(block, position, full, rest, sums) if rest else sums

    def _next_panel(self, point: list[Idx], panel: Scalar, panels: Scalar, row: Scalar) -> NextPanel:
        """The first level of cache has no room for what is not multiplied yet."""
        return replace(super()._next_panel(point, panel, panels, row), level=2)

    def _rows_fetching(self, block: _Block) -> int:
        """How many of the rows that fetch the next panel (`ahead`) a block has."""
        if self.s.line_dim < 0:
            return block.high * ROWS
        return self.tile_rows if isinstance(self.tile_rows, int) else ROWS

    def _step(
        self, block: _Block, position: dict[int, Idx], number: Scalar, live: int, sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The products of step `number`, of which `live` elements exist. Every tile is loaded right before the first
        product that takes it: where two threads share a core, there are few registers beside those with names."""
        rows, tiles, columns = self.tile_rows, self.tiles, range(len(block.columns))
        right: list[ir.Value] = []
        results = []
        for i in range(block.high):
            left = tiles.load(rows, self._rows_at(block, i, position, number, live))
            for j in columns:
                if i == 0:
                    right.append(tiles.load(ROWS, self._columns_at(block, j, position, number)))
                before = sums[i * len(block.columns) + j]
                results.append(tiles.multiply(self.s.instruction, rows, before, left, right[j]))
        return results

    # -- the operand with the columns -------------------------------------------------------------------------------

    def _columns_at(self, block: _Block, j: int, position: dict[int, Idx], number: Scalar) -> Place:
        """The groups of step `number` for tile `j` of the columns."""
        math = self.frame.math
        width, groups = self.s.panel * 4, math.mul(number, ROWS)
        if self.s.stored == "rows":
            line = math.add(math.mul(self._part(position), self.groups), groups)
            return self.tiles.place(self.copy, math.add(math.mul(line, width), j * LINE), width)
        start = self._start_in_columns(self._at(block, 0, 0, block.columns[j]), position)
        first = math.add(math.mul(start, self.bytes), math.mul(groups, width))
        return self.tiles.place(self.frame.buffers[self.root.operands[self.s.vector_operand]].memory, first, width)

    def _start_in_columns(self, point: Sequence[Idx], position: dict[int, Idx]) -> Scalar:
        """The element of the operand with the columns for an output point at a position of the reduction."""
        operand, ev = self.s.vector_operand, Evaluator(self.frame, self.s.lanes)
        coords = [ev.idx.affine(e, self._iteration(point, position)) for e in self.reads[operand][0]]
        return memory.address(self.frame.buffers[self.root.operands[operand]], coords, ev.idx).base

    def _part(self, position: dict[int, Idx]) -> Scalar:
        """The number of a position of the outer reduction dimensions."""
        return number_of(self.frame.math, [(position[dim].base, extent) for dim, extent in self.outer])

    def _copy(self, point: list[Idx], columns: list[Column]) -> None:
        """The panel of `columns` in groups of the reduction, zeros behind its end, for all of the outer dimensions."""

        def part(loops: list[tuple[int, Scalar]], position: dict[int, Idx]) -> None:
            if not loops:
                self._copy_part(point, columns, {**position, **dict.fromkeys(self.inner, Idx(0))})
                return
            (dim, extent), rest = loops[0], loops[1:]

            def body(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                part(rest, {**position, dim: Idx(variable, level=3 + len(position))})
                return []

            for_loop(self.frame, 0, extent, 1, [], body)

        part(self.outer, {})

    def _copy_part(self, point: list[Idx], columns: list[Column], position: dict[int, Idx]) -> None:
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

    def _group_of(
        self, point: list[Idx], column: Column, position: dict[int, Idx], number: Scalar, live: int
    ) -> ir.Value:
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

    def _zeros(self, type_: ir.VectorType) -> ir.Value:
        zero = 0.0 if isinstance(self.element, ir.FloatType) else 0
        return vector.broadcast(type_, self.frame.constants.get(self.element, zero))

    # -- the operand along the reduction ----------------------------------------------------------------------------

    def _rows_at(self, block: _Block, i: int, position: dict[int, Idx], number: Scalar, live: int) -> Place:
        """The 64 bytes of step `number` of every row of tile `i`: where they lie, or a copy with zeros."""
        math = self.frame.math
        start = self._start_of(self._at(block, i, 0), position)
        first = math.add(math.mul(start, self.bytes), math.mul(number, LINE))
        direct = self.tiles.place(self.read.memory, first, self.stride)
        if self.image is not None:
            return direct
        staged = self.tiles.place(self.staged, i * ROWS * LINE, LINE)
        checks = self._checks(block, i, position)
        stage = partial(self._stage, block, i, position, (number, live), checks)
        if live < self.steps:
            stage()
            return staged
        if not checks:
            return direct
        inside = self._are_there(checks)
        if_then(inside, lambda: None, stage)
        return Place(
            arith.select(inside, direct.address, staged.address),
            arith.select(inside, direct.stride, staged.stride),
        )

    def _checks(self, block: _Block, i: int, position: dict[int, Idx]) -> list[_Outside]:
        """How rows of tile `i` may be outside of the image at a position of the reduction."""
        point, found = self._at(block, i, 0), []
        if self.row_window is not None:
            tap, row = self.row_window.tap, point[self.s.row_last].base
            taps = (position[tap].base,) * 2 if tap not in self.inner else (0, self.depth // self.channels - 1)
            found.append(_Outside(self.row_window, taps, row, True))
        for tap, (window, axis) in self.outer_windows.items():
            if axis == self.s.line_dim:
                found.append(_Outside(window, (position[tap].base,) * 2, point[axis].base, False))
        return found

    def _are_there(self, checks: Sequence[_Outside]) -> ir.Value:
        """Are all rows of a tile inside, with every tap of a step?"""
        last, results = self.frame.math.sub(self.tile_rows, 1), []
        for check in checks:
            results.append(self._is_there(check, 0, 0))
            if check.is_row:
                results.append(self._is_there(check, last, 1))
        return reduce(arith.andi, results)

    def _is_there(self, check: _Outside, row: Scalar, end: int) -> ir.Value:
        """Is the first or the last tap of `row` of a tile inside of the image?"""
        math, c, window = self.frame.math, self.frame.constants, check.window
        at = math.add(self._before(check, row), math.mul(check.taps[end], window.dilation))
        return arith.cmpi(arith.CmpIPredicate.ult, c.index(at), c.index(self._source_extent(window)))

    def _before(self, check: _Outside, row: Scalar) -> Scalar:
        """Where in the image the window of `row` of a tile begins."""
        math, window = self.frame.math, check.window
        point = math.add(check.at, row) if check.is_row else check.at
        return math.sub(math.mul(point, window.stride), window.low)

    def _start_of(self, point: Sequence[Idx], position: dict[int, Idx]) -> Scalar:
        """The element of the operand, without its padding, for an output point at a position of the reduction."""
        ev = Evaluator(self.frame, 1)
        dims = self._iteration(point, position)
        coords = [ev.idx.affine(e, dims) for e in self.reads[self.along][0]]
        if self.along in self.padded:
            low = self.padded[self.along].low
            coords = [ev.idx.add(at, Idx(-n)) for at, n in zip(coords, low, strict=True)]
        return memory.address(self.read, coords, ev.idx).base

    def _distance(self) -> Scalar:
        """Bytes between two rows."""
        ev, math = Evaluator(self.frame, 1), self.frame.math
        dim = self.order[self.s.row_last]
        buffer, exprs = self.read, self.reads[self.along][0]
        ends = []
        for row in range(2):
            dims = [Idx(row if d == dim else 0) for d in range(self.rank)]
            ends.append(memory.address(buffer, [ev.idx.affine(e, dims) for e in exprs], ev.idx).base)
        return math.mul(math.sub(ends[1], ends[0]), self.bytes)

    def _stage(
        self,
        block: _Block,
        i: int,
        position: dict[int, Idx],
        step: tuple[Scalar, int],
        checks: Sequence[_Outside],
    ) -> None:
        """Copies what the rows of tile `i` have for a step, its number and how many elements exist, and zeros beside
        them and for what is outside."""
        math, c, (number, live) = self.frame.math, self.frame.constants, step
        buffer, type_ = self.read, ir.VectorType.get([self.steps], self.element)

        def row(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            low: Scalar = 0
            high: Scalar = live
            for check in checks:
                if check.is_row and self.s.joined:
                    low, high = self._stretch(check, variable, math.mul(number, self.steps), live)
            for check in checks:
                if not (check.is_row and self.s.joined):
                    high = arith.select(self._is_there(check, variable, 0), c.index(high), c.index(0))
            start = math.add(self._start_of(self._at(block, i, variable), position), math.mul(number, self.steps))
            mask = lane_mask(self.frame, self.steps, c.index(high))
            if low != 0:
                mask = arith.andi(mask, self._all_but(lane_mask(self.frame, self.steps, c.index(low))))
            value = vector.MaskedLoadOp(type_, buffer.memory, [c.index(start)], mask, self._zeros(type_)).result
            place = c.index(math.mul(math.add(variable, i * ROWS), self.steps))
            vector.StoreOp(value, self.staged, [place], alignment=LINE)
            return []

        for_loop(self.frame, 0, self.tile_rows, 1, [], row)

    def _stretch(self, check: _Outside, row: Scalar, done: Scalar, live: int) -> tuple[Scalar, Scalar]:
        """From which to which of the `live` elements of a step, behind `done` ones, the taps of `row` are inside."""
        math, before = self.frame.math, self._before(check, row)
        first = math.mul(math.maximum(0, math.sub(0, before)), self.channels)
        end = math.mul(math.maximum(0, math.sub(self._source_extent(check.window), before)), self.channels)
        low, high = (math.minimum(live, math.maximum(0, math.sub(at, done))) for at in (first, end))
        return low, high

    def _all_but(self, mask: ir.Value) -> ir.Value:
        """The lanes that are not in `mask`."""
        return arith.xori(mask, memory.full_mask(self.frame, self.steps))

    # -- epilogue ---------------------------------------------------------------------------------------------------

    def _finish(self, block: _Block) -> None:
        """The epilogue of what is new in `block`, of sums that wait on the stack."""
        math, s = self.frame.math, self.s
        if isinstance(block.rows[0], int) and block.rows[0] == block.rows[1]:
            return

        def row(line: Scalar, variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            tile = math.sub(line, block.line)
            point = list(block.point)
            if s.line_dim >= 0:
                point[s.line_dim] = Idx(line, level=2)
            points = {
                (0, j): self._point(point, Idx(variable, level=3), column.at) for j, column in enumerate(block.columns)
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
            for_loop(self.frame, *block.rows, 1, [], partial(row, variable))
            return []

        if s.line_dim < 0:
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

