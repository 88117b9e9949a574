"""Register-tiled contractions on the ordinary arithmetic units: exact f32 and f64, integers, any shape.

Every thread keeps `rows` x `columns` accumulators over the reduction. The threads of a block form a rectangle: those of
a warp lie along the output's contiguous dimension, so that one operand is read in whole cache lines and the other is
the same for all of them; what several threads of the block read comes out of the L1 cache. The method is the register
blocking of Volkov and Demmel ("Benchmarking GPUs to Tune Dense Linear Algebra", 2008), without shared memory.

Where the output is too small to fill the chip, `split` threads of a block share a tile: each takes every `split`-th
step of the innermost reduction, and the first adds the parts, which meet in shared memory, in their order.

Threads at the edge of the output repeat its last rows and columns instead of leaving: equal threads write equal values,
and no access needs a test. Takes any `linalg.generic` marked `mlc.contraction` whose output map is a permutation; the
epilogue runs on the accumulators.

Schedule parameters: `vector_dim`, `row_first`, `row_last`: output dimensions of the columns and of the rows (a group
that flattens; −1 and −2 for none); `rows`, `columns`: of a thread, the columns as accesses of `lanes` elements;
`block_columns`: threads along the columns; `split`; `unroll` of the innermost reduction; `threads` of a block.
Measured on an H200 in f32: 30 TFLOP/s at 4096x4096x1024, 25 at 1024x1024x1024, 3.3 TB/s at 1x4096x4096.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, nvvm

from mlc.kernels.common import memory
from mlc.kernels.common.analysis import is_contraction, mentions, reachable
from mlc.kernels.common.body import inline_body
from mlc.kernels.common.evaluate import Evaluator, Override
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.common.reduce import reduction_extents
from mlc.kernels.nvidia import ALIGNMENT
from mlc.kernels.nvidia.threads import from_shared, shared_array, thread_in_group, to_shared


@dataclass(frozen=True)
class ContractionSchedule:
    """Parameters of the template; see the module's description."""

    vector_dim: int
    row_first: int
    row_last: int
    rows: int
    columns: int
    lanes: int
    block_columns: int
    split: int
    unroll: int
    threads: int

    @property
    def block_rows(self) -> int:
        """Threads along the rows."""
        return self.threads // (self.block_columns * self.split)

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of a block."""
        return self.rows * self.block_rows, self.columns * self.lanes * self.block_columns


def expand(source: KernelSource, schedule: ContractionSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a thread's tile."""
    s = schedule

    def items(frame: Frame) -> list[Scalar]:
        shape, math = frame.buffers[source.destinations[0]].shape, frame.math
        outer = [shape[d] for d in _outer_dims(len(shape), s)]
        rows = math.ceildiv(math.product(shape[s.row_first : s.row_last + 1]), s.tile[0])
        columns = math.ceildiv(shape[s.vector_dim], s.tile[1])
        return [*outer, rows, columns, s.block_rows, s.split, s.block_columns]

    def body(frame: Frame, coords: list[Scalar]) -> None:
        _Tile(source, s, frame, coords).emit()

    return emit_items(source, items, body, alignment=ALIGNMENT)


def _outer_dims(rank: int, s: ContractionSchedule) -> list[int]:
    return [d for d in range(rank) if d != s.vector_dim and not s.row_first <= d <= s.row_last]


def find_contraction(source: KernelSource) -> ir.Operation:
    """The contraction of the kernel; ValueError without one."""
    for op in reachable(source.results):
        if is_contraction(op):
            return op
    raise ValueError(f"kernel {source.func.name.value}: no contraction")


class _Tile:
    """What one thread does."""

    def __init__(self, source: KernelSource, schedule: ContractionSchedule, frame: Frame, coords: list[Scalar]) -> None:
        self.source, self.s, self.frame = source, schedule, frame
        self.shape = frame.buffers[source.destinations[0]].shape
        self.root = find_contraction(source)
        out_map = operand_map(self.root, len(self.root.operands) - 1)
        self.order = [ir.AffineDimExpr(e).position for e in out_map.results]
        self.ev = Evaluator(frame, schedule.lanes)
        *outer, block_row, block_column, row, self.part, column = coords
        self.origin = [Idx(0)] * len(self.shape)
        for dim, coord in zip(_outer_dims(len(self.shape), schedule), outer, strict=True):
            self.origin[dim] = Idx(coord, level=1)
        self.rows = self._rows(block_row, row)
        self.columns = self._columns(block_column, column)

    def _rows(self, block: Scalar, thread: Scalar) -> list[Idx]:
        s, math = self.s, self.frame.math
        if s.row_last < 0:
            return [Idx(0)]
        last = math.sub(math.product(self.shape[s.row_first : s.row_last + 1]), 1)
        first = math.add(math.mul(block, s.tile[0]), math.mul(thread, s.rows))
        return [Idx(math.minimum(math.add(first, r), last), level=1) for r in range(s.rows)]

    def _columns(self, block: Scalar, thread: Scalar) -> list[Idx]:
        """The accesses of neighbouring threads are neighbours; those of one thread are a block's width apart."""
        s, math = self.s, self.frame.math
        last = math.sub(self.shape[s.vector_dim], s.lanes)
        first = math.add(math.mul(block, s.tile[1]), math.mul(thread, s.lanes))
        starts = [math.minimum(math.add(first, j * s.lanes * s.block_columns), last) for j in range(s.columns)]
        return [Idx(start, 1 if s.lanes > 1 else 0, level=1) for start in starts]

    def _point(self, row: Idx, column: Idx) -> list[Idx]:
        point = list(self.origin)
        if self.s.row_last >= 0:
            point[self.s.row_last] = row
        point[self.s.vector_dim] = column
        return point

    def emit(self) -> None:
        points = {(r, j): self._point(x, y) for r, x in enumerate(self.rows) for j, y in enumerate(self.columns)}
        init = self.root.operands[len(self.root.operands) - 1]
        start = [self.ev.splat(self.ev.tensor(init, point)) for point in points.values()]
        loops = list(reduction_extents(self.frame, self.root).items())
        if self.s.split == 1:
            self._store(points, self._reduce(self.ev, points, loops, {}, start))
            return
        element = self.root.results[0].type.element_type
        zero = self.frame.constants.get(element, 0.0 if isinstance(element, ir.FloatType) else 0)
        parts = self._reduce(self.ev, points, loops, {}, [self.ev.splat(zero)] * len(start))
        self._add_parts(parts, start, lambda sums: self._store(points, sums))

    def _add_parts(
        self, parts: Sequence[ir.Value], start: Sequence[ir.Value], use: Callable[[list[ir.Value]], None]
    ) -> None:
        """`use` the sums of what the threads of a tile have, in the first of them."""
        frame, s, math = self.frame, self.s, self.frame.math
        shared = shared_array(frame, s.threads * len(parts) * s.lanes, self.root.results[0].type.element_type)
        thread = thread_in_group(frame, s.threads)

        def place(number: int, other: int) -> Scalar:
            """Neighbouring threads' parts are neighbours."""
            owner = math.add(thread, other * s.block_columns)
            return math.mul(math.add(owner, number * s.threads), s.lanes)

        for n, part in enumerate(parts):
            to_shared(frame, shared, place(n, 0), part)
        nvvm.Barrier0Op()

        def add() -> None:
            sums = list(start)
            for other in range(s.split):
                found = [from_shared(frame, shared, place(n, other), p.type) for n, p in enumerate(parts)]
                sums = [_plus(a, b) for a, b in zip(sums, found, strict=True)]
            use(sums)

        c = frame.constants
        if_then(arith.cmpi(arith.CmpIPredicate.eq, c.index(self.part), c.index(0)), add)

    def _reduce(
        self,
        ev: Evaluator,
        points: dict[tuple[int, int], list[Idx]],
        loops: Sequence[tuple[int, Scalar]],
        position: dict[int, Idx],
        carried: Sequence[ir.Value],
    ) -> list[ir.Value]:
        """Loops over the reduction dimensions around one multiply-add per accumulator."""
        if not loops:
            return self._multiply_add(ev, points, position, carried)
        dim, extent = loops[0]
        if isinstance(extent, int) and extent == 1:
            return self._reduce(ev, points, loops[1:], {**position, dim: Idx(0)}, carried)
        innermost = len(loops) == 1
        unroll = self.s.unroll if innermost else 1
        low = self.frame.math.mul(self.part, unroll) if innermost else 0
        step = unroll * self.s.split if innermost else 1

        def body(variable: ir.Value, inner: list[ir.Value]) -> list[ir.Value]:
            for u in range(unroll):
                at = Idx(self.frame.math.add(variable, u), level=2 + len(position))
                inner = self._reduce(ev.child(), points, loops[1:], {**position, dim: at}, inner)
            return inner

        return for_loop(self.frame, low, extent, step, carried, body)

    def _multiply_add(
        self,
        ev: Evaluator,
        points: dict[tuple[int, int], list[Idx]],
        position: dict[int, Idx],
        carried: Sequence[ir.Value],
    ) -> list[ir.Value]:
        loaded: dict[tuple[int, int, int], ir.Value] = {}
        results = []
        for (r, j), accumulator in zip(points, carried, strict=True):
            dims = [position.get(d, Idx(0)) for d in range(len(self.root.attributes["iterator_types"]))]
            for axis, dim in enumerate(self.order):
                dims[dim] = points[r, j][axis]
            args = [self._operand(ev, i, r, j, dims, loaded) for i in range(2)]
            results.append(ev.splat(inline_body(ev, self.root, [*args, accumulator], dims)[0]))
        return results

    def _operand(
        self, ev: Evaluator, i: int, r: int, j: int, dims: list[Idx], loaded: dict[tuple[int, int, int], ir.Value]
    ) -> ir.Value:
        """Input `i`, loaded once for all accumulators that share it."""
        exprs = operand_map(self.root, i).results
        rows = self.s.row_last >= 0 and any(mentions(e, self.order[self.s.row_last]) for e in exprs)
        columns = any(mentions(e, self.order[self.s.vector_dim]) for e in exprs)
        key = (i, r if rows else -1, j if columns else -1)
        if key not in loaded:
            loaded[key] = ev.tensor(self.root.operands[i], [ev.idx.affine(e, dims) for e in exprs])
        return loaded[key]

    def _store(self, points: dict[tuple[int, int], list[Idx]], sums: Sequence[ir.Value]) -> None:
        for point, total in zip(points.values(), sums, strict=True):
            self._store_one(point, total)

    def _store_one(self, point: list[Idx], total: ir.Value) -> None:
        """Evaluate the returned values with `total` in place of the contraction, and store them."""
        override: Override = lambda _: total  # noqa: E731
        scope = Evaluator(self.frame, self.s.lanes, overrides={self.root.results[0]: override})
        for value, destination in zip(self.source.results, self.source.destinations, strict=True):
            memory.store(
                self.frame, scope.idx, self.frame.buffers[destination], point, scope.tensor(value, point), None
            )


def _plus(a: ir.Value, b: ir.Value) -> ir.Value:
    element = a.type.element_type if isinstance(a.type, ir.VectorType) else a.type
    return arith.addf(a, b) if isinstance(element, ir.FloatType) else arith.addi(a, b)
