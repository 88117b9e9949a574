"""Products of few rows with a matrix that only a run knows, read in whole lines.

Such a product takes as long as its matrix takes to arrive. Tiles of `contraction` go down the matrix, a piece of every
line at a time; where lines are far apart, what fetches memory ahead finds no order in that. Here `steps` lines are read
side by side, each from its beginning to its end, and the sums of all columns, which do not fit into registers, go
through the first level of cache once for each such group of lines. What a work item reads of a line is `item` columns;
the items that are handed to a thread together are one piece, so that pieces are as long as the number of threads
allows. A column's sum has the same order whatever the piece: steps of the reduction, one after the other.

Schedule parameters: those of `contraction`, whose register tile walks along the lines (`unroll` and `block` are 1);
`steps`: lines of the matrix side by side; `line`: most columns of a piece, whose sums, of every row, are on the stack;
`item`: columns of a work item, which divides `line` and is a multiple of the tile's. The reduction has one dimension.
Measured on Zen 3 (1x2048x2048 from the third level of cache): 47 GB/s, where tiles of 128 columns read 24 GB/s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import func, vector

from mlc.kernels.common.evaluate import Evaluator, lane_mask
from mlc.kernels.common.frame import Frame, KernelSource, for_loop
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_grid
from mlc.kernels.cpu.contraction import Contraction
from mlc.kernels.cpu.contraction_grid import ContractionSchedule, outer_dims
from mlc.kernels.cpu.register_tile import Column, Tile, split_rows


@dataclass(frozen=True)
class LineProductSchedule(ContractionSchedule):
    """Parameters of the template; see the module's description."""

    steps: int
    line: int
    item: int


def expand(source: KernelSource, schedule: LineProductSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    grid = emit_grid(source, lambda frame, shape: _items(frame, shape, schedule))
    return [_LineProduct(source, schedule).emit(), grid]


def _items(frame: Frame, shape: list[Scalar], s: LineProductSchedule) -> list[Scalar]:
    """Extents of the grid: products, then items of columns."""
    return [*(shape[d] for d in outer_dims(len(shape), s)), frame.math.ceildiv(shape[s.vector_dim], s.item)]


class _LineProduct(Contraction):
    s: LineProductSchedule

    def __init__(self, source: KernelSource, schedule: LineProductSchedule) -> None:
        super().__init__(source, schedule)
        moving = [(d, e) for d, e in self.reductions if e != 1]
        rows = self.frame.math.product(self.shape[schedule.row_first : schedule.row_last + 1])
        if len(moving) > 1 or not isinstance(rows, int):
            raise ValueError(f"kernel {self.frame.name}: lines are multiplied by known rows along one dimension")
        if schedule.line % schedule.item or schedule.item % schedule.panel:
            raise ValueError(f"kernel {self.frame.name}: a piece consists of items, and an item of tiles")
        self.dim, self.extent = moving[0] if moving else self.reductions[0]
        self.rows, self.pitch = rows, schedule.line + schedule.lanes
        self.element = self.root.results[0].type.element_type
        self.sums = self.frame.on_stack(self.element, rows * self.pitch)
        self.start: Scalar = 0
        self.lines: list[Idx] = []
        self.stage: Callable[[Evaluator, Tile], None] = self._begin

    def emit(self) -> Frame:
        frame, s, math = self.frame, self.s, self.frame.math
        with frame.body():
            dims = outer_dims(len(self.shape), s)
            *outer, items = _items(frame, self.shape, s)

            def product(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                point = [Idx(0)] * len(self.shape)
                for dim, coord in zip(dims, math.delinearize(variable, outer), strict=True):
                    point[dim] = Idx(coord, level=1)
                before = math.mul(variable, items)
                low = math.mul(math.maximum(math.sub(frame.begin, before), 0), s.item)
                end = math.mul(math.minimum(math.sub(frame.end, before), items), s.item)
                end = math.minimum(end, self.shape[s.vector_dim])

                def piece(start: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                    self._piece(point, start, math.minimum(math.add(start, s.line), end))
                    return []

                for_loop(frame, low, end, s.line, [], piece)
                return []

            for_loop(frame, math.div(frame.begin, items), math.ceildiv(frame.end, items), 1, [], product)
            func.ReturnOp([])
        return frame

    def _piece(self, point: list[Idx], start: Scalar, end: Scalar) -> None:
        """The sums of the columns from `start` to `end`."""
        math, steps = self.frame.math, self.s.steps
        self.start = start

        def group(first: Scalar, count: int) -> None:
            self.stage = self._add
            self.lines = [Idx(math.add(first, u), level=2) for u in range(count)]
            self._columns(point, start, end)

        def emit(variable: ir.Value, _: list[ir.Value], count: int) -> list[ir.Value]:
            group(variable, count)
            return []

        self.stage = self._begin
        self._columns(point, start, end)
        whole = math.mul(math.div(self.extent, steps), steps)
        for_loop(self.frame, 0, whole, steps, [], lambda v, c: emit(v, c, steps))
        if not isinstance(self.extent, int):
            for_loop(self.frame, whole, self.extent, 1, [], lambda v, c: emit(v, c, 1))
        elif self.extent % steps:
            group(whole, self.extent % steps)
        self.stage = self._finish
        self._columns(point, start, end)

    def _columns(self, point: list[Idx], start: Scalar, end: Scalar) -> None:
        """The present stage for all tiles of a piece; what is no whole tile goes vector by vector."""
        s, math, extent = self.s, self.frame.math, self.shape[self.s.vector_dim]
        rows = split_rows(self.rows, s.rows)

        def tile(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            at = [Idx(math.add(variable, j * s.lanes), 1, level=3) for j in range(s.vectors)]
            self._static_rows(self._tile_emitter(point, [Column(a, s.lanes) for a in at]), 0, rows)
            return []

        def single(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            mask = lane_mask(self.frame, s.lanes, self.frame.constants.index(math.sub(end, variable)))
            column = Column(Idx(variable, 1, level=3), s.lanes, mask)
            self._static_rows(self._tile_emitter(point, [column]), 0, rows)
            return []

        if isinstance(extent, int) and extent % s.panel == 0:
            for_loop(self.frame, start, end, s.panel, [], tile)
            return
        whole = math.add(start, math.mul(math.div(math.sub(end, start), s.panel), s.panel))
        for_loop(self.frame, start, whole, s.panel, [], tile)
        for_loop(self.frame, whole, end, s.lanes, [], single)

    # -- stages of a tile -------------------------------------------------------------------------------------------

    def _tile(self, ev: Evaluator, tile: Tile) -> None:
        self.stage(ev, tile)

    def _begin(self, ev: Evaluator, tile: Tile) -> None:
        self._store(tile, self._initial(ev, tile))

    def _add(self, ev: Evaluator, tile: Tile) -> None:
        sums = self._load(tile)
        for at in self.lines:
            sums = self._multiply_add(ev.child(), tile, {self.dim: at}, sums)
        self._store(tile, sums)

    def _finish(self, ev: Evaluator, tile: Tile) -> None:
        self._epilogue(tile, dict(zip(tile.points, self._load(tile), strict=True)))

    def _load(self, tile: Tile) -> list[ir.Value]:
        type_, aligned = ir.VectorType.get([self.s.lanes], self.element), self._alignment()
        places = [self._place(tile, name) for name in tile.points]
        return [vector.LoadOp(type_, self.sums, [at], alignment=aligned).result for at in places]

    def _store(self, tile: Tile, values: list[ir.Value]) -> None:
        for name, value in zip(tile.points, values, strict=True):
            vector.StoreOp(value, self.sums, [self._place(tile, name)], alignment=self._alignment())

    def _alignment(self) -> int:
        return self.s.lanes * self.element.width // 8

    def _place(self, tile: Tile, name: tuple[int, int]) -> ir.Value:
        """Where the sums (row, vector) of a tile wait."""
        math, (row, number) = self.frame.math, name
        column = math.sub(tile.columns[number].at.base, self.start)
        return self.frame.constants.index(math.add(math.mul(math.add(tile.row, row), self.pitch), column))
