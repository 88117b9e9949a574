"""What contractions share that multiply elements of more bits than their operands are stored with.

Of the operand that is read along the reduction every element is wanted in all lanes. A tile's rows are written to a
buffer of the stack with all their bits, `piece` elements of the reduction at a time, so that a broadcast is a load and
nothing else. Whatever is computed in front of the product (highest bits that are turned over, a padding) is computed
there, for a vector of elements at a time. The multiplication takes `group` adjacent elements a step; behind a number of
them that is no multiple there are zeros.

A tile may have more vectors than there are registers for sums: `side` of them are multiplied at a time, and what the
widened rows cost is spread over all.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlir import ir
from mlir.dialects import memref, vector

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import KernelSource, for_loop
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.cpu.contraction import Contraction
from mlc.kernels.cpu.contraction_grid import ContractionSchedule
from mlc.kernels.cpu.register_tile import Loops, Position, Tile


@dataclass(frozen=True)
class Part:
    """`groups` of the reduction from number `first` on, for a side of a tile that has taken `before` of its `steps`."""

    first: Scalar
    groups: int
    before: Scalar
    steps: int


class WidenedRows(Contraction):
    """The loops of a template, which says what elements become and adds the products of a group. Its constructor calls
    `_prepare`."""

    group = 2

    def __init__(self, source: KernelSource, schedule: ContractionSchedule, vector_operand: int) -> None:
        super().__init__(source, schedule)
        self.data, extent = 1 - vector_operand, self.reductions[-1][1]
        if not isinstance(extent, int):
            raise ValueError(f"kernel {self.frame.name}: sums of widened rows have a known extent")
        self.depth = extent

    def _prepare(self, wide: ir.Type, piece: int, side: int) -> None:
        """Rows become elements of type `wide`."""
        self.wide, self.piece, self.side = wide, piece, side
        self.stride = min(piece, -(-self.depth // self.group) * self.group)  # elements of a row
        self.widened = self.frame.on_stack(wide, self.tallest * self.stride)

    @abstractmethod
    def _wider(self, value: ir.Value, type_: ir.Type) -> ir.Value:
        """Elements of a row, as they are stored, as `type_`: one of them or a vector."""

    @abstractmethod
    def _add_group(
        self, ev: Evaluator, tile: Tile, position: Position, at: Scalar, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The sums with the products of the group that begins with element `at` of the widened rows."""

    def _reduce(
        self, ev: Evaluator, tile: Tile, loops: Loops, position: Position, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The innermost dimension goes by pieces, whose rows are widened first."""
        if len(loops) != 1:
            return super()._reduce(ev, tile, loops, position, carried)
        whole, rest = divmod(self.depth, self.piece)

        def piece(start: Scalar, count: int, sums: Sequence[ir.Value]) -> list[ir.Value]:
            self._widen(ev, tile, position, start, count)
            found = dict(zip(tile.points, sums, strict=True))
            for number, side in enumerate(self._sides(tile)):
                part = self._part(start, count, number)
                added = self._multiply(ev, side, position, part, [found[name] for name in side.points])
                found.update(zip(side.points, added, strict=True))
            return list(found.values())

        sums = list(carried)
        if whole:
            upto = whole * self.piece
            sums = for_loop(self.frame, 0, upto, self.piece, sums, lambda start, old: piece(start, self.piece, old))
        return piece(whole * self.piece, rest, sums) if rest else sums

    def _part(self, start: Scalar, count: int, side: int) -> Part:
        """The products of `count` elements from `start` on with a side of a tile."""
        sides, math = -(-self.s.vectors // self.side), self.frame.math
        first, groups = math.div(start, self.group), -(-count // self.group)
        before = math.add(math.mul(first, sides), side * groups)
        return Part(first, groups, before, -(-self.depth // self.group) * sides)

    def _sides(self, tile: Tile) -> list[Tile]:
        """The accumulators of a tile that are multiplied at a time."""
        numbers = sorted({column for _, column in tile.points})
        parts = [numbers[i : i + self.side] for i in range(0, len(numbers), self.side)]
        return [replace(tile, points={k: v for k, v in tile.points.items() if k[1] in part}) for part in parts]

    def _at(self, position: Position, k: Idx) -> dict[int, Idx]:
        return {**position, self.reductions[-1][0]: k}

    # -- rows -------------------------------------------------------------------------------------------------------

    def _widen(self, ev: Evaluator, tile: Tile, position: Position, start: Scalar, count: int) -> None:
        """`count` elements of every row of a tile with all their bits, and zeros up to a whole group."""
        points = {row: point for (row, _), point in tile.points.items()}
        lanes_of_step, math = self.s.lanes * 32 // self.wide.width, self.frame.math

        def write(at: Scalar, lanes: int) -> None:
            for row, point in points.items():
                scope = ev.child(lanes)
                k = Idx(math.add(start, at), 1 if lanes > 1 else 0, level=4 + len(position))
                value = self._elements(scope, tile, point, self._at(position, k))
                self._store(value, self._place(row, at), lanes)

        def body(at: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            write(at, lanes_of_step)
            return []

        upto = count // lanes_of_step * lanes_of_step
        if upto:
            for_loop(self.frame, 0, upto, lanes_of_step, [], body)
        for bit in reversed(range(lanes_of_step.bit_length() - 1)):
            if count & 1 << bit:
                write(upto, 1 << bit)
                upto += 1 << bit
        for at in range(count, -(-count // self.group) * self.group):
            for row in points:
                zero = self.frame.constants.get(self.wide, 0.0 if isinstance(self.wide, ir.FloatType) else 0)
                memref.store(zero, self.widened, [self._place(row, at)])

    def _elements(self, ev: Evaluator, tile: Tile, point: Sequence[Idx], position: Position) -> ir.Value:
        """Elements of a row, as they are stored."""
        coords = [ev.idx.affine(e, self._iteration(point, position)) for e in self.reads[self.data][0]]
        if self.data in self.padded:
            return self._unpadded(ev, tile, self.padded[self.data], coords)
        return ev.tensor(self.root.operands[self.data], coords)

    def _store(self, value: ir.Value, place: ir.Value, lanes: int) -> None:
        if lanes == 1:
            memref.store(self._wider(value, self.wide), self.widened, [place])
            return
        wider = self._wider(memory.splat(value, lanes), ir.VectorType.get([lanes], self.wide))
        vector.StoreOp(wider, self.widened, [place])

    def _place(self, row: int, at: Scalar) -> ir.Value:
        return self.frame.constants.index(self.frame.math.add(at, row * self.stride))

    # -- products ---------------------------------------------------------------------------------------------------

    def _multiply(
        self,
        ev: Evaluator,
        tile: Tile,
        position: Position,
        part: Part,
        carried: Sequence[ir.Value],
    ) -> list[ir.Value]:
        """The sums with the products of a part."""
        math, unroll, level = self.frame.math, self.s.unroll, 3 + len(position)

        def step(number: Scalar, sums: list[ir.Value]) -> list[ir.Value]:
            behind = math.add(part.first, number)
            k = Idx(math.mul(behind, self.group), tile=(behind, self.group, 0), level=level)
            return self._add_group(ev.child(), tile, self._at(position, k), math.mul(number, self.group), sums)

        def body(number: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            if self.next is not None:
                at = math.div(math.add(part.before, number), unroll)
                self._fetch(self.next, tile, position, at, part.steps // unroll)
            for u in range(unroll):
                sums = step(math.step(number, u), sums)
            return sums

        sums, upto = list(carried), part.groups // unroll * unroll
        if upto:
            sums = for_loop(self.frame, 0, upto, unroll, sums, body)
        for number in range(upto, part.groups):
            sums = step(number, sums)
        return sums
