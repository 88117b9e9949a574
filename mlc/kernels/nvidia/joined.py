"""Joined kernels: several elementwise kernels that know nothing of each other, in one launch.

Every part has results of its own over a domain of its own, and does what the template `elementwise` would do for it
alone. Blocks have items of one part each: the items of a part are followed by as many idle ones as its last block has.

The kernel module says in `mlc.parts` how many of its results each part has, in their order. Schedule parameters:
`threads`: of a block; `lanes`, `first`, `last`, `rows`, `flat`: those of `elementwise`, one for each part, separated by
blanks.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common.analysis import reachable
from mlc.kernels.common.blocks import read_inside
from mlc.kernels.common.frame import Frame, KernelSource, if_then
from mlc.kernels.common.index import Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.nvidia import ALIGNMENT
from mlc.kernels.nvidia.elementwise import ElementwiseSchedule, emit_vector, vectors

PARTS = "mlc.parts"
"""The attribute of a kernel module whose kernel is joined: the number of results of each part."""


@dataclass(frozen=True)
class JoinedSchedule:
    """Parameters of the template; see the module's description."""

    threads: int
    lanes: str
    first: str
    last: str
    rows: str
    flat: str

    def parts(self) -> list[ElementwiseSchedule]:
        """The schedule of each part."""
        columns = (self.lanes, self.first, self.last, self.rows, self.flat)
        found = zip(*([int(number) for number in column.split()] for column in columns), strict=True)
        return [
            ElementwiseSchedule(lanes, first, last, self.threads, rows, flat)
            for lanes, first, last, rows, flat in found
        ]


@dataclass
class Part(KernelSource):
    """`count` results of a kernel from number `begin` on, and what they are computed of."""

    begin: int
    count: int

    @property
    def whole(self) -> KernelSource:
        """The kernel."""
        return KernelSource(self.module, self.func)

    @property
    def results(self) -> list[ir.Value]:
        return self.whole.results[self.begin : self.begin + self.count]

    @property
    def destinations(self) -> list[ir.Value]:
        return self.whole.destinations[self.begin : self.begin + self.count]

    @property
    def tensors(self) -> list[ir.Value]:
        used = {value for op in reachable(self.results) for value in read_inside(op)}
        return [t for t in self.whole.tensors if t in used or t in self.destinations]


def is_joined(source: KernelSource) -> bool:
    """Does a kernel have parts?"""
    return PARTS in source.module.attributes


def parts_of(source: KernelSource) -> list[Part]:
    """The parts of a joined kernel."""
    found, begin = [], 0
    for count in ir.DenseI64ArrayAttr(source.module.attributes[PARTS]):
        found.append(Part(source.module, source.func, begin, count))
        begin += count
    return found


def expand(source: KernelSource, schedule: JoinedSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a vector of a part, or idle.

    Raises ValueError where `elementwise` would, and where the schedule is one of another number of parts.
    """
    parts, schedules = parts_of(source), schedule.parts()
    if len(parts) != len(schedules):
        raise ValueError(f"kernel {source.func.name.value}: {len(parts)} parts, and schedules of {len(schedules)}")

    def counts(frame: Frame) -> list[Scalar]:
        every = zip(parts, schedules, strict=True)
        return [frame.math.product(vectors(frame, part, s)) for part, s in every]

    def held(frame: Frame, count: Scalar) -> Scalar:
        return frame.math.mul(frame.math.ceildiv(count, schedule.threads), schedule.threads)

    def items(frame: Frame) -> list[Scalar]:
        total: Scalar = 0
        for count in counts(frame):
            total = frame.math.add(total, held(frame, count))
        return [total]

    def body(frame: Frame, coords: list[Scalar]) -> None:
        index, math, (item,), numbers = frame.constants.index, frame.math, coords, counts(frame)

        def from_part(number: int, begin: Scalar) -> None:
            here = math.sub(item, begin)

            def emit() -> None:
                extents = vectors(frame, parts[number], schedules[number])
                emit_vector(parts[number], schedules[number], frame, math.delinearize(here, extents))

            def run() -> None:
                if_then(arith.cmpi(arith.CmpIPredicate.ult, index(here), index(numbers[number])), emit)

            end = math.add(begin, held(frame, numbers[number]))
            if number + 1 == len(parts):
                run()
            else:
                is_here = arith.cmpi(arith.CmpIPredicate.ult, index(item), index(end))
                if_then(is_here, run, lambda: from_part(number + 1, end))

        from_part(0, 0)

    return emit_items(source, items, body, alignment=ALIGNMENT)
