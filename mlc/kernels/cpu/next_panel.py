"""Brings the panel of a packed weight that comes next into the caches while one is being multiplied.

The first tile of rows of a panel reads it from memory, or from the last level of cache, and all others from the second
one. Fetching within the panel would leave as little time for it as that tile takes. The next panel has all the time
that this one takes: every step of every tile fetches a little of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir.dialects import memref

from mlc.kernels.common import memory
from mlc.kernels.common.frame import Buffer, Frame
from mlc.kernels.common.index import IndexMath, Scalar


@dataclass(frozen=True)
class NextPanel:
    """The panel of `size` bytes that begins at element `start` of `buffer`, to be fetched while `rows` rows are
    multiplied, of which the first one of the work item is number `first`."""

    frame: Frame
    buffer: Buffer
    start: Scalar
    size: int
    rows: int
    first: Scalar

    def fetch(self, row: Scalar, height: int, loops: Sequence[tuple[Scalar, Scalar]]) -> None:
        """Fetches what one step of the tile of `height` rows from `row` on has to fetch (`lines`)."""
        width = self.buffer.element.width // 8
        for at in self.lines(self.frame.math, row, height, loops):
            element = self.frame.math.add(self.start, self.frame.math.div(at, width))
            memref.PrefetchOp(self.buffer.memory, [self.frame.constants.index(element)], False, 3, True)

    def lines(self, math: IndexMath, row: Scalar, height: int, loops: Sequence[tuple[Scalar, Scalar]]) -> list[Scalar]:
        """A byte of each line of the panel that one step fetches. `loops` are those of the reduction, from the
        outermost on: at which step each is, and of how many. Rows behind those that have fetched everything ask for
        the end again, which costs nothing."""
        steps = math.product([extent for _, extent in loops])
        assert isinstance(steps, int)
        share = -(-self.size // (steps * self.rows))  # bytes for a row and step
        part = share * height
        before = math.mul(math.add(self.first, row), share * steps)
        first = math.add(math.minimum(before, max(0, self.size - part * steps)), math.mul(number_of(math, loops), part))
        return [math.add(first, line) for line in range(0, part, memory.LINE)]


def number_of(math: IndexMath, point: Sequence[tuple[Scalar, Scalar]]) -> Scalar:
    """The number of a point, coordinates and extents, in a box that is row-major."""
    number: Scalar = 0
    for at, extent in point:
        number = math.add(math.mul(number, extent), at)
    return number
