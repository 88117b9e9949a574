"""What the templates of recurrent layers share: the rows of a work item from step to step, and their states.

A work item is one direction of a few rows (sequences), from the first step to the last, so that none waits for another.
States are on the stack, the one that is being made beside the one that is read. Where the recurrent weights are
narrower, so is a second copy of the output's state, in rows of whole lines: that is what they multiply.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common import memory, vector_math
from mlc.kernels.common.evaluate import lane_mask
from mlc.kernels.common.frame import Buffer, Frame, for_loop
from mlc.kernels.common.index import Idx, IdxMath, Scalar
from mlc.kernels.common.recurrent_cell import Cell, Layer, time_of
from mlc.kernels.cpu.tiles import LINE

BATCH = 1  # the dimension of the inputs that rows are
Visit: TypeAlias = "Callable[[Scalar, list[Idx], ir.Value | None], None]"
"""What is done with a vector of states: where it is on the stack, where in a tensor, and which lanes there are."""
_I = arith.CmpIPredicate


@dataclass(frozen=True)
class RecurrenceSchedule:
    """Parameters of the templates; see their modules' descriptions."""

    lanes: int
    rows: int
    panel: int
    group: int = 1


def items(layer: Layer, rows: int) -> Callable[[Frame], list[Scalar]]:
    """The grid: directions, and so many rows of each."""
    return lambda frame: [layer.directions, frame.math.ceildiv(frame.extent(layer.inputs, BATCH), rows)]


@dataclass(frozen=True)
class Step:
    """A step of `rows` rows from `first` on, at `time` of the sequence; `parity`, that of its number, says where on the
    stack the states are that it reads, and `next`, computed once for all rows, where those go that it makes."""

    first: Scalar
    rows: Scalar
    time: Scalar
    parity: Scalar
    next: Scalar


class RecurrentRows(ABC):
    """The rows of a work item, in one direction."""

    def __init__(self, frame: Frame, layer: Layer, schedule: RecurrenceSchedule, direction: Scalar) -> None:
        self.frame, self.layer, self.s, self.direction = frame, layer, schedule, direction
        self.math, self.idx = frame.math, IdxMath(frame.math, schedule.lanes)
        self.element = layer.inputs.type.element_type
        self.narrow = layer.recurrence.type.element_type
        self.panels = -(-layer.hidden // schedule.panel)
        self.width = self.panels * schedule.panel  # of a row of states
        self.depth = -(-layer.hidden * self.narrow.width // (8 * LINE)) * (8 * LINE // self.narrow.width)
        by_result = dict(zip(frame.source.results, frame.source.destinations, strict=True))
        self.y, self.last_h, self.last_c = (frame.buffers[by_result[r]] for r in layer.op.results)
        size = schedule.rows * self.width
        self.h = self.kept(2 * size, self.element)
        self.c = self.kept(size, self.element) if layer.has_cell else None
        is_rounded = self.narrow != self.element
        self.rounded = self.kept(2 * schedule.rows * self.depth, self.narrow) if is_rounded else None
        self.zero = self.splat(0.0)
        self.cell = Cell(layer.kind, self._sigmoid, self._tanh, self.splat)

    def kept(self, size: int, element: ir.Type) -> Buffer:
        """So many elements on the stack."""
        return Buffer(self.frame.on_stack(element, size), element, [size], [1])

    def splat(self, number: float) -> ir.Value:
        """A vector of equal numbers."""
        return memory.splat(self.frame.constants.get(self.element, number), self.s.lanes)

    def _sigmoid(self, x: ir.Value) -> ir.Value:
        return self.frame.call("sigmoid", vector_math.sigmoid, x)

    def _tanh(self, x: ir.Value) -> ir.Value:
        return self.frame.call("tanh", vector_math.tanh, x)

    # -- from the first step to the last ---------------------------------------------------------------------------

    @abstractmethod
    def panel(self, step: Step, number: Scalar) -> None:
        """A panel of hidden elements in a step, of all rows."""

    def steps(self, first: Scalar, rows: Scalar) -> None:
        """All steps of `rows` rows from `first` on, and their states before and behind them."""
        count, math = self.frame.extent(self.layer.inputs, 0), self.math
        self._begin(first, rows)

        def step(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            parity = math.rem(number, 2)
            time = time_of(self.frame, self.layer, self.direction, number, count)
            this = Step(first, rows, time, parity, math.sub(1, parity))

            def panel(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                self.panel(this, number)
                return []

            for_loop(self.frame, 0, self.panels, 1, [], panel)
            return []

        for_loop(self.frame, 0, count, 1, [], step)
        self._end(first, rows, math.rem(count, 2))

    def _begin(self, first: Scalar, rows: Scalar) -> None:
        """The first states. What no step writes must be a number all the same where weights of zero multiply it."""
        if self.rounded is not None:
            lanes = LINE * 8 // self.narrow.width
            zeros = memory.splat(self.frame.constants.get(self.narrow, 0.0), lanes)
            idx, rounded = IdxMath(self.math, lanes), self.rounded

            def clear(at: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                memory.store(self.frame, idx, rounded, [Idx(at, 1)], zeros, None)
                return []

            for_loop(self.frame, 0, rounded.shape[0], lanes, [], clear)

        def start(initial: ir.Value | None, put: Callable[[Scalar, Scalar, ir.Value], None]) -> None:
            known = None if initial is None else self.frame.buffers[initial]

            def visit(row: Scalar, coords: list[Idx], mask: ir.Value | None) -> None:
                value = self.zero if known is None else memory.load(self.frame, self.idx, known, coords, mask)
                put(row, coords[-1].base, value)

            self._each(rows, first, visit)

        start(self.layer.initial_h, lambda row, unit, value: self.put_h(rows, 0, row, unit, value))
        if (c := self.c) is not None:
            start(self.layer.initial_c, lambda row, unit, value: self.put(c, self.state(row, unit), value))

    def _end(self, first: Scalar, rows: Scalar, parity: Scalar) -> None:
        """The last states: a layer without a cell has that of its output twice."""

        def store(row: Scalar, coords: list[Idx], mask: ir.Value | None) -> None:
            at = self.state(row, coords[-1].base)
            h = self.take(self.h, self.math.add(self._half(rows, parity), at))
            memory.store(self.frame, self.idx, self.last_h, coords, h, mask)
            c = h if self.c is None else self.take(self.c, at)
            memory.store(self.frame, self.idx, self.last_c, coords, c, mask)

        self._each(rows, first, store)

    def _each(self, rows: Scalar, first: Scalar, visit: Visit) -> None:
        """`visit(row, coords, mask)` every vector of the states of `rows` rows."""
        math = self.math

        def row(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            def vectors(place: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                unit = math.mul(place, self.s.lanes)
                visit(number, [Idx(self.direction), Idx(math.add(first, number)), Idx(unit, 1)], self.mask(unit))
                return []

            for_loop(self.frame, 0, self.width // self.s.lanes, 1, [], vectors)
            return []

        for_loop(self.frame, 0, rows, 1, [], row)

    # -- vectors ---------------------------------------------------------------------------------------------------

    def mask(self, unit: Scalar) -> ir.Value | None:
        """Which elements of a vector that begins with `unit` there are; None for all."""
        lanes, hidden = self.s.lanes, self.layer.hidden
        if hidden % self.s.panel == 0:
            return None
        left = self.math.maximum(self.math.minimum(self.math.sub(hidden, unit), lanes), 0)
        return lane_mask(self.frame, lanes, self.frame.constants.index(left))

    def state(self, row: Scalar, unit: Scalar) -> Scalar:
        """Where an element of a row's state is on the stack."""
        return self.math.add(self.math.mul(row, self.width), unit)

    def _half(self, rows: Scalar, parity: Scalar) -> Scalar:
        return self.math.mul(parity, self.math.mul(rows, self.width))

    def take_h(self, step: Step, row: Scalar, unit: Scalar) -> ir.Value:
        """A vector of the output's state that the step reads."""
        return self.take(self.h, self.math.add(self._half(step.rows, step.parity), self.state(row, unit)))

    def put_h(self, rows: Scalar, parity: Scalar, row: Scalar, unit: Scalar, value: ir.Value) -> None:
        """A vector of the output's state, and what the weights multiply of it."""
        math = self.math
        self.put(self.h, math.add(self._half(rows, parity), self.state(row, unit)), value)
        if self.rounded is not None:
            narrow = arith.truncf(ir.VectorType.get([self.s.lanes], self.narrow), value)
            self.put(self.rounded, math.add(self.begins(rows, parity, row), unit), narrow)

    def begins(self, rows: Scalar, parity: Scalar, row: Scalar) -> Scalar:
        """Where a row's rounded state begins on the stack."""
        return self.math.mul(self.math.add(self.math.mul(parity, rows), row), self.depth)

    def take(self, kept: Buffer, at: Scalar) -> ir.Value:
        return memory.load(self.frame, self.idx, kept, [Idx(at, 1)], None)

    def put(self, kept: Buffer, at: Scalar, value: ir.Value) -> None:
        memory.store(self.frame, self.idx, kept, [Idx(at, 1)], value, None)

    # -- a row's cell ----------------------------------------------------------------------------------------------

    def from_input(self, step: Step, row: Scalar, gate: int, unit: Scalar, mask: ir.Value | None) -> ir.Value:
        """What a gate gets from the layer's input."""
        math, layer = self.math, self.layer
        column = math.add(math.mul(self.direction, layer.gates * layer.hidden), math.add(unit, gate * layer.hidden))
        coords = [Idx(step.time), Idx(math.add(step.first, row)), Idx(column, 1)]
        return memory.load(self.frame, self.idx, self.frame.buffers[layer.inputs], coords, mask)

    def start(self, step: Step, row: Scalar, gate: int, unit: Scalar, mask: ir.Value | None) -> ir.Value:
        """What the sum of a gate begins with."""
        if self.layer.kind != "gru" or gate < 2:
            return self.from_input(step, row, gate, unit, mask)
        if self.layer.bias is None:
            return self.zero
        bias = self.frame.buffers[self.layer.bias]
        return memory.load(self.frame, self.idx, bias, [Idx(self.direction), Idx(unit, 1)], mask)

    def finish(self, step: Step, row: Scalar, unit: Scalar, mask: ir.Value | None, sums: Sequence[ir.Value]) -> None:
        """The cell of a row: its states, and what it puts out."""
        layer = self.layer
        h = self.take_h(step, row, unit)
        c = h if self.c is None else self.take(self.c, self.state(row, unit))
        from_input = self.from_input(step, row, 2, unit, mask) if layer.kind == "gru" else None
        new_h, new_c = self.cell.next_states(sums, h, c, from_input)
        y = new_h
        if layer.lengths is not None:
            is_active = self._is_active(layer.lengths, step, row)
            y = arith.select(is_active, new_h, self.zero)
            new_h, new_c = arith.select(is_active, new_h, h), arith.select(is_active, new_c, c)
        self.put_h(step.rows, step.next, row, unit, new_h)
        if self.c is not None:
            self.put(self.c, self.state(row, unit), new_c)
        coords = [Idx(step.time), Idx(self.math.add(step.first, row)), Idx(self.direction), Idx(unit, 1)]
        memory.store(self.frame, self.idx, self.y, coords, y, mask)

    def _is_active(self, lengths: ir.Value, step: Step, row: Scalar) -> ir.Value:
        """Is the row's sequence not over yet?"""
        place = [Idx(self.math.add(step.first, row))]
        length = memory.load(self.frame, self.idx, self.frame.buffers[lengths], place, None)
        time = self.frame.constants.index(step.time)
        return arith.cmpi(_I.sgt, arith.index_cast(ir.IndexType.get(), length), time)
