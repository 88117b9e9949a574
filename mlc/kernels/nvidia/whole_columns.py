"""Whole columns: threads reduce across contiguous memory, then write what depends on the reductions.

Takes patterns such as a softmax over the middle dimension or a normalization over the pixels of an image: the domain is
some dimensions that number the matrices, those that are reduced, and those of the columns, which are walked as one.
Neighbouring threads have neighbouring columns, so that they read whole cache lines; `split` threads share a column,
each takes every `split`-th element, and their parts of each reduction meet in a fixed order (`column_parts.py`).

The first `kept` elements that a thread has of a column stay in registers: they are read once, all of them at a time,
and what several reductions and the results need of an element is computed once, as in `rows`. What there is beyond them
is read again for every use. Threads behind a column's end repeat its last element, those behind the last column that
one; neither counts, and they write nothing.

Schedule parameters: `first`, `last`: the domain dimensions that are reduced; `lanes`: columns of a thread, which divide
the last dimension; `width`: threads side by side; `split`; `kept`; `threads` of a block. `width` times `split` are all
of these, or a warp; threads that share nothing are as many side by side as one likes. Others are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common import memory
from mlc.kernels.common.analysis import can_flatten, can_flatten_reduction, reachable, reduction_demands
from mlc.kernels.common.body import inline_body
from mlc.kernels.common.evaluate import Evaluator, input_values, iteration_coords
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.generics import is_reduction
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.nvidia import ALIGNMENT
from mlc.kernels.nvidia.column_parts import Meeting, refusal
from mlc.kernels.nvidia.combinations import combination
from mlc.kernels.nvidia.rows import is_one
from mlc.kernels.nvidia.shared_reductions import SharedReductions
from mlc.kernels.nvidia.threads import Values

UNROLL = 4  # elements of a column under way in a loop over what is not kept


@dataclass(frozen=True)
class WholeColumnSchedule:
    """Parameters of the template; see the module's description."""

    first: int
    last: int
    lanes: int
    width: int
    split: int
    kept: int
    threads: int


@dataclass(frozen=True)
class _Turn:
    """An element of a thread's columns: the values known there, its coordinates along them, and whether it counts
    (None: always)."""

    ev: Evaluator
    coords: list[Idx]
    inside: ir.Value | None


Step = Callable[[_Turn, list[ir.Value]], Sequence[ir.Value]]


def expand(source: KernelSource, schedule: WholeColumnSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a thread's share of its columns."""
    s = schedule

    def items(frame: Frame) -> list[Scalar]:
        shape = frame.buffers[source.destinations[0]].shape
        columns = frame.math.product(shape[s.last + 1 :])
        return [*shape[: s.first], frame.math.ceildiv(columns, s.lanes * s.width), s.split, s.width]

    def body(frame: Frame, coords: list[Scalar]) -> None:
        _WholeColumns(source, s, frame, coords).emit()

    return emit_items(source, items, body, alignment=ALIGNMENT)


class _WholeColumns:
    """What one thread does."""

    def __init__(self, source: KernelSource, schedule: WholeColumnSchedule, frame: Frame, coords: list[Scalar]) -> None:
        self.source, self.s, self.frame = source, schedule, frame
        s, shape = schedule, frame.buffers[source.destinations[0]].shape
        *outer, block, self.part, column = coords
        # The maps of dimensions of one element may say 0: what is evaluated there before is known by its coordinates.
        self.outer = [Idx(0 if is_one(e) else c, level=1) for c, e in zip(outer, shape, strict=False)]
        self.reduced = shape[s.first : s.last + 1]
        self.exists: ir.Value | None = None  # is there a column for this thread? None: always
        self.inner = self._inner(block, column, shape[s.last + 1 :])
        self.meeting = Meeting(frame, s.width, s.lanes, s.split, s.threads, full=True)
        self._refuse_others(shape[-1])
        self.is_flat = self._can_flatten()
        self.turns: dict[int, _Turn] = {}  # those that are kept
        self.together = True  # do all threads run what is being emitted?
        self.ev = Evaluator(frame, s.lanes, overrides=SharedReductions(self._share).overrides(source.results))

    def _refuse_others(self, extent: Scalar) -> None:
        """Raise ValueError for a schedule that would read or write what is not there."""
        s, lanes = self.s, self.s.lanes
        why = refusal(s.width, s.split, s.threads)
        if isinstance(extent, int) and extent % lanes:
            why = f"lanes of {lanes} elements, which do not divide {extent}"
        if why:
            raise ValueError(f"kernel {self.frame.name}: {why}")

    def _inner(self, block: Scalar, column: Scalar, extents: Sequence[Scalar]) -> list[Idx]:
        """Coordinates of this thread's columns."""
        s, math, index = self.s, self.frame.math, self.frame.constants.index
        total = math.product(extents)
        linear = math.mul(math.add(math.mul(block, s.width), column), s.lanes)
        if not isinstance(total, int) or total % (s.width * s.lanes):
            self.exists = arith.cmpi(arith.CmpIPredicate.ult, index(linear), index(total))
            linear = math.minimum(linear, math.sub(total, s.lanes))
        *far, near = math.delinearize(linear, extents)
        return [*(Idx(c, level=1) for c in far), Idx(near, 1 if s.lanes > 1 else 0, level=1)]

    def _can_flatten(self) -> bool:
        """May what is reduced be walked as one dimension? Addresses are sums of constants then."""
        first, last, results = self.s.first, self.s.last, self.source.results
        reductions = [op for op in reachable(results) if op.name == "linalg.generic" and is_reduction(op)]
        each = all(can_flatten_reduction(op, first, last) for op in reductions)
        return each and can_flatten(results, first, last)

    def emit(self) -> None:
        nowhere = [Idx(0)] * len(self.reduced)
        for demand in reduction_demands(self.source.results):
            self.ev.tensor(demand.value, [self.ev.idx.affine(e, self._point(nowhere)) for e in demand.exprs])
        self.together = False
        self._stride([], self._write)

    def _point(self, coords: Sequence[Idx]) -> list[Idx]:
        return [*self.outer, *coords, *self.inner]

    def _write(self, turn: _Turn, _: list[ir.Value]) -> list[ir.Value]:
        point = self._point(turn.coords)
        values = [turn.ev.tensor(value, point) for value in self.source.results]

        def store() -> None:
            for value, destination in zip(values, self.source.destinations, strict=True):
                memory.store(self.frame, turn.ev.idx, self.frame.buffers[destination], point, value, None)

        conditions = [c for c in (self.exists, turn.inside) if c is not None]
        if not conditions:
            store()
        else:
            if_then(conditions[0] if len(conditions) == 1 else arith.andi(*conditions), store)
        return []

    # -- the elements of a thread --------------------------------------------------------------------------------------

    def _stride(self, inits: Sequence[ir.Value], step: Step) -> list[ir.Value]:
        """This thread's elements of its columns; `step` gets each of them and the carried values."""
        s, math = self.s, self.frame.math
        depth, carried = math.product(self.reduced), list(inits)
        numbers = range(min(s.kept, -(-depth // s.split)) if isinstance(depth, int) else 0)
        for number in numbers:
            if number not in self.turns:
                self.turns[number] = self._turn(number * s.split, depth, (number + 1) * s.split)
            carried = list(step(self.turns[number], carried))
        first = len(numbers) * s.split
        if isinstance(depth, int) and depth <= first:
            return carried

        def several(base: ir.Value, inner: list[ir.Value]) -> list[ir.Value]:
            for number in range(UNROLL):
                inner = list(step(self._turn(math.add(base, number * s.split), depth, None), inner))
            return inner

        return for_loop(self.frame, first, depth, UNROLL * s.split, carried, several)

    def _turn(self, base: Scalar, depth: Scalar, ends: int | None) -> _Turn:
        """The element of this thread among `split` ones from `base` on, the last of which is in front of `ends`."""
        math, index, inside = self.frame.math, self.frame.constants.index, None
        linear = math.add(base, self.part)
        if ends is None or not isinstance(depth, int) or ends > depth:
            inside = arith.cmpi(arith.CmpIPredicate.ult, index(linear), index(depth))
            linear = math.minimum(linear, math.sub(depth, 1))
        if self.is_flat:
            coords = [Idx(0)] * (len(self.reduced) - 1) + [Idx(linear, level=2)]
        else:
            places = zip(math.delinearize(linear, self.reduced), self.reduced, strict=True)
            coords = [Idx(0 if is_one(e) else c, level=2) for c, e in places]
        return _Turn(self.ev.child(), coords, inside)

    def _share(self, op: ir.Operation, coords: Sequence[Idx]) -> Values:
        """The results of the reduction `op` at `coords`, in every thread that shares these columns. Raises ValueError
        where some of the threads may be elsewhere."""
        if not self.together:
            raise ValueError(f"kernel {self.frame.name}: a reduction depends on the position within a column")
        parts = combination(op)
        assert parts is not None
        kinds = ["reduction" in str(t) for t in op.attributes["iterator_types"]]
        dims = [d if d is not None else Idx(0) for d in iteration_coords(op, 0, coords, len(kinds))]
        outs = list(op.operands)[len(op.operands) - len(op.results) :]
        inits = [self.ev.tensor(out, coords) for out in outs]
        inits, starts = ([self.ev.splat(v) for v in values] for values in (inits, parts.starts(self.frame, inits)))
        self.together, before = False, self.together

        def accumulate(turn: _Turn, carried: list[ir.Value]) -> list[ir.Value]:
            along, ev = iter(turn.coords), turn.ev
            point = [next(along) if is_reduced else d for d, is_reduced in zip(dims, kinds, strict=True)]
            found = [ev.splat(v) for v in inline_body(ev, op, input_values(ev, op, point, carried), point)]
            if turn.inside is None:
                return found
            return [arith.select(turn.inside, new, old) for new, old in zip(found, carried, strict=True)]

        part = self._stride(starts, accumulate)
        self.together = before
        return self.meeting.combine(part, inits, parts)
