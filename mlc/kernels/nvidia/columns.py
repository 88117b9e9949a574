"""Columns: threads of a block share reductions across contiguous memory, such as a mean over the pixels of an image.

Neighbouring threads have neighbouring columns, so that every step of the reduction reads whole cache lines; `split`
threads of a block share a column, each takes every `split`-th step, `UNROLL` of them at a time, and their parts meet in
the warps and then in shared memory, always in the same order. Takes kernels whose results are one reduction with a
plain combiner, or to the position of an extreme value, or elementwise functions of such reductions over the same
domain. Where the results alone keep the chip busy, `elementwise` does the same without sharing.

Schedule parameters: `first`, `last`: the domain dimensions of the columns, walked as one; `lanes`: columns of a thread;
`split`; `threads` of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common import memory
from mlc.kernels.common.body import inline_body
from mlc.kernels.common.evaluate import Evaluator, input_values, iteration_coords
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.common.reduce import reduction_extents
from mlc.kernels.nvidia import ALIGNMENT
from mlc.kernels.nvidia.column_parts import Meeting
from mlc.kernels.nvidia.combinations import combination
from mlc.kernels.nvidia.shared_reductions import SharedReductions
from mlc.kernels.nvidia.threads import Values

UNROLL = 8  # steps whose loads are under way together


@dataclass(frozen=True)
class ColumnSchedule:
    """Parameters of the template; see the module's description."""

    first: int
    last: int
    lanes: int
    split: int
    threads: int

    @property
    def width(self) -> int:
        """Threads along the columns."""
        return self.threads // self.split


def expand(source: KernelSource, schedule: ColumnSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a thread's share of its columns."""
    s = schedule

    def items(frame: Frame) -> list[Scalar]:
        shape = frame.buffers[source.destinations[0]].shape
        columns = frame.math.product(shape[s.first : s.last + 1])
        return [*shape[: s.first], frame.math.ceildiv(columns, s.lanes * s.width), s.split, s.width]

    def body(frame: Frame, coords: list[Scalar]) -> None:
        _Columns(source, s, frame, coords).emit()

    return emit_items(source, items, body, alignment=ALIGNMENT)


class _Columns:
    """What one thread does."""

    def __init__(self, source: KernelSource, schedule: ColumnSchedule, frame: Frame, coords: list[Scalar]) -> None:
        self.source, self.s, self.frame = source, schedule, frame
        self.shape = frame.buffers[source.destinations[0]].shape
        *outer, block, self.part, column = coords
        self.point = self._point([Idx(c, level=1) for c in outer], block, column)
        self.meeting = Meeting(frame, schedule.width, schedule.lanes, schedule.split, schedule.threads)
        self.ev = Evaluator(frame, schedule.lanes, overrides=SharedReductions(self._share).overrides(source.results))

    def _point(self, outer: list[Idx], block: Scalar, column: Scalar) -> list[Idx]:
        """Domain coordinates; threads beyond the last column repeat it."""
        s, math = self.s, self.frame.math
        last = math.sub(math.product(self.shape[s.first : s.last + 1]), s.lanes)
        base = math.mul(math.add(math.mul(block, s.width), column), s.lanes)
        inner = Idx(math.minimum(base, last), 1 if s.lanes > 1 else 0, level=1)
        group = [Idx(0)] * (s.last - s.first) + [inner]
        return outer + group + [Idx(0)] * (len(self.shape) - s.last - 1)

    def emit(self) -> None:
        values = [self.ev.tensor(value, self.point) for value in self.source.results]
        c = self.frame.constants

        def write() -> None:
            for value, destination in zip(values, self.source.destinations, strict=True):
                memory.store(self.frame, self.ev.idx, self.frame.buffers[destination], self.point, value, None)

        if_then(arith.cmpi(arith.CmpIPredicate.eq, c.index(self.part), c.index(0)), write)

    def _share(self, op: ir.Operation, coords: Sequence[Idx]) -> Values:
        """The results of the reduction `op` at `coords`, in every thread that shares it."""
        frame, s, math = self.frame, self.s, self.frame.math
        parts = combination(op)
        assert parts is not None
        rank = len(op.attributes["iterator_types"])
        dims = [d if d is not None else Idx(0) for d in iteration_coords(op, 0, coords, rank)]
        extents = reduction_extents(frame, op)
        outs = list(op.operands)[len(op.operands) - len(op.results) :]
        inits = [self.ev.tensor(out, coords) for out in outs]
        inits, starts = ([self.ev.splat(v) for v in values] for values in (inits, parts.starts(frame, inits)))

        total = math.product(list(extents.values()))
        unroll = UNROLL
        if isinstance(total, int):  # as few turns of the loop as there can be, with as few steps behind the end
            steps = -(-total // s.split)
            unroll = -(-steps // -(-steps // UNROLL))

        def several(variable: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            for number in range(unroll):
                carried = step(math.add(math.add(variable, number * s.split), self.part), carried)
            return carried

        def step(linear: Scalar, carried: list[ir.Value]) -> list[ir.Value]:
            inside = None
            if not (isinstance(total, int) and total % (unroll * s.split) == 0):
                index = frame.constants.index
                inside = arith.cmpi(arith.CmpIPredicate.ult, index(linear), index(total))
                linear = math.minimum(linear, math.sub(total, 1))
            places = math.delinearize(linear, list(extents.values()))
            at = {d: Idx(p, level=2) for d, p in zip(extents, places, strict=True)}
            point = [at.get(i, d) for i, d in enumerate(dims)]
            scope = self.ev.child()
            found = [scope.splat(v) for v in inline_body(scope, op, input_values(scope, op, point, carried), point)]
            if inside is None:
                return found
            return [arith.select(inside, new, old) for new, old in zip(found, carried, strict=True)]

        part = for_loop(frame, 0, total, unroll * s.split, starts, several)
        return self.meeting.combine(part, inits, parts)
