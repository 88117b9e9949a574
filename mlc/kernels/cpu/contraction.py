"""Register-tiled contractions: matrix products and direct convolutions.

A tile of `rows` x `vectors` accumulators stays in registers over the whole reduction; the epilogue runs on it before
it is stored. One operand is read as vectors along the output's contiguous dimension, the other as scalars that are
broadcast by the multiply-add. The method is the micro-kernel of Goto and van de Geijn ("Anatomy of High-Performance
Matrix Multiplication", 2008) with the panel loop outermost; a convolution over NHWC is the same with window dimensions
among the reduction's ("Anatomy of High-Performance Deep Learning Convolutions", Georganas et al., 2018).

Takes any `linalg.generic` marked `mlc.contraction` whose output map is a permutation; static and dynamic extents.
Schedule parameters: `lanes`; `vector_dim`, `row_first`, `row_last`: output dimensions of the vectors and of the rows
(a group that flattens; −1 and −2 for none); `rows`, `vectors`: the register tile; `unroll` of the innermost reduction;
`block`: row tiles per work item; `tail`: lanes of the last vector where no more columns remain (0: all lanes);
`ahead`: how many rows fetch the next panel of a packed weight (0: none do; −n: as many as a run counts, from n on);
`early`: does a tile fetch what is added to its sums before it begins with them (1)? `pieces`: are the last columns
stored in parts of a vector (1), for targets on which masked stores take long? `part`: how many work items of a panel,
blocks of rows and points of other dimensions, are behind each other before those of the next panel (0: all are; −n: one
of n parts, where only a run knows how many there are; not with `ahead`). With `ahead` the rows of a part fetch a panel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from mlir import ir
from mlir.dialects import arith, func, vector

from mlc.kernels.common import memory
from mlc.kernels.common.analysis import is_contraction, is_plain_fma, mentions, reachable
from mlc.kernels.common.body import inline_body
from mlc.kernels.common.evaluate import Evaluator, Override, lane_mask
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.reduce import reduction_extents
from mlc.kernels.cpu.contraction_grid import ContractionSchedule, grid_items, grid_point, outer_dims, tile_grid
from mlc.kernels.cpu.next_panel import FETCHING_TILES, NextPanel, number_of, panel_ahead
from mlc.kernels.cpu.padded_rows import PaddedRows
from mlc.kernels.cpu.padding import LinePlace
from mlc.kernels.cpu.register_tile import (
    Column,
    Ends,
    Loops,
    Position,
    Tile,
    Tiles,
    computed_behind,
    matrices_behind,
    num_products,
    rest_sizes,
    split_rows,
)

_LONG = ("math.sin", "math.cos", "math.powf")  # a hundred operations each, once for every vector of a tile


def find_contraction(source: KernelSource) -> ir.Operation:
    """The contraction of the kernel."""
    for op in reachable(source.results):
        if is_contraction(op):
            return op
    raise ValueError(f"kernel {source.func.name.value}: no contraction")


def expand(source: KernelSource, schedule: ContractionSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [Contraction(source, schedule).emit(), tile_grid(source, schedule)]


_EmitTile = Callable[[Scalar, int, Ends | LinePlace], None]


class Contraction(PaddedRows):
    def __init__(self, source: KernelSource, schedule: ContractionSchedule) -> None:
        self.source = source
        self.s = schedule
        self.frame = Frame(source, vector_lanes=schedule.lanes, in_pieces=schedule.pieces == 1)
        self.root = find_contraction(source)
        self.shape = self.frame.buffers[source.destinations[0]].shape
        out_map = operand_map(self.root, len(self.root.operands) - 1)
        self.order = [ir.AffineDimExpr(e).position for e in out_map.results]
        self.rank = len(self.root.attributes["iterator_types"])
        with self.frame.prologue():
            self.reductions = list(reduction_extents(self.frame, self.root).items())
        self.fma = is_plain_fma(self.root)
        self.reads = [self._read(i) for i in range(2)]
        self.addends = matrices_behind(source, self.root) if schedule.early else []
        self.next: NextPanel | None = None
        self._find_padding()
        self.waiting: ir.Value | None = None  # the sums of a tile, for an epilogue that is a loop
        if any(op.name in _LONG for op in computed_behind(source, self.root)):
            element = self.root.results[0].type.element_type
            self.waiting = self.frame.on_stack(element, self.tallest * schedule.panel)

    def _read(self, operand: int) -> tuple[list[ir.AffineExpr], bool, bool]:
        """The map of an input, and whether it depends on the row and on the column of an accumulator."""
        exprs = list(operand_map(self.root, operand).results)
        rows = self.s.row_last >= 0 and any(mentions(e, self.order[self.s.row_last]) for e in exprs)
        return exprs, rows, any(mentions(e, self.order[self.s.vector_dim]) for e in exprs)

    def emit(self) -> Frame:
        frame, s = self.frame, self.s
        with frame.body():
            dims = outer_dims(len(self.shape), s)
            products = num_products(self.root, dims)
            items = grid_items(frame, self.shape, s, products)
            math = frame.math
            self.row_extent = s.num_rows(math, self.shape)
            self.items, self.products = items, products

            def item(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                self.item = variable
                *outer, block = self._grid_point(variable)
                panel = outer.pop(products)
                point = [Idx(0)] * len(self.shape)
                for dim, coord in zip(dims, outer, strict=True):
                    point[dim] = Idx(coord, level=1)
                if s.ahead:
                    others = list(zip(outer[products:], items[products + 1 : -1], strict=True))
                    self._look_ahead(point, panel, items[products], self._rows_ahead(others, block))
                self._panel(point, panel, block)
                return []

            for_loop(frame, frame.begin, frame.end, 1, [], item)
            func.ReturnOp([])
        return frame

    def _grid_point(self, item: Scalar) -> list[Scalar]:
        """The coordinates of a work item among `items`."""
        return grid_point(self.frame.math, item, self.items, self.products, self.s)

    def _panel_start(self, point: list[Idx], panel: Scalar) -> Scalar:
        """Where in the packed weight `panel` begins."""
        ev = Evaluator(self.frame, self.s.lanes)
        dims = self._iteration(self._point(point, Idx(0), self._column(panel, 0)), {})
        coords = [ev.idx.affine(e, dims) for e in self.reads[self.s.packed_operand][0]]
        return memory.address(self.frame.buffers[self.root.operands[self.s.packed_operand]], coords, ev.idx).base

    def _number_of_panel(self, operand: int, point: list[Idx], column: Column) -> Scalar:
        """That of the first element, in an input, of its panel from `column` on: output points may share panels."""
        ev, extent = Evaluator(self.frame, 1), partial(self.frame.extent, self.root.operands[operand])
        dims = self._iteration(self._point(point, Idx(0), Idx(column.at.base, tile=column.at.tile)), {})
        coords = [(ev.idx.affine(e, dims).base, extent(i)) for i, e in enumerate(self.reads[operand][0])]
        return number_of(self.frame.math, coords)

    def _rows_ahead(self, others: Sequence[tuple[Scalar, Scalar]], block: Scalar) -> tuple[Scalar, Scalar]:
        """The number of row 0 of a work item among the rows that fetch a panel together, and how many these are; it has
        `block` of the rows and point `others`, coordinates and extents, of the dimensions beside these."""
        math, s, blocks = self.frame.math, self.s, self.items[-1]
        line, rows = number_of(math, others), s.part * s.row_block
        if s.part and isinstance(blocks, int) and s.part % blocks == 0:
            lines = s.part // blocks
            return math.mul(math.rem(line, lines), self.row_extent), math.mul(lines, self.row_extent)
        if s.part:
            return math.mul(math.div(block, s.part), -rows), math.minimum(rows, self.row_extent)
        count = s.ahead if s.ahead > 0 else math.product([self.row_extent, *(extent for _, extent in others)])
        return math.mul(line, self.row_extent), count

    def _look_ahead(self, point: list[Idx], panel: Scalar, panels: Scalar, rows: tuple[Scalar, Scalar]) -> None:
        """A work item prepares for the panel behind `panel`."""
        self.next = self._next_panel(point, panel, panels, rows)

    def _next_panel(self, point: list[Idx], panel: Scalar, panels: Scalar, rows: tuple[Scalar, Scalar]) -> NextPanel:
        """The panel behind `panel`, which `rows` fetch (`_rows_ahead`)."""
        math, s, columns = self.frame.math, self.s, self.order[self.s.vector_dim]
        buffer, exprs = self.frame.buffers[self.root.operands[s.packed_operand]], self.reads[s.packed_operand][0]
        start = self._panel_start(point, math.minimum(math.add(panel, 1), math.sub(panels, 1)))
        elements = buffer.strides[next(i for i, e in enumerate(exprs) if mentions(e, columns))]
        width = buffer.element.width // 8
        step = s.panel * s.unroll * width
        part = start, math.mul(elements, width)
        return panel_ahead(self.frame, buffer, part, rows, s.rows, self._fetching_rows, step)

    @property
    def _fetching_rows(self) -> int:
        """From how many rows on these fetch what comes next."""
        ahead = self.s.ahead
        return -ahead if ahead < 0 else min(FETCHING_TILES * self.s.rows, ahead)

    # -- the vector dimension ---------------------------------------------------------------------------------------

    def _panel(self, point: list[Idx], panel: Scalar, block: Scalar) -> None:
        """Full panels use the whole register tile; what remains uses fewer vectors, the last one masked."""
        s, math, c = self.s, self.frame.math, self.frame.constants
        extent = s.in_panels(self.shape[s.vector_dim])
        columns = [Column(self._column(panel, j * s.lanes), s.lanes) for j in range(s.vectors)]
        if isinstance(extent, int):
            full, rest = divmod(extent, s.panel)
            if not rest:
                self._rows(point, columns, block)
                return
            used, count = divmod(rest, s.lanes)
            last = [self._partial(columns[used].at, count)] if count else []

            def partial() -> None:
                self._rows(point, columns[:used] + last, block)

            if not full:
                partial()
                return
            is_full = arith.cmpi(arith.CmpIPredicate.ult, c.index(panel), c.index(full))
            if_then(is_full, lambda: self._rows(point, columns, block), partial)
            return
        base = math.mul(panel, s.panel)
        is_full = arith.cmpi(arith.CmpIPredicate.sle, c.index(math.add(base, s.panel)), c.index(extent))

        def singles() -> None:
            def one(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                mask = lane_mask(self.frame, s.lanes, c.index(math.sub(extent, variable)))
                self._rows(point, [Column(Idx(variable, 1, level=2), s.lanes, mask)], block)
                return []

            for_loop(self.frame, base, extent, s.lanes, [], one)

        if_then(is_full, lambda: self._rows(point, columns, block), singles)

    def _column(self, panel: Scalar, low: int) -> Idx:
        math = self.frame.math
        base = math.add(math.mul(panel, self.s.panel), low)
        return Idx(base, 1, tile=(panel, self.s.panel, low), level=1)

    def _partial(self, at: Idx, count: int) -> Column:
        """The last `count` columns, fewer than a vector has lanes."""
        lanes = self.s.tail if count <= self.s.tail else self.s.lanes
        mask = lane_mask(self.frame, lanes, self.frame.constants.index(count)) if count < lanes else None
        return Column(at, lanes, mask)

    # -- rows -------------------------------------------------------------------------------------------------------

    def _rows(self, point: list[Idx], columns: list[Column], block: Scalar) -> None:
        """The register tiles of one block of rows."""
        s, math = self.s, self.frame.math
        tile = self._tile_emitter(point, columns)
        extent = self.row_extent
        start = math.mul(block, s.row_block)
        if isinstance(extent, int):
            full, rest = divmod(extent, s.row_block)
            if not full or (full == 1 and not rest):
                self._static_rows(tile, 0, split_rows(extent, s.rows))
            elif (blocks := self._blocks_of_rows(full, split_rows(rest, s.rows))) is not None:
                self._block_at_its_place(tile, block, blocks)
            elif not rest:
                self._static_rows(tile, start, [(s.rows, s.block)])
            else:
                self._full_or_last(tile, block, full, split_rows(rest, s.rows))
            return
        end = math.minimum(math.add(start, s.row_block), extent)
        position = math.add(start, self._whole_tiles(math.sub(end, start)))
        self._tile_loop(tile, start, position, s.rows)
        for size in self._rest_sizes:
            upto = math.add(position, math.mul(math.div(math.sub(end, position), size), size))
            self._tile_loop(tile, position, upto, size)
            position = upto

    @property
    def tallest(self) -> int:
        """How many rows the highest tile has."""
        s = self.s
        is_known = all(isinstance(extent, int) for extent in self.shape[s.row_first : s.row_last + 1])
        return s.rows if is_known else max([s.rows, *self._rest_sizes])

    @property
    def _rest_sizes(self) -> list[int]:
        """Heights of the tiles for the last rows, where only a run knows how many there are."""
        return rest_sizes(self.s.rows, self.row_window is not None)

    def _whole_tiles(self, length: Scalar) -> Scalar:
        """How many of `length` rows tiles of the schedule's height take; the last one's are a higher tile's where one
        row is behind them and there are such tiles.
        """
        s, math, c = self.s, self.frame.math, self.frame.constants
        rest = math.rem(length, s.rows)
        whole = math.sub(length, rest)
        if self.tallest == s.rows:
            return whole
        is_single = arith.cmpi(arith.CmpIPredicate.eq, c.index(rest), c.index(1))
        return math.sub(whole, arith.select(is_single, c.index(math.minimum(whole, s.rows)), c.index(0)))

    def _full_or_last(self, tile: _EmitTile, block: Scalar, full: int, tiles: Tiles) -> None:
        """One of the `full` blocks of whole tiles, or the last one with its `tiles`. One loop walks those tiles of both
        that have the same size where it can: half the code.
        """
        s, math, c = self.s, self.frame.math, self.frame.constants
        start, last = math.mul(block, s.row_block), full * s.row_block
        (size, count), rest = tiles[0], tiles[1:]
        if size == s.rows and (self.row_window is None or self._are_ends_rare()):
            end = last + size * count
            self._tile_loop(tile, start, math.minimum(math.add(start, s.row_block), end), size)
            if rest:
                is_last = arith.cmpi(arith.CmpIPredicate.uge, c.index(block), c.index(full))
                if_then(is_last, lambda: self._static_rows(tile, end, rest))
            return
        is_full = arith.cmpi(arith.CmpIPredicate.ult, c.index(block), c.index(full))
        if_then(
            is_full,
            lambda: self._static_rows(tile, start, [(s.rows, s.block)]),
            lambda: self._static_rows(tile, last, tiles),
        )

    def _block_at_its_place(self, tile: _EmitTile, block: Scalar, blocks: Sequence[Tiles | None]) -> None:
        """One of `blocks`: those at an end of a line one by one, all others as one loop."""
        math, c, s = self.frame.math, self.frame.constants, self.s

        def midst() -> None:
            low = math.mul(block, s.row_block)
            self._loop(tile, low, math.add(low, s.row_block), s.rows, Ends.INSIDE)

        ends = {i: partial(self._static_rows, tile, i * s.row_block, at) for i, at in enumerate(blocks) if at}
        emit: Callable[[], None] = midst if len(ends) < len(blocks) else ends.pop(max(ends))
        for i, end in ends.items():
            is_here = arith.cmpi(arith.CmpIPredicate.eq, c.index(block), c.index(i))
            emit = partial(if_then, is_here, end, emit)
        emit()

    def _static_rows(self, tile: _EmitTile, start: Scalar, tiles: Tiles) -> None:
        math, position = self.frame.math, start
        for size, count in tiles:
            end = math.add(position, size * count)
            places = self._known_places(position, size, count)
            if places is not None:
                assert isinstance(position, int)
                self._line(tile, position, size, places)
            elif count == 1 and self.row_window is None:
                tile(position, size, Ends.INSIDE)
            else:
                self._tile_loop(tile, position, end, size)
            position = end

    def _line(self, tile: _EmitTile, start: int, size: int, places: Sequence[Ends | LinePlace]) -> None:
        """Tiles at known places: those at an end one by one, runs of inner ones as a loop."""
        i = 0
        while i < len(places):
            run = next((j for j in range(i, len(places)) if places[j] is not Ends.INSIDE), len(places)) - i
            if run:
                self._loop(tile, start + i * size, start + (i + run) * size, size, Ends.INSIDE)
                i += run
            else:
                tile(start + i * size, size, places[i])
                i += 1

    def _loop(self, tile: _EmitTile, low: Scalar, high: Scalar, size: int, ends: Ends) -> None:
        def body(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            tile(variable, size, ends)
            return []

        for_loop(self.frame, low, high, size, [], body)

    def _tile_loop(self, tile: _EmitTile, low: Scalar, high: Scalar, size: int) -> None:
        if self._are_ends_rare():
            self._midst_and_ends(tile, low, high, size)
        else:
            self._loop(tile, low, high, size, Ends.INSIDE if self.row_window is None else Ends.SOMEWHERE)

    def _midst_and_ends(self, tile: _EmitTile, low: Scalar, high: Scalar, size: int) -> None:
        """The tiles in the midst of a long line, which do not ask where they are, and then those at its ends."""
        math = self.frame.math
        begin, end = self._tiles_in_midst(low, high, size)
        self._loop(tile, begin, end, size, Ends.INSIDE)

        def side(which: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            start = math.add(low, math.mul(which, math.sub(end, low)))
            stop = math.add(begin, math.mul(which, math.sub(high, begin)))
            self._loop(tile, start, stop, size, Ends.GUARDED)
            return []

        for_loop(self.frame, 0, 2, 1, [], side)

    # -- one register tile ------------------------------------------------------------------------------------------

    def _tile_emitter(self, point: list[Idx], columns: list[Column]) -> _EmitTile:
        def emit(row: Scalar, size: int, ends: Ends | LinePlace) -> None:
            rows = [Idx(self.frame.math.step(row, r), level=2) for r in range(size)]
            ev = Evaluator(self.frame, self.s.lanes)
            points = {(r, j): self._point(point, rows[r], c.at) for r in range(size) for j, c in enumerate(columns)}
            self._tile(ev, Tile(row, points, columns, ends))

        return emit

    def _tile(self, ev: Evaluator, tile: Tile) -> None:
        for value in self.addends:
            for point in tile.points.values():
                memory.fetch(self.frame, ev.idx, self.frame.buffers[value], point)
        sums = dict(zip(tile.points, self._summed(ev, tile, self._initial(ev, tile)), strict=True))
        if self.waiting is not None and len({row for row, _ in sums}) > 1:
            self._epilogue_by_rows(tile, sums, self.waiting)
        else:
            self._epilogue(tile, sums)

    def _summed(self, ev: Evaluator, tile: Tile, start: Sequence[ir.Value]) -> list[ir.Value]:
        """The accumulators that begin with `start` after all of the reduction: what a tile's place makes a difference
        for."""

        def emit(there: Tile) -> list[ir.Value]:
            return self._reduce(ev.child(), there, self.reductions, {}, start)

        return self._at_its_place(tile, [value.type for value in start], emit)

    def _initial(self, ev: Evaluator, tile: Tile) -> list[ir.Value]:
        """What the accumulators begin with."""
        init, start = self.root.operands[len(self.root.operands) - 1], []
        for (_, j), at in tile.points.items():
            scope = ev.child(tile.columns[j].lanes, tile.columns[j].mask)
            start.append(scope.splat(scope.tensor(init, at)))
        return start

    def _point(self, point: list[Idx], row: Idx, column: Idx) -> list[Idx]:
        result = list(point)
        if self.s.row_last >= 0:
            result[self.s.row_last] = row
        result[self.s.vector_dim] = column
        return result

    def _reduce(
        self, ev: Evaluator, tile: Tile, loops: Loops, position: Position, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Loops over the reduction dimensions around one multiply-add per accumulator."""
        if not loops:
            return self._multiply_add(ev, tile, position, carried)
        dim, extent = loops[0]
        if self.row_window is not None and dim == self.row_window.tap:
            sums = self._taps_of_rows(ev, tile, loops, position, carried)
            if sums is not None:
                return sums
        low, high = self._taps(tile, dim, extent)
        if (low, high) == (0, 1):
            return self._reduce(ev, tile, loops[1:], {**position, dim: Idx(0)}, carried)
        innermost = all(isinstance(e, int) and e == 1 for _, e in loops[1:])
        steps = self._steps(dim, low, high)
        is_even = steps is not None and self.frame.is_multiple(steps, self.s.unroll)
        is_seldom = tile.ends is Ends.GUARDED and self._are_ends_rare()
        unroll = self.s.unroll if innermost and is_even and not is_seldom else 1
        level, math = 3 + len(position), self.frame.math

        def body(variable: ir.Value, inner: list[ir.Value]) -> list[ir.Value]:
            if innermost and self.next is not None:
                at, all_steps = math.sub(variable, low), extent if steps is None else steps
                self._fetch(self.next, tile, position, math.div(at, unroll), math.div(all_steps, unroll))
            for u in range(unroll):
                at = Idx(math.step(variable, u), level=level)
                inner = self._reduce(ev.child(), tile, loops[1:], {**position, dim: at}, inner)
            return inner

        return for_loop(self.frame, low, high, unroll, carried, body)

    def _steps(self, dim: int, low: Scalar, high: Scalar) -> Scalar | None:
        """The number of steps of the loop over `dim` from `low` to `high`; None where it varies within a launch."""
        is_known = isinstance(high, int) or high in self.frame.divisors
        return high if isinstance(low, int) and low == 0 and is_known else None

    def _fetch(self, panel: NextPanel, tile: Tile, position: Position, at: Scalar, steps: Scalar) -> None:
        """A little of the next panel, at step `at` of the innermost loop's `steps`."""
        loops = [(position[d].base, extent) for d, extent in self.reductions if d in position]
        panel.fetch(tile.row, len({r for r, _ in tile.points}), [*loops, (at, steps)])

    # -- coordinates ------------------------------------------------------------------------------------------------

    def _iteration(self, point: Sequence[Idx], position: Position) -> list[Idx]:
        """Iteration coordinates of the output element `point` at a `position` of the reduction."""
        dims = [position.get(d, Idx(0)) for d in range(self.rank)]
        for axis, dim in enumerate(self.order):
            dims[dim] = point[axis]
        return dims

    # -- multiply-add -----------------------------------------------------------------------------------------------

    def _multiply_add(
        self, ev: Evaluator, tile: Tile, position: Position, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        loaded: dict[tuple[int, int, int], ir.Value] = {}
        results = []
        for (name, point), accumulator in zip(tile.points.items(), carried, strict=True):
            column = tile.columns[name[1]]
            keys = [self._key(i, name, column.lanes) for i in range(2)]
            if self.fma and all(key in loaded for key in keys):  # most accumulators: no address is said again
                results.append(vector.FMAOp(loaded[keys[0]], loaded[keys[1]], accumulator).result)
                continue
            dims = self._iteration(point, position)
            scope = ev.child(column.lanes, column.mask)
            args = [self._operand(scope, tile, i, name, dims, loaded) for i in range(2)]
            if self.fma:
                results.append(vector.FMAOp(scope.splat(args[0]), scope.splat(args[1]), accumulator).result)
            else:
                results.append(scope.splat(inline_body(scope, self.root, [*args, accumulator], dims)[0]))
        return results

    def _key(self, i: int, name: tuple[int, int], lanes: int) -> tuple[int, int, int]:
        """What accumulators that share a load of input `i` have in common."""
        _, rows, columns = self.reads[i]
        return i, name[0] if rows else -1, name[1] if columns else -lanes

    def _operand(
        self,
        ev: Evaluator,
        tile: Tile,
        i: int,
        name: tuple[int, int],
        dims: list[Idx],
        loaded: dict[tuple[int, int, int], ir.Value],
    ) -> ir.Value:
        """Input `i`, loaded once for all accumulators that share it."""
        key = self._key(i, name, ev.lanes)
        if key not in loaded:
            coords = [ev.idx.affine(e, dims) for e in self.reads[i][0]]
            if i in self.padded:
                value = self._unpadded(ev, tile, self.padded[i], coords)
            else:
                value = ev.tensor(self.root.operands[i], coords)
            loaded[key] = ev.splat(value) if self.fma else value
        return loaded[key]

    def _epilogue_by_rows(self, tile: Tile, sums: dict[tuple[int, int], ir.Value], waiting: ir.Value) -> None:
        """The epilogue as a loop over the rows, for which the sums wait on the stack: where it is much code."""
        math, c, s = self.frame.math, self.frame.constants, self.s
        rows, columns = (sorted({name[i] for name in sums}) for i in range(2))

        def place(row: Scalar, column: int) -> ir.Value:
            return c.index(math.add(math.mul(row, s.panel), column * s.lanes))

        for (row, column), value in sums.items():
            vector.StoreOp(value, waiting, [place(row, column)])

        def one(row: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            points, loaded = {}, {}
            for column in columns:
                points[0, column] = list(tile.points[rows[0], column])
                points[0, column][s.row_last] = Idx(math.add(tile.row, row), level=2)
                type_ = sums[rows[0], column].type
                loaded[0, column] = vector.LoadOp(type_, waiting, [place(row, column)]).result
            self._epilogue(replace(tile, points=points), loaded)
            return []

        for_loop(self.frame, 0, len(rows), 1, [], one)

    def _epilogue(self, tile: Tile, sums: dict[tuple[int, int], ir.Value]) -> None:
        """Evaluate the returned values with the accumulators in place of the contraction, and store them."""
        result = self.root.results[0]
        # One for each column: what does not depend on the row is computed once.
        scopes = [Evaluator(self.frame, column.lanes, column.mask) for column in tile.columns]
        for name, point in tile.points.items():
            scope = scopes[name[1]]
            scope.overrides[result] = _constantly(sums[name])
            for value, destination in zip(self.source.results, self.source.destinations, strict=True):
                stored = scope.tensor(value, point)
                memory.store(self.frame, scope.idx, self.frame.buffers[destination], point, stored, scope.mask)


def _constantly(value: ir.Value) -> Override:
    """The override that is `value` at every point."""
    return lambda _: value
