"""What one work item leaves on the stack for the next: it is made where another one is there."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir
from mlir.dialects import arith, memref

from mlc.kernels.common.frame import Frame, if_then
from mlc.kernels.common.index import Scalar


class Once:
    """Remembers by its number what is there, in each of some places, for a call of the kernel, which may have many work
    items."""

    def __init__(self, frame: Frame, places: int = 1) -> None:
        self.frame = frame
        with frame.prologue():
            self.there = memref.AllocaOp(ir.MemRefType.get([places], ir.IndexType.get()), [], []).result
            for place in range(places):
                memref.store(frame.constants.index(-1), self.there, [frame.constants.index(place)])

    def make(self, number: Scalar, emit: Callable[[], None], place: Scalar = 0) -> None:
        """What has `number` at `place`, by `emit` unless it is there."""
        constants = self.frame.constants
        at = [constants.index(place)]
        here, there = constants.index(number), memref.load(self.there, at)

        def made() -> None:
            emit()
            memref.store(here, self.there, at)

        if_then(arith.cmpi(arith.CmpIPredicate.ne, here, there), made)

    def expect(self, number: Scalar, before: Scalar, place: Scalar = 0) -> None:
        """What has `number` will be at `place` before it is asked for: this work item and those next to it make it
        together, with `before` of them in front of this one. If these were not all of this call, it will not be
        whole."""
        constants = self.frame.constants
        at, here = [constants.index(place)], constants.index(number)
        is_first = arith.cmpi(arith.CmpIPredicate.eq, constants.index(before), constants.index(0))
        is_there = arith.cmpi(arith.CmpIPredicate.eq, memref.load(self.there, at), here)
        memref.store(arith.select(arith.ori(is_first, is_there), here, constants.index(-1)), self.there, at)
