"""The rows of matrix tiles: what a product reads along its sums, where it lies in memory or as a copy with zeros."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial, reduce

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common import memory
from mlc.kernels.common.analysis import mentions
from mlc.kernels.common.evaluate import Evaluator, lane_mask
from mlc.kernels.common.frame import Buffer, KernelSource, for_loop, if_then
from mlc.kernels.common.index import Idx, IndexMath, Scalar
from mlc.kernels.common.padding import padding_of
from mlc.kernels.cpu.dot_product import DotProduct, DotProductSchedule
from mlc.kernels.cpu.haloed_image import HaloedImage, first_axis
from mlc.kernels.cpu.next_panel import number_of
from mlc.kernels.cpu.once import Once
from mlc.kernels.cpu.padding import Window
from mlc.kernels.cpu.register_tile import Column, Ends, Position, Tile
from mlc.kernels.cpu.tiles import LINE, PRODUCTS, ROWS, Place, Tiles


@dataclass(frozen=True)
class TileProductSchedule(DotProductSchedule):
    """Parameters of the template; see the module's description."""

    line_dim: int = field(default=-1, kw_only=True)
    joined: int = field(default=0, kw_only=True)
    halo: int = field(default=0, kw_only=True)
    unfolded: int = field(default=0, kw_only=True)
    mixed: int = field(default=0, kw_only=True)
    flat: int = field(default=0, kw_only=True)

    @property
    def high(self) -> int:
        """The most tiles of rows that are summed up together."""
        return LINES if self.line_dim >= 0 else self.rows // ROWS

    def together(self, dim: int) -> int:
        return LINES if dim == self.line_dim else 1

    def num_rows(self, math: IndexMath, shape: Sequence[Scalar]) -> Scalar:
        if not self.flat:
            return super().num_rows(math, shape)
        lines, pixels = shape[self.row_first : self.row_last + 1]
        return math.add(math.mul(math.sub(lines, 1), self.flat), pixels)


LINES = 2  # points of `line_dim` of a work item
MORE_STEPS = 4  # a step more for so many costs less than rows that are copied with zeros


def step_of(depth: int, most: int, group: int) -> int:
    """How many elements of a reduction of `depth` a step takes: `most`, or somewhat fewer, whole groups, where steps
    of one size leave nothing that would be filled up with zeros."""
    least = -(-depth // most)
    counts = range(least, least + -(-least // MORE_STEPS) + 1)
    return next((depth // n for n in counts if depth % (n * group) == 0), most)


@dataclass(frozen=True)
class Block:
    """One or two tiles of rows by one or two of columns, whose sums are made together: the first row and the first line
    that they read, and which of these are new, from one to another. The block `before` waits for its epilogue."""

    point: list[Idx]
    columns: list[Column]
    high: int
    begin: Scalar
    rows: tuple[Scalar, Scalar]
    line: Scalar = 0
    lines: tuple[Scalar, Scalar] = (0, 1)
    before: Block | None = None


@dataclass(frozen=True)
class Step:
    """Up to 64 bytes of the reduction for every row of tile number `tile` of a block: a position of the outer
    dimensions, the number of the step there, and how many of its elements exist."""

    block: Block
    tile: int
    position: Position
    number: Scalar
    live: int


@dataclass(frozen=True)
class Outside:
    """Where a tile of rows may be outside of an image: a window, the first tap and the last one that a step may have,
    and the first row, or the line of all."""

    window: Window
    taps: tuple[Scalar, Scalar]
    at: Scalar
    is_row: bool


class TileRows(DotProduct):
    """The operand along the reduction, for blocks of rows."""

    s: TileProductSchedule

    def __init__(self, source: KernelSource, schedule: TileProductSchedule) -> None:
        super().__init__(source, schedule)
        bits = PRODUCTS[schedule.instruction]
        self.group, self.bytes = 32 // bits, bits // 8
        self.whole = LINE // self.bytes  # elements of a step that nothing shortens
        self.outer = self.reductions[: len(self.reductions) - 1 - schedule.joined]
        self.inner = [dim for dim, _ in self.reductions[len(self.outer) :]]
        self.channels = self._known(self.reductions[-1][1])
        self.depth = self.channels * (self._known(self.reductions[-2][1]) if schedule.joined else 1)
        self.steps = self.whole if schedule.joined or schedule.halo else step_of(self.depth, self.whole, self.group)
        self.along = 1 - schedule.vector_operand
        self.image: HaloedImage | None = None
        self.tiles = Tiles(self.frame)
        self.element = self.root.operands[schedule.vector_operand].type.element_type
        self.read = self._operand_along()
        with self.frame.prologue():
            rows = schedule.num_rows(self.frame.math, self.shape)
            self.tile_rows = self.frame.math.minimum(ROWS, rows)
            self.stride = self._distance()
        self.staged = self.frame.on_stack(self.element, schedule.high * ROWS * self.whole)
        if schedule.unfolded:
            self.pitch = -(-self.depth // self.steps) * self.steps
            self.unfolded = Once(self.frame, schedule.unfolded)
            self.lines = self.frame.on_stack(self.element, schedule.unfolded * self._known(rows) * self.pitch)

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
        lines = [self.order[self.s.line_dim]] if self.s.line_dim >= 0 else []
        first = first_axis(padding, self.reads[self.along][0], [*lines, *(dim for dim, _ in self.reductions)])
        self.image = HaloedImage(self.frame, value, padding, first, self.steps, self.s.flat)
        return self.image.buffer

    def _first_line(self, point: Sequence[Idx]) -> Scalar:
        """The first of the lines that the work item of `point` computes: the last ones are never beyond the end."""
        math, dim = self.frame.math, self.s.line_dim
        return math.minimum(math.mul(point[dim].base, LINES), math.sub(self.shape[dim], LINES))

    def _fill(self, image: HaloedImage, point: list[Idx], rows: tuple[Scalar, Scalar]) -> None:
        """Copies what the `rows` of `point` read, from one to another, to `image`: some of its lines, unless the rows
        of one line are of different ones of the image."""
        s, math, exprs = self.s, self.frame.math, self.reads[self.along][0][: image.first + 1]
        ev, lines = Evaluator(self.frame, 1), (0, 0)
        line_dim = s.row_first if s.flat else s.line_dim
        if s.flat:
            begin = math.minimum(rows[0], math.maximum(0, math.sub(self.row_extent, s.rows)))
            lines = math.div(begin, s.flat), math.div(math.sub(rows[1], 1), s.flat)
        elif line_dim >= 0:
            lines = self._first_line(point), math.add(self._first_line(point), LINES - 1)

        def coordinates(line: Scalar, taps: Position) -> list[Idx]:
            there = list(point)
            if line_dim >= 0:
                there[line_dim] = Idx(line, level=2)
            return [ev.idx.affine(e, self._iteration(there, taps)) for e in exprs]

        *batch, low = coordinates(lines[0], {})
        last = {dim: Idx(self._known(extent) - 1) for dim, extent in self.outer}
        high = coordinates(lines[1], last)[-1]
        moving = [self.order[axis] for axis in range(s.row_last if s.flat else s.row_first, s.row_last + 1)]
        if any(mentions(exprs[-1], dim) for dim in moving):
            image.fill(batch, (0, image.buffer.shape[image.first]))
        else:
            image.fill(batch, (low.base, math.add(high.base, 1)))

    def _known(self, extent: Scalar) -> int:
        if not isinstance(extent, int):
            raise ValueError(f"kernel {self.frame.name}: the extent of a reduction dimension is not known")
        return extent

    def _at(self, block: Block, tile: Scalar, row: Scalar, column: Column | None = None) -> list[Idx]:
        """The output coordinates of a row of one of the tiles, in its first column."""
        math, dim, point = self.frame.math, self.s.line_dim, list(block.point)
        row = math.add(block.begin, row)
        if dim >= 0:
            point[dim] = Idx(math.add(block.line, tile), level=2)
        else:
            row = math.add(row, math.mul(tile, ROWS))
        return self._point(point, Idx(row, level=2), (column or block.columns[0]).at)

    def _taps_of(self, block: Block, dim: int, extent: Scalar) -> tuple[Scalar, Scalar]:
        """The first tap over dimension `dim` that any tile of `block` has inside, and the end of those."""
        last = block.high - 1 if self.s.line_dim >= 0 else 0
        ends = []
        for tile in (last, 0):
            corner = Tile(block.begin, {(0, 0): self._at(block, tile, 0)}, block.columns, Ends.INSIDE)
            ends.append(self._taps(corner, dim, extent))
        return ends[0][0], ends[1][1]

    # -- the operand along the reduction ----------------------------------------------------------------------------

    def _rows_at(self, step: Step) -> Place:
        """Where the rows of a step lie, or a copy of them with zeros."""
        math = self.frame.math
        if self.s.unfolded:
            row = math.add(self._line_in(step.block, step.position)[0], math.add(step.block.begin, step.tile * ROWS))
            place = math.add(math.mul(row, self.pitch * self.bytes), math.mul(step.number, LINE))
            return self.tiles.place(self.lines, place, self.pitch * self.bytes)
        first = math.add(math.mul(self._start_of(step, 0), self.bytes), math.mul(step.number, self.steps * self.bytes))
        direct = self.tiles.place(self.read.memory, first, self.stride)
        if self.image is not None:
            return direct
        staged = self.tiles.place(self.staged, step.tile * ROWS * LINE, LINE)
        checks = self._checks(step)
        stage = partial(self._stage, step, checks)
        if step.live < self.steps:
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

    def _checks(self, step: Step) -> list[Outside]:
        """How rows of a step may be outside of the image."""
        point, position, found = self._at(step.block, step.tile, 0), step.position, []
        if self.row_window is not None:
            tap, row = self.row_window.tap, point[self.s.row_last].base
            taps = (position[tap].base,) * 2 if tap not in self.inner else (0, self.depth // self.channels - 1)
            found.append(Outside(self.row_window, taps, row, True))
        for tap, (window, axis) in self.outer_windows.items():
            if axis == self.s.line_dim:
                found.append(Outside(window, (position[tap].base,) * 2, point[axis].base, False))
        return found

    def _are_there(self, checks: Sequence[Outside]) -> ir.Value:
        """Are all rows of a tile inside, with every tap of a step?"""
        last, results = self.frame.math.sub(self.tile_rows, 1), []
        for check in checks:
            results.append(self._is_there(check, 0, 0))
            if check.is_row:
                results.append(self._is_there(check, last, 1))
        return reduce(arith.andi, results)

    def _is_there(self, check: Outside, row: Scalar, end: int) -> ir.Value:
        """Is the first or the last tap of `row` of a tile inside of the image?"""
        math, c, window = self.frame.math, self.frame.constants, check.window
        at = math.add(self._before(check, row), math.mul(check.taps[end], window.dilation))
        return arith.cmpi(arith.CmpIPredicate.ult, c.index(at), c.index(self._source_extent(window)))

    def _before(self, check: Outside, row: Scalar) -> Scalar:
        """Where in the image the window of `row` of a tile begins."""
        math, window = self.frame.math, check.window
        point = math.add(check.at, row) if check.is_row else check.at
        return math.sub(math.mul(point, window.stride), window.low)

    def _start_of(self, step: Step, row: Scalar) -> Scalar:
        """The element of the operand, without its padding, at which a row of the tile begins at the step's position."""
        ev = Evaluator(self.frame, 1)
        dims = self._iteration(self._at(step.block, step.tile, row), step.position)
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

    def _stage(self, step: Step, checks: Sequence[Outside]) -> None:
        """Copies the rows of a step, with zeros beside them and for what is outside."""
        math, c = self.frame.math, self.frame.constants

        def row(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            value = self._row(step, checks, variable)
            place = c.index(math.mul(math.add(variable, step.tile * ROWS), self.whole))
            vector.StoreOp(value, self.staged, [place], alignment=LINE)
            return []

        for_loop(self.frame, 0, self.tile_rows, 1, [], row)

    def _row(self, step: Step, checks: Sequence[Outside], row: Scalar) -> ir.Value:
        """One row of a step, with zeros."""
        math, c = self.frame.math, self.frame.constants
        low: Scalar = 0
        high: Scalar = step.live
        for check in checks:
            if check.is_row and self.s.joined:
                low, high = self._stretch(check, row, step)
        for check in checks:
            if not (check.is_row and self.s.joined):
                high = arith.select(self._is_there(check, row, 0), c.index(high), c.index(0))
        start = math.add(self._start_of(step, row), math.mul(step.number, self.steps))
        mask = lane_mask(self.frame, self.whole, c.index(high))
        if low != 0:
            mask = arith.andi(mask, self._all_but(lane_mask(self.frame, self.whole, c.index(low))))
        type_ = ir.VectorType.get([self.whole], self.element)
        return vector.MaskedLoadOp(type_, self.read.memory, [c.index(start)], mask, self._zeros(type_)).result

    def _unfold(self, block: Block) -> None:
        """Makes the rows of the lines that the point of `block` reads, unless they are there from the one before."""
        dim, extent = self.outer[0]
        low, high = self._taps_of(block, dim, extent)

        def line(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            position = {dim: Idx(variable, level=2), **dict.fromkeys(self.inner, Idx(0))}
            first, number, place = self._line_in(block, position)
            parts = range(0, self.depth, self.steps)
            steps = [Step(block, 0, position, n, min(self.steps, self.depth - at)) for n, at in enumerate(parts)]
            checks = [check for check in self._checks(steps[0]) if check.is_row]

            def make() -> None:
                start, end = self._rows_inside(checks)
                for begin, behind, tests in ((0, start, checks), (start, end, []), (end, self.row_extent, checks)):
                    self._unfold_rows(steps, first, (begin, behind), tests)

            self.unfolded.make(number, make, place)
            return []

        for_loop(self.frame, low, high, 1, [], line)

    def _rows_inside(self, checks: Sequence[Outside]) -> tuple[Scalar, Scalar]:
        """The first row of which all taps are inside, and the end of those."""
        math = self.frame.math
        if not checks:
            return 0, self.row_extent
        window, last = checks[0].window, checks[0].taps[1]
        start = math.minimum(-(-window.low // window.stride), self.row_extent)
        room = math.add(math.sub(self._source_extent(window), last), window.low + window.stride - 1)
        end = math.div(math.maximum(0, room), window.stride)
        return start, math.maximum(start, math.minimum(end, self.row_extent))

    def _unfold_rows(
        self, steps: Sequence[Step], first: Scalar, rows: tuple[Scalar, Scalar], checks: Sequence[Outside]
    ) -> None:
        """Makes `rows`, from one to another, of a line whose rows begin at `first`: all of their steps."""
        math, c = self.frame.math, self.frame.constants

        def row(at: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            to = math.mul(math.add(first, at), self.pitch)
            for number, step in enumerate(steps):
                place = c.index(math.add(to, number * self.steps))
                vector.StoreOp(self._row(step, checks, at), self.lines, [place], alignment=LINE)
            return []

        for_loop(self.frame, *rows, 1, [], row)

    def _line_in(self, block: Block, position: Position) -> tuple[Scalar, Scalar, Scalar]:
        """Which line of the image the point of `block` reads at a position of the reduction: its first row among those
        that are unfolded, its number in the image, and its place."""
        ev, math = Evaluator(self.frame, 1), self.frame.math
        dims = self._iteration(self._at(block, 0, 0), position)
        coords = [ev.idx.affine(e, dims).base for e in self.reads[self.along][0][:-2]]
        place = math.rem(coords[-1], self.s.unfolded)
        extents = [self.frame.extent(self.root.operands[self.along], i) for i in range(len(coords))]
        number = number_of(math, list(zip(coords, extents, strict=True)))
        return math.mul(place, self.row_extent), number, place

    def _stretch(self, check: Outside, row: Scalar, step: Step) -> tuple[Scalar, Scalar]:
        """From which to which of the elements of a step the taps of `row` are inside."""
        math, done, before = self.frame.math, self.frame.math.mul(step.number, self.steps), self._before(check, row)
        first = math.mul(math.maximum(0, math.sub(0, before)), self.channels)
        end = math.mul(math.maximum(0, math.sub(self._source_extent(check.window), before)), self.channels)
        low, high = (math.minimum(step.live, math.maximum(0, math.sub(at, done))) for at in (first, end))
        return low, high

    def _all_but(self, mask: ir.Value) -> ir.Value:
        """The lanes that are not in `mask`."""
        return arith.xori(mask, memory.full_mask(self.frame, self.whole))

    def _zeros(self, type_: ir.VectorType) -> ir.Value:
        zero = 0.0 if isinstance(self.element, ir.FloatType) else 0
        return vector.broadcast(type_, self.frame.constants.get(self.element, zero))
