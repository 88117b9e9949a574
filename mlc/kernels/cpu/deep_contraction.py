"""Register-tiled products and convolutions over many steps of the reduction, in blocks of these.

The tiles, loops and epilogues of `contraction`. All tiles of rows of a work item take one block of the reduction, then
all the next one; in between their sums wait on the stack. What is read of a packed weight again and again is then part
of a panel, which stays in the second level of cache beside the rows, where a whole panel would not. Sums are added up
in the same order. (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008, section 4.)

Schedule parameters: those of `contraction`; `depth`: steps of the reduction's outermost dimension in a block, a divisor
of all, which are known; `outer`: how many dimensions are further out, of which a block has one step (0: none). Of a
convolution these are taps of its window, and since a line of the image has few tiles, a work item has `lines` of them,
points of the output dimension `line_dim` (-1: there is none).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Frame, KernelSource, for_loop
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.cpu.contraction import Contraction
from mlc.kernels.cpu.contraction_grid import ContractionSchedule, tile_grid
from mlc.kernels.cpu.next_panel import NextPanel, panel_ahead
from mlc.kernels.cpu.register_tile import Column, Tile


@dataclass(frozen=True)
class DeepContractionSchedule(ContractionSchedule):
    """Parameters of the template; see the module's description."""

    depth: int
    line_dim: int = -1
    lines: int = 1
    outer: int = 0

    def together(self, dim: int) -> int:
        return self.lines if dim == self.line_dim else 1


def expand(source: KernelSource, schedule: DeepContractionSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [DeepContraction(source, schedule).emit(), tile_grid(source, schedule)]


class DeepContraction(Contraction):
    s: DeepContractionSchedule
    whole_blocks = True  # has the last block as many steps as the others?

    def __init__(self, source: KernelSource, schedule: DeepContractionSchedule) -> None:
        super().__init__(source, schedule)
        moving = [(d, e) for d, e in self.reductions if e != 1]
        self.outer, moving = moving[: schedule.outer], moving[schedule.outer :]
        steps = moving[0][1] if moving else None
        if not isinstance(steps, int) or self.whole_blocks and steps % schedule.depth:
            raise ValueError(f"kernel {self.frame.name}: blocks of {schedule.depth} steps are no part of the reduction")
        self.dim, self.extent = moving[0]
        self.element = self.root.results[0].type.element_type
        with self.frame.prologue():
            rows = self.frame.math.product(self.shape[schedule.row_first : schedule.row_last + 1])
            self.rows = min(rows, schedule.row_block) if isinstance(rows, int) else schedule.row_block
        self.sums = self.frame.on_stack(self.element, schedule.lines * self.rows * schedule.panel)
        self.at: dict[int, Scalar] = {}  # a block's points of the dimensions in front
        self.low: Scalar = 0
        self.start: Scalar = 0
        self.first_row: Scalar = 0
        self.line: Scalar = 0  # of those of the work item
        self.stage: Callable[[Evaluator, Tile], None] = self._begin

    def _rows(self, point: list[Idx], columns: list[Column], block: Scalar) -> None:
        self.first_row, panel = self.frame.math.mul(block, self.s.row_block), self.next

        def part(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            self.low, self.stage = variable, self._add
            if panel is not None:
                self.next = self._following(panel, variable)
            self._enter()
            self._lines(point, columns, block)
            return []

        self.stage = self._begin
        self._lines(point, columns, block)
        self._blocks(self.outer, part)
        self.stage = self._finish
        self._lines(point, columns, block)
        self.next = panel

    def _blocks(
        self, outer: Sequence[tuple[int, Scalar]], part: Callable[[ir.Value, list[ir.Value]], list[ir.Value]]
    ) -> None:
        """All blocks, one after the other; `outer` are the dimensions of those that have no point yet."""
        if not outer:
            for_loop(self.frame, 0, self.extent, self.s.depth, [], part)
            return
        (dim, extent), rest = outer[0], outer[1:]

        def point(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            self.at[dim] = variable
            self._blocks(rest, part)
            return []

        for_loop(self.frame, 0, extent, 1, [], point)

    def _enter(self) -> None:
        """What is done before the tiles of a block, from step `low` on."""

    def _lines(self, point: list[Idx], columns: list[Column], block: Scalar) -> None:
        """One stage of all tiles of a work item."""
        dim, math = self.s.line_dim, self.frame.math
        if dim < 0:
            super()._rows(point, columns, block)
            return
        first = math.mul(point[dim].base, self.s.lines)
        end = math.minimum(math.add(first, self.s.lines), self.shape[dim])

        def line(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            self.line, there = math.sub(variable, first), list(point)
            there[dim] = Idx(variable, level=1)
            super(DeepContraction, self)._rows(there, columns, block)
            return []

        for_loop(self.frame, first, end, 1, [], line)

    # -- what is fetched ahead --------------------------------------------------------------------------------------

    def _next_panel(
        self, point: list[Idx], panel: Scalar, panels: Scalar, rows: tuple[Scalar, Scalar]
    ) -> NextPanel:
        self.start = self._panel_start(point, panel)
        return super()._next_panel(point, panel, panels, rows)

    def _following(self, panel: NextPanel, low: Scalar) -> NextPanel:
        """The block behind that from step `low` on; behind the last one it is the first one of the next `panel`."""
        math, c = self.frame.math, self.frame.constants
        size = panel.size // self.extent * self.s.depth
        behind = math.add(low, self.s.depth)
        here = math.add(self.start, math.mul(behind, self.s.panel))
        inside = arith.cmpi(arith.CmpIPredicate.slt, c.index(behind), c.index(self.extent))
        start = arith.select(inside, c.index(here), c.index(panel.start))
        rows: Scalar = self.rows
        if not isinstance(self.row_extent, int):
            rows = math.minimum(rows, math.sub(self.row_extent, self.first_row))
        first, least = math.sub(0, self.first_row), self._fetching_rows
        return panel_ahead(self.frame, panel.buffer, (start, size), (first, rows), self.s.rows, least)

    # -- stages of a tile -------------------------------------------------------------------------------------------

    def _tile(self, ev: Evaluator, tile: Tile) -> None:
        self.stage(ev, tile)

    def _begin(self, ev: Evaluator, tile: Tile) -> None:
        for (name, at), value in zip(self._places(tile), self._initial(ev, tile), strict=True):
            vector.StoreOp(value, self.sums, [at], alignment=self._alignment(tile, name))

    def _add(self, ev: Evaluator, tile: Tile) -> None:
        sums = self._summed(ev, tile, self._loaded(tile))
        for (name, at), value in zip(self._places(tile), sums, strict=True):
            vector.StoreOp(value, self.sums, [at], alignment=self._alignment(tile, name))

    def _finish(self, ev: Evaluator, tile: Tile) -> None:
        self._epilogue(tile, dict(zip(tile.points, self._loaded(tile), strict=True)))

    def _loaded(self, tile: Tile) -> list[ir.Value]:
        results = []
        for name, at in self._places(tile):
            type_ = ir.VectorType.get([tile.columns[name[1]].lanes], self.element)
            results.append(vector.LoadOp(type_, self.sums, [at], alignment=self._alignment(tile, name)).result)
        return results

    def _places(self, tile: Tile) -> list[tuple[tuple[int, int], ir.Value]]:
        """Where the sums of a tile wait, by (row, vector)."""
        math = self.frame.math
        before = math.mul(self.line, self.rows)
        first = math.mul(math.add(before, math.sub(tile.row, self.first_row)), self.s.panel)
        found = []
        for row, number in tile.points:
            at = math.add(first, row * self.s.panel + number * self.s.lanes)
            found.append(((row, number), self.frame.constants.index(at)))
        return found

    def _alignment(self, tile: Tile, name: tuple[int, int]) -> int:
        return tile.columns[name[1]].lanes * self.element.width // 8

    # -- one block of the reduction ---------------------------------------------------------------------------------

    def _row_taps(self) -> int | None:
        window = self.row_window
        if window is not None and window.tap in [self.dim, *(d for d, _ in self.outer)]:
            return None  # which tap it is only a run knows
        return super()._row_taps()

    def _taps(self, tile: Tile, tap: int, extent: Scalar) -> tuple[Scalar, Scalar]:
        first, last = super()._taps(tile, tap, extent)
        if tap != self.dim and tap not in self.at:
            return first, last
        math = self.frame.math
        low = self.low if tap == self.dim else self.at[tap]
        end = math.add(low, self.s.depth if tap == self.dim else 1)
        if tap == self.dim and self.extent % self.s.depth:
            end = math.minimum(end, self.extent)
        if (first, last) == (0, extent):
            return low, end
        return math.maximum(first, low), math.minimum(last, end)

    def _steps(self, dim: int, low: Scalar, high: Scalar) -> Scalar | None:
        if dim != self.dim and dim not in self.at:
            return super()._steps(dim, low, high)
        return None if dim in self.outer_windows else self.s.depth if dim == self.dim else 1
