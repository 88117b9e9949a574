"""Rows: a group of threads reduces along contiguous memory, then writes what depends on the reductions.

Takes kernels whose reductions all run along the contiguous dimensions of their inputs: sums and means (the result is
one element a row), and row patterns such as softmax and layer norm, where the outputs have the row's dimensions too.
The threads of a group stride over the row, `lanes` elements at a time, each with its own partial result, and combine
them in a fixed order (`threads.combine_group`), so that results never vary.

Schedule parameters: `first`: how many leading dimensions of the domain number the rows (all of them: one element a
row); `lanes`: elements of one access; `group`: threads of a row, a power of two up to 32, or all threads of a block;
`threads`: of a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common import memory
from mlc.kernels.common.analysis import is_contraction, mentions, reachable, reduction_demands
from mlc.kernels.common.body import inline_body
from mlc.kernels.common.evaluate import Evaluator, input_values, iteration_coords
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.generics import is_reduction, operand_map
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.common.reduce import Combiner, combiner, lane_dim, reduction_extents
from mlc.kernels.nvidia import ALIGNMENT
from mlc.kernels.nvidia.threads import combine_group, thread_in_group


@dataclass(frozen=True)
class RowSchedule:
    """Parameters of the template; see the module's description."""

    first: int
    lanes: int
    group: int
    threads: int


def is_cooperative(op: ir.Operation) -> bool:
    """Can a group of threads share this reduction: one plain combiner, along contiguous memory in every big operand?"""
    if combiner(op) is None or lane_dim(op) is None:
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
        return frame.buffers[source.destinations[0]].shape[: schedule.first]

    def body(frame: Frame, coords: list[Scalar]) -> None:
        _Row(source, schedule, frame, coords).emit()

    return emit_items(source, items, body, alignment=ALIGNMENT)


class _Row:
    """What the threads of one group do."""

    def __init__(self, source: KernelSource, schedule: RowSchedule, frame: Frame, coords: list[Scalar]) -> None:
        self.source = source
        self.s = schedule
        self.frame = frame
        self.shape = frame.buffers[source.destinations[0]].shape
        self.row = [Idx(c, level=1) for c in coords]
        self.thread = thread_in_group(frame, schedule.group)
        self.known: dict[tuple[object, ...], ir.Value] = {}
        self.together = True  # do all threads of the group run what is being emitted?
        self.ev = Evaluator(frame, 1, overrides=self._overrides())

    def _overrides(self) -> dict[ir.Value, Callable[[Sequence[Idx]], ir.Value]]:
        """Reductions are done by the group instead of by each thread."""
        found: dict[ir.Value, Callable[[Sequence[Idx]], ir.Value]] = {}
        for op in reachable(self.source.results):
            if op.name == "linalg.generic" and is_reduction(op) and is_cooperative(op):
                found[op.results[0]] = lambda coords, op=op: self._reduction(op, coords)  # type: ignore[misc]
        return found

    def _reduction(self, op: ir.Operation, coords: Sequence[Idx]) -> ir.Value:
        key = (hash(op.results[0]), *(c.key() for c in coords))
        if key not in self.known:
            if not self.together or not all(c.uniform for c in coords):
                raise ValueError(f"kernel {self.frame.name}: a reduction depends on the position within a row")
            self.known[key] = self._share(op, coords)
        return self.known[key]

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
        extents = self.shape[len(self.row) :]
        self.together = False

        def write(ev: Evaluator, coords: list[Idx], _: list[ir.Value]) -> list[ir.Value]:
            point = self.row + coords
            for value, destination in zip(self.source.results, self.source.destinations, strict=True):
                buffer = self.frame.buffers[destination]
                memory.store(self.frame, ev.idx, buffer, point, ev.tensor(value, point), None)
            return []

        self._stride(extents, [], write)

    def _stride(
        self,
        extents: Sequence[Scalar],
        inits: Sequence[ir.Value],
        body: Callable[[Evaluator, list[Idx], list[ir.Value]], Sequence[ir.Value]],
    ) -> list[ir.Value]:
        """This thread's vectors of a box of `extents`; `body` gets their coordinates and the carried values.

        A constant number of turns is a loop that LLVM unrolls: the loads are in flight together, and a row that fits
        the registers is read once.
        """
        s, math = self.s, self.frame.math
        total, turn = math.product(extents), s.group * s.lanes
        start = math.mul(self.thread, s.lanes)
        step = 1 if s.lanes > 1 else 0

        def at(linear: Scalar, carried: list[ir.Value]) -> Sequence[ir.Value]:
            *outer, inner = math.delinearize(linear, extents)
            coords = [Idx(c, level=2) for c in outer] + [Idx(inner, step, level=2)]
            return body(self.ev.child(lanes=s.lanes), coords, carried)

        if isinstance(total, int) and total % turn == 0:
            return for_loop(
                self.frame, 0, total // turn, 1, inits, lambda v, c: at(math.add(math.mul(v, turn), start), c)
            )
        return for_loop(self.frame, start, total, turn, inits, at)

    def _share(self, op: ir.Operation, coords: Sequence[Idx]) -> ir.Value:
        """The result of the reduction `op` at `coords`, in every thread of the group."""
        frame, s = self.frame, self.s
        combine = combiner(op)
        assert combine is not None
        dims = [d if d is not None else Idx(0) for d in iteration_coords(op, 0, coords, _rank(op))]
        extents = reduction_extents(frame, op)
        init = self.ev.tensor(op.operands[len(op.operands) - 1], coords)
        identity = memory.splat(frame.constants.get(op.results[0].type.element_type, combine.identity), s.lanes)
        self.together, before = False, self.together

        def accumulate(ev: Evaluator, point: list[Idx], carried: list[ir.Value]) -> list[ir.Value]:
            at = dict(zip(extents, point, strict=True))
            place = [at.get(i, d) for i, d in enumerate(dims)]
            return [ev.splat(v) for v in inline_body(ev, op, input_values(ev, op, place, carried), place)]

        partial = self._stride(list(extents.values()), [identity], accumulate)[0]
        self.together = before
        total = combine_group(frame, _across_lanes(partial, combine), s.group, lambda a, b: _apply(combine, a, b))
        return _apply(combine, init, total)


def _rank(generic: ir.Operation) -> int:
    return len(generic.attributes["iterator_types"])


def _apply(combine: Combiner, a: ir.Value, b: ir.Value) -> ir.Value:
    return ir.Operation.create(combine.op, [a.type], [a, b]).results[0]


def _across_lanes(value: ir.Value, combine: Combiner) -> ir.Value:
    if not isinstance(value.type, ir.VectorType):
        return value
    kind = ir.Attribute.parse(f"#vector.kind<{combine.kind}>")
    reassociate = ir.Attribute.parse("#arith.fastmath<reassoc>")
    return vector.ReductionOp(value.type.element_type, kind, value, fastmath=reassociate).result
