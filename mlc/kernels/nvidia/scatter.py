"""`mlc.scatter_elements` and `mlc.scatter_nd` in place (`mlc.inout`), by many threads, with the same bits in every run.

A thread has a line of updates that no other one writes to, and takes them in order: those along the axis for
ScatterElements, one element of all slices for ScatterND. Where the order does not matter, because integers are added or
the larger or smaller one stays, a thread has a single update and memory combines them (`atomic`). Updates that replace
elements get there too: the last one of them is found by its number first (`mlc-order-scatters`). ONNX operators
ScatterElements and ScatterND.

Schedule parameters: `atomic`; `threads` of a block.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mlir import ir
from mlir.dialects import arith, memref

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Buffer, Frame, KernelSource, defining_op, for_loop
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.cpu.scatter import Target, compared, element_target, guarded, slice_target, slices_of, update
from mlc.kernels.nvidia import ALIGNMENT

SCATTERS = ("mlc.scatter_elements", "mlc.scatter_nd")
LONG = 4096  # updates in order that take a thread longer than the host takes for all, unless
MANY = 256  # so many threads are at it
_KIND = arith.AtomicRMWKind
_ATOMICS = {"add": _KIND.addi, "maxs": _KIND.maxs, "maxu": _KIND.maxu, "mins": _KIND.mins, "minu": _KIND.minu}


@dataclass(frozen=True)
class ScatterSchedule:
    """Parameters of the template; see the module's description."""

    threads: int
    atomic: int = 0


def is_atomic(op: ir.Operation) -> bool:
    """Does the order of the updates of a scatter not matter, and has memory instructions for them?"""
    element = op.results[0].type.element_type
    is_word = isinstance(element, ir.IntegerType) and element.width in (32, 64)
    return is_word and compared(op) in _ATOMICS


def in_order(type_: ir.RankedTensorType, op: ir.Operation) -> tuple[int | None, int | None]:
    """How many updates of the tensor of updates `type_` a thread takes one after the other, and how many threads do
    that; None where only a run knows."""
    shape = [None if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]
    if op.name == "mlc.scatter_elements":
        axis = ir.IntegerAttr(op.attributes["axis"]).value
        line, others = [shape[axis]], [e for i, e in enumerate(shape) if i != axis]
    else:
        batch = op.operands[1].type.rank - 1
        line, others = shape[:batch], shape[batch:]
    line_count, other_count = (
        None if None in extents else prod(e for e in extents if e is not None) for extents in (line, others)
    )
    return line_count, other_count


def is_parallel(op: ir.Operation) -> bool:
    """Does a GPU do the scatter `op` in reasonable time, as far as its size is known?"""
    line, others = in_order(op.operands[2].type, op)
    return is_atomic(op) or line is None or line < LONG or others is None or others >= MANY


def is_in_place(source: KernelSource) -> bool:
    """Does a kernel, whose root is a scatter, find what it updates in its destination?"""
    op = defining_op(source.results[0])
    return op is not None and op.operands[0] == source.destinations[0]


def expand(source: KernelSource, schedule: ScatterSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a thread's updates."""
    op = defining_op(source.results[0])
    assert op is not None and is_in_place(source) and (is_atomic(op) or not schedule.atomic)

    def items(frame: Frame) -> list[Scalar]:
        return _Scatter(frame, op, schedule.atomic).items()

    def body(frame: Frame, coords: list[Scalar]) -> None:
        _Scatter(frame, op, schedule.atomic).emit(frame.buffers[source.destinations[0]], coords)

    return emit_items(source, items, body, alignment=ALIGNMENT)


class _Scatter:
    """The updates of a scatter as a box, of which a thread has a point, or a line."""

    def __init__(self, frame: Frame, op: ir.Operation, atomic: int) -> None:
        self.frame, self.op, self.atomic = frame, op, bool(atomic)
        self.is_elements = op.name == "mlc.scatter_elements"
        if self.is_elements:
            updates, axis = op.operands[2], ir.IntegerAttr(op.attributes["axis"]).value
            extents = [frame.extent(updates, i) for i in range(updates.type.rank)]
            self.axis, self.line, self.others = axis, [extents[axis]], [*extents[:axis], *extents[axis + 1 :]]
        else:
            self.axis = 0
            self.line, self.others = slices_of(frame, op)

    def items(self) -> list[Scalar]:
        """The extents of the box of threads."""
        return self._whole(self.line, self.others) if self.atomic else self.others

    def emit(self, output: Buffer, coords: list[Scalar]) -> None:
        """What the thread at `coords` does."""
        if self.atomic:
            line = coords[self.axis : self.axis + len(self.line)]
            self._one(output, line, [*coords[: self.axis], *coords[self.axis + len(line) :]])
            return
        math = self.frame.math

        def one(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            self._one(output, math.delinearize(variable, self.line), coords)
            return []

        for_loop(self.frame, 0, math.product(self.line), 1, [], one)

    def _whole(self, line: list[Scalar], others: list[Scalar]) -> list[Scalar]:
        return [*others[: self.axis], *line, *others[self.axis :]]

    def _one(self, output: Buffer, line: list[Scalar], others: list[Scalar]) -> None:
        """The update at `line` of those in order, and at `others` of those beside each other."""
        coords = self._whole(line, others)
        if self.is_elements:
            target = element_target(self.frame, self.op, output, coords)
        else:
            target = slice_target(self.frame, self.op, output, line).inside(others)
        if self.atomic:
            guarded(self.frame, target, lambda: self._combine(output, target, coords))
        else:
            update(self.frame, self.op, output, target, coords)

    def _combine(self, output: Buffer, target: Target, coords: list[Scalar]) -> None:
        ev = Evaluator(self.frame, 1)
        value = ev.tensor(self.op.operands[2], [Idx(c) for c in coords])
        where = memory.address(output, [Idx(c) for c in target.coords], ev.idx).base
        memref.AtomicRMWOp(_ATOMICS[compared(self.op)], value, output.memory, [self.frame.constants.index(where)])
