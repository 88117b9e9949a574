"""Brings the panel of a packed weight that comes next into the caches while one is being multiplied.

The first tile of rows of a panel reads it from memory, or from the last level of cache, and all others from the second
one. Fetching within the panel would leave as little time for it as that tile takes. The next panel has all the time
that this one takes: every step of every tile fetches a little of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir.dialects import arith, memref

from mlc.kernels.common import memory
from mlc.kernels.common.frame import Buffer, Frame
from mlc.kernels.common.index import IndexMath, Scalar

FETCHING_TILES = 4  # tiles of rows from which on there is time to fetch the next panel meanwhile
FETCHING_ROWS = 2  # rows from which on it pays where what the second level of cache lacks is far away
_FRACTION = 8  # of what a step reads of its own panel: it fetches no more of the next one where a run counts rows


@dataclass(frozen=True)
class NextPanel:
    """The panel of `size` bytes that begins at element `start` of `buffer`, of which every row fetches `share` bytes
    (`panel_ahead`); the first row of the work item is number `first`. Where only a run counts rows, tiles of `height`
    rows fetch a fixed number of lines a step, those of half as many or more a part of these or as many, and others
    none; 0 where rows are known. `level` is that of the cache it comes to. Where only a run knows the size, `step` is
    what a step reads of its own panel, and every row fetches `share` bytes a step."""

    frame: Frame
    buffer: Buffer
    start: Scalar
    size: Scalar
    share: Scalar
    first: Scalar
    height: int = 0
    level: int = 1
    step: int = 0

    def fetch(self, row: Scalar, height: int, loops: Sequence[tuple[Scalar, Scalar]]) -> None:
        """Fetches what one step of the tile of `height` rows from `row` on has to fetch (`lines`)."""
        if 2 * height < self.height:
            return
        width = self.buffer.element.width // 8
        for at in self.lines(self.frame.math, row, height, loops):
            element = self.frame.math.add(self.start, self.frame.math.div(at, width))
            memref.PrefetchOp(self.buffer.memory, [self.frame.constants.index(element)], False, 4 - self.level, True)

    def lines(self, math: IndexMath, row: Scalar, height: int, loops: Sequence[tuple[Scalar, Scalar]]) -> list[Scalar]:
        """A byte of each line of the panel that one step fetches. `loops` are those of the reduction, from the
        outermost on: at which step each is, and of how many. Rows behind those that have fetched everything ask for
        the end again, which costs nothing."""
        steps = math.product([extent for _, extent in loops])
        share = self.share if self.step else math.ceildiv(self.share, steps)  # bytes for a row and step
        if self.height:
            read, times = (self.step, 1) if self.step else (self.size, steps)
            assert isinstance(read, int) and isinstance(times, int)
            reach = -(-read // (times * _FRACTION * memory.LINE)) * memory.LINE
            share = math.minimum(share, reach // max(self.height, height))
        else:
            assert isinstance(share, int)
            reach = share * height
        part = math.mul(share, height)
        before = math.mul(math.add(self.first, row), math.mul(share, steps))
        rest = math.maximum(0, math.sub(self.size, math.mul(part, steps)))
        first = math.add(math.minimum(before, rest), math.mul(number_of(math, loops), part))
        return [math.add(first, line) for line in range(0, reach, memory.LINE)]


def panel_ahead(
    frame: Frame,
    buffer: Buffer,
    part: tuple[Scalar, Scalar],
    rows: tuple[Scalar, Scalar],
    height: int,
    least: int,
    step: int = 0,
) -> NextPanel:
    """What the tiles of `height` rows of a work item fetch. `part` of `buffer` is its first element and its size in
    bytes; where only a run knows that, `step` is what a step of the reduction reads of such a part. `rows` are the
    number of the item's first row, and of how many that fetch it together. Where only a run knows those, and they are
    too few for memory to have time to spare, fewer than `least`, nothing but the first lines is asked for.
    """
    (start, size), (first, count), math, c = part, rows, frame.math, frame.constants
    step = 0 if isinstance(size, int) else step
    shared = step or size
    if isinstance(count, int):
        return NextPanel(frame, buffer, start, size, math.ceildiv(shared, count), first, step=step)
    enough = arith.cmpi(arith.CmpIPredicate.sge, count, c.index(least))
    share = arith.select(enough, c.index(math.ceildiv(shared, math.maximum(count, 1))), c.index(0))
    return NextPanel(frame, buffer, start, size, share, first, height, step=step)


def number_of(math: IndexMath, point: Sequence[tuple[Scalar, Scalar]]) -> Scalar:
    """The number of a point, coordinates and extents, in a box that is row-major."""
    number: Scalar = 0
    for at, extent in point:
        number = math.add(math.mul(number, extent), at)
    return number
