"""`mlc.scan`: running sums and products along an axis. ONNX operators CumSum, CumProd.

A work item is a line along the axis, or, where the axis is not the innermost dimension, `vectors` vectors of
neighbouring lines, or a `block` of so many neighbouring elements: then memory is walked in its own order, and what has
been summed so far is read from the result, where it has just been written. The elements of a line are combined in their
order, narrow floats in f32, whose lines are no `block`s: what was summed so far would be rounded each time.

Schedule parameters: `lanes`, 1 for single lines; `vectors`; `block`, in place of `vectors` when it is not 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator, lane_mask
from mlc.kernels.common.frame import Frame, KernelSource, defining_op, for_loop
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items


@dataclass(frozen=True)
class ScanSchedule:
    """Parameters of the template; see the module's description."""

    lanes: int = 1
    vectors: int = 1
    block: int = 0


def expand(source: KernelSource, schedule: ScanSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    scan = _Scan(source, schedule)
    return emit_items(source, scan.items, scan.lines)


class _Scan:
    def __init__(self, source: KernelSource, schedule: ScanSchedule) -> None:
        op = defining_op(source.results[0])
        assert op is not None
        self.s = schedule
        self.tensor, self.destination = op.operands[0], source.destinations[0]
        self.axis = ir.IntegerAttr(op.attributes["axis"]).value
        self.kind = ir.StringAttr(op.attributes["kind"]).value
        self.exclusive, self.reverse = (ir.BoolAttr(op.attributes[n]).value for n in ("exclusive", "reverse"))
        self.rank = self.tensor.type.rank
        name = source.func.name.value
        if "part" in op.attributes:
            raise ValueError(f"kernel {name}: parts of lines are for GPUs")
        if schedule.lanes > 1 and self.axis == self.rank - 1:
            raise ValueError(f"kernel {name}: lines along the innermost dimension are no vectors")
        if schedule.block and self.exclusive:
            raise ValueError(f"kernel {name}: exclusive sums are not what was summed so far")
        if schedule.block and accumulator(self.tensor.type.element_type) != self.tensor.type.element_type:
            raise ValueError(f"kernel {name}: rounded sums are not what was summed so far")

    def items(self, frame: Frame) -> list[Scalar]:
        """Extents of the grid: the other dimensions, the innermost one in blocks."""
        extents = [frame.extent(self.tensor, i) for i in range(self.rank) if i != self.axis]
        if self.s.lanes > 1:
            extents[-1] = frame.math.ceildiv(extents[-1], self.s.block or self.s.lanes * self.s.vectors)
        return extents

    def lines(self, frame: Frame, coords: list[Scalar]) -> None:
        """The line or the lines of a work item."""
        if self.s.lanes == 1:
            self._run(frame, [[Idx(c) for c in coords]], [None])
            return
        math, c = frame.math, frame.constants
        extent = frame.extent(self.tensor, self.rank - 1)
        if self.s.block:
            start = math.mul(coords[-1], self.s.block)
            self._block(frame, coords[:-1], start, math.minimum(math.add(start, self.s.block), extent))
            return
        places, masks = [], []
        for v in range(self.s.vectors):
            at = math.add(math.mul(coords[-1], self.s.lanes * self.s.vectors), v * self.s.lanes)
            places.append([*(Idx(x) for x in coords[:-1]), Idx(at, 1)])
            exact = isinstance(extent, int) and extent % (self.s.lanes * self.s.vectors) == 0
            left = math.maximum(math.sub(extent, at), 0)
            masks.append(None if exact else lane_mask(frame, self.s.lanes, c.index(left)))
        self._run(frame, places, masks)

    def _run(self, frame: Frame, places: list[list[Idx]], masks: list[ir.Value | None]) -> None:
        """Along the axis, all lines at once; `places` are their coordinates in the other dimensions."""
        axis, extent, element = self.axis, frame.extent(self.tensor, self.axis), self.tensor.type.element_type
        ev = Evaluator(frame, self.s.lanes)

        def step(variable: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            at: Scalar = variable
            if self.reverse:
                at = frame.math.sub(frame.math.sub(extent, 1), variable)
            totals = []
            for place, mask, before in zip(places, masks, carried, strict=True):
                point = [*place[:axis], Idx(at), *place[axis:]]
                scope = ev.child(mask=mask)
                total = combined(self.kind, before, widened(scope.splat(scope.tensor(self.tensor, point))))
                result = before if self.exclusive else total
                stored = narrowed(result, element)
                memory.store(frame, scope.idx, frame.buffers[self.destination], point, stored, mask)
                totals.append(total)
            return totals

        start = memory.splat(identity(frame, self.kind, accumulator(element)), self.s.lanes)
        for_loop(frame, 0, extent, 1, [start] * len(places), step)

    def _block(self, frame: Frame, outer: list[Scalar], low: Scalar, high: Scalar) -> None:
        """The elements `low` to `high` of the innermost dimension, in the order of memory."""
        math, lanes = frame.math, self.s.lanes
        extent, inner = frame.extent(self.tensor, self.axis), frame.extent(self.tensor, self.rank - 1)
        whole = math.add(low, math.mul(math.div(math.sub(high, low), lanes), lanes))
        exact = isinstance(inner, int) and inner % lanes == 0 and self.s.block % lanes == 0

        def row(variable: Scalar, is_first: bool) -> list[ir.Value]:
            at = math.sub(math.sub(extent, 1), variable) if self.reverse else variable
            before = None if is_first else math.add(at, 1) if self.reverse else math.sub(at, 1)

            def vectors(position: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                self._vector(frame, outer, at, before, position, None)
                return []

            for_loop(frame, low, high if exact else whole, lanes, [], vectors)
            if not exact:
                left = frame.constants.index(math.sub(high, whole))
                self._vector(frame, outer, at, before, whole, lane_mask(frame, lanes, left))
            return []

        for_loop(frame, 0, math.minimum(extent, 1), 1, [], lambda v, _: row(0, True))
        for_loop(frame, 1, extent, 1, [], lambda v, _: row(v, False))

    def _vector(
        self,
        frame: Frame,
        outer: list[Scalar],
        at: Scalar,
        before: Scalar | None,
        position: Scalar,
        mask: ir.Value | None,
    ) -> None:
        """A vector of results `at` a coordinate of the axis, from those at `before`."""
        destination = frame.buffers[self.destination]

        def point(along: Scalar) -> list[Idx]:
            dims = [*outer[: self.axis], along, *outer[self.axis :]]
            return [*(Idx(d) for d in dims), Idx(position, 1)]

        scope = Evaluator(frame, self.s.lanes, mask)
        if before is None:
            total = memory.splat(identity(frame, self.kind, self.tensor.type.element_type), self.s.lanes)
        else:
            total = memory.load(frame, scope.idx, destination, point(before), mask)
        result = combined(self.kind, total, scope.splat(scope.tensor(self.tensor, point(at))))
        memory.store(frame, scope.idx, destination, point(at), result, mask)


def accumulator(element: ir.Type) -> ir.Type:
    """The type in which elements are combined: narrow floats are in f32, and rounded once for each result."""
    return ir.F32Type.get() if isinstance(element, ir.FloatType) and element.width < 32 else element


def widened(value: ir.Value) -> ir.Value:
    """Elements as they are combined."""
    return _converted(arith.extf, value, accumulator(_element(value)))


def narrowed(value: ir.Value, element: ir.Type) -> ir.Value:
    """What was combined as results of type `element`."""
    return _converted(arith.truncf, value, element)


def _converted(convert: Callable[[ir.Type, ir.Value], ir.Value], value: ir.Value, element: ir.Type) -> ir.Value:
    if _element(value) == element:
        return value
    is_vector = isinstance(value.type, ir.VectorType)
    return convert(ir.VectorType.get(value.type.shape, element) if is_vector else element, value)


def identity(frame: Frame, kind: str, element: ir.Type) -> ir.Value:
    """What changes nothing that it is combined with."""
    is_float = isinstance(element, ir.FloatType)
    if kind in ("sum", "prod"):
        value: int | float = 0 if kind == "sum" else 1
        return frame.constants.get(element, float(value) if is_float else value)
    sign = -1 if kind == "max" else 1
    if is_float:
        return frame.constants.get(element, sign * float("inf"))
    limit = 1 << (ir.IntegerType(element).width - 1)
    return frame.constants.get(element, -limit if kind == "max" else limit - 1)


def combined(kind: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """`a`, which comes first, and `b`, of the same type."""
    floats = {"sum": arith.addf, "prod": arith.mulf, "max": arith.maximumf, "min": arith.minimumf}
    integers = {"sum": arith.addi, "prod": arith.muli, "max": arith.maxsi, "min": arith.minsi}
    return (floats if isinstance(_element(a), ir.FloatType) else integers)[kind](a, b)


def _element(value: ir.Value) -> ir.Type:
    return value.type.element_type if isinstance(value.type, ir.VectorType) else value.type
