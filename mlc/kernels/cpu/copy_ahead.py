"""Register-tiled matrix products whose right side is known at run time only, and copied while others are multiplied.

The tiles, loops and epilogues of `deep_contraction`. As in `panel_copy` a panel of the operand that holds the vector
dimension, `[steps][panel]`, lies on the stack while it is multiplied. A copy by itself waits for each line of the
matrix, and for the line of the stack that it replaces; behind multiply-adds it costs its two instructions. So there
are two places: while tiles read one, each copies a little of the panel that comes next, or of the panel's next block
of steps, to the other one. Lines are fetched some steps before they are copied, as a load that waits for memory would
hold up the multiply-adds behind it. Only the first copy of a call is by itself. (Goto and van de Geijn, "Anatomy of
High-Performance Matrix Multiplication", 2008, section 4: packing of B.)

Schedule parameters: those of `contraction`; `vector_operand`: the input with the vector dimension, which nothing is
fused into; `depth`: steps of the reduction in a block, the last of which may be shorter; all of them, or few enough
that two blocks fit on the stack. `ahead` is not 0. The reduction has one dimension, of known extent, and so have rows
and columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from mlir import ir
from mlir.dialects import arith, memref, vector

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator, lane_mask
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.cpu.contraction import Contraction
from mlc.kernels.cpu.contraction_grid import grid_point, outer_dims, tile_grid
from mlc.kernels.cpu.deep_contraction import DeepContraction, DeepContractionSchedule
from mlc.kernels.cpu.next_panel import number_of
from mlc.kernels.cpu.once import Once
from mlc.kernels.cpu.register_tile import Column, Loops, Position, Tile

PLACES = 2
GROUP = 8  # steps of the reduction between two copies, as LLVM moves loads across a store among the multiply-adds
DISTANCE = 8  # lines before its turn that a line is fetched
_ALIGNMENT = 64  # bytes: lines of the cache


@dataclass(frozen=True)
class CopyAheadSchedule(DeepContractionSchedule):
    """Parameters of the template; see the module's description."""

    vector_operand: int = field(kw_only=True)


def expand(source: KernelSource, schedule: CopyAheadSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [_CopyAhead(source, schedule).emit(), tile_grid(source, schedule)]


@dataclass(frozen=True)
class _Block:
    """The block from step `low` on of a panel, and the place on the stack that it has."""

    point: list[Idx]
    panel: Scalar
    low: Scalar
    place: Scalar


class _CopyAhead(DeepContraction):
    s: CopyAheadSchedule
    whole_blocks = False

    def __init__(self, source: KernelSource, schedule: CopyAheadSchedule) -> None:
        super().__init__(source, schedule)
        self.size = schedule.depth * schedule.panel
        self.blocks = -(-self.extent // schedule.depth)
        last = self.extent - (self.blocks - 1) * schedule.depth
        self.groups = last // GROUP  # of the shortest block
        if not self.groups:
            raise ValueError(f"kernel {self.frame.name}: {last} steps are too few to copy a panel meanwhile")
        # Do all work items of a panel copy the next one together, or does each copy it anew?
        self.is_shared = self.blocks == 1 and not schedule.part
        self.first: Scalar = 0  # number of the work item's first row among those that copy a block together,
        self.copying_rows = 0  # and of how many
        self.before: Scalar = 0  # work items with rows in front of these
        self.copied = Once(self.frame, PLACES)
        self.count: Scalar = 0  # of blocks in front of the work item's first one
        self.origin: Scalar = 0  # where step 0 would be
        self.copying: Callable[[Scalar], None] | None = None
        self.copies = self.frame.on_stack(self.element, PLACES * self.size)

    # -- what is copied ---------------------------------------------------------------------------------------------

    def _look_ahead(self, point: list[Idx], panel: Scalar, panels: Scalar, rows: tuple[Scalar, Scalar]) -> None:
        """The panel that comes next is that of the next work item that has another one, if this call has one."""
        frame, math, s = self.frame, self.frame.math, self.s
        items = math.product(self.items[self.products + 1 :]) if self.is_shared else 1
        number = math.div(self.item, items)
        self.count, self.panel = math.mul(number, self.blocks), panel
        self.before, self.first = math.rem(self.item, items), rows[0]
        there, end = math.mul(math.add(number, 1), items), frame.end
        self.has_next = arith.cmpi(arith.CmpIPredicate.slt, frame.constants.index(there), end)
        there = arith.select(self.has_next, frame.constants.index(there), frame.constants.index(self.item))
        *outer, _ = grid_point(math, there, self.items, self.products, s)
        following, then = outer.pop(self.products), list(point)
        for dim, coord in zip(outer_dims(len(self.shape), s), outer, strict=True):
            then[dim] = Idx(coord, level=1)
        self.then = then, following

    def _rows(self, point: list[Idx], columns: list[Column], block: Scalar) -> None:
        math, extent, most = self.frame.math, self.row_extent, self.s.row_block
        assert isinstance(extent, int)
        self.point, self.copying_rows = point, extent
        if not self.is_shared:
            self.first = math.sub(0, math.mul(block, most))
            self.copying_rows = extent if extent <= most else extent % most or most
        if self.blocks > 1:
            super()._rows(point, columns, block)
            return
        self._enter()
        Contraction._rows(self, point, columns, block)

    def _enter(self) -> None:
        """The block from step `low` on is there from here on; its tiles copy the one behind it."""
        math = self.frame.math
        at = math.add(self.count, math.div(self.low, self.s.depth))
        now = _Block(self.point, self.panel, self.low, math.rem(at, PLACES))
        then, is_there = self._behind(now)
        size = self.frame.constants.index(self.size * self.element.width // 8)
        self.bytes_behind = arith.select(is_there, size, self.frame.constants.index(0))
        self.copied.make(self._number(now), lambda: self._copy(now), now.place)
        self.copied.expect(self._number(then), self.before, then.place)
        self.origin = math.sub(math.mul(now.place, self.size), math.mul(self.low, self.s.panel))
        self.copying = partial(self._copy_piece, then)

    def _behind(self, block: _Block) -> tuple[_Block, ir.Value]:
        """The next block of a panel, or the first one of the next panel, and whether this call has it."""
        math, c = self.frame.math, self.frame.constants
        (point, panel), place = self.then, math.sub(1, block.place)
        if self.blocks == 1:
            return _Block(point, panel, 0, place), self.has_next
        low = math.add(block.low, self.s.depth)
        inside = arith.cmpi(arith.CmpIPredicate.slt, c.index(low), c.index(self.extent))

        def either(here: Scalar, there: Scalar) -> Scalar:
            return arith.select(inside, c.index(here), c.index(there))

        points = [Idx(either(here.base, there.base), level=1) for here, there in zip(block.point, point, strict=True)]
        return _Block(points, either(block.panel, panel), either(low, 0), place), arith.ori(inside, self.has_next)

    def _number(self, block: _Block) -> Scalar:
        """That of the block's first element in the matrix."""
        operand, math = self.root.operands[self.s.vector_operand], self.frame.math
        coords = self._coords(Evaluator(self.frame, 1), block, self._column(block.panel, 0), 0)
        return number_of(math, [(at.base, self.frame.extent(operand, i)) for i, at in enumerate(coords)])

    def _coords(self, ev: Evaluator, block: _Block, column: Idx, step: Scalar) -> list[Idx]:
        """Where in the matrix `column` of step `step` of the block is."""
        math, at = self.frame.math, _in_column(block.point, self.s.vector_dim, column)
        number = math.add(block.low, step)
        if self.extent % self.s.depth:
            number = math.minimum(number, self.extent - 1)
        dims = self._iteration(at, {self.dim: Idx(number, level=4)})
        return [ev.idx.affine(e, dims) for e in operand_map(self.root, self.s.vector_operand).results]

    def _copy(self, block: _Block) -> None:
        """All of a block, by itself."""
        vectors = self.s.vectors

        def line(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            for number in range(vectors):
                self._copy_piece(block, self.frame.math.add(self.frame.math.mul(variable, vectors), number))
            return []

        for_loop(self.frame, 0, self.s.depth, 1, [], line)

    def _copy_piece(self, block: _Block, number: Scalar) -> None:
        """Vector `number` of a block; one some lines behind it is fetched."""
        frame, math, s = self.frame, self.frame.math, self.s
        operand, extent = self.root.operands[s.vector_operand], self.shape[s.vector_dim]
        step, part = math.div(number, s.vectors), math.mul(math.rem(number, s.vectors), s.lanes)
        column, mask = math.add(math.mul(block.panel, s.panel), part), None
        if not isinstance(extent, int) or extent % s.panel:
            mask = lane_mask(frame, s.lanes, frame.constants.index(math.sub(extent, column)))
        ev, one = Evaluator(frame, s.lanes, mask), Evaluator(frame, 1)
        value = ev.splat(ev.tensor(operand, self._coords(ev, block, Idx(column, 1, level=4), step)))
        at = frame.constants.index(math.add(math.mul(block.place, self.size), math.mul(number, s.lanes)))
        vector.StoreOp(value, self.copies, [at], alignment=_ALIGNMENT)
        for lane in (0, s.lanes - 1):  # wherever in a line of the cache the vector begins
            ahead = self._coords(one, block, Idx(math.add(column, lane), level=4), math.add(step, DISTANCE))
            place = frame.constants.index(memory.address(frame.buffers[operand], ahead, one.idx).base)
            memref.PrefetchOp(frame.buffers[operand].memory, [place], False, 3, True)

    # -- one register tile ------------------------------------------------------------------------------------------

    def _tile(self, ev: Evaluator, tile: Tile) -> None:
        if self.blocks > 1:
            super()._tile(ev, tile)
        else:
            Contraction._tile(self, ev, tile)

    def _reduce(
        self, ev: Evaluator, tile: Tile, loops: Loops, position: Position, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Groups of steps, a copy in front of each."""
        if not loops or loops[0][0] != self.dim:
            return super()._reduce(ev, tile, loops, position, carried)
        math, level, multiply = self.frame.math, 3 + len(position), super()._reduce

        def steps(low: Scalar, high: Scalar, unroll: int, carried: Sequence[ir.Value]) -> list[ir.Value]:
            def body(variable: ir.Value, inner: list[ir.Value]) -> list[ir.Value]:
                if unroll > 1:
                    self._copy_share(tile, math.div(math.sub(variable, self.low), GROUP))
                for u in range(unroll):
                    at = Idx(math.step(variable, u), level=level)
                    inner = multiply(ev.child(), tile, loops[1:], {**position, self.dim: at}, inner)
                return inner

            return for_loop(self.frame, low, high, unroll, carried, body)

        low, high = self._taps(tile, self.dim, self.extent)
        length: Scalar = self.s.depth if self.extent % self.s.depth == 0 else math.sub(high, low)
        whole = math.add(low, math.mul(math.div(length, GROUP), GROUP))
        return steps(whole, high, 1, steps(low, whole, GROUP, carried))

    def _copy_share(self, tile: Tile, group: Scalar) -> None:
        """What a tile copies in front of a group of its steps. In a block of the code of its own."""
        assert self.copying is not None
        math, c, copy = self.frame.math, self.frame.constants, self.copying
        width = self.element.width // 8
        size, piece = self.size * width, self.s.lanes * width
        share, height = -(-size // (self.copying_rows * self.groups)), len({row for row, _ in tile.points})
        before = math.mul(math.add(self.first, tile.row), share * self.groups)
        first = math.add(before, math.mul(group, share * height))

        def pieces() -> None:
            for at in range(0, share * height, piece):
                copy(math.div(math.minimum(math.add(first, at), size - piece), piece))

        if_then(arith.cmpi(arith.CmpIPredicate.ult, c.index(first), self.bytes_behind), pieces)

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
        key, math = self._key(i, name, ev.lanes), self.frame.math
        if key not in loaded:
            type_ = ir.VectorType.get([ev.lanes], self.element)
            at = math.add(math.mul(dims[self.dim].base, self.s.panel), name[1] * self.s.lanes)
            place = [self.frame.constants.index(math.add(self.origin, at))]
            loaded[key] = vector.LoadOp(type_, self.copies, place, alignment=_ALIGNMENT).result
        return loaded[key]


def _in_column(point: Sequence[Idx], axis: int, column: Idx) -> list[Idx]:
    """`point` in another column."""
    return [column if dim == axis else at for dim, at in enumerate(point)]
