"""What one work item leaves on the stack for the next: it is made where another one is there."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir
from mlir.dialects import arith, memref

from mlc.kernels.common.frame import Frame, if_then
from mlc.kernels.common.index import Scalar


class Once:
    """Remembers by its number what is there, for a call of the kernel, which may have many work items."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        with frame.prologue():
            self.there = memref.AllocaOp(ir.MemRefType.get([1], ir.IndexType.get()), [], []).result
            memref.store(frame.constants.index(-1), self.there, [frame.constants.index(0)])

    def make(self, number: Scalar, emit: Callable[[], None]) -> None:
        """What has `number`, by `emit` unless it is there."""
        constants = self.frame.constants
        here, there = constants.index(number), memref.load(self.there, [constants.index(0)])

        def made() -> None:
            emit()
            memref.store(here, self.there, [constants.index(0)])

        if_then(arith.cmpi(arith.CmpIPredicate.ne, here, there), made)
