"""The parts of columns that threads share: they meet in the warps and then in shared memory, always in the same order.

Neighbouring threads have neighbouring columns, `lanes` each; `split` threads share a column, `width` threads apart.
Those of a column and its neighbours are a warp, or all `threads` of the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, nvvm, vector

from mlc.kernels.common.frame import Frame, for_loop, if_then
from mlc.kernels.common.index import Scalar
from mlc.kernels.nvidia.combinations import Combination
from mlc.kernels.nvidia.threads import (
    WARP,
    Values,
    combine_lanes,
    from_shared,
    shared_array,
    thread_in_group,
    to_shared,
)

MOST_THREADS = 1024  # of a block
MOST_IN_LINE = 128  # values of other threads that a thread reads without a loop,
TOGETHER = 4  # and parts that it reads at a time in one
MOST_COMPARED = 4  # values and positions of other threads that every thread compares itself


def refusal(width: int, split: int, threads: int) -> str:
    """Why threads cannot meet as these numbers say; "" where they can."""
    if threads % WARP or not 0 < threads <= MOST_THREADS:
        return f"{threads} threads are no whole warps of one block"
    if split == 1:
        return ""
    if width * split not in (WARP, threads):
        return f"{width} threads side by side and {split} that share a column are neither a warp nor {threads} threads"
    if WARP % width and width % WARP:
        return f"{width} threads side by side do not divide a warp"
    return ""


@dataclass(frozen=True)
class Meeting:
    """Where the threads of a block meet; see the module's description. Where threads are `full`, what they
    read of others takes registers that they do not have: they share that, too."""

    frame: Frame
    width: int
    lanes: int
    split: int
    threads: int
    full: bool = False

    def combine(self, part: Values, inits: Values, parts: Combination) -> Values:
        """The results of a reduction of which every thread has its `part`, in all threads that share a column."""
        frame = self.frame
        if self.split == 1:
            return parts.finished(inits, part)
        # Threads of a warp that share columns combine their parts first.
        part = combine_lanes(frame, part, self.width, parts.both) if self.width < WARP else part
        if self.width * self.split == WARP:
            return parts.finished(inits, part)
        count = self.threads // max(self.width, WARP)
        # Comparing positions takes many instructions: threads that have nothing else to do share them.
        if (self.full or len(part) > 1) and MOST_COMPARED < count <= WARP and count & (count - 1) == 0:
            return parts.finished(inits, self._by_warps(part, parts, count))
        return self._by_each(part, inits, parts, count)

    def _by_warps(self, part: Values, parts: Combination, count: int) -> Values:
        """All `count` parts of each column as one: neighbouring threads of a warp take one each. A column's parts lie
        side by side in shared memory, one element apart from those of the next one for the sake of the banks."""
        frame, math, index = self.frame, self.frame.math, self.frame.constants.index
        results = self.width * self.lanes
        shared = [shared_array(frame, results * (count + 1), _element(v), n) for n, v in enumerate(part)]
        thread: Scalar = thread_in_group(frame, self.threads, is_block=True)
        # Before the first write: a slower thread may still read what another reduction has found.
        nvvm.Barrier0Op()
        self._write(part, shared, thread, count)
        nvvm.Barrier0Op()
        taking, together = results * count, self.threads // count
        member, group = math.rem(thread, count), math.div(thread, count)

        def take(first: int) -> None:
            # Threads beyond the last column repeat it: all of a warp exchange values.
            place = math.mul(math.minimum(math.add(group, first), results - 1), count + 1)
            found: Values = [
                from_shared(frame, a, math.add(place, member), _element(v)) for a, v in zip(shared, part, strict=True)
            ]
            found = combine_lanes(frame, found, 1, parts.both, last=count)

            def keep() -> None:
                for array, value in zip(shared, found, strict=True):
                    to_shared(frame, array, math.add(place, count), value)

            if_then(arith.cmpi(arith.CmpIPredicate.eq, index(member), index(0)), keep)

        def take_all() -> None:
            for first in range(0, results, together):
                take(first)

        if taking <= self.threads - WARP:
            warps = -(-taking // WARP) * WARP
            if_then(arith.cmpi(arith.CmpIPredicate.ult, index(thread), index(warps)), take_all)
        else:
            take_all()
        nvvm.Barrier0Op()
        return [self._totals(array, value.type, thread, count) for array, value in zip(shared, part, strict=True)]

    def _write(self, part: Values, shared: Sequence[ir.Value], thread: Scalar, count: int) -> None:
        """The parts of this thread's columns to where `_by_warps` looks for them, once for each warp."""
        frame, math, index = self.frame, self.frame.math, self.frame.constants.index
        owners = max(self.width, WARP)
        column, owner = math.rem(thread, owners), math.div(thread, owners)

        def write() -> None:
            for array, value in zip(shared, part, strict=True):
                is_one = self.lanes == 1
                lanes = [value] if is_one else [vector.extract(value, [], [lane]) for lane in range(self.lanes)]
                for lane, one in enumerate(lanes):
                    place = math.mul(math.add(math.mul(column, self.lanes), lane), count + 1)
                    to_shared(frame, array, math.add(place, owner), one)

        if self.width < WARP:
            if_then(arith.cmpi(arith.CmpIPredicate.ult, index(column), index(self.width)), write)
        else:
            write()

    def _totals(self, array: ir.Value, type_: ir.Type, thread: Scalar, count: int) -> ir.Value:
        """What `_by_warps` has found for the columns of this thread, of type `type_`."""
        frame, math = self.frame, self.frame.math
        column = math.mul(math.rem(thread, self.width), self.lanes)
        element = type_.element_type if isinstance(type_, ir.VectorType) else type_
        places = [math.add(math.mul(math.add(column, lane), count + 1), count) for lane in range(self.lanes)]
        found = [from_shared(frame, array, place, element) for place in places]
        return vector.from_elements(type_, found) if isinstance(type_, ir.VectorType) else found[0]

    def _by_each(self, part: Values, inits: Values, parts: Combination, count: int) -> Values:
        """All `count` parts of each column as one: every thread takes those of its columns."""
        frame, math = self.frame, self.frame.math
        owners = max(self.width, WARP)  # threads of which the first `width` have a part
        size = self.threads * self.lanes
        shared = [shared_array(frame, size, _element(value), number) for number, value in enumerate(part)]
        thread = thread_in_group(frame, self.threads, is_block=True)
        # Before the first write: a slower thread may still read the parts of another reduction.
        nvvm.Barrier0Op()
        for array, value in zip(shared, part, strict=True):
            to_shared(frame, array, math.mul(thread, self.lanes), value)
        nvvm.Barrier0Op()
        column = math.rem(thread, self.width)

        def of_owner(other: Scalar) -> Values:
            place = math.mul(math.add(column, math.mul(other, owners)), self.lanes)
            return [from_shared(frame, array, place, v.type) for array, v in zip(shared, part, strict=True)]

        def several(variable: ir.Value, carried: list[ir.Value]) -> Values:
            total: Values = carried
            for number in range(TOGETHER):
                total = parts.both(total, of_owner(math.add(variable, number)))
            return total

        # Comparing positions takes registers, too. What a loop takes is whole turns.
        in_line = count if count * self.lanes * len(part) ** 2 <= MOST_IN_LINE else TOGETHER + count % TOGETHER
        total = parts.finished(inits, of_owner(0))
        for other in range(1, in_line):
            total = parts.both(total, of_owner(other))
        # A loop, as all that is loaded from shared memory at a time must have registers.
        return for_loop(frame, in_line, count, TOGETHER, total, several) if in_line < count else total


def _element(value: ir.Value) -> ir.Type:
    return value.type.element_type if isinstance(value.type, ir.VectorType) else value.type
