"""Transpositions of matrices whose lines share few sets of the caches: through a compact buffer on the stack.

The tile of an item, `height` of the input's lines and `block` elements of each, is taken in strips as wide as a line of
the cache. The lines of a strip are loaded whole and once; `piece` of them at a time are interleaved, and what comes of
it goes into the buffer, whose lines lie one behind the other: vectors that hold `piece` elements of a result's line in
each of their pieces. From there such vectors exchange their pieces, and the results are evaluated along theirs, whole
lines of the cache at a time and several of them one behind the other. So neither the lines that are read nor the ones
that are written, a power of two apart, have to stay in the first level of cache, of which they would share a few sets;
and where they are adjacent they are touched soon after each other, as the processor fetches neighbours on its own.
(Lam, Rothberg and Wolf, "The cache performance and optimizations of blocked algorithms", 1991: copying a block avoids
that it drives itself out of the cache.)

Takes what `transpose` takes. Schedule parameters: its own; `lanes` elements are a line of the cache, `line` is as long,
and both extents are known and multiples of it. `height` is a multiple of `lanes`, `block` of `lanes` too, `piece` times
them at most. With `ahead` the next item's tile is brought into the second level of cache in the meantime, `block`
elements of a line one behind the other. With `claim` the results' lines of a strip are brought into the first one, to
be written, while the strip is loaded. `down` and `joined` mean nothing here.
"""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir
from mlir.dialects import arith, memref, vector

from mlc.kernels.common.frame import Frame, KernelSource, for_loop, storage_type
from mlc.kernels.common.index import Scalar
from mlc.kernels.common.items import emit_grid
from mlc.kernels.common.memory import LINE
from mlc.kernels.cpu.transpose import Transpose, TransposeSchedule, dealt, interleaved, items

_SECOND_LEVEL = 2  # what `memref.prefetch` calls it


def expand(source: KernelSource, schedule: TransposeSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [_Staged(source, schedule).emit(), emit_grid(source, lambda frame, shape: items(frame, shape, schedule))]


class _Staged(Transpose):
    def __init__(self, source: KernelSource, schedule: TransposeSchedule) -> None:
        super().__init__(source, schedule)
        s = schedule
        self.groups = s.lanes // s.piece  # of `piece` lines, that one line of the cache takes
        extents = s.extents(self.frame.math, self.shape)
        if any(not isinstance(extent, int) or extent % s.lanes for extent in extents):
            raise ValueError(f"kernel {self.frame.name}: extents of staged transpositions are whole vectors")
        element = storage_type(self.frame.buffers[self.input].element)
        self.vector = ir.VectorType.get([s.lanes], element)
        self.stack = self.frame.on_stack(element, s.height * s.lanes)

    def _squares(self, across: tuple[Scalar, Scalar], down: tuple[Scalar, Scalar]) -> None:
        """The tile of an item: from where to where it goes along the input's lines, and along the results'."""
        self.across, self.down = across, down

        def strip(read: ir.Value) -> None:
            self._collect(read)
            self._deal(read)

        self._loop(*across, self.s.lanes, strip)

    def _collect(self, read: Scalar) -> None:
        """The strip that begins at `read`, interleaved, into the buffer."""
        s, math = self.s, self.frame.math

        def group(write: ir.Value) -> None:
            rows = [self._load(read, write, j, s.piece, None) for j in range(s.piece)]
            if s.ahead:
                self._fetch_next(read, write)
            if s.claim:
                self._claim_lines(read, math.sub(write, self.down[0]))
            for c, column in enumerate(interleaved(rows, s.lanes)):
                at = self._place(c, math.sub(write, self.down[0]))
                vector.StoreOp(column, self.stack, [at], alignment=LINE)

        self._loop(*self.down, s.piece, group)

    def _deal(self, read: Scalar) -> None:
        """The results of that strip, from the buffer."""
        s, math = self.s, self.frame.math
        extent = self.extents[1]
        assert isinstance(extent, int)

        def columns(c: ir.Value) -> None:
            def line(write: Scalar) -> None:
                row = math.sub(write, self.down[0])
                starts = [self._place(c, math.add(row, g * s.piece)) for g in range(self.groups)]
                parts = [vector.LoadOp(self.vector, self.stack, [at], alignment=LINE).result for at in starts]
                for number, part in enumerate(dealt(parts, s.piece)):
                    self._store(read, write, math.add(c, number * s.piece), part, None)

            if extent % s.height:
                self._loop(*self.down, s.lanes, line)
                return
            for first in range(0, s.height, s.lanes):
                line(math.add(self.down[0], first))

        self._loop(0, s.piece, 1, columns)

    def _place(self, column: Scalar, row: Scalar) -> ir.Value:
        """Where the buffer has column `column` of every piece, of the `piece` lines from `row` on."""
        s, math = self.s, self.frame.math
        return self.frame.constants.index(math.mul(math.add(math.mul(column, s.height), row), self.groups))

    def _fetch_next(self, read: Scalar, write: Scalar) -> None:
        """Begin to bring a part of the next item's tile into the second level of cache: as much as is loaded."""
        s, math, c = self.s, self.frame.math, self.frame.constants
        extent, height = self.extents
        beside = math.add(self.across[0], s.block)
        more = arith.cmpi(arith.CmpIPredicate.slt, c.index(beside), c.index(extent))
        below = math.add(self.down[0], s.height)
        inside = arith.cmpi(arith.CmpIPredicate.slt, c.index(below), c.index(height))
        next_row = arith.select(more, c.index(self.down[0]), arith.select(inside, c.index(below), c.index(0)))
        next_read = arith.select(more, c.index(beside), c.index(0))
        strips = s.block // s.lanes
        strip = math.div(math.sub(read, self.across[0]), s.lanes)
        done = math.add(math.mul(strip, s.height), math.sub(write, self.down[0]))
        first = math.add(next_row, math.div(done, strips))
        for j in range(s.piece // strips):
            for k in range(strips):
                at = self._address(math.add(next_read, k * s.lanes), math.add(first, j))
                memref.PrefetchOp(self.frame.buffers[self.input].memory, [at], False, _SECOND_LEVEL, True)

    def _claim_lines(self, read: Scalar, row: Scalar) -> None:
        """Begin to bring lines of the strip's results into the cache, to be written there: as many as are loaded."""
        s, math = self.s, self.frame.math
        high = s.height // s.lanes
        for j in range(s.piece):
            number = math.add(row, j)
            column, line = math.div(number, high), math.rem(number, high)
            self._claim_line(math.add(read, column), math.add(self.down[0], math.mul(line, s.lanes)))

    def _loop(self, low: Scalar, high: Scalar, step: int, body: Callable[[ir.Value], None]) -> None:
        def run(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            body(variable)
            return []

        for_loop(self.frame, low, high, step, [], run)
