"""The generic GPU template: a thread for every vector of the results' domain.

It takes any kernel whose roots are evaluable at a coordinate: elementwise chains, movements, gathers, windows, and
reductions that each thread does on its own, lane by lane. Neighbouring threads have neighbouring vectors, so that their
accesses coalesce; a vector is one 16-byte instruction where the address allows it. Contractions that no other template
takes end here too, with a loop over the reduction in every thread: right, and slow.

Schedule parameters: `lanes`: elements of an access; `first`, `last`: the domain dimensions that are walked as one
linear dimension, in vectors (`first > last`: a scalar result); `rows`: a thread does as many neighbours along the
dimension before `first`, all of whose loads come first; `threads`: of a block; `flat`: 1 where the dimensions are one
in the results alone, whose rows begin within vectors: a vector goes on in the next row, and what does not lie as the
results do is read for each lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator, Hook
from mlc.kernels.common.frame import Buffer, Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.nvidia import ALIGNMENT


@dataclass(frozen=True)
class ElementwiseSchedule:
    """Parameters of the template; see the module's description."""

    lanes: int
    first: int
    last: int
    threads: int
    rows: int = 1
    flat: int = 0


def expand(source: KernelSource, schedule: ElementwiseSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a vector.

    Raises ValueError when a tail would start in the middle of a row: only a domain that is walked as a whole has one.
    """

    def items(frame: Frame) -> list[Scalar]:
        return vectors(frame, source, schedule)

    def body(frame: Frame, coords: list[Scalar]) -> None:
        emit_vector(source, schedule, frame, coords)

    return emit_items(source, items, body, alignment=ALIGNMENT)


def vectors(frame: Frame, source: KernelSource, schedule: ElementwiseSchedule) -> list[Scalar]:
    """The extents of the box of vectors that the results of `source` are."""
    s, shape = schedule, frame.buffers[source.destinations[0]].shape
    inner = frame.math.product(shape[s.first : s.last + 1])
    whole = _is_multiple(inner, s.lanes)
    outer = shape[: s.first]
    if not whole and any(not (isinstance(e, int) and e == 1) for e in outer):
        raise ValueError(f"kernel {frame.name}: {s.lanes} lanes do not divide the dimensions {s.first}..{s.last}")
    if s.rows > 1:
        outer[-1] = frame.math.ceildiv(outer[-1], s.rows)
    return [*outer, frame.math.ceildiv(inner, s.lanes)]


def emit_vector(source: KernelSource, schedule: ElementwiseSchedule, frame: Frame, coords: list[Scalar]) -> None:
    """What the thread of the vector at `coords` does."""
    _Vector(source, schedule, frame, frame.buffers[source.destinations[0]].shape, coords).emit()


def _is_multiple(extent: Scalar, lanes: int) -> bool:
    return lanes == 1 or (isinstance(extent, int) and extent % lanes == 0)


class _Vector:
    """What one thread does."""

    def __init__(
        self,
        source: KernelSource,
        schedule: ElementwiseSchedule,
        frame: Frame,
        shape: list[Scalar],
        coords: list[Scalar],
    ) -> None:
        self.source = source
        self.s = schedule
        self.frame = frame
        self.shape = shape
        self.outer = [Idx(c, level=1) for c in coords[:-1]]
        self.number = coords[-1]

    def emit(self) -> None:
        s, math = self.s, self.frame.math
        if s.first > s.last:
            self._store(1, self.outer)
            return
        base = math.mul(self.number, s.lanes)
        inner = math.product(self.shape[s.first : s.last + 1])
        if _is_multiple(inner, s.lanes):
            self._vector(base)
            return
        constants = self.frame.constants
        fits = arith.cmpi(arith.CmpIPredicate.ule, constants.index(math.add(base, s.lanes)), constants.index(inner))
        if_then(fits, lambda: self._vector(base), lambda: self._tail(base, inner))

    def _vector(self, base: Scalar) -> None:
        inner = Idx(base, 1 if self.s.lanes > 1 else 0, level=1)
        if self.s.rows == 1:
            self._store(self.s.lanes, self._point(inner), inner if self.s.flat and self.s.lanes > 1 else None)
        else:
            self._rows(inner)

    def _rows(self, inner: Idx) -> None:
        """The same vector of several rows; threads behind the last row repeat it."""
        s, math, ev = self.s, self.frame.math, Evaluator(self.frame, self.s.lanes)
        *outer, row = self.outer
        last = math.sub(self.shape[s.first - 1], 1)
        found = []
        for number in range(s.rows):
            at = math.minimum(math.add(math.mul(row.base, s.rows), number), last)
            self.outer = [*outer, Idx(at, level=1)]
            point = self._point(inner)
            found.append((point, [ev.tensor(value, point) for value in self.source.results]))
        for point, values in found:
            for value, destination in zip(values, self.source.destinations, strict=True):
                memory.store(self.frame, ev.idx, self.frame.buffers[destination], point, value, None)

    def _tail(self, base: Scalar, inner: Scalar) -> None:
        def one(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            self._store(1, self._point(Idx(variable, level=2)))
            return []

        for_loop(self.frame, base, inner, 1, [], one)

    def _point(self, inner: Idx) -> list[Idx]:
        """Domain coordinates: the flattened group is zeros and the linear coordinate last."""
        s = self.s
        if s.flat:
            return self._across_rows(inner)
        group = [Idx(0)] * (s.last - s.first) + [inner]
        return self.outer + group + [Idx(0)] * (len(self.shape) - s.last - 1)

    def _across_rows(self, inner: Idx) -> list[Idx]:
        """Domain coordinates of a vector that may begin in one row and end in the next; a row is no shorter."""
        s, math, constants = self.s, self.frame.math, self.frame.constants
        extents = self.shape[s.first : s.last + 1]
        *outer, column = math.delinearize(inner.base, extents)
        rest = [Idx(0)] * (len(self.shape) - s.last - 1)
        if inner.uniform:
            return [*self.outer, *(Idx(c, level=1) for c in (*outer, column)), *rest]
        ev = Evaluator(self.frame, s.lanes)
        columns, extent = ev.idx.vector(Idx(column, 1)), ev.splat(constants.index(extents[-1]))
        beyond = arith.cmpi(arith.CmpIPredicate.uge, columns, extent)
        row = math.add(math.div(inner.base, extents[-1]), 1)
        found = [arith.select(beyond, arith.subi(columns, extent), columns)]
        for here, there in zip(reversed(outer), reversed(math.delinearize(row, extents[:-1])), strict=True):
            both = [ev.splat(constants.index(c)) for c in (there, here)]
            found.append(arith.select(beyond, *both))
        return [*self.outer, *(Idx(lanes=c, level=1) for c in reversed(found)), *rest]

    def _store(self, lanes: int, point: list[Idx], flat: Idx | None = None) -> None:
        hooks = {} if flat is None else self._hooks(point, flat)
        ev = Evaluator(self.frame, lanes, hooks=hooks)
        for value, destination in zip(self.source.results, self.source.destinations, strict=True):
            buffer, at = self.frame.buffers[destination], point
            if flat is not None:
                buffer, at = self._linear(buffer), [flat]
            memory.store(self.frame, ev.idx, buffer, at, ev.tensor(value, point), None)

    def _hooks(self, point: list[Idx], flat: Idx) -> dict[ir.Value, Hook]:
        """How inputs that lie as the results do are read at `point`: as what they are in memory, from `flat` on."""

        def load(ev: Evaluator, coords: Sequence[Idx], value: ir.Value) -> ir.Value:
            if [c.key() for c in coords] != [c.key() for c in point]:
                return ev.compute(value, coords)
            return memory.load(self.frame, ev.idx, self._linear(self.frame.buffers[value]), [flat], ev.mask)

        def lies_alike(buffer: Buffer) -> bool:
            return len(buffer.shape) == len(self.shape) and buffer.shape[1:] == self.shape[1:]

        alike = [v for v in self.source.tensors if lies_alike(self.frame.buffers[v])]
        return {v: lambda ev, coords, v=v: load(ev, coords, v) for v in alike}  # type: ignore[misc]

    def _linear(self, buffer: Buffer) -> Buffer:
        """A tensor as one row."""
        return Buffer(buffer.memory, buffer.element, [self.frame.math.product(buffer.shape)], [1])
