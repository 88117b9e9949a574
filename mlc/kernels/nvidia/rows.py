"""Rows: a group of threads reduces along contiguous memory, then writes what depends on the reductions.

Takes kernels whose reductions all run along the contiguous dimensions of their inputs: sums, means and positions of
extreme values (the result is one element a row), and row patterns such as softmax and layer norm, where the outputs
have the row's dimensions too.
The threads of a group stride over the row, `lanes` elements at a time, each with its own partial result, and combine
them in a fixed order (`threads.combine_group`), so that results never vary.

A row of up to `kept` accesses of each thread stays in registers: it is read once, all of it at a time, and what several
reductions and the results need of an element (the exponentials of a softmax) is computed once. What a row has beyond
that, and rows whose length only the run knows, are read again for every use, `UNROLL` accesses at a time. Threads whose
turn lies behind the end repeat the last access, and their part of it does not count.

Schedule parameters: `first`: how many leading dimensions of the domain number the rows (all of them: one element a
row); `lanes`: elements of one access; `group`: threads of a row, a power of two up to 32, or all threads of a block;
`threads`: of a block; `kept`; `cluster`: how many blocks, which are groups, share a row (from compute capability 9.0
on): they exchange their partial results (`shared_rows.py`); `odd`: 1 where `lanes` do not divide the rows, which are
kept or staged as a whole (`odd_rows.py`); `staged`: 1 where a block has its part of the row in shared memory instead of
registers (`staged_rows.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common import memory
from mlc.kernels.common.analysis import is_contraction, mentions, reachable, reduction_demands
from mlc.kernels.common.body import inline_body
from mlc.kernels.common.evaluate import Evaluator, input_values, iteration_coords
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.generics import is_reduction, operand_map
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.common.reduce import lane_dim, reduction_extents
from mlc.kernels.nvidia import ALIGNMENT
from mlc.kernels.nvidia.combinations import combination
from mlc.kernels.nvidia.odd_rows import OddRows, Span
from mlc.kernels.nvidia.shared_reductions import SharedReductions
from mlc.kernels.nvidia.shared_rows import Blocks
from mlc.kernels.nvidia.staged_rows import PIECE, StagedRows
from mlc.kernels.nvidia.tensor_cores.words import declare_shared_memory
from mlc.kernels.nvidia.tensor_maps import attach
from mlc.kernels.nvidia.threads import Values, combine_group, thread_in_group


@dataclass(frozen=True)
class RowSchedule:
    """Parameters of the template; see the module's description."""

    first: int
    lanes: int
    group: int
    threads: int
    kept: int = 0
    cluster: int = 1
    odd: int = 0
    staged: int = 0

    @property
    def members(self) -> int:
        """Threads that share a row."""
        return self.group * self.cluster


UNROLL = 4  # accesses under way in a loop over a row


@dataclass(frozen=True)
class _Turn:
    """An access of a thread: where it lies, the values known there, and whether it counts, or which of its lanes do
    (None: always); `span` of rows that begin within accesses."""

    ev: Evaluator
    coords: list[Idx]
    inside: ir.Value | None
    span: Span | None = None


Step = Callable[[_Turn, list[ir.Value]], Sequence[ir.Value]]


def is_cooperative(op: ir.Operation) -> bool:
    """Can a group of threads share this reduction: parts that can be combined, along contiguous memory in every big
    operand?"""
    if combination(op) is None or lane_dim(op) is None:
        return False
    return not is_contraction(op) or all(_contiguous(op, operand) for operand in range(2))


def _contiguous(op: ir.Operation, operand: int) -> bool:
    """Is the operand contiguous along the innermost reduction dimension?"""
    along = lane_dim(op)
    assert along is not None
    exprs = list(operand_map(op, operand).results)
    inner = bool(exprs) and isinstance(exprs[-1], ir.AffineDimExpr) and exprs[-1].position == along
    return inner and not any(mentions(e, along) for e in exprs[:-1])


def expand(source: KernelSource, schedule: RowSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a row."""

    def items(frame: Frame) -> list[Scalar]:
        parts = [schedule.cluster] if schedule.cluster > 1 else []
        return [*frame.buffers[source.destinations[0]].shape[: schedule.first], *parts]

    def body(frame: Frame, coords: list[Scalar]) -> None:
        _Row(source, schedule, frame, coords).emit()

    declare = declare_shared_memory if schedule.staged else None
    frames = emit_items(source, items, body, alignment=ALIGNMENT, declare=declare)
    if schedule.staged:
        attach(source.module, [], staged_bytes(source, schedule))
    return frames


def staged_tensors(source: KernelSource, schedule: RowSchedule) -> list[ir.Value]:
    """The inputs that have a row for each row of the results, as long as theirs."""
    extent, results = row_extent(source, schedule), source.destinations

    def has_rows(tensor: ir.Value) -> bool:
        shape, outer = list(tensor.type.shape), list(results[0].type.shape)[: schedule.first]
        return len(shape) == len(outer) + 1 and shape[1:] == [*outer[1:], extent] and any(True for _ in tensor.uses)

    return [t for t in source.tensors if t not in results and has_rows(t)]


def row_extent(source: KernelSource, schedule: RowSchedule) -> int:
    """The elements of a row, which must be known and one dimension of everything."""
    found = {tuple(source.results[0].type.shape[schedule.first :])} - {()}
    for op in reachable(source.results):
        if op.name == "linalg.generic" and is_reduction(op):
            found.add(_reduced(op))
    row = next(iter(found), ())
    if len(found) != 1 or len(row) != 1 or row[0] < 0:
        name = source.func.name.value
        raise ValueError(f"kernel {name}: rows of one known length are needed, not {sorted(found)}")
    return int(row[0])


def _reduced(op: ir.Operation) -> tuple[int, ...]:
    """The extents of what a reduction reduces; those that only a run knows are negative."""
    kinds, extents = ["reduction" in str(t) for t in op.attributes["iterator_types"]], {}
    for operand in range(len(op.operands)):
        for position, expr in enumerate(operand_map(op, operand).results):
            if isinstance(expr, ir.AffineDimExpr) and kinds[expr.position]:
                extents[expr.position] = int(op.operands[operand].type.shape[position])
    return tuple(extents[d] for d in sorted(extents))


def accesses_of(extent: int, schedule: RowSchedule) -> int:
    """Accesses of each thread of a row that it reads as a whole."""
    return -(-(extent + (schedule.lanes - 1 if schedule.odd else 0)) // (schedule.members * schedule.lanes))


def staged_bytes(source: KernelSource, schedule: RowSchedule) -> int:
    """Shared memory of a block."""
    numbers = accesses_of(row_extent(source, schedule), schedule)
    return len(staged_tensors(source, schedule)) * numbers * schedule.threads * PIECE


class _Row:
    """What the threads of one group do."""

    def __init__(self, source: KernelSource, schedule: RowSchedule, frame: Frame, coords: list[Scalar]) -> None:
        self.source = source
        self.s = schedule
        self.frame = frame
        self.shape = frame.buffers[source.destinations[0]].shape
        # The maps of dimensions of one element may say 0: what is evaluated there before is known by its coordinates.
        numbers = zip(coords[: schedule.first], self.shape, strict=False)
        self.row = [Idx(0 if is_one(e) else c, level=1) for c, e in numbers]
        self.thread = thread_in_group(frame, schedule.group, is_block=schedule.group == schedule.threads)
        self.blocks: Blocks | None = None
        if schedule.cluster > 1:
            self.blocks = Blocks(frame, schedule.cluster, coords[-1], self.thread)
            first = frame.math.mul(coords[-1], schedule.group)
            self.thread = frame.constants.index(frame.math.add(first, self.thread))
        self.turns: dict[tuple[int, ...], _Turn] = {}  # those that are kept, by extents and number
        self.evaluators: dict[int, Evaluator] = {}
        # Of results that are computed, while several are: nothing says that what is read next lies elsewhere.
        self.stores: list[Callable[[], None]] | None = None
        self.combined = 0  # reductions that met in shared memory
        self.together = True  # do all threads of the group run what is being emitted?
        self.odd: OddRows | None = None
        if schedule.odd:
            extent = row_extent(source, schedule)
            self.odd = OddRows(frame, self.row, self.shape[: schedule.first], extent, schedule.lanes)
        hooks = self.odd.hooks(source.tensors) if self.odd is not None else {}
        self.stage = self._stage() if schedule.staged else None
        hooks = hooks if self.stage is None else self.stage.hooks(hooks)
        overrides = SharedReductions(self._share).overrides(
            source.results, lambda op: is_reduction(op) and is_cooperative(op)
        )
        self.ev = Evaluator(frame, 1, overrides=overrides, hooks=hooks)

    def _stage(self) -> StagedRows:
        """Begins to copy the row."""
        s, math, extent = self.s, self.frame.math, row_extent(self.source, self.s)
        numbers, width = accesses_of(extent, s), s.members * s.lanes
        tensors = staged_tensors(self.source, s)
        stage = StagedRows(self.frame, tensors, self.row, self.shape[: s.first], extent, s.lanes, (numbers, s.threads))
        for number in range(numbers):
            linear = math.add(math.mul(self.thread, s.lanes), number * width)
            column = linear if self.odd is None else math.sub(linear, self.odd.phase)
            stage.copy(number, column, ends=(number + 1) * width > extent)
        stage.begin()
        return stage

    def emit(self) -> None:
        rest = len(self.shape) - len(self.row)
        for demand in reduction_demands(self.source.results):
            if not demand.depends_on(range(len(self.row), len(self.shape))):
                everything = self.row + [Idx(0)] * rest
                self.ev.tensor(demand.value, [self.ev.idx.affine(e, everything) for e in demand.exprs])
        if rest:
            self._write_row()
        else:
            self._write_element()

    def _write_element(self) -> None:
        """All threads know the results; the first one writes them."""
        values = [self.ev.tensor(value, self.row) for value in self.source.results]
        zero = self.frame.constants.index(0)

        def write() -> None:
            for value, destination in zip(values, self.source.destinations, strict=True):
                memory.store(self.frame, self.ev.idx, self.frame.buffers[destination], self.row, value, None)

        if_then(arith.cmpi(arith.CmpIPredicate.eq, self.thread, zero), write)

    def _write_row(self) -> None:
        self.together = False

        def write(turn: _Turn, _: list[ir.Value]) -> list[ir.Value]:
            point = self.row + turn.coords
            values = [turn.ev.tensor(value, point) for value in self.source.results]
            destinations = [self.frame.buffers[d] for d in self.source.destinations]

            def store() -> None:
                for value, destination in zip(values, destinations, strict=True):
                    memory.store(self.frame, turn.ev.idx, destination, point, value, None)

            def finish() -> None:
                if self.odd is not None and turn.span is not None:
                    for value, destination in zip(values, destinations, strict=True):
                        self.odd.write(destination, turn.ev, turn.span, value)
                elif turn.inside is None:
                    store()
                else:
                    if_then(turn.inside, store)

            if self.stores is None:
                finish()
            else:
                self.stores.append(finish)
            return []

        self._stride(self.shape[len(self.row) :], [], write)

    # -- the accesses of a thread --------------------------------------------------------------------------------------

    def _stride(self, extents: Sequence[Scalar], inits: Sequence[ir.Value], step: Step) -> list[ir.Value]:
        """This thread's accesses of a box of `extents`; `step` gets each of them and the carried values."""
        s, math = self.s, self.frame.math
        total, width = math.product(extents), s.members * s.lanes
        carried = list(inits)
        if self.stage is not None:
            return self._staged(extents, carried, step)
        if isinstance(total, int):
            longest = total + s.lanes - 1 if s.odd else total
            for number in range(min(s.kept, -(-longest // width))):
                carried = list(step(self._kept(number, extents, total), carried))
        first = s.kept * width if isinstance(total, int) else 0
        if isinstance(total, int) and total <= first:
            return carried
        start = math.mul(self.thread, s.lanes)

        def several(base: ir.Value, inner: list[ir.Value]) -> list[ir.Value]:
            self.stores = []
            for number in range(UNROLL):
                linear = math.add(math.add(base, number * width), start)
                ends = None if isinstance(total, int) and (total - first) % (UNROLL * width) == 0 else total
                inner = list(step(self._turn(self.ev.child(lanes=s.lanes), linear, extents, ends), inner))
            stores, self.stores = self.stores, None
            for store in stores or []:
                store()
            return inner

        return for_loop(self.frame, first, total, UNROLL * width, carried, several)

    def _staged(self, extents: Sequence[Scalar], carried: list[ir.Value], step: Step) -> list[ir.Value]:
        """Accesses of a row in shared memory: a loop over those that lie within it, and the others."""
        s, math, (extent,) = self.s, self.frame.math, extents
        assert self.stage is not None and isinstance(extent, int)
        self.stage.wait()
        width, begins = s.members * s.lanes, int(s.odd)
        # Other inputs, as the weights of a norm, are in registers beside the row.
        inputs = [t for t in self.source.tensors if t not in self.source.destinations]
        unroll = UNROLL if len(inputs) == 1 else UNROLL // 2
        looped = max(0, extent // width - begins) // unroll * unroll

        def turn(number: Scalar) -> _Turn:
            assert self.stage is not None
            ev = self.ev.child(lanes=s.lanes)
            linear = math.add(math.mul(number, width), math.mul(self.thread, s.lanes))
            first, last = (number, number) if isinstance(number, int) else (1, 0)
            ends = (last + 1) * width > extent
            if self.odd is not None:
                span = self.odd.span(linear, first * width, (last + 1) * width - s.lanes)
                found = _Turn(ev, [Idx(span.column, 1, level=2)], span.inside, span)
            else:
                found = self._turn(ev, linear, extents, extent if ends else None)
            self.stage.note(found.coords[-1], number)
            return found

        def several(base: ir.Value, inner: list[ir.Value]) -> list[ir.Value]:
            for number in range(unroll):
                inner = list(step(turn(math.add(base, number)), inner))
            return inner

        for number in range(begins):
            carried = list(step(turn(number), carried))
        if looped:
            carried = for_loop(self.frame, begins, begins + looped, unroll, carried, several)
        for number in range(begins + looped, accesses_of(extent, s)):
            carried = list(step(turn(number), carried))
        return carried

    def _kept(self, number: int, extents: Sequence[Scalar], total: int) -> _Turn:
        """Access `number` of a row that stays in registers: what was evaluated there before is known."""
        s, math = self.s, self.frame.math
        long = [e for e in extents if not is_one(e)] or [1]  # the others' coordinates are 0
        key = (number, *(e for e in long if isinstance(e, int)))
        if key not in self.turns:
            if number not in self.evaluators:
                self.evaluators[number] = self.ev.child(lanes=s.lanes)
            width = s.members * s.lanes
            linear = math.add(math.mul(self.thread, s.lanes), number * width)
            ends = total if (number + 1) * width > total else None
            if self.odd is not None:
                span = self.odd.span(linear, number * width, (number + 1) * width - s.lanes)
                self.turns[key] = _Turn(self.evaluators[number], [Idx(span.column, 1, level=2)], span.inside, span)
            else:
                self.turns[key] = self._turn(self.evaluators[number], linear, long, ends)
        found = self.turns[key]
        coords = iter(found.coords)
        return replace(found, coords=[Idx(0, level=2) if is_one(e) else next(coords) for e in extents])

    def _turn(self, ev: Evaluator, linear: Scalar, extents: Sequence[Scalar], total: Scalar | None) -> _Turn:
        """The access at `linear`, which may lie behind the end `total`."""
        s, math, inside = self.s, self.frame.math, None
        if total is not None:
            index = self.frame.constants.index
            inside = arith.cmpi(arith.CmpIPredicate.ult, index(linear), index(total))
            linear = math.minimum(linear, math.sub(total, s.lanes))
        *outer, inner = math.delinearize(linear, extents)
        coords = [Idx(c, level=2) for c in outer] + [Idx(inner, 1 if s.lanes > 1 else 0, level=2)]
        return _Turn(ev, coords, inside)

    def _share(self, op: ir.Operation, coords: Sequence[Idx]) -> Values:
        """The results of the reduction `op` at `coords`, in every thread of the group. Raises ValueError where some of
        the threads may be elsewhere."""
        frame, s = self.frame, self.s
        if not self.together or not all(c.uniform for c in coords):
            raise ValueError(f"kernel {frame.name}: a reduction depends on the position within a row")
        parts = combination(op)
        assert parts is not None
        dims = [d if d is not None else Idx(0) for d in iteration_coords(op, 0, coords, _rank(op))]
        extents = reduction_extents(frame, op)
        outs = list(op.operands)[len(op.operands) - len(op.results) :]
        inits = [self.ev.tensor(out, coords) for out in outs]
        starts = [memory.splat(value, s.lanes) for value in parts.starts(frame, inits)]
        self.together, before = False, self.together

        def accumulate(turn: _Turn, carried: list[ir.Value]) -> list[ir.Value]:
            at, ev = dict(zip(extents, turn.coords, strict=True)), turn.ev
            place = [at.get(i, d) for i, d in enumerate(dims)]
            found = [ev.splat(v) for v in inline_body(ev, op, input_values(ev, op, place, carried), place)]
            if turn.inside is None:
                return found
            return [arith.select(turn.inside, new, old) for new, old in zip(found, carried, strict=True)]

        partial = self._stride(list(extents.values()), starts, accumulate)
        self.together = before
        self.combined += 1
        total = combine_group(frame, parts.across(partial), s.group, parts.both, number=self.combined)
        if self.blocks is not None:
            total = self.blocks.combine(total, parts.both, self.combined)
        return parts.finished(inits, total)


def is_one(extent: Scalar) -> bool:
    """Has a dimension one element, as far as known?"""
    return isinstance(extent, int) and extent == 1


def _rank(generic: ir.Operation) -> int:
    return len(generic.attributes["iterator_types"])
