"""`mlc.insert` in place: lines of the update are copied to where they go in the destination, which holds the input.

A work item is one line of the last dimension, `lanes` elements at a time. Lines that would lie outside of the
destination are left out, as the operation says (`docs/ir.md` §2).
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator, lane_mask
from mlc.kernels.common.frame import Frame, KernelSource, defining_op, for_loop, if_then
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items


@dataclass(frozen=True)
class InsertSchedule:
    lanes: int


def expand(source: KernelSource, schedule: InsertSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`, whose destination is its input (`mlc.inout`)."""
    op = defining_op(source.results[0])
    assert op is not None
    if op.operands[0] != source.destinations[0]:
        raise ValueError("an insertion must update its destination (mlc.inout)")
    update = op.operands[1]

    def items(frame: Frame) -> list[Scalar]:
        return [frame.extent(update, i) for i in range(update.type.rank - 1)]

    return emit_items(source, items, lambda frame, line: _Line(frame, op, source.destinations[0], line).emit(schedule))


class _Line:
    """A line of the update, at the coordinates `line`."""

    def __init__(self, frame: Frame, op: ir.Operation, destination: ir.Value, line: list[Scalar]) -> None:
        self.frame, self.line = frame, line
        self.update, self.output = op.operands[1], frame.buffers[destination]
        self.axis = ir.IntegerAttr(op.attributes["axis"]).value
        start = Evaluator(frame, 1).tensor(op.operands[2], [Idx(line[0])])
        self.start = arith.index_cast(ir.IndexType.get(), start)

    def emit(self, schedule: InsertSchedule) -> None:
        if self.axis == len(self.line):  # every element has a place of its own
            self._elements()
            return
        at = self.frame.math.add(self.start, self.line[self.axis])
        if_then(self._is_inside(at), lambda: self._copy(at, schedule.lanes))

    def _length(self) -> Scalar:
        return self.frame.extent(self.update, self.update.type.rank - 1)

    def _is_inside(self, at: Scalar) -> ir.Value:
        c = self.frame.constants
        return arith.cmpi(arith.CmpIPredicate.ult, c.index(at), c.index(self.output.shape[self.axis]))

    def _copy(self, at: Scalar, lanes: int) -> None:
        """The line, to coordinate `at` of the axis."""
        math, c, length = self.frame.math, self.frame.constants, self._length()
        whole = math.mul(math.div(length, lanes), lanes)

        def vectors(first: Scalar, mask: ir.Value | None) -> None:
            ev, element = Evaluator(self.frame, lanes, mask), Idx(first, 1, level=2)
            value = ev.tensor(self.update, [*map(Idx, self.line), element])
            target = [Idx(at if i == self.axis else x) for i, x in enumerate(self.line)]
            memory.store(self.frame, ev.idx, self.output, [*target, element], value, mask)

        def several(first: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            vectors(first, None)
            return []

        for_loop(self.frame, 0, whole, lanes, [], several)
        rest = math.sub(length, whole)
        if isinstance(rest, int) and not rest:
            return
        some = arith.cmpi(arith.CmpIPredicate.sgt, c.index(rest), c.index(0))
        if_then(some, lambda: vectors(whole, lane_mask(self.frame, lanes, c.index(rest))))

    def _elements(self) -> None:
        """The elements of a line along the axis, those inside."""

        def element(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            at = self.frame.math.add(self.start, variable)

            def store() -> None:
                ev = Evaluator(self.frame, 1)
                value = ev.tensor(self.update, [*map(Idx, self.line), Idx(variable)])
                memory.store(self.frame, ev.idx, self.output, [*map(Idx, self.line), Idx(at)], value, None)

            if_then(self._is_inside(at), store)
            return []

        for_loop(self.frame, 0, self._length(), 1, [], element)
