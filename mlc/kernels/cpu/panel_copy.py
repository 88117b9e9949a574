"""Register-tiled matrix products whose right side is known at run time only.

The tiles, loops and epilogues of `contraction`. A weight is stored as panels; here a work item first copies its
panel of the operand that holds the vector dimension, `[K][panel]`, to its stack: lines that were a whole row of the
matrix apart (and, in matrices whose rows are a power of two long, fall into few sets of the cache) become adjacent.
A matrix that is stored by columns is transposed on the way, a square of vectors at a time, in registers. What is fused
into that operand is computed once per item. (Goto and van de Geijn, "Anatomy of High-Performance Matrix
Multiplication", 2008, section 4: packing of B.)

Schedule parameters: those of `contraction`; `vector_operand`: the input with the vector dimension. The reduction has
one dimension of known extent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, vector

from mlc.kernels.common.analysis import mentions
from mlc.kernels.common.evaluate import Evaluator, lane_mask
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.cpu.contraction import Contraction, ContractionSchedule, tile_grid
from mlc.kernels.cpu.register_tile import Column, Tile
from mlc.kernels.cpu.transpose import transposed

MOST_STEPS = 1536  # lines of a panel, of vectors of 16 elements: few enough for the stack
_ALIGNMENT = 64  # bytes: lines of the cache


def most_steps(lanes: int) -> int:
    """Lines of a panel that the stack has room for, with vectors of `lanes` elements."""
    return MOST_STEPS * max(1, 16 // lanes)


@dataclass(frozen=True)
class PanelCopySchedule(ContractionSchedule):
    """Parameters of the template; see the module's description."""

    vector_operand: int


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
        type_ = ir.MemRefType.get([self.extent * schedule.panel], self.element)
        constants = self.frame.constants
        with self.frame.prologue():
            self.panel = memref.AllocaOp(type_, [], [], alignment=_ALIGNMENT).result
            number = ir.MemRefType.get([1], ir.IndexType.get())
            self.copied = memref.AllocaOp(number, [], []).result  # the panel that is there
            memref.store(constants.index(-1), self.copied, [constants.index(0)])

    def _rows(self, point: list[Idx], columns: list[Column], block: Scalar) -> None:
        """Blocks of rows follow each other, so that one copy does for those of a panel: what is there is known by the
        panel and its first column, as a panel at an end that only the run knows is copied vector by vector."""
        constants, across = self.frame.constants, operand_map(self.root, self.s.vector_operand).results[-1]
        math, (item, blocks) = self.frame.math, self.item
        number = math.mul(math.div(item, blocks), self.shape[self.s.vector_dim])
        here = constants.index(math.add(number, columns[0].at.base))
        there = memref.load(self.copied, [constants.index(0)])

        def copy() -> None:
            if mentions(across, self.dim):
                self._copy_across(point, columns)
            else:
                self._copy(point, columns)
            memref.store(here, self.copied, [constants.index(0)])

        if_then(arith.cmpi(arith.CmpIPredicate.ne, here, there), copy)
        super()._rows(point, columns, block)

    def _copy(self, point: list[Idx], columns: list[Column]) -> None:
        """The panel of `columns`, a line for every step of the reduction; masked lanes hold anything."""
        operand = self.s.vector_operand

        def line(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            for j, column in enumerate(columns):
                at = list(point)
                at[self.s.vector_dim] = column.at
                dims = self._iteration(at, {self.dim: Idx(variable, level=2)})
                ev = Evaluator(self.frame, column.lanes, column.mask)
                coords = [ev.idx.affine(e, dims) for e in operand_map(self.root, operand).results]
                value = ev.splat(ev.tensor(self.root.operands[operand], coords))
                vector.StoreOp(value, self.panel, [self._place(variable, j)], alignment=_ALIGNMENT)
            return []

        for_loop(self.frame, 0, self.extent, 1, [], line)

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

    def _place(self, step: Scalar, vector_number: int) -> ir.Value:
        """Where vector `vector_number` of a line is."""
        math = self.frame.math
        return self.frame.constants.index(math.add(math.mul(step, self.s.panel), vector_number * self.s.lanes))

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
            place = [self._place(dims[self.dim].base, name[1])]
            loaded[key] = vector.LoadOp(type_, self.panel, place, alignment=_ALIGNMENT).result
        return loaded[key]
