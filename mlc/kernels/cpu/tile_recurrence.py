"""`mlc.recurrence` with weights of bf16 on matrix tiles (AMX): a work item has up to 16 rows, those of a tile.

In a step every gate of a panel of 16 hidden elements is a tile of sums, so that what a tile of the states is loaded for
are all gates. The sums go through the stack to the cell, which is on vectors, row by row: what the input gave comes to
them there. Everything else is `recurrent_rows`. A work item with fewer rows than others multiplies what is on the stack
in the place of the rows that it lacks, and looks at no such sum.

The weights are `[directions, panels, steps, gates, 16, 16, 2]` (`mlc-pack-weights`): of 32 elements along the state,
pairs of all hidden elements of a panel, with zeros behind the last ones.

Schedule parameters: `lanes` of a vector; `rows` of a work item, up to 16; `panel`, 16; `group`, 32 elements of a step.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common import memory
from mlc.kernels.common.frame import Frame, KernelSource, defining_op, for_loop
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.common.recurrent_cell import Layer, layer_of
from mlc.kernels.cpu.recurrent_rows import BATCH, RecurrenceSchedule, RecurrentRows, Step, items
from mlc.kernels.cpu.tiles import LINE, ROWS, Tiles

INSTRUCTION = "tdpbf16ps"
TILE = ROWS * LINE  # bytes of one


def expand(source: KernelSource, schedule: RecurrenceSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    op = defining_op(source.results[0])
    assert op is not None
    layer, s = layer_of(op), schedule
    if ROWS % s.lanes or s.panel != ROWS or s.rows > ROWS or layer.recurrence.type.rank != 7:
        raise ValueError(f"kernel {source.func.name.value}: recurrent weights must be tiles of {ROWS} elements")

    def body(frame: Frame, coords: list[Scalar]) -> None:
        math = frame.math
        first = math.mul(coords[1], s.rows)
        rows = math.minimum(math.sub(frame.extent(layer.inputs, BATCH), first), s.rows)
        _Rows(frame, layer, s, coords[0]).steps(first, rows)

    return emit_items(source, items(layer, s.rows), body)


class _Rows(RecurrentRows):
    """The rows of a work item, whose sums are in tiles."""

    def __init__(self, frame: Frame, layer: Layer, schedule: RecurrenceSchedule, direction: Scalar) -> None:
        super().__init__(frame, layer, schedule, direction)
        self.tiles = Tiles(frame)
        self.sums = self.kept(layer.gates * ROWS * ROWS, self.element)

    def begins(self, rows: Scalar, parity: Scalar, row: Scalar) -> Scalar:
        """All rows of a tile have their place, whether there are so many or not."""
        return super().begins(self.s.rows, parity, row)

    def panel(self, step: Step, number: Scalar) -> None:
        first = self.math.mul(number, ROWS)
        self._multiply(step, number)

        def row(at: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            for inside in range(0, ROWS, self.s.lanes):
                unit = self.math.add(first, inside)
                mask = self.mask(unit)
                self.finish(step, at, unit, mask, self._sums(step, at, unit, inside, mask))
            return []

        for_loop(self.frame, 0, step.rows, 1, [], row)

    def _sums(self, step: Step, row: Scalar, unit: Scalar, inside: int, mask: ir.Value | None) -> list[ir.Value]:
        """The sums of a row's gates, from element `inside` of the panel on."""
        found = []
        for gate in range(self.layer.gates):
            place = self.math.add(self.math.mul(row, ROWS), gate * ROWS * ROWS + inside)
            found.append(arith.addf(self.start(step, row, gate, unit, mask), self.take(self.sums, place)))
        return found

    def _multiply(self, step: Step, panel: Scalar) -> None:
        """The products of all gates of a panel to the stack."""
        assert self.rounded is not None
        math, rows, gates, tiles = self.math, self.s.rows, self.layer.gates, self.tiles
        weights, each = self.frame.buffers[self.layer.recurrence], self.narrow.width // 8
        count = self.depth * each // LINE
        place = memory.address(weights, [Idx(self.direction), Idx(panel), *[Idx(0)] * 5], self.idx)
        first, states = math.mul(place.base, each), math.mul(self.begins(step.rows, step.parity, 0), each)
        rounded = self.rounded.memory

        def multiply(number: Scalar, sums: list[ir.Value]) -> list[ir.Value]:
            left = tiles.load(rows, tiles.place(rounded, math.add(states, math.mul(number, LINE)), self.depth * each))
            begun, found = math.add(first, math.mul(number, gates * TILE)), []
            for gate, total in enumerate(sums):
                right = tiles.load(ROWS, tiles.place(weights.memory, math.add(begun, gate * TILE), LINE))
                found.append(tiles.multiply(INSTRUCTION, rows, total, left, right))
            return found

        sums = [tiles.zero(rows) for _ in range(gates)]
        for number in range(count):
            sums = multiply(number, sums)
        for gate, total in enumerate(sums):
            tiles.store(rows, tiles.place(self.sums.memory, gate * TILE, LINE), total)
