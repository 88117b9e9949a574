"""Register-tiled matrix products whose right side is known at run time only.

The tiles, loops and epilogues of `contraction`. A weight is stored as panels; here a work item first copies its
panel of the operand that holds the vector dimension, `[K][panel]`, to its stack: lines that were a whole row of the
matrix apart (and, in matrices whose rows are a power of two long, fall into few sets of the cache) become adjacent.
A matrix that is stored by columns is transposed on the way, a square of vectors at a time, in registers. What is fused
into that operand is computed once per item. (Goto and van de Geijn, "Anatomy of High-Performance Matrix
Multiplication", 2008, section 4: packing of B.)

Of the last columns, too few for a vector, the `beside` are sums along the reduction, as those of `inner_product` are:
tiles of the last panel compute theirs while what they read of the other operand, which is contiguous along the
reduction, is in the first level of cache. A vector of few columns would take as long as one of many, and go through
that operand once more.

Schedule parameters: those of `contraction`; `vector_operand`: the input with the vector dimension; `beside`: columns at
the end, fewer than lanes, that no panel has; `fetched`: how many lines before its turn a line is fetched (0: none is),
as what fetches ahead by itself finds no order in lines that are far apart; `joined`: how many neighbouring panels are
copied at once where they are whole, as they share lines of the cache and pages. The reduction has one dimension of
known extent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, vector

from mlc.kernels.common import memory
from mlc.kernels.common.analysis import mentions
from mlc.kernels.common.evaluate import Evaluator, lane_mask
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.cpu.contraction import Contraction
from mlc.kernels.cpu.contraction_grid import ContractionSchedule, tile_grid
from mlc.kernels.cpu.inner_product import lane_sums
from mlc.kernels.cpu.once import Once
from mlc.kernels.cpu.register_tile import Column, Tile
from mlc.kernels.cpu.transpose import transposed

MOST_STEPS = 1536  # lines of a panel, of vectors of 16 elements: few enough for the stack
_ALIGNMENT = 64  # bytes: lines of the cache
SUMS_BESIDE = 12  # along the reduction that fit into registers beside what they read


def most_steps(lanes: int) -> int:
    """Lines of a panel that the stack has room for, with vectors of `lanes` elements."""
    return MOST_STEPS * max(1, 16 // lanes)


@dataclass(frozen=True)
class PanelCopySchedule(ContractionSchedule):
    """Parameters of the template; see the module's description."""

    vector_operand: int
    beside: int = 0
    fetched: int = 0
    joined: int = 1

    def in_panels(self, columns: Scalar) -> Scalar:
        if not self.beside:
            return columns
        assert isinstance(columns, int)
        return columns - self.beside


def expand(source: KernelSource, schedule: PanelCopySchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [_PanelCopy(source, schedule).emit(), tile_grid(source, schedule)]


class _PanelCopy(Contraction):
    s: PanelCopySchedule

    def __init__(self, source: KernelSource, schedule: PanelCopySchedule) -> None:
        super().__init__(source, schedule)
        moving = [(d, e) for d, e in self.reductions if e != 1]
        if len(moving) != 1 or not isinstance(moving[0][1], int):
            raise ValueError(f"kernel {self.frame.name}: a panel is copied along one dimension of known extent")
        self.dim, self.extent = moving[0]
        self.element = self.root.operands[schedule.vector_operand].type.element_type
        self.copied = Once(self.frame)  # the panel that is there
        self.slot: Scalar = 0  # where among panels that are copied together
        self.panel = self.frame.on_stack(self.element, schedule.joined * self.extent * schedule.panel)
        if schedule.beside:
            self.lines = self.frame.on_stack(self.element, schedule.beside * self.extent)  # [columns beside][K]

    def _panel(self, point: list[Idx], panel: Scalar, block: Scalar) -> None:
        self.number = panel
        super()._panel(point, panel, block)

    def _rows(self, point: list[Idx], columns: list[Column], block: Scalar) -> None:
        """Blocks of rows follow each other, so that one copy does for those of a panel: what is there is known by the
        panel and its first column, as a panel at an end that only the run knows is copied vector by vector."""
        s, math = self.s, self.frame.math
        first, is_joined = self._joined(columns)
        if s.joined > 1:
            self.slot = math.mul(math.rem(self.number, s.joined), self.extent * s.panel)
        slot = self.slot

        def copy() -> None:
            if mentions(operand_map(self.root, s.vector_operand).results[-1], self.dim):
                self._copy_across(point, columns)
            elif is_joined is None:
                self._copy(point, columns, slot)
            else:
                lows = range(0, s.joined * s.panel, s.lanes)
                several = [Column(self._column(first, low), s.lanes) for low in lows]
                if_then(is_joined, lambda: self._copy(point, several, 0), lambda: self._copy(point, columns, slot))
            self._in_last_panel(lambda: self._copy_lines(point))

        start = columns[0] if is_joined is None else Column(self._column(first, 0), s.lanes)
        self.copied.make(self._number_of_panel(s.vector_operand, point, start), copy)
        super()._rows(point, columns, block)

    def _joined(self, columns: list[Column]) -> tuple[Scalar, ir.Value | None]:
        """Which panel the copy with that of `columns` begins at, and whether it has all that are `joined` (None: it has
        that one alone, as it is not whole)."""
        s, math, c = self.s, self.frame.math, self.frame.constants
        extent = s.in_panels(self.shape[s.vector_dim])
        if s.joined == 1 or len(columns) < s.vectors or columns[-1].mask is not None or columns[-1].lanes < s.lanes:
            return self.number, None
        first = math.sub(self.number, math.rem(self.number, s.joined))
        end = math.mul(math.add(first, s.joined), s.panel)
        is_joined = arith.cmpi(arith.CmpIPredicate.ule, c.index(end), c.index(extent))
        return arith.select(is_joined, c.index(first), c.index(self.number)), is_joined

    def _copy(self, point: list[Idx], columns: list[Column], slot: Scalar) -> None:
        """The panels of `columns` to those from `slot` on, a line for every step of the reduction; masked lanes hold
        anything."""
        operand, math = self.s.vector_operand, self.frame.math

        def line(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            if self.s.fetched:
                self._fetch_line(point, columns, self.frame.math.add(variable, self.s.fetched))
            for j, column in enumerate(columns):
                at = list(point)
                at[self.s.vector_dim] = column.at
                dims = self._iteration(at, {self.dim: Idx(variable, level=2)})
                ev = Evaluator(self.frame, column.lanes, column.mask)
                coords = [ev.idx.affine(e, dims) for e in operand_map(self.root, operand).results]
                value = ev.splat(ev.tensor(self.root.operands[operand], coords))
                panel, number = divmod(j, self.s.vectors)
                place = self._place(variable, number, math.add(slot, panel * self.extent * self.s.panel))
                vector.StoreOp(value, self.panel, [place], alignment=_ALIGNMENT)
            return []

        for_loop(self.frame, 0, self.extent, 1, [], line)

    def _fetch_line(self, point: list[Idx], columns: list[Column], number: Scalar) -> None:
        """Fetches all of line `number` that is in a panel, wherever in a line of the cache it begins."""
        ev, at = Evaluator(self.frame, 1), list(point)
        at[self.s.vector_dim] = Idx(columns[0].at.base)
        operand, dims = self.root.operands[self.s.vector_operand], self._iteration(at, {self.dim: Idx(number, level=2)})
        buffer, exprs = self.frame.buffers[operand], operand_map(self.root, self.s.vector_operand).results
        start = memory.address(buffer, [ev.idx.affine(e, dims) for e in exprs], ev.idx).base
        width, line = sum(column.lanes for column in columns), memory.LINE * 8 // self.element.width
        for element in (*range(0, width, line), width - 1):
            where = self.frame.constants.index(self.frame.math.add(start, element))
            memref.PrefetchOp(buffer.memory, [where], False, 3, True)

    def _copy_across(self, point: list[Idx], columns: list[Column]) -> None:
        """The panel of `columns` of an operand that is contiguous along the reduction."""
        lanes, constants = self.s.lanes, self.frame.constants
        whole = self.extent // lanes * lanes
        for j, column in enumerate(columns):
            last = column.lanes < lanes or column.mask is not None

            def square(at: Scalar, live: int, j: int = j, column: Idx = column.at, last: bool = last) -> None:
                inside = lane_mask(self.frame, lanes, constants.index(live)) if live < lanes else None
                rows = [self._along(point, column, c, last, Idx(at, 1, level=3), inside) for c in range(lanes)]
                for i, line in enumerate(transposed(rows, lanes)[:live]):
                    place = [self._place(self.frame.math.add(at, i), j)]
                    vector.StoreOp(line, self.panel, place, alignment=_ALIGNMENT)

            def full(variable: ir.Value, _: list[ir.Value], square: Callable[..., None] = square) -> list[ir.Value]:
                square(variable, lanes)
                return []

            for_loop(self.frame, 0, whole, lanes, [], full)
            if self.extent > whole:
                square(whole, self.extent - whole)

    def _along(
        self, point: list[Idx], column: Idx, number: int, last: bool, at: Idx, inside: ir.Value | None
    ) -> ir.Value:
        """A vector along the reduction of the column `number` behind `column`; in the `last` vector of columns those
        behind the end are the last column again.
        """
        math, axis = self.frame.math, self.s.vector_dim
        base = math.add(column.base, number)
        if last:
            base = math.minimum(base, math.sub(self.shape[axis], 1))
        there = list(point)
        there[axis] = Idx(base, level=2)
        dims, ev = self._iteration(there, {self.dim: at}), Evaluator(self.frame, self.s.lanes, inside)
        coords = [ev.idx.affine(e, dims) for e in operand_map(self.root, self.s.vector_operand).results]
        return ev.splat(ev.tensor(self.root.operands[self.s.vector_operand], coords))

    # -- columns beside the panels ----------------------------------------------------------------------------------

    def _in_last_panel(self, emit: Callable[[], None]) -> None:
        """What `emit` emits, for the last panel of several columns beside it."""
        if self.s.beside:
            columns, constants = self.s.in_panels(self.shape[self.s.vector_dim]), self.frame.constants
            last = self.frame.math.sub(self.frame.math.ceildiv(columns, self.s.panel), 1)
            if_then(arith.cmpi(arith.CmpIPredicate.eq, constants.index(self.number), constants.index(last)), emit)

    def _copy_lines(self, point: list[Idx]) -> None:
        """The columns beside the panels, one behind the other."""
        operand, math = self.s.vector_operand, self.frame.math

        def step(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            ev = Evaluator(self.frame, 1)
            for number in range(self.s.beside):
                dims = self._iteration(self._beside(point, number), {self.dim: Idx(variable, level=2)})
                coords = [ev.idx.affine(e, dims) for e in operand_map(self.root, operand).results]
                at = self.frame.constants.index(math.add(number * self.extent, variable))
                memref.store(ev.tensor(self.root.operands[operand], coords), self.lines, [at])
            return []

        for_loop(self.frame, 0, self.extent, 1, [], step)

    def _beside(self, point: Sequence[Idx], number: int) -> list[Idx]:
        """`point` in column `number` of those beside the panels."""
        there, columns = list(point), self.s.in_panels(self.shape[self.s.vector_dim])
        there[self.s.vector_dim] = Idx(self.frame.math.add(columns, number))
        return there

    def _tile(self, ev: Evaluator, tile: Tile) -> None:
        super()._tile(ev, tile)
        self._in_last_panel(lambda: self._tile_beside(tile))

    def _tile_beside(self, tile: Tile) -> None:
        """The columns beside the panels of the rows of a tile."""
        s, frame = self.s, self.frame
        mask = lane_mask(frame, s.lanes, frame.constants.index(s.beside))
        column = Column(Idx(self._beside([Idx(0)] * len(self.shape), 0)[s.vector_dim].base, 1, level=1), s.lanes, mask)
        height = len(tile.points) // len(tile.columns)
        for low in range(0, height, s.lanes):
            rows = [self._beside(tile.points[r, 0], 0) for r in range(low, min(low + s.lanes, height))]
            points = {(r, 0): self._point(row, row[s.row_last], column.at) for r, row in enumerate(rows)}
            part = Tile(tile.row, points, [column], tile.ends)
            sums, together = list[ir.Value](), max(1, SUMS_BESIDE // len(rows))
            for first in range(0, s.beside, together):
                sums += self._line_sums(rows, range(first, min(first + together, s.beside)))
            by_row = transposed([*sums, *[sums[-1]] * (s.lanes - s.beside)], s.lanes)
            start = self._initial(Evaluator(frame, s.lanes), part)
            self._epilogue(part, {name: arith.addf(start[name[0]], by_row[name[0]]) for name in points})

    def _line_sums(self, rows: Sequence[list[Idx]], numbers: Sequence[int]) -> list[ir.Value]:
        """For each of the columns `numbers` beside the panels a vector with the sums of all `rows`."""
        s, frame = self.s, self.frame
        zero = memory.splat(frame.constants.get(self.element, 0.0), s.lanes)

        def step(at: Scalar, sums: Sequence[ir.Value], mask: ir.Value | None) -> list[ir.Value]:
            ev, new = Evaluator(frame, s.lanes, mask), list[ir.Value]()
            lines = [self._line_at(at, number, mask) for number in numbers]
            for r, row in enumerate(rows):
                dims, other = self._iteration(row, {self.dim: Idx(at, 1, level=4)}), 1 - s.vector_operand
                coords = [ev.idx.affine(e, dims) for e in self.reads[other][0]]
                value = ev.splat(ev.tensor(self.root.operands[other], coords))
                for c, line in enumerate(lines):
                    new.append(vector.FMAOp(value, line, sums[r * len(lines) + c]).result)
            return new

        whole = self.extent // s.lanes * s.lanes
        sums = [zero] * (len(rows) * len(numbers))
        sums = for_loop(frame, 0, whole, s.lanes, sums, lambda at, old: step(at, old, None))
        if self.extent > whole:
            sums = step(whole, sums, lane_mask(frame, s.lanes, frame.constants.index(self.extent - whole)))
        columns = [sums[c :: len(numbers)] for c in range(len(numbers))]
        return [lane_sums([*column, *[zero] * (s.lanes - len(column))]) for column in columns]

    def _line_at(self, at: Scalar, number: int, mask: ir.Value | None) -> ir.Value:
        """A vector of column `number` beside the panels, from step `at` of the reduction on."""
        type_ = ir.VectorType.get([self.s.lanes], self.element)
        place = [self.frame.constants.index(self.frame.math.add(number * self.extent, at))]
        if mask is None:
            return vector.LoadOp(type_, self.lines, place).result
        zeros = memory.splat(self.frame.constants.get(self.element, 0.0), self.s.lanes)
        return vector.MaskedLoadOp(type_, self.lines, place, mask, zeros).result

    # -- the panel --------------------------------------------------------------------------------------------------

    def _place(self, step: Scalar, vector_number: int, slot: Scalar = 0) -> ir.Value:
        """Where vector `vector_number` of a line is, of the panel from `slot` on."""
        math = self.frame.math
        at = math.add(math.mul(step, self.s.panel), vector_number * self.s.lanes)
        return self.frame.constants.index(math.add(slot, at))

    def _operand(
        self,
        ev: Evaluator,
        tile: Tile,
        i: int,
        name: tuple[int, int],
        dims: list[Idx],
        loaded: dict[tuple[int, int, int], ir.Value],
    ) -> ir.Value:
        if i != self.s.vector_operand:
            return super()._operand(ev, tile, i, name, dims, loaded)
        key = (i, -1, name[1])
        if key not in loaded:
            type_ = ir.VectorType.get([ev.lanes], self.element)
            place = [self._place(dims[self.dim].base, name[1], self.slot)]
            loaded[key] = vector.LoadOp(type_, self.panel, place, alignment=_ALIGNMENT).result
        return loaded[key]
