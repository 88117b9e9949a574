"""`mlc.suppress`: non-maximum suppression of every class.

One work item per class of a batch. Boxes whose scores are high enough are collected and sorted by digits
(`radix_sort`); the destination's line is all the memory that this takes. Then each is compared with the boxes that were
kept before it, whose numbers replace those that have been looked at. The corners of the first `NEAR` of these are on
the stack, so that a vector of boxes is compared at a time. Neubeck and Van Gool, "Efficient non-maximum suppression",
ICPR 2006, section 2; ONNX operator NonMaxSuppression.

Schedule parameters: `digit`, its bits; `lanes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, scf, vector

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Frame, KernelSource, defining_op, for_loop, if_then
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.cpu.radix_sort import DigitSort

NEAR = 512  # boxes whose corners are on the stack
CORNERS = 4  # coordinates of a box
_F, _I = arith.CmpFPredicate, arith.CmpIPredicate


@dataclass(frozen=True)
class SuppressSchedule:
    """Parameters of the template; see the module's description."""

    digit: int
    lanes: int


def expand(source: KernelSource, schedule: SuppressSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    op = defining_op(source.results[0])
    assert op is not None

    def items(frame: Frame) -> list[Scalar]:
        return [frame.extent(op.operands[1], i) for i in range(2)]

    return emit_items(source, items, lambda frame, at: _Class(frame, source, op, at, schedule).run())


class _Class:
    """One class of a batch, and its line of the destination."""

    def __init__(
        self, frame: Frame, source: KernelSource, op: ir.Operation, coords: list[Scalar], schedule: SuppressSchedule
    ) -> None:
        self.frame, self.coords, self.lanes = frame, coords, schedule.lanes
        self.boxes, self.scores, threshold, least, limit = op.operands
        by_result = dict(zip(source.results, source.destinations, strict=True))
        self.kept, self.counts = (frame.buffers[by_result[r]] for r in op.results)
        self.order = DigitSort(frame, self.scores, self.kept, 2, coords, schedule.digit, descending=True)
        ev = Evaluator(frame, 1)
        self.threshold, self.least = ev.tensor(threshold, []), ev.tensor(least, [])
        self.limit = frame.constants.index(frame.scalar(limit))
        self.i1, self.i64 = (ir.IntegerType.get_signless(bits) for bits in (1, 64))
        self.element = self.boxes.type.element_type
        self.near = frame.on_stack(self.element, CORNERS * NEAR)

    def run(self) -> None:
        """Collects, sorts, and keeps boxes."""
        count = self._collect()
        kept = self._keep(count, self.order.sort(count, is_filled=True))
        total, idx = arith.index_cast(self.i64, kept), self.order.idx
        memory.store(self.frame, idx, self.counts, [Idx(c) for c in self.coords], total, None)

    def _collect(self) -> ir.Value:
        """Writes the boxes that may be kept to the line one after the other, and gives their number."""
        frame, index = self.frame, ir.IndexType.get()

        def one(at: ir.Value, count: list[ir.Value]) -> Sequence[ir.Value]:
            # Written in any case, without a branch: what is no candidate is written over.
            self.order.put(self.kept, count[0], arith.index_cast(self.i64, at))
            is_good = arith.cmpf(_F.OGT, self.order.input(at), self.least)
            return [arith.addi(count[0], arith.index_castui(index, is_good))]

        return for_loop(frame, 0, frame.extent(self.scores, 2), 1, [frame.constants.index(0)], one)[0]

    def _keep(self, count: ir.Value, half: ir.Value) -> ir.Value:
        """Walks the sorted candidates until as many are kept as may be; gives how many are."""
        c, index = self.frame.constants, ir.IndexType.get()
        self._clear()
        loop = scf.WhileOp([index, index], [c.index(0), c.index(0)])
        before = loop.regions[0].blocks.append(index, index)
        with ir.InsertionPoint(before):
            at, kept = before.arguments
            goes_on = arith.andi(arith.cmpi(_I.slt, at, count), arith.cmpi(_I.slt, kept, self.limit))
            scf.ConditionOp(goes_on, [at, kept])
        after = loop.regions[1].blocks.append(index, index)
        with ir.InsertionPoint(after):
            at, kept = after.arguments
            box = self.order.position(at, half)
            mine = self._corners(box)
            stays = arith.xori(self._overlaps(mine, kept), c.get(self.i1, 1))
            self.order.put(self.kept, kept, arith.index_cast(self.i64, box))  # before `at`, or there
            is_near = arith.cmpi(_I.slt, kept, c.index(NEAR))
            if_then(arith.andi(stays, is_near), lambda: self._note(kept, mine))
            scf.YieldOp([arith.addi(at, c.index(1)), arith.addi(kept, arith.index_castui(index, stays))])
        return loop.results[1]

    # -- boxes that are kept -------------------------------------------------------------------------------------------

    def _clear(self) -> None:
        """Fills the stack with boxes without area, which no box overlaps."""
        zeros = memory.splat(self.frame.constants.get(self.element, 0.0), self.lanes)

        def clear(at: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            if self.lanes > 1:
                vector.StoreOp(zeros, self.near, [at])
            else:
                memref.store(zeros, self.near, [at])
            return []

        for_loop(self.frame, 0, CORNERS * NEAR, self.lanes, [], clear)

    def _note(self, number: ir.Value, corners: Sequence[ir.Value]) -> None:
        """Puts the corners of box `number` of those that are kept on the stack."""
        for i, corner in enumerate(corners):
            memref.store(corner, self.near, [self.frame.constants.index(self.frame.math.add(number, i * NEAR))])

    def _overlaps(self, mine: Sequence[ir.Value], kept: ir.Value) -> ir.Value:
        """Whether one of the `kept` boxes overlaps the box with the corners `mine`: walks them until one does."""
        c, lanes = self.frame.constants, self.lanes
        several = [memory.splat(corner, lanes) for corner in mine]

        def near(at: ir.Value) -> ir.Value:
            found = self._exceeds(several, [self._near(self.frame.math.add(at, i * NEAR)) for i in range(CORNERS)])
            if lanes == 1:
                return found
            bits = ir.IntegerType.get_signless(lanes)
            packed = vector.extract(vector.bitcast(ir.VectorType.get([1], bits), found), [], [0])
            return arith.cmpi(_I.ne, packed, c.get(bits, 0))

        def far(at: ir.Value) -> ir.Value:
            return self._exceeds(mine, self._corners(self.order.position(at, c.get(self.i64, 0))))

        end = arith.minsi(kept, c.index(NEAR))
        found = self._any(c.index(0), end, lanes, c.get(self.i1, 0), near)
        return self._any(end, kept, 1, found, far)

    def _any(
        self, low: ir.Value, high: ir.Value, step: int, start: ir.Value, test: Callable[[ir.Value], ir.Value]
    ) -> ir.Value:
        """Whether `start` or `test` holds for one of the numbers from `low` to `high`; stops when one does."""
        c, index = self.frame.constants, ir.IndexType.get()
        loop = scf.WhileOp([index, self.i1], [low, start])
        before = loop.regions[0].blocks.append(index, self.i1)
        with ir.InsertionPoint(before):
            at, found = before.arguments
            goes_on = arith.andi(arith.cmpi(_I.slt, at, high), arith.xori(found, c.get(self.i1, 1)))
            scf.ConditionOp(goes_on, [at, found])
        after = loop.regions[1].blocks.append(index, self.i1)
        with ir.InsertionPoint(after):
            at = after.arguments[0]
            scf.YieldOp([arith.addi(at, c.index(step)), test(at)])
        return loop.results[1]

    def _near(self, at: Scalar) -> ir.Value:
        place = [self.frame.constants.index(at)]
        if self.lanes == 1:
            return memref.load(self.near, place)
        return vector.LoadOp(ir.VectorType.get([self.lanes], self.element), self.near, place).result

    def _corners(self, box: ir.Value) -> list[ir.Value]:
        scope = Evaluator(self.frame, 1)
        return [scope.tensor(self.boxes, [Idx(self.coords[0]), Idx(box), Idx(i)]) for i in range(CORNERS)]

    def _exceeds(self, a: Sequence[ir.Value], b: Sequence[ir.Value]) -> ir.Value:
        """Whether the intersection over union of two boxes exceeds the threshold; boxes without area never do."""
        lanes = self.lanes if isinstance(a[0].type, ir.VectorType) else 1
        zero = memory.splat(self.frame.constants.get(self.element, 0.0), lanes)
        threshold = memory.splat(self.threshold, lanes)
        sides = [
            arith.maximumf(arith.subf(arith.minimumf(a[i + 2], b[i + 2]), arith.maximumf(a[i], b[i])), zero)
            for i in (0, 1)
        ]
        shared = arith.mulf(*sides)
        areas = [arith.mulf(arith.subf(x[2], x[0]), arith.subf(x[3], x[1])) for x in (a, b)]
        union = arith.subf(arith.addf(*areas), shared)
        result = arith.cmpf(_F.OGT, shared, arith.mulf(threshold, union))
        for value in (shared, union, *areas):
            result = arith.andi(result, arith.cmpf(_F.OGT, value, zero))
        return result
