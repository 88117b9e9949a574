"""`mlc.topk`, and `mlc.sort` of short lines: the best k elements of every line, in order.

One work item per line. The destination itself is a binary heap of the best k seen so far with the worst on top
(Williams, "Algorithm 232: Heapsort", 1964), which is then sorted in place: n log k comparisons, no scratch memory.
Elements are ordered by value, then by position, which makes the order total and the result stable; a NaN ranks as the
largest value. Values of up to 32 bits make one integer with their positions, and the heap is one of such keys
(`select_keys`); only in lines of more than 2^32 elements, and where they are not in memory, both are compared.
Where the line is contiguous, a vector of elements is compared with the worst entry at once: most have none that is
better. ONNX operator TopK; NumPy `argsort(kind="stable")`.

Schedule parameters: `lanes`, 1 where lines are not contiguous.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Buffer, Frame, KernelSource, defining_op, if_then
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.cpu.select_keys import MOST, KeyedLine, has_keys
from mlc.kernels.cpu.select_line import Line, each_bit

Entry = tuple[ir.Value, ir.Value]  # value, position (i64)


@dataclass(frozen=True)
class SelectSchedule:
    """Parameters of the template; see the module's description."""

    lanes: int = 1


def expand(source: KernelSource, schedule: SelectSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    op = defining_op(source.results[0])
    assert op is not None
    tensor, axis = op.operands[0], ir.IntegerAttr(op.attributes["axis"]).value
    if "part" in op.attributes or op.name == "mlc.topk" and len(op.operands) > 2:
        raise ValueError(f"kernel {source.func.name.value}: parts of lines are for GPUs")

    def items(frame: Frame) -> list[Scalar]:
        return [frame.extent(tensor, i) for i in range(tensor.type.rank) if i != axis]

    return emit_items(source, items, lambda frame, coords: emit_line(frame, source, op, coords, schedule.lanes))


def destinations(frame: Frame, source: KernelSource, op: ir.Operation) -> tuple[Buffer, Buffer]:
    """Where the values and the positions that `op`, an `mlc.topk` or `mlc.sort`, finds belong."""
    by_result = dict(zip(source.results, source.destinations, strict=True))
    values, positions = (by_result.get(r) for r in op.results)
    if values is None or positions is None:
        raise ValueError(f"kernel {source.func.name.value}: both results of {op.name} need a destination")
    return frame.buffers[values], frame.buffers[positions]


def emit_line(frame: Frame, source: KernelSource, op: ir.Operation, coords: list[Scalar], lanes: int) -> None:
    """The best elements of the line of `op`'s operand at `coords`."""
    tensor, axis = op.operands[0], ir.IntegerAttr(op.attributes["axis"]).value
    largest = ir.BoolAttr(op.attributes["largest" if op.name == "mlc.topk" else "descending"]).value
    element = tensor.type.element_type
    unsigned = "unsigned" in op.attributes or element == ir.IntegerType.get_signless(1)
    arguments = (frame, tensor, destinations(frame, source, op), axis, coords, largest, unsigned, lanes)
    extent = frame.extent(tensor, axis)
    if tensor not in frame.buffers or not has_keys(element) or isinstance(extent, int) and extent > MOST:
        _Line(*arguments).run()
    elif isinstance(extent, int):
        KeyedLine(*arguments).run()
    else:
        few = arith.cmpi(arith.CmpIPredicate.sle, extent, frame.constants.index(MOST))
        if_then(few, KeyedLine(*arguments).run, _Line(*arguments).run)


class _Line(Line[Entry]):
    """A line whose entries are a value and its position, in the destinations of both."""

    def _entry(self, at: Scalar) -> Entry:
        point = [Idx(c) for c in [*self.coords[: self.axis], at, *self.coords[self.axis :]]]
        value = Evaluator(self.frame, 1).tensor(self.tensor, point)
        i64 = ir.IntegerType.get_signless(64)
        return value, arith.index_cast(i64, self.frame.constants.index(at))

    def _point(self, at: Scalar) -> list[Idx]:
        return [Idx(c) for c in [*self.coords[: self.axis], at, *self.coords[self.axis :]]]

    def _get(self, at: Scalar) -> Entry:
        point = self._point(at)
        return (
            memory.load(self.frame, self.idx, self.values, point, None),
            memory.load(self.frame, self.idx, self.positions, point, None),
        )

    def _put(self, at: Scalar, entry: Entry) -> None:
        point = self._point(at)
        memory.store(self.frame, self.idx, self.values, point, entry[0], None)
        memory.store(self.frame, self.idx, self.positions, point, entry[1], None)

    def _worse(self, a: Entry, b: Entry) -> ir.Value:
        """Does `a` rank after `b`?"""
        before, equal = self._compare(b[0], a[0])
        later = arith.cmpi(arith.CmpIPredicate.sgt, a[1], b[1])
        return arith.ori(before, arith.andi(equal, later))

    def _compare(self, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
        """(`a` ranks before `b` by value alone, they are equal in rank)."""
        type_ = a.type.element_type if isinstance(a.type, ir.VectorType) else a.type
        if not isinstance(type_, ir.FloatType):
            i = arith.CmpIPredicate
            more, less = (i.ugt, i.ult) if self.unsigned else (i.sgt, i.slt)
            return arith.cmpi(more if self.largest else less, a, b), arith.cmpi(i.eq, a, b)
        p = arith.CmpFPredicate
        nan_a, nan_b = arith.cmpf(p.UNO, a, a), arith.cmpf(p.UNO, b, b)
        true = self.frame.constants.get(ir.IntegerType.get_signless(1), 1)
        if isinstance(nan_a.type, ir.VectorType):
            true = memory.splat(true, self.lanes)
        first, second = (nan_a, nan_b) if self.largest else (nan_b, nan_a)
        ordered = arith.cmpf(p.OGT if self.largest else p.OLT, a, b)
        before = arith.ori(ordered, arith.andi(first, arith.xori(second, true)))
        return before, arith.ori(arith.cmpf(p.OEQ, a, b), arith.andi(nan_a, nan_b))

    def _offer_vector(self, at: ir.Value) -> list[ir.Value]:
        """Offer those of `lanes` elements that rank before the worst entry by value."""
        frame, c, lanes = self.frame, self.frame.constants, self.lanes
        bits = ir.IntegerType.get_signless(lanes)

        def nonempty() -> None:
            point = [*(Idx(x) for x in self.coords[: self.axis]), Idx(at, 1)]
            several = Evaluator(frame, lanes).tensor(self.tensor, point)
            better = self._compare(several, memory.splat(self._get(0)[0], lanes))[0]
            packed = vector.bitcast(ir.VectorType.get([1], bits), better)
            each_bit(frame, vector.extract(packed, [], [0]), lambda lane: self._offer(frame.math.add(at, lane)))

        if_then(arith.cmpi(arith.CmpIPredicate.ugt, c.index(self.size), c.index(0)), nonempty)
        return []

    def _offer(self, at: Scalar) -> list[ir.Value]:
        """Replace the worst entry when the new one is better."""

        def nonempty() -> None:
            entry = self._entry(at)
            if_then(self._worse(self._get(0), entry), lambda: self._sift(0, self.size, entry))

        c = self.frame.constants
        if_then(arith.cmpi(arith.CmpIPredicate.ugt, c.index(self.size), c.index(0)), nonempty)
        return []

    def _worse_child(self, left: Scalar, size: Scalar, entry: Entry) -> tuple[ir.Value, Entry, ir.Value]:
        math, c = self.frame.math, self.frame.constants
        right = math.add(left, 1)
        exists = arith.cmpi(arith.CmpIPredicate.ult, c.index(right), c.index(size))
        safe = arith.select(exists, c.index(right), c.index(left))
        use_right = arith.andi(exists, self._worse(self._get(safe), self._get(left)))
        child = arith.select(use_right, c.index(right), c.index(left))
        found = self._get(child)
        return child, found, self._worse(found, entry)
