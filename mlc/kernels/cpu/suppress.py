"""`mlc.suppress`: the greedy part of non-maximum suppression.

One work item per group, boxes in their order; a candidate is compared with the boxes that were kept before it, which
the destination itself remembers. Neubeck and Van Gool, "Efficient non-maximum suppression", ICPR 2006, section 2; ONNX
operator NonMaxSuppression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, scf

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Buffer, Frame, KernelSource, defining_op, for_loop
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items


@dataclass(frozen=True)
class SuppressSchedule:
    """No parameters."""


def expand(source: KernelSource, schedule: SuppressSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    op = defining_op(source.results[0])
    assert op is not None

    def items(frame: Frame) -> list[Scalar]:
        return [frame.extent(op.operands[0], 0)]

    def body(frame: Frame, coords: list[Scalar]) -> None:
        _Group(frame, op, frame.buffers[source.destinations[0]], coords[0]).run()

    return emit_items(source, items, body)


class _Group:
    """One group of boxes and its row of the destination."""

    def __init__(self, frame: Frame, op: ir.Operation, output: Buffer, group: Scalar) -> None:
        self.frame, self.group, self.output = frame, group, output
        self.boxes, self.candidates, threshold, limit = op.operands
        self.ev = Evaluator(frame, 1)
        self.threshold = self.ev.tensor(threshold, [])
        self.limit = frame.constants.index(frame.scalar(limit))

    def run(self) -> None:
        frame = self.frame
        extent = frame.extent(self.boxes, 1)
        for_loop(frame, 0, extent, 1, [frame.constants.index(0)], self._box)

    def _box(self, at: ir.Value, kept: list[ir.Value]) -> Sequence[ir.Value]:
        """Decides about one box; carries how many are kept."""
        c, i1 = self.frame.constants, ir.IntegerType.get_signless(1)
        scope = self.ev.child()
        candidate = scope.tensor(self.candidates, [Idx(self.group), Idx(at)])
        wanted = arith.andi(candidate, arith.cmpi(arith.CmpIPredicate.slt, kept[0], self.limit))
        branch = scf.IfOp(wanted, [i1], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp([arith.xori(self._overlaps(at), c.get(i1, 1))])
        with ir.InsertionPoint(branch.else_block):
            scf.YieldOp([c.get(i1, 0)])
        point = [Idx(self.group), Idx(at)]
        memory.store(self.frame, scope.idx, self.output, point, branch.results[0], None)
        return [arith.addi(kept[0], arith.index_castui(ir.IndexType.get(), branch.results[0]))]

    def _overlaps(self, at: ir.Value) -> ir.Value:
        """Whether a box kept before overlaps box `at`: walks them until one does."""
        c, i1, index = self.frame.constants, ir.IntegerType.get_signless(1), ir.IndexType.get()
        mine = self._corners(at)
        loop = scf.WhileOp([index, i1], [c.index(0), c.get(i1, 0)])
        before = loop.regions[0].blocks.append(index, i1)
        with ir.InsertionPoint(before):
            position, found = before.arguments
            inside = arith.cmpi(arith.CmpIPredicate.slt, position, at)
            scf.ConditionOp(arith.andi(inside, arith.xori(found, c.get(i1, 1))), [position, found])
        after = loop.regions[1].blocks.append(index, i1)
        with ir.InsertionPoint(after):
            position = after.arguments[0]
            idx = self.ev.idx
            kept = memory.load(self.frame, idx, self.output, [Idx(self.group), Idx(position)], None)
            branch = scf.IfOp(kept, [i1], has_else=True)
            with ir.InsertionPoint(branch.then_block):
                scf.YieldOp([self._exceeds(mine, self._corners(position))])
            with ir.InsertionPoint(branch.else_block):
                scf.YieldOp([c.get(i1, 0)])
            scf.YieldOp([arith.addi(position, c.index(1)), branch.results[0]])
        return loop.results[1]

    def _corners(self, at: ir.Value) -> list[ir.Value]:
        scope = Evaluator(self.frame, 1)
        return [scope.tensor(self.boxes, [Idx(self.group), Idx(at), Idx(i)]) for i in range(4)]

    def _exceeds(self, a: Sequence[ir.Value], b: Sequence[ir.Value]) -> ir.Value:
        """Whether the intersection over union of two boxes exceeds the threshold; boxes without area never do."""
        type_ = a[0].type
        zero = self.frame.constants.get(type_, 0.0)
        sides = [
            arith.maximumf(arith.subf(arith.minimumf(a[i + 2], b[i + 2]), arith.maximumf(a[i], b[i])), zero)
            for i in (0, 1)
        ]
        shared = arith.mulf(*sides)
        areas = [arith.mulf(arith.subf(x[2], x[0]), arith.subf(x[3], x[1])) for x in (a, b)]
        union = arith.subf(arith.addf(*areas), shared)
        greater = arith.CmpFPredicate.OGT
        result = arith.cmpf(greater, shared, arith.mulf(self.threshold, union))
        for value in (shared, union, *areas):
            result = arith.andi(result, arith.cmpf(greater, value, zero))
        return result
