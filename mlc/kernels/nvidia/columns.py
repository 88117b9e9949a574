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
from mlir.dialects import arith, nvvm, vector

from mlc.kernels.common import memory
from mlc.kernels.common.analysis import reachable
from mlc.kernels.common.body import inline_body
from mlc.kernels.common.evaluate import Evaluator, Override, input_values, iteration_coords
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.generics import is_reduction
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.common.reduce import reduction_extents
from mlc.kernels.nvidia import ALIGNMENT
from mlc.kernels.nvidia.combinations import Combination, combination
from mlc.kernels.nvidia.threads import (
    WARP,
    Values,
    combine_lanes,
    from_shared,
    shared_array,
    thread_in_group,
    to_shared,
)

UNROLL = 8  # steps whose loads are under way together
MOST_IN_LINE = 128  # values of other threads that a thread reads without a loop,
TOGETHER = 4  # and parts that it reads at a time in one
MOST_COMPARED = 4  # values and positions of other threads that every thread compares itself


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
        self.known: dict[tuple[object, ...], Values] = {}
        self.ev = Evaluator(frame, schedule.lanes, overrides=self._overrides())

    def _point(self, outer: list[Idx], block: Scalar, column: Scalar) -> list[Idx]:
        """Domain coordinates; threads beyond the last column repeat it."""
        s, math = self.s, self.frame.math
        last = math.sub(math.product(self.shape[s.first : s.last + 1]), s.lanes)
        base = math.mul(math.add(math.mul(block, s.width), column), s.lanes)
        inner = Idx(math.minimum(base, last), 1 if s.lanes > 1 else 0, level=1)
        group = [Idx(0)] * (s.last - s.first) + [inner]
        return outer + group + [Idx(0)] * (len(self.shape) - s.last - 1)

    def _overrides(self) -> dict[ir.Value, Override]:
        found: dict[ir.Value, Override] = {}
        for op in reachable(self.source.results):
            if op.name == "linalg.generic" and is_reduction(op):
                found.update({result: self._reading(op, number) for number, result in enumerate(op.results)})
        return found

    def _reading(self, op: ir.Operation, number: int) -> Override:
        return lambda coords: self._reduction(op, coords)[number]

    def _reduction(self, op: ir.Operation, coords: Sequence[Idx]) -> Values:
        key = (hash(op.results[0]), *(c.key() for c in coords))
        if key not in self.known:
            self.known[key] = self._share(op, coords)
        return self.known[key]

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
        return self._combine(part, inits, parts)

    def _combine(self, part: Values, inits: Values, parts: Combination) -> Values:
        frame, s = self.frame, self.s
        # Threads of a warp that share columns combine their parts first.
        part = combine_lanes(frame, part, s.width, parts.both) if s.width < WARP else part
        count = s.threads // max(s.width, WARP)
        # Comparing positions takes many instructions: threads that have nothing else to do share them.
        if len(part) > 1 and MOST_COMPARED < count <= WARP and count & (count - 1) == 0:
            return parts.finished(inits, self._by_warps(part, parts, count))
        return self._by_each(part, inits, parts, count)

    def _by_warps(self, part: Values, parts: Combination, count: int) -> Values:
        """All `count` parts of each column as one: neighbouring threads of a warp take one each. A column's parts lie
        side by side in shared memory, one element apart from those of the next one for the sake of the banks."""
        frame, s, math, index = self.frame, self.s, self.frame.math, self.frame.constants.index
        results = s.width * s.lanes
        shared = [shared_array(frame, results * (count + 1), _element(v), n) for n, v in enumerate(part)]
        thread: Scalar = thread_in_group(frame, s.threads, is_block=True)
        # Before the first write: a slower thread may still read what another reduction has found.
        nvvm.Barrier0Op()
        self._write(part, shared, thread, count)
        nvvm.Barrier0Op()
        taking, together = results * count, s.threads // count
        member, group = math.rem(thread, count), math.div(thread, count)

        def take(first: int) -> None:
            # Threads beyond the last column repeat it: all of a warp exchange values.
            place = math.mul(math.minimum(math.add(group, first), results - 1), count + 1)
            found: Values = [
                from_shared(frame, a, math.add(place, member), _element(v)) for a, v in zip(shared, part, strict=True)
            ]
            found = combine_lanes(frame, found, 1, parts.both, last=count)

            def keep() -> None:
                for array, value in zip(shared, found, strict=True):
                    to_shared(frame, array, math.add(place, count), value)

            if_then(arith.cmpi(arith.CmpIPredicate.eq, index(member), index(0)), keep)

        def take_all() -> None:
            for first in range(0, results, together):
                take(first)

        if taking <= s.threads - WARP:
            warps = -(-taking // WARP) * WARP
            if_then(arith.cmpi(arith.CmpIPredicate.ult, index(thread), index(warps)), take_all)
        else:
            take_all()
        nvvm.Barrier0Op()
        return [self._totals(array, value.type, thread, count) for array, value in zip(shared, part, strict=True)]

    def _write(self, part: Values, shared: Sequence[ir.Value], thread: Scalar, count: int) -> None:
        """The parts of this thread's columns to where `_by_warps` looks for them, once for each warp."""
        frame, s, math, index = self.frame, self.s, self.frame.math, self.frame.constants.index
        owners = max(s.width, WARP)
        column, owner = math.rem(thread, owners), math.div(thread, owners)

        def write() -> None:
            for array, value in zip(shared, part, strict=True):
                lanes = [value] if s.lanes == 1 else [vector.extract(value, [], [lane]) for lane in range(s.lanes)]
                for lane, one in enumerate(lanes):
                    place = math.mul(math.add(math.mul(column, s.lanes), lane), count + 1)
                    to_shared(frame, array, math.add(place, owner), one)

        if s.width < WARP:
            if_then(arith.cmpi(arith.CmpIPredicate.ult, index(column), index(s.width)), write)
        else:
            write()

    def _totals(self, array: ir.Value, type_: ir.Type, thread: Scalar, count: int) -> ir.Value:
        """What `_by_warps` has found for the columns of this thread, of type `type_`."""
        frame, s, math = self.frame, self.s, self.frame.math
        column = math.mul(math.rem(thread, s.width), s.lanes)
        element = type_.element_type if isinstance(type_, ir.VectorType) else type_
        places = [math.add(math.mul(math.add(column, lane), count + 1), count) for lane in range(s.lanes)]
        found = [from_shared(frame, array, place, element) for place in places]
        return vector.from_elements(type_, found) if isinstance(type_, ir.VectorType) else found[0]

    def _by_each(self, part: Values, inits: Values, parts: Combination, count: int) -> Values:
        """All `count` parts of each column as one: every thread takes those of its columns."""
        frame, s, math = self.frame, self.s, self.frame.math
        owners = max(s.width, WARP)  # threads of which the first `width` have a part
        size = s.threads * s.lanes
        shared = [shared_array(frame, size, _element(value), number) for number, value in enumerate(part)]
        thread = thread_in_group(frame, s.threads, is_block=True)
        # Before the first write: a slower thread may still read the parts of another reduction.
        nvvm.Barrier0Op()
        for array, value in zip(shared, part, strict=True):
            to_shared(frame, array, math.mul(thread, s.lanes), value)
        nvvm.Barrier0Op()
        column = math.rem(thread, s.width)

        def of_owner(other: Scalar) -> Values:
            place = math.mul(math.add(column, math.mul(other, owners)), s.lanes)
            return [from_shared(frame, array, place, v.type) for array, v in zip(shared, part, strict=True)]

        def several(variable: ir.Value, carried: list[ir.Value]) -> Values:
            total: Values = carried
            for number in range(TOGETHER):
                total = parts.both(total, of_owner(math.add(variable, number)))
            return total

        # Comparing positions takes registers, too.
        in_line = count if count * s.lanes * len(part) ** 2 <= MOST_IN_LINE else TOGETHER
        total = parts.finished(inits, of_owner(0))
        for other in range(1, in_line):
            total = parts.both(total, of_owner(other))
        # A loop, as all that is loaded from shared memory at a time must have registers.
        return for_loop(frame, in_line, count, TOGETHER, total, several) if in_line < count else total


def _element(value: ir.Value) -> ir.Type:
    return value.type.element_type if isinstance(value.type, ir.VectorType) else value.type
