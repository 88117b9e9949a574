"""Depthwise convolutions with channels last, on the ordinary arithmetic units.

A thread has a vector of `lanes` channels at `rows` x `columns` neighbouring pixels of the result, so that a pixel of
the input is loaded once for all of those it adds to: (rows + 2) * (columns + 2) loads instead of 9 * rows * columns for
3x3. Neighbouring threads have neighbouring channels, so that a warp's accesses are whole sectors. The filter is read by
every thread; it stays in the L1 cache. Memory bounds such convolutions, and what several threads load of the input
comes out of the caches.

The padding of the input belongs to the kernel: a pixel that may lie outside is loaded from the edge and replaced by
zero. At the end of a line tiles move back instead of reaching beyond it: equal threads write equal values. The epilogue
runs on the accumulators. Takes what `find_depthwise` describes.

Schedule parameters: `lanes`, `rows`, `columns`; `threads` of a block; `blocks` of a multiprocessor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeVar

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common import memory
from mlc.kernels.common.analysis import is_contraction
from mlc.kernels.common.body import inline_body
from mlc.kernels.common.evaluate import Evaluator, Override
from mlc.kernels.common.frame import Frame, KernelSource, defining_op
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.common.padding import padding_of
from mlc.kernels.common.roles import Window, window_of
from mlc.kernels.nvidia import ALIGNMENT
from mlc.kernels.nvidia.contraction import find_contraction

Extent = TypeVar("Extent")

MOST_TAPS = 81
"""Taps of a filter, all of which are written out."""


@dataclass(frozen=True)
class DepthwiseSchedule:
    """Parameters of the template; see the module's description."""

    lanes: int
    rows: int
    columns: int
    threads: int
    blocks: int


@dataclass(frozen=True)
class Depthwise:
    """A depthwise convolution: its windows down the lines of an image and across a line, and the taps of each. What has
    one spatial dimension is images of a line (`has_lines` is false)."""

    windows: tuple[Window, Window]
    taps: tuple[int, int]
    has_lines: bool = True


def find_depthwise(root: ir.Operation) -> Depthwise | None:
    """`root` as a depthwise convolution `[n, h, w, c]` or `[n, w, c]` of floats whose pixels, channels and filter have
    known extents; None for anything else.
    """
    if not is_contraction(root) or len(root.operands) != 3:
        return None
    image, filters, result = root.operands
    rank, dims = result.type.rank, len(root.attributes["iterator_types"])
    if rank not in (3, 4) or dims != 2 * rank - 2 or not _is_channelwise(root, rank):
        return None
    if any(image.type.is_dynamic_dim(i) or result.type.is_dynamic_dim(i) for i in range(1, rank)):
        return None
    exprs, taps = list(operand_map(root, 0).results), list(filters.type.shape[: rank - 2])
    found = [_window(exprs[i], i, rank, taps[i - 1]) for i in range(1, rank - 1)]
    windows = [window for window in found if window is not None]
    is_float = isinstance(root.results[0].type.element_type, ir.F32Type | ir.F64Type)
    if len(windows) != len(found) or prod(taps) > MOST_TAPS or not is_float:
        return None
    one_line = rank == 3
    down, across = [Window(0, 0, None, 1, 0), *windows] if one_line else windows
    height, width = [1, *taps] if one_line else taps
    return Depthwise((down, across), (height, width), not one_line)


def _is_channelwise(root: ir.Operation, rank: int) -> bool:
    """Has every channel of the image a filter, and is it the result's same channel?"""
    exprs, taps, result = (list(operand_map(root, i).results) for i in range(3))
    if [_position(e) for e in result] != [*range(rank)] or len(exprs) != rank:
        return False
    if [_position(exprs[0]), _position(exprs[-1])] != [0, rank - 1] or not root.operands[1].type.has_static_shape:
        return False
    of_taps, read = [*range(rank, 2 * rank - 2)], [_position(e) for e in taps]
    return read in ([*of_taps, rank - 1], [*of_taps, None, rank - 1])  # None: the filter's dimension of one element


def _position(expr: ir.AffineExpr) -> int | None:
    return expr.position if isinstance(expr, ir.AffineDimExpr) else None


def _window(expr: ir.AffineExpr, position: int, rank: int, taps: int) -> Window | None:
    """The window of dimension `position` of the input, over the result's same dimension; None for other expressions."""
    plain = isinstance(expr, ir.AffineDimExpr)
    found = Window(position, expr.position, None, 1, 0) if plain else window_of(expr, position)
    last = position + rank - 1
    tap = None if taps == 1 else last
    return found if found is not None and found.out == position and found.tap in (tap, last) else None


def images_of(shape: Sequence[Extent]) -> tuple[Extent, Extent | int, Extent, Extent]:
    """Images, lines, columns and channels of a tensor of this shape: what has one spatial dimension is images of a
    line."""
    images, *pixels, columns, channels = shape
    return images, pixels[0] if pixels else 1, columns, channels


def expand(source: KernelSource, schedule: DepthwiseSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a thread's tile."""
    s = schedule

    def items(frame: Frame) -> list[Scalar]:
        images, height, width, channels = images_of(frame.buffers[source.destinations[0]].shape)
        ceildiv = frame.math.ceildiv
        return [images, ceildiv(height, s.rows), ceildiv(width, s.columns), ceildiv(channels, s.lanes)]

    def body(frame: Frame, coords: list[Scalar]) -> None:
        _Tile(source, s, frame, coords).emit()

    return emit_items(source, items, body, alignment=ALIGNMENT)


class _Tile:
    """What one thread does."""

    def __init__(self, source: KernelSource, schedule: DepthwiseSchedule, frame: Frame, coords: list[Scalar]) -> None:
        self.source, self.s, self.frame = source, schedule, frame
        self.root = find_contraction(source)
        found = find_depthwise(self.root)
        assert found is not None
        self.conv = found
        last = self.root.results[0].type.rank - 2
        self.dims = (last - 1, last)  # of the spatial dimensions; the first is that of images where there are no lines
        self.extents = tuple(1 if i == 0 else frame.extent(self.root.results[0], i) for i in self.dims)
        self.ev = Evaluator(frame, schedule.lanes)
        math = frame.math
        self.image = Idx(coords[0], level=1)
        tile = (schedule.rows, schedule.columns)
        ends = [math.sub(extent, size) for extent, size in zip(self.extents, tile, strict=True)]
        self.first = (
            math.minimum(math.mul(coords[1], schedule.rows), ends[0]),
            math.minimum(math.mul(coords[2], schedule.columns), ends[1]),
        )
        self.channels = Idx(math.mul(coords[3], schedule.lanes), 1 if schedule.lanes > 1 else 0, level=1)
        padding = None if (op := defining_op(self.root.operands[0])) is None else padding_of(op)
        self.input = self.root.operands[0] if padding is None else padding.source
        self.low = (0, 0) if padding is None else tuple(padding.low[i] for i in self.dims)

    def emit(self) -> None:
        sums = self._sums()
        math = self.frame.math
        for (row, column), total in sums.items():
            y, x = (Idx(math.add(first, n), level=1) for first, n in zip(self.first, (row, column), strict=True))
            self._store(self._point(y, x), total)

    def _point(self, y: Idx, x: Idx) -> list[Idx]:
        return [self.image, *([y] if self.conv.has_lines else []), x, self.channels]

    def _sums(self) -> dict[tuple[int, int], ir.Value]:
        """The accumulators. Line after line of the input adds to all that need it."""
        s, (down, across), (height, width) = self.s, self.conv.windows, self.conv.taps
        zero = self.ev.splat(self.frame.constants.get(self.root.results[0].type.element_type, 0.0))
        sums = {(r, c): zero for r in range(s.rows) for c in range(s.columns)}
        lines = {r * down.stride + t * down.dilation for r in range(s.rows) for t in range(height)}
        for line in sorted(lines):
            pixels: dict[int, ir.Value] = {}
            for r, c in sums:
                tap = _tap(line - r * down.stride, down, height)
                for t in range(width) if tap is not None else ():
                    at = c * across.stride + t * across.dilation
                    if at not in pixels:
                        pixels[at] = self._pixel(line, at)
                    sums[r, c] = self._add(pixels[at], (tap, t), sums[r, c])
        return sums

    def _add(self, pixel: ir.Value, tap: tuple[int | None, int], total: ir.Value) -> ir.Value:
        assert tap[0] is not None
        filters = self.root.operands[1]
        taps = [Idx(t) for t in tap] if self.conv.has_lines else [Idx(tap[1])]
        unit = [Idx(0)] * (filters.type.rank - len(taps) - 1)
        weight = self.ev.tensor(filters, [*taps, *unit, self.channels])
        dims = [Idx(0)] * len(self.root.attributes["iterator_types"])  # a contraction's body reads no positions
        return self.ev.splat(inline_body(self.ev, self.root, [pixel, weight, total], dims)[0])

    def _pixel(self, line: int, at: int) -> ir.Value:
        """The channels of the pixel `line` and `at` behind the first one that the tile reads."""
        inside: list[ir.Value] = []
        y = self._coordinate(0, line, inside)
        x = self._coordinate(1, at, inside)
        value = self.ev.splat(self.ev.tensor(self.input, self._point(y, x)))
        if not inside:
            return value
        everywhere = inside[0] if len(inside) == 1 else arith.andi(*inside)
        zero = self.frame.constants.get(self.input.type.element_type, 0.0)
        return arith.select(everywhere, value, self.ev.splat(zero))

    def _coordinate(self, axis: int, offset: int, inside: list[ir.Value]) -> Idx:
        """A coordinate of the input, moved inside; the test whether it lay there joins `inside` where it may not."""
        frame, math, stride = self.frame, self.frame.math, self.conv.windows[axis].stride
        extent = self.input.type.get_dim_size(self.dims[axis]) if self.dims[axis] else 1
        tile = (self.s.rows, self.s.columns)[axis]
        result = self.extents[axis]
        assert isinstance(result, int)
        place = math.add(math.mul(self.first[axis], stride), offset - self.low[axis])
        lowest, highest = offset - self.low[axis], (result - tile) * stride + offset - self.low[axis]
        if lowest >= 0 and highest < extent:
            return Idx(place, level=1)
        index = frame.constants.index
        inside.append(arith.cmpi(arith.CmpIPredicate.ult, index(place), index(extent)))
        place = math.maximum(place, 0) if lowest < 0 else place
        return Idx(math.minimum(place, extent - 1) if highest >= extent else place, level=1)

    def _store(self, point: list[Idx], total: ir.Value) -> None:
        """Evaluate the returned values with `total` in place of the convolution, and store them."""
        override: Override = lambda _: total  # noqa: E731
        scope = Evaluator(self.frame, self.s.lanes, overrides={self.root.results[0]: override})
        for value, destination in zip(self.source.results, self.source.destinations, strict=True):
            memory.store(
                self.frame, scope.idx, self.frame.buffers[destination], point, scope.tensor(value, point), None
            )


def _tap(distance: int, window: Window, taps: int) -> int | None:
    """The tap that lies `distance` behind a window's first one; None for none."""
    if distance < 0 or (window.dilation and distance % window.dilation):
        return None
    tap = distance // window.dilation if window.dilation else 0
    return tap if tap < taps and (window.dilation or distance == 0) else None
