"""`mlc.scan`: running sums and products by the threads of a warp or of a block. ONNX operators CumSum, CumProd.

A tensor is [outer, line, inner] in memory, where `inner` are the dimensions behind the axis. A group of threads has a
line, or neighbouring ones where there are inner dimensions, and goes along it in chunks. Within a chunk every thread
combines its own elements first, then the threads of a warp what they found (Hillis and Steele, "Data parallel
algorithms", 1986), then the warps of a block in shared memory (one barrier a chunk: chunks take turns in two places);
what came before, the group hands on from chunk to chunk. The order depends on the schedule alone, so that results have
the same bits in every run. Floats of 16 bits are combined in f32 and rounded once for each result.

Along contiguous lines (`width` 0) a thread has `accesses` vectors of `lanes` elements, and a warp those that are beside
each other; lines that are no multiples of vectors are covered by vectors that are aligned, whose elements outside of
the line count as nothing. Across memory, `width` threads of a warp stand beside each other, each has `accesses` rows of
`lanes` columns, one after the other.

A line may fall into parts, of which each is a group's, and begins with what comes before it (`mlc-split-scans`).

Schedule parameters: `threads` of a block; `group`: threads that share a line, up to a warp, or the block; `lanes`;
`accesses`; `width`; `ahead`: the next chunk is read before this one is combined.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mlir import ir
from mlir.dialects import arith, nvvm, scf, vector

from mlc.kernels.common import memory
from mlc.kernels.common.frame import Frame, KernelSource, defining_op, for_loop, if_then
from mlc.kernels.common.index import Idx, IdxMath, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.cpu.scan import accumulator, combined, identity, narrowed, widened
from mlc.kernels.nvidia import ALIGNMENT
from mlc.kernels.nvidia.threads import (
    WARP,
    from_lane,
    from_lane_below,
    from_shared,
    shared_array,
    thread_in_group,
    to_shared,
)

Maybe: TypeAlias = ir.Value | None
"""A value, or None for the identity where that is known."""
PART = "part"  # an attribute of `mlc.scan`: the elements of a part of a line
_I = arith.CmpIPredicate


@dataclass(frozen=True)
class BlockScanSchedule:
    """Parameters of the template; see the module's description."""

    threads: int
    group: int
    lanes: int
    accesses: int
    width: int = 0
    ahead: int = 0

    @property
    def warps(self) -> int:
        """Warps that share a line; 1 for a part of a warp."""
        return max(1, self.group // WARP)

    @property
    def mates(self) -> int:
        """Threads of a warp that share a line, or the lines of a warp."""
        return min(self.group, WARP)

    @property
    def parts(self) -> int:
        """Threads of a warp that share a line and have different elements of it."""
        return self.mates // max(1, self.width)


def expand(source: KernelSource, schedule: BlockScanSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a line, or those that are a block's columns."""
    s = schedule
    if WARP < s.group < s.threads or (s.width and (s.group < WARP or s.width > WARP)):
        raise ValueError(f"kernel {source.func.name.value}: {s.group} threads of {s.threads} do not share lines")

    def line(frame: Frame) -> _Line:
        return (_Columns if s.width else _Row)(frame, source, s)

    def items(frame: Frame) -> list[Scalar]:
        return line(frame).items()

    def body(frame: Frame, coords: list[Scalar]) -> None:
        line(frame).emit(coords)

    return emit_items(source, items, body, alignment=ALIGNMENT)


class _Line(ABC):
    """The line or lines of a group of threads: chunks of what every thread reads, combines and writes."""

    def __init__(self, frame: Frame, source: KernelSource, schedule: BlockScanSchedule) -> None:
        op = defining_op(source.results[0])
        assert op is not None
        self.frame, self.s, self.math = frame, schedule, frame.math
        self.kind = ir.StringAttr(op.attributes["kind"]).value
        self.exclusive, self.reverse = (ir.BoolAttr(op.attributes[n]).value for n in ("exclusive", "reverse"))
        tensor, axis = op.operands[0], ir.IntegerAttr(op.attributes["axis"]).value
        self.element = tensor.type.element_type
        self.wide = accumulator(self.element)
        extents = [frame.extent(tensor, i) for i in range(tensor.type.rank)]
        self.outer, self.whole = self.math.product(extents[:axis]), extents[axis]
        self.inner = self.math.product(extents[axis + 1 :])
        self.part: Scalar = ir.IntegerAttr(op.attributes[PART]).value if PART in op.attributes else self.whole
        self.parts: Scalar = self.math.ceildiv(self.whole, self.part) if PART in op.attributes else 1
        self.idx = IdxMath(self.math, schedule.lanes)
        if not frame.grid:
            self.input, self.output = (frame.buffers[t].flat for t in (tensor, source.destinations[0]))
            known = op.operands[1] if len(op.operands) > 1 else None
            self.before = None if known is None else frame.buffers[known].flat
            self.befores = 0 if known is None else frame.extent(known, axis)

    @abstractmethod
    def items(self) -> list[Scalar]:
        """The extents of the grid: lines, parts of each, and columns. Nothing is done where lines have no elements."""

    @abstractmethod
    def emit(self, coords: list[Scalar]) -> None:
        """What a thread does for the item at `coords`."""

    def take_part(self, number: Scalar) -> None:
        """The steps of the line that are part `number` in the order of the scan: `low`, and how many (`extent`)."""
        math = self.math
        self.extent: Scalar = self.part
        self.low: Scalar = 0
        if isinstance(self.parts, int) and self.parts <= 1:
            return
        reach = math.mul(number, self.part)
        left = math.sub(self.whole, reach)
        if not all(isinstance(e, int) for e in (self.whole, self.part)) or self.whole % self.part:
            self.extent = math.minimum(self.part, left)
        self.low = math.sub(left, self.extent) if self.reverse else reach

    def start(self, line: Scalar, number: Scalar, column: Scalar) -> list[Maybe]:
        """What comes before part `number` of a line, in this thread's columns from `column` on."""
        count = self.s.lanes if self.s.width else 1
        if self.before is None:
            return [None] * count
        math, index, befores = self.math, self.frame.constants.index, self.befores
        place = math.sub(befores, number) if self.reverse else math.sub(number, 1)
        near = math.minimum(math.maximum(place, 0), math.sub(befores, 1))
        at = math.add(math.mul(math.add(math.mul(line, befores), near), self.inner), column)
        loaded = memory.load(self.frame, self.idx, self.before, [Idx(at, 1 if count > 1 else 0)], None)
        is_first = arith.cmpi(_I.eq, index(number), index(0))
        values = [loaded] if count == 1 else [vector.extract(loaded, [], [i]) for i in range(count)]
        return [arith.select(is_first, self.nothing(), value) for value in values]

    @abstractmethod
    def read(self, chunk: Scalar) -> list[ir.Value]:
        """This thread's accesses of the chunk that begins with step `chunk`."""

    @abstractmethod
    def scan(self, chunk: Scalar, loaded: Sequence[ir.Value], before: Sequence[Maybe]) -> list[ir.Value]:
        """Writes the results of a chunk; gives what comes before the next one, as many values as `before`."""

    # -- small things -----------------------------------------------------------------------------------------------

    def identify(self, group: int) -> None:
        """Who this thread is: its warp of those that share the line, and its number in it."""
        member, index = thread_in_group(self.frame, group, is_block=group == self.s.threads), self.frame.constants.index
        self.warp: Scalar = arith.divui(member, index(WARP)) if self.s.warps > 1 else 0
        self.lane: ir.Value = arith.remui(member, index(WARP)) if self.s.warps > 1 else member

    def both(self, a: Maybe, b: Maybe) -> Maybe:
        """`a`, which comes first, and `b`."""
        if a is None or b is None:
            return b if a is None else a
        return combined(self.kind, a, b)

    def all_of_both(self, a: Sequence[Maybe], b: Sequence[Maybe]) -> list[Maybe]:
        """Pairs of `a` and `b`."""
        return [self.both(x, y) for x, y in zip(a, b, strict=True)]

    def nothing(self, type_: ir.Type | None = None) -> ir.Value:
        """The identity of the combination."""
        return identity(self.frame, self.kind, self.wide if type_ is None else type_)

    def position(self, at: Scalar) -> Idx:
        return Idx(at, 1 if self.s.lanes > 1 else 0)

    def load(self, at: Scalar) -> ir.Value:
        """An access at element `at` of the tensor."""
        return memory.load(self.frame, self.idx, self.input, [self.position(at)], None)

    def store(self, at: Scalar, values: Sequence[ir.Value]) -> None:
        """Writes an access, `values` in the order of memory."""
        narrow = [narrowed(v, self.element) for v in values]
        whole = narrow[0] if len(narrow) == 1 else vector.from_elements(self._access_type(), narrow)
        memory.store(self.frame, self.idx, self.output, [self.position(at)], whole, None)

    def elements(self, access: ir.Value) -> list[ir.Value]:
        """The elements of an access, wide, in the order of memory."""
        if self.s.lanes == 1:
            return [widened(access)]
        return [widened(vector.extract(access, [], [lane])) for lane in range(self.s.lanes)]

    def _access_type(self) -> ir.Type:
        return self.element if self.s.lanes == 1 else ir.VectorType.get([self.s.lanes], self.element)

    def below(self, a: Scalar, b: Scalar) -> ir.Value:
        return arith.cmpi(_I.slt, self.frame.constants.index(a), self.frame.constants.index(b))

    # -- chunks -----------------------------------------------------------------------------------------------------

    def run(self, total: Scalar, step: int, before: Sequence[Maybe]) -> None:
        """All chunks of `step` steps of `total`, of as many lines at a time as there are values `before` them."""
        if isinstance(total, int) and total <= step:
            self.scan(0, self.read(0), before)
            return
        lines = len(before)
        start = [self.nothing() if value is None else value for value in before]

        def behind(chunk: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            return self.scan(chunk, self.read(chunk), carried)

        def ahead(chunk: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            coming = self.read(self.math.add(chunk, step))
            return [*self.scan(chunk, carried[lines:], carried[:lines]), *coming]

        if self.s.ahead:
            for_loop(self.frame, 0, total, step, [*start, *self.read(0)], ahead)
        else:
            for_loop(self.frame, 0, total, step, start, behind)

    # -- threads ----------------------------------------------------------------------------------------------------

    def across_warp(self, values: Sequence[ir.Value], apart: int, parts: int) -> tuple[list[Maybe], list[ir.Value]]:
        """What is before this thread's `values` in the warp, and all of it: of `parts` threads `apart` from each other,
        which are neighbours."""
        frame, index = self.frame, self.frame.constants.index
        if parts == 1:
            return [None] * len(values), list(values)
        part = arith.divui(arith.remui(self.lane, index(apart * parts)), index(apart)) if apart > 1 else self.lane
        found, distance = list(values), 1
        while distance < parts:
            is_behind = arith.cmpi(_I.uge, part, index(distance))
            others = [from_lane_below(frame, v, distance * apart) for v in found]
            found = [
                arith.select(is_behind, combined(self.kind, o, v), v) for o, v in zip(others, found, strict=True)
            ]
            distance *= 2
        is_first = arith.cmpi(_I.eq, part, index(0))
        before = [arith.select(is_first, self.nothing(), from_lane_below(frame, v, apart)) for v in found]
        last = arith.addi(self._hardware_lane(), index((parts - 1) * apart))
        last = arith.subi(last, arith.muli(part, index(apart)))
        return list(before), [from_lane(frame, v, last) for v in found]

    def _hardware_lane(self) -> ir.Value:
        """This thread's number in the warp, which several lines may share."""
        if self.s.group >= WARP:
            return self.lane
        thread = thread_in_group(self.frame, self.s.threads, is_block=True)
        return arith.remui(thread, self.frame.constants.index(WARP))

    def across_warps(
        self, values: Sequence[ir.Value], chunk: Scalar, step: int, column: Scalar, writes: ir.Value
    ) -> tuple[list[Maybe], list[ir.Value]]:
        """What is before the `values` of this thread's warp in the chunk, and all of it; of the warp's threads those
        write whom `writes` names. `column` is the thread's place among those of the warp with values of their own."""
        frame, math, warps, count = self.frame, self.math, self.s.warps, len(values)
        if warps == 1:
            return [None] * count, list(values)
        size = warps * max(1, self.s.width) * count
        shared = shared_array(frame, 2 * size, self.wide)
        place: Scalar = math.rem(math.div(chunk, step), 2)

        def at(warp: Scalar) -> Scalar:
            slot = math.add(math.mul(math.add(math.mul(place, warps), warp), max(1, self.s.width)), column)
            return math.mul(slot, count)

        def write() -> None:
            whole = values[0] if count == 1 else vector.from_elements(self._totals_type(count), list(values))
            to_shared(frame, shared, at(self.warp), whole)

        def totals(warp: Scalar) -> list[ir.Value]:
            found = from_shared(frame, shared, at(warp), self.wide if count == 1 else self._totals_type(count))
            return [found] if count == 1 else [vector.extract(found, [], [i]) for i in range(count)]

        if_then(writes, write)
        nvvm.Barrier0Op()
        return self._of_warps(totals) if self.s.width <= 1 else self._after_each_other(totals)

    def _totals_type(self, count: int) -> ir.Type:
        return ir.VectorType.get([count], self.wide)

    def _of_warps(self, totals: Callable[[Scalar], list[ir.Value]]) -> tuple[list[Maybe], list[ir.Value]]:
        """Each lane of a warp takes what another warp has found; together they find what is before each of them."""
        frame, index, warps = self.frame, self.frame.constants.index, self.s.warps
        found = totals(self.math.minimum(self.lane, warps - 1))
        distance = 1
        while distance < warps:
            is_behind = arith.cmpi(_I.uge, self.lane, index(distance))
            others = [from_lane_below(frame, v, distance) for v in found]
            found = [
                arith.select(is_behind, combined(self.kind, o, v), v) for o, v in zip(others, found, strict=True)
            ]
            distance *= 2
        is_first = arith.cmpi(_I.eq, index(self.warp), index(0))
        warp_before = index(self.math.maximum(self.math.sub(self.warp, 1), 0))
        before = [arith.select(is_first, self.nothing(), from_lane(frame, v, warp_before)) for v in found]
        return list(before), [from_lane(frame, v, index(warps - 1)) for v in found]

    def _after_each_other(self, totals: Callable[[Scalar], list[ir.Value]]) -> tuple[list[Maybe], list[ir.Value]]:
        """Every thread combines what all warps have found for its columns."""
        index = self.frame.constants.index
        total = totals(0)
        before = [self.nothing()] * len(total)
        for warp in range(1, self.s.warps):
            is_here = arith.cmpi(_I.eq, index(self.warp), index(warp))
            before = [arith.select(is_here, t, b) for t, b in zip(total, before, strict=True)]
            total = [combined(self.kind, t, n) for t, n in zip(total, totals(warp), strict=True)]
        return list(before), total


class _Row(_Line):
    """A contiguous line. A step is an access: slot 0 is the first one in the order of the scan."""

    def items(self) -> list[Scalar]:
        return [self.math.product([self.outer, self.inner, self.math.minimum(self.whole, 1)]), self.parts]

    def emit(self, coords: list[Scalar]) -> None:
        math, lanes = self.math, self.s.lanes
        self.identify(self.s.group)
        self.take_part(coords[1])
        self.begin = math.add(math.mul(coords[0], self.whole), self.low)
        self.end = math.add(self.begin, self.extent)
        self.is_even = lanes == 1 or all(isinstance(e, int) and e % lanes == 0 for e in (self.whole, self.part))
        if self.is_even:
            self.slots, self.first, self.last = math.div(self.extent, lanes), self.begin, self.end
            most = math.div(self.part, lanes)
        else:  # as many slots for every line, wherever it begins
            self.slots = most = math.ceildiv(math.add(self.part, lanes - 1), lanes)
            self.first = math.mul(math.div(self.begin, lanes), lanes)
            self.last = math.mul(math.ceildiv(self.end, lanes), lanes)
        self.chunk = self.s.group * self.s.accesses
        self.run(most, self.chunk, self.start(coords[0], coords[1], 0))

    def _at(self, slot: Scalar) -> Scalar:
        """The first element in memory of an access."""
        reach = self.math.mul(slot, self.s.lanes)
        if self.reverse:
            return self.math.sub(self.math.sub(self.last, self.s.lanes), reach)
        return self.math.add(self.first, reach)

    def _slots(self, chunk: Scalar) -> list[Scalar]:
        """This thread's accesses of a chunk."""
        mates, math = self.s.mates, self.math
        start = math.add(math.add(chunk, math.mul(self.warp, mates * self.s.accesses)), self.lane)
        return [math.add(start, number * mates) for number in range(self.s.accesses)]

    @property
    def _is_exact(self) -> bool:
        return self.is_even and isinstance(self.slots, int) and self.slots % self.chunk == 0

    def _is_inside(self, chunk: Scalar) -> ir.Value:
        """Are all accesses of the warp within the line?"""
        mates, math = self.s.mates, self.math
        start = math.add(chunk, math.mul(self.warp, mates * self.s.accesses))
        ends = [self._at(start), self._at(math.add(start, mates * self.s.accesses - 1))]
        low, high = reversed(ends) if self.reverse else ends
        index = self.frame.constants.index
        return arith.andi(
            arith.cmpi(_I.sge, index(low), index(self.begin)),
            arith.cmpi(_I.sle, index(math.add(high, self.s.lanes)), index(self.end)),
        )

    def read(self, chunk: Scalar) -> list[ir.Value]:
        slots = self._slots(chunk)
        if self.is_even:
            last = self.math.sub(self.slots, 1)
            near = slots if self._is_exact and not self.s.ahead else [self.math.minimum(slot, last) for slot in slots]
            return [self.load(self._at(slot)) for slot in near]
        inside = scf.IfOp(self._is_inside(chunk), [self._access_type()] * len(slots), has_else=True)
        with ir.InsertionPoint(inside.then_block):
            scf.YieldOp([self.load(self._at(slot)) for slot in slots])
        with ir.InsertionPoint(inside.else_block):
            scf.YieldOp([self._partly(self._at(slot)) for slot in slots])
        return list(inside.results)

    def _partly(self, at: Scalar) -> ir.Value:
        """An access whose elements may lie outside of the line: those are the identity."""
        math, found = self.math, []
        for lane in range(self.s.lanes):
            place = math.add(at, lane)
            near = math.maximum(math.minimum(place, math.sub(self.end, 1)), self.begin)
            one = memory.load(self.frame, self.idx, self.input, [Idx(near)], None)
            found.append(arith.select(self._is_in_line(place), one, self.nothing(self.element)))
        return vector.from_elements(self._access_type(), found)

    def _is_in_line(self, at: Scalar) -> ir.Value:
        index = self.frame.constants.index
        behind = arith.cmpi(_I.sge, index(at), index(self.begin))
        return arith.andi(behind, arith.cmpi(_I.slt, index(at), index(self.end)))

    def scan(self, chunk: Scalar, loaded: Sequence[ir.Value], before: Sequence[Maybe]) -> list[ir.Value]:
        slots, (carry,) = self._slots(chunk), before
        locals_, leading, front = [], [], None
        for slot, access in zip(slots, loaded, strict=True):
            own = self._own(slot, access)
            (ahead,), (total,) = self.across_warp([own[-1]], 1, self.s.mates)
            locals_.append(own)
            leading.append((front, ahead))
            front = self.both(front, total)
        assert front is not None
        writes = arith.cmpi(_I.eq, self.lane, self.frame.constants.index(0))
        (other,), (total,) = self.across_warps([front], chunk, self.chunk, 0, writes)
        start = self.both(carry, other)
        results = []
        for own, (slabs, ahead) in zip(locals_, leading, strict=True):
            results.append(self._results(self.both(self.both(start, slabs), ahead), own))
        self._write(chunk, slots, results)
        return [found] if (found := self.both(carry, total)) is not None else []

    def _own(self, slot: Scalar, access: ir.Value) -> list[ir.Value]:
        """The running combination of a thread's access, in the order of the scan."""
        values = self.elements(access)
        if self.reverse:
            values.reverse()
        if self.is_even and not self._is_exact:
            inside = self.below(slot, self.slots)
            values = [arith.select(inside, v, self.nothing()) for v in values]
        for number in range(1, len(values)):
            values[number] = combined(self.kind, values[number - 1], values[number])
        return values

    def _results(self, before: Maybe, own: list[ir.Value]) -> list[ir.Value]:
        """The results of an access, in the order of memory."""
        shifted: list[Maybe] = [None, *own[:-1]] if self.exclusive else list(own)
        found = [self.both(before, value) for value in shifted]
        values = [self.nothing() if v is None else v for v in found]
        return values[::-1] if self.reverse else values

    def _write(self, chunk: Scalar, slots: list[Scalar], results: list[list[ir.Value]]) -> None:
        def whole() -> None:
            for slot, values in zip(slots, results, strict=True):
                self.store(self._at(slot), values)

        def partly() -> None:
            for slot, values in zip(slots, results, strict=True):
                for lane, value in enumerate(values):
                    self._write_one(self.math.add(self._at(slot), lane), value)

        if not self.is_even:
            if_then(self._is_inside(chunk), whole, partly)
        elif self._is_exact:
            whole()
        else:
            for slot, values in zip(slots, results, strict=True):
                if_then(self.below(slot, self.slots), lambda s=slot, v=values: self.store(self._at(s), v))  # type: ignore[misc]

    def _write_one(self, at: Scalar, value: ir.Value) -> None:
        narrow = narrowed(value, self.element)
        if_then(
            self._is_in_line(at), lambda: memory.store(self.frame, self.idx, self.output, [Idx(at)], narrow, None)
        )


class _Columns(_Line):
    """Neighbouring lines across memory. A step is a row."""

    def items(self) -> list[Scalar]:
        columns = self.math.ceildiv(self.inner, self.s.lanes * self.s.width)
        return [self.math.product([self.outer, self.math.minimum(self.whole, 1)]), self.parts, columns]

    def emit(self, coords: list[Scalar]) -> None:
        math, s, index = self.math, self.s, self.frame.constants.index
        self.identify(s.group)
        place: Scalar = arith.remui(self.lane, index(s.width)) if s.width > 1 else 0
        part: Scalar = arith.divui(self.lane, index(s.width)) if s.width > 1 else self.lane
        self.place = place
        self.is_last = arith.cmpi(_I.eq, index(part), index(s.parts - 1))
        self.share = math.add(math.mul(self.warp, s.parts), part)
        # Threads beyond the last column repeat it.
        column = math.mul(math.add(math.mul(coords[2], s.width), place), s.lanes)
        column = math.minimum(column, math.sub(self.inner, s.lanes))
        self.take_part(coords[1])
        line = math.mul(coords[0], math.mul(self.whole, self.inner))
        self.begin = math.add(math.add(line, math.mul(self.low, self.inner)), column)
        self.chunk = s.warps * s.parts * s.accesses
        self.run(self.part, self.chunk, self.start(coords[0], coords[1], column))

    def _rows(self, chunk: Scalar) -> list[Scalar]:
        start = self.math.add(chunk, self.math.mul(self.share, self.s.accesses))
        return [self.math.add(start, number) for number in range(self.s.accesses)]

    def _at(self, row: Scalar) -> Scalar:
        """The element in memory where this thread's columns of a row begin; the last row's for those behind it."""
        math = self.math
        if not self._is_exact or self.s.ahead:
            row = math.minimum(row, math.sub(self.extent, 1))
        if self.reverse:
            row = math.sub(math.sub(self.extent, 1), row)
        return math.add(self.begin, math.mul(row, self.inner))

    @property
    def _is_exact(self) -> bool:
        return isinstance(self.extent, int) and self.extent % self.chunk == 0

    def read(self, chunk: Scalar) -> list[ir.Value]:
        return [self.load(self._at(row)) for row in self._rows(chunk)]

    def scan(self, chunk: Scalar, loaded: Sequence[ir.Value], before: Sequence[Maybe]) -> list[ir.Value]:
        rows = self._rows(chunk)
        own: list[list[ir.Value]] = []
        for row, access in zip(rows, loaded, strict=True):
            values = self.elements(access)
            if not self._is_exact:
                inside = self.below(row, self.extent)
                values = [arith.select(inside, v, self.nothing()) for v in values]
            own.append([combined(self.kind, a, b) for a, b in zip(own[-1], values, strict=True)] if own else values)
        ahead, total = self.across_warp(own[-1], self.s.width, self.s.parts)
        other, total = self.across_warps(total, chunk, self.chunk, self.place, self.is_last)
        start = self.all_of_both(self.all_of_both(before, other), ahead)
        nothing: list[Maybe] = [None] * self.s.lanes
        shifted: list[Sequence[Maybe]] = [nothing, *own[:-1]] if self.exclusive else list(own)
        for row, running in zip(rows, shifted, strict=True):
            found = [self.nothing() if v is None else v for v in self.all_of_both(start, running)]
            if self._is_exact:
                self.store(self._at(row), found)
            else:
                if_then(self.below(row, self.extent), lambda r=row, f=found: self.store(self._at(r), f))  # type: ignore[misc]
        return [v for v in self.all_of_both(before, total) if v is not None]
