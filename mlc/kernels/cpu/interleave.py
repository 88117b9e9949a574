"""Results whose lines are a few elements long, from inputs that are contiguous along the dimension in front of them:
images with three channels that become the last dimension.

The values of `lanes` points are evaluated for each element of a line, vectors along the dimension in front, and
interleaved in registers: what is stored is whole vectors, one behind the other. Takes kernels that reduce nothing, also
those that pad the images where vectors have masks.

Schedule parameters: `read_first` to `read_dim`: the dimensions in front of the results' lines, walked as one;
`write_dim`: that of the lines, whose extent is known; `lanes`; `block`: points per work item, a multiple of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator, lane_mask
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items


@dataclass(frozen=True)
class InterleaveSchedule:
    """Parameters of the template; see the module's description."""

    read_first: int
    read_dim: int
    write_dim: int
    lanes: int
    block: int


def expand(source: KernelSource, schedule: InterleaveSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    walked = [*range(schedule.read_first, schedule.read_dim + 1), schedule.write_dim]

    def points(frame: Frame) -> Scalar:
        shape = frame.buffers[source.destinations[0]].shape
        return frame.math.product(shape[schedule.read_first : schedule.read_dim + 1])

    def items(frame: Frame) -> list[Scalar]:
        shape = frame.buffers[source.destinations[0]].shape
        outer = [e for d, e in enumerate(shape) if d not in walked]
        return [*outer, frame.math.ceildiv(points(frame), schedule.block)]

    def item(frame: Frame, coordinates: list[Scalar]) -> None:
        *outer, block = coordinates
        free = iter(outer)
        rank = len(frame.buffers[source.destinations[0]].shape)
        origin = [Idx(0) if d in walked else Idx(next(free), level=1) for d in range(rank)]
        start = frame.math.mul(block, schedule.block)
        end = frame.math.minimum(frame.math.add(start, schedule.block), points(frame))
        _Interleave(source, schedule, frame, origin).points(start, end)

    return emit_items(source, items, item)


def interleaved_lines(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """The elements of equally long vectors, in turns: element i of the results, one behind the other, is element
    `i // n` of vector `i % n`.
    """
    count, lanes = len(rows), rows[0].type.shape[0]
    results = []
    for first in range(0, count * lanes, lanes):
        current = rows[0]
        for number in range(1, count):
            order = []
            for lane in range(lanes):
                row, column = (first + lane) % count, (first + lane) // count
                seen = column if number == 1 else lane  # of the first vector, elements are not in their place yet
                order.append(lanes + column if row == number else seen if row < number else lane)
            current = vector.ShuffleOp(current, rows[number], ir.DenseI64ArrayAttr.get(order)).result
        results.append(current)
    return results


class _Interleave:
    def __init__(self, source: KernelSource, schedule: InterleaveSchedule, frame: Frame, origin: list[Idx]) -> None:
        self.source, self.s, self.frame, self.origin = source, schedule, frame, origin

    def points(self, start: Scalar, end: Scalar) -> None:
        """The lines of the points from `start` to `end`."""
        s, math = self.s, self.frame.math
        whole = math.mul(math.div(math.sub(end, start), s.lanes), s.lanes)

        def vectors(at: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            self._lines(at, None)
            return []

        for_loop(self.frame, start, math.add(start, whole), s.lanes, [], vectors)
        at = math.add(start, whole)
        left = self.frame.constants.index(math.sub(end, at))
        some = arith.cmpi(arith.CmpIPredicate.sgt, left, self.frame.constants.index(0))
        if_then(some, lambda: self._lines(at, left))

    def _lines(self, at: Scalar, count: ir.Value | None) -> None:
        """The lines of `lanes` points, or of the `count` last ones."""
        s, frame = self.s, self.frame
        ev = Evaluator(frame, s.lanes, None if count is None else lane_mask(frame, s.lanes, count))
        for value, destination in zip(self.source.results, self.source.destinations, strict=True):
            extent = value.type.shape[s.write_dim]
            rows = [ev.splat(ev.tensor(value, self._point(Idx(at, 1, level=2), Idx(e)))) for e in range(extent)]
            for number, line in enumerate(interleaved_lines(rows)):
                first, mask = number * s.lanes, None
                if count is not None:
                    left = frame.math.sub(frame.math.mul(count, extent), first)
                    mask = lane_mask(frame, s.lanes, frame.constants.index(left))
                point = self._point(Idx(at, level=2), Idx(first, 1))
                memory.store(frame, ev.idx, frame.buffers[destination], point, line, mask)

    def _point(self, read: Idx, write: Idx) -> list[Idx]:
        point = list(self.origin)
        point[self.s.read_dim], point[self.s.write_dim] = read, write
        return point

