"""The generic CPU template: parallel loops over the results' domain around on-demand evaluation.

It takes any kernel whose roots are evaluable at a coordinate: elementwise chains, reductions, windows, gathers, and
rows with inner reductions (softmax, layer norm: the inner reductions are evaluated once per row, before the loop that
reads them). The innermost dimension, or a group of trailing dimensions that flatten, is vectorised with a masked tail;
a concatenation or padding along it splits the loop where another input begins. Pools of padded images whose channels
are vectors leave out the taps in the padding (`padded_pool`). What a row's reduction and its result both need and takes
long to compute (the exponentials of a softmax) waits in the destination in between.

Schedule parameters (`docs/ir.md` §5): `lanes`; `first`, `last`: the domain dimensions of the vector loop, walked as one
(`first > last`: no vector loop, reductions run along lanes instead); `grid`: how many outer dimensions are work items;
`block`: elements of the vector loop per work item, 0 for all; `repeat`: the extent of dimension `last`, along which
nothing changes (every element of an enlarged image is there several times), 1 when this is not so; `together`: 2 when
two work items are computed in turns (`jam`), else 1; `scalef`: 1 when exponentials of a softmax may use the AVX-512
instruction of this name, 2 when `vreduceps` as well, 3 when results may be subnormal numbers; `sums`: the most
accumulators of a reduction along vectors whose terms take long to compute; `stream`: 1 when what is written goes past
the caches where its address allows it; `ahead`: how many steps of the dimension in front of the vector loop before its
turn an input's line is fetched. A copy that streams does that in its loop; a kernel with reductions of rows in the loop
that takes longest, so that memory arrives meanwhile (at a row's beginning nothing but loads would wait for it, and what
fetches ahead by itself stops at pages); `early`: how many vectors of the x of a softmax are loaded before exponentials
are stored (see `reduce`); `pieces`: 1 when the last elements of a line, where their number is known, are
stored as parts of a vector, not masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlir import ir
from mlir.dialects import arith, func

from mlc.kernels.common import memory
from mlc.kernels.common.accesses import plain_accesses
from mlc.kernels.common.analysis import cuts, mentions, reachable, reduction_demands
from mlc.kernels.common.evaluate import Early, Evaluator, Hook, lane_mask
from mlc.kernels.common.frame import Frame, KernelSource, defining_op, for_loop
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_grid
from mlc.kernels.common.peepholes import divided_shift
from mlc.kernels.cpu.jam import jam
from mlc.kernels.cpu.kept import kept_value
from mlc.kernels.cpu.padded_pool import padded_pool, pooling

_PARTS = 64  # loops that a vector loop is split into at most: each is code of its own


@dataclass(frozen=True)
class LoopSchedule:
    """Parameters of the template; see the module's description."""

    lanes: int
    first: int
    last: int
    grid: int
    block: int
    repeat: int = 1
    together: int = 1
    scalef: int = 0
    sums: int = 4
    stream: int = 0
    ahead: int = 0
    early: int = 0
    pieces: int = 0


def expand(source: KernelSource, schedule: LoopSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [_Loops(source, schedule).emit(), emit_grid(source, lambda frame, shape: _work(frame, shape, schedule))]


def _inner_extent(frame: Frame, shape: list[Scalar], s: LoopSchedule) -> Scalar:
    return frame.math.product(shape[s.first : s.last + 1])


def _items(frame: Frame, shape: list[Scalar], s: LoopSchedule) -> list[Scalar]:
    """Extents of the grid: outer dimensions, then blocks of the vector loop."""
    extents = list(shape[: s.grid])
    if s.block:
        extents.append(frame.math.ceildiv(_inner_extent(frame, shape, s), s.block))
    return extents


def _work(frame: Frame, shape: list[Scalar], s: LoopSchedule) -> list[Scalar]:
    """Extents of what is handed to threads: always the same points go together, however many threads there are."""
    items = _items(frame, shape, s)
    return items if s.together == 1 else [frame.math.ceildiv(frame.math.product(items), s.together)]


class _Loops:
    def __init__(self, source: KernelSource, schedule: LoopSchedule) -> None:
        self.source = source
        self.s = schedule
        in_pieces = schedule.pieces == 1
        self.frame = Frame(
            source, vector_lanes=schedule.lanes, scalef=schedule.scalef, sums=schedule.sums, in_pieces=in_pieces
        )
        self.shape = self.frame.buffers[source.destinations[0]].shape
        self.demands = reduction_demands(source.results)
        self.accesses = plain_accesses(source.results) if schedule.ahead else {}
        self.fetching_rows = schedule.ahead > 0 and not schedule.stream
        self.at_results = False  # are they fetched while the results are computed?
        self.cuts = cuts(source.results, schedule.last) if schedule.first == schedule.last else []
        pools = [p for p in map(padded_pool, reachable(source.results)) if p is not None]
        self.pools: dict[ir.Value, Hook] = {p.reduction.results[0]: pooling(p) for p in pools}

    def emit(self) -> Frame:
        frame, s = self.frame, self.s
        with frame.body():
            buffers = [frame.buffers[d] for d in self.source.destinations]
            memory.past_caches(frame, buffers, s.stream, self._all_items)
            done = func.ReturnOp([])
        if s.together > 1:
            block = done.operation.block
            jam(block.operations[len(block.operations) - 2].operation)
        return frame

    def _all_items(self, stream: bool) -> None:
        self.stream = stream
        frame, s = self.frame, self.s
        items = _items(frame, self.shape, s)
        self.inner = _inner_extent(frame, self.shape, s)

        def item(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            coords = frame.math.delinearize(variable, items) if items else []
            dims = [Idx(c, level=1) for c in coords[: s.grid]]
            block = coords[s.grid] if s.block else None
            self._outer(dims, block)
            return []

        low, high = frame.begin, frame.end
        if s.together > 1:
            low = frame.math.mul(low, s.together)
            high = frame.math.minimum(frame.math.mul(high, s.together), frame.math.product(items))
        for_loop(frame, low, high, 1, [], item)

    def _outer(self, dims: list[Idx], block: Scalar | None) -> None:
        """Loops over the outer dimensions that are not work items."""
        outer = min(self.s.first, len(self.shape))
        if len(dims) < outer:
            extent = self.shape[len(dims)]
            if isinstance(extent, int) and extent == 1:
                self._outer([*dims, Idx(0)], block)
                return
            level = len(dims) + 2

            def body(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                self._outer([*dims, Idx(variable, level=level)], block)
                return []

            for_loop(self.frame, 0, extent, 1, [], body)
            return
        ev = Evaluator(self.frame, self.s.lanes, hooks=self.pools)
        moving = range(self.s.first, self.s.last + 1)
        of_rows = [d.value for d in self.demands if not d.depends_on(moving)]
        kept = None if self.s.block else kept_value(self.source, of_rows)
        self.at_results = self.fetching_rows and kept is None
        for demand in self.demands:
            if demand.depends_on(moving):
                continue
            everything = dims + [Idx(0)] * (len(self.shape) - len(dims))
            coords = [ev.idx.affine(e, everything) for e in demand.exprs]
            if kept is not None and demand.value == kept.reduction:
                hooks = self.pools | {kept.value: self._keep(kept.value)}
                keeping = Evaluator(self.frame, self.s.lanes, parent=ev, hooks=hooks, early=self._early(kept.value))
                ev.remember(demand.value, coords, keeping.tensor(demand.value, coords))
                ev.hooks = self.pools | {kept.value: self._take}
            else:
                ev.tensor(demand.value, coords)
        self._vector_loop(ev, dims, block)

    def _early(self, kept: ir.Value) -> dict[ir.Value, Early]:
        """The x of a softmax, for its exponentials."""
        power = defining_op(kept)
        shift = None if power is None or not self.s.early else divided_shift(power)
        return {} if shift is None else {kept: Early(shift.difference.operands[shift.value], self.s.early)}

    def _keep(self, value: ir.Value) -> Hook:
        """Store `value` in the destination when it is computed."""
        buffer = self.frame.buffers[self.source.destinations[0]]

        def hook(scope: Evaluator, coords: Sequence[Idx]) -> ir.Value:
            result = scope.compute(value, coords)
            if self.fetching_rows and scope.mask is None:
                self._fetch(scope, coords)
            memory.store(self.frame, scope.idx, buffer, coords, result, scope.mask)
            return result

        return hook

    def _take(self, scope: Evaluator, coords: Sequence[Idx]) -> ir.Value:
        """Load what `_keep` has stored."""
        buffer = self.frame.buffers[self.source.destinations[0]]
        return memory.load(self.frame, scope.idx, buffer, coords, scope.mask)

    def _vector_loop(self, ev: Evaluator, dims: list[Idx], block: Scalar | None) -> None:
        s, math = self.s, self.frame.math
        if s.first > s.last:
            self._store(ev.child(lanes=1), dims)
            return
        if block is None and isinstance(self.inner, int):
            for low, high in self._parts(self.inner):
                self._span(ev, dims, low, high)
            return
        start: Scalar = 0 if block is None else math.mul(block, s.block)
        end = self.inner if block is None else math.minimum(math.add(start, s.block), self.inner)
        self._span(ev, dims, start, end, is_block=block is not None)

    def _parts(self, extent: int) -> list[tuple[int, int]]:
        """The vector loop, split where a comparison of its coordinate changes."""
        inside = [c for c in self.cuts if 0 < c < extent]
        if len(inside) >= _PARTS:
            inside = []
        return list(zip([0, *inside], [*inside, extent], strict=True))

    def _span(self, ev: Evaluator, dims: list[Idx], low: Scalar, high: Scalar, is_block: bool = False) -> None:
        """The vector loop from `low` to `high`."""
        s, math = self.s, self.frame.math
        level = len(dims) + 2
        bounds = (low, high - 1) if isinstance(low, int) and isinstance(high, int) else None
        if s.lanes == 1:

            def scalar(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                self._store(ev.child(lanes=1), self._point(dims, Idx(variable, level=level, bounds=bounds)))
                return []

            for_loop(self.frame, low, high, 1, [], scalar)
            return
        length = math.sub(high, low)
        whole = math.mul(math.div(length, s.lanes), s.lanes)
        exact = is_block and isinstance(self.inner, int) and self.inner % s.lanes == 0
        if exact:
            whole = length  # blocks are multiples of the lanes, so no block has a tail

        def vectors(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            self._store(ev.child(), self._point(dims, Idx(variable, 1, level=level, bounds=bounds)))
            return []

        if not (isinstance(whole, int) and whole == 0):
            for_loop(self.frame, low, math.add(low, whole), s.lanes, [], vectors)
        if not exact:
            self._tail(ev, dims, math.add(low, whole), math.sub(length, whole), level, bounds)

    def _tail(
        self, ev: Evaluator, dims: list[Idx], base: Scalar, count: Scalar, level: int, bounds: tuple[int, int] | None
    ) -> None:
        if isinstance(count, int) and count == 0:
            return

        def partial(_: ir.Value, __: list[ir.Value]) -> list[ir.Value]:
            mask = lane_mask(self.frame, self.s.lanes, self.frame.constants.index(count))
            self._store(ev.child(mask=mask), self._point(dims, Idx(base, 1, level=level, bounds=bounds)))
            return []

        if isinstance(count, int):
            for_loop(self.frame, 0, 1, 1, [], partial)
        else:  # at most once, and not at all when nothing is left
            for_loop(self.frame, 0, self.frame.math.minimum(count, 1), 1, [], partial)

    def _point(self, dims: list[Idx], inner: Idx) -> list[Idx]:
        """Domain coordinates: the flattened group is zeros and the linear coordinate last."""
        s = self.s
        group = [Idx(0)] * (s.last - s.first) + [inner]
        return dims + group + [Idx(0)] * (len(self.shape) - s.last - 1)

    def _values(self, point: list[Idx]) -> list[Idx]:
        """Where the results at `point` are evaluated: along a dimension in which nothing changes its first element."""
        s = self.s
        if s.repeat == 1:
            return point
        linear = point[s.last]
        before = Idx(self.frame.math.div(linear.base, s.repeat), linear.step, level=linear.level, repeat=s.repeat)
        return [*point[: s.last - 1], before, Idx(0), *point[s.last + 1 :]]

    def _fetch(self, ev: Evaluator, point: Sequence[Idx]) -> None:
        """Begin to bring what a later line reads at the same place into the cache."""
        math, c, last = self.frame.math, self.frame.constants, self.s.first - 1
        later, extent = list(point), self.shape[last]
        then = math.add(point[last].base, self.s.ahead)
        if last:  # behind the end of the dimension comes the next point of the one in front of it
            past = arith.cmpi(arith.CmpIPredicate.sge, c.index(then), c.index(extent))
            then = arith.select(past, c.index(math.sub(then, extent)), c.index(then))
            front = point[last - 1]
            moved = arith.select(past, c.index(math.add(front.base, 1)), c.index(front.base))
            later[last - 1] = replace(front, base=moved, level=max(front.level, point[last].level), bounds=None)
        later[last] = replace(point[last], base=then, bounds=None)
        for value, reads in self.accesses.items():
            for exprs in sorted(reads, key=str):
                if self.fetching_rows and not any(mentions(e, last) for e in exprs):
                    continue  # all rows read that
                coords = [ev.idx.affine(e, later) for e in exprs]
                memory.fetch(self.frame, ev.idx, self.frame.buffers[value], coords)

    def _store(self, ev: Evaluator, point: list[Idx]) -> None:
        if (self.stream or self.at_results) and ev.mask is None:
            self._fetch(ev, point)
        for value, destination in zip(self.source.results, self.source.destinations, strict=True):
            result = ev.tensor(value, self._values(point))
            buffer = self.frame.buffers[destination]
            memory.store(self.frame, ev.idx, buffer, point, result, ev.mask, stream=self.stream)
