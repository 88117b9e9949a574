"""Depthwise convolutions of bytes, channels last, that sum the products of four adjacent pixels in one step.

The tiles, loops and epilogues of `contraction`, with four vectors of channels and the pixels of a line as rows. Four
vectors of bytes, those of four pixels that lie side by side, are interleaved twice: what comes out are quads of
pixels, one for a channel, of a quarter of the channels each. `vpdpbusd` multiplies them by quads of the filter (one
operand has a sign, the other has none; Intel, "Intrinsics Guide"), exactly and with sums in 32 bits. Several pixels of
the result share a quad: for 3 taps, a quad's first three pixels are the window of one and its last three that of the
next, with the filter moved by a byte and zeros beside it. So a line of taps of two pixels takes two products instead of
six.

The filter's quads are made when a work item begins a panel of channels, for every distance between a quad and a window.
Sums are in the order of the interleaved channels until a tile is done.

Schedule parameters: those of `contraction`; `vectors` is 4 and `unroll` 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, vector

from mlc.kernels.common import memory
from mlc.kernels.common.analysis import mentions
from mlc.kernels.common.evaluate import Evaluator, lane_mask
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then
from mlc.kernels.common.generics import is_unsigned_input, operand_map
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.cpu.contraction import Contraction
from mlc.kernels.cpu.contraction_grid import ContractionSchedule, tile_grid
from mlc.kernels.cpu.dot_quads import quad_products
from mlc.kernels.cpu.padding import LinePlace, rows_inside, terms_of
from mlc.kernels.cpu.register_tile import Column, Loops, Position, Tile

QUAD = 4  # pixels, and vectors of a tile
MOST_TAPS = 12  # along a line
_MOST_LINES = 12  # of the filter


class DepthwiseQuadsSchedule(ContractionSchedule):
    """Parameters of the template; see the module's description."""


def expand(source: KernelSource, schedule: DepthwiseQuadsSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [_DepthwiseQuads(source, schedule).emit(), tile_grid(source, schedule)]


@dataclass(frozen=True)
class Across:
    """The window along a line of pixels: `tap` and `lines` are the dimensions of the taps in a line and across lines
    (None where there is one line), `taps` how many are in a line, `data` the operand with the pixels.
    """

    data: int
    tap: int
    taps: int
    stride: int
    lines: int | None

    @property
    def quads(self) -> int:
        """Quads that hold the windows of `together` pixels of the result."""
        return -(-self.taps // QUAD)

    @property
    def together(self) -> int:
        """Adjacent pixels of the result whose windows lie in the same quads."""
        return (QUAD * self.quads - self.taps) // self.stride + 1

    @property
    def distances(self) -> list[int]:
        """From the first pixel of a window to that of a quad with a part of it: one arrangement of the filter each."""
        found = {QUAD * q - j * self.stride for q in range(self.quads) for j in range(self.together)}
        return sorted(d for d in found if -QUAD < d < self.taps)


def find_across(root: ir.Operation, channels: int, row: int) -> Across | None:
    """The window of the depthwise convolution `root`, whose result has the dimensions `channels` and `row`, numbers of
    the iteration's; None for any other contraction."""
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    exprs = [list(operand_map(root, i).results) for i in range(2)]
    holding = [i for i in range(2) if any(mentions(e, row) for e in exprs[i])]
    if len(holding) != 1 or not all(_is_last(e, channels) for e in exprs):
        return None
    [data], taps = holding, [d for d, reduced in enumerate(kinds) if reduced]
    windows = [terms_of(e) for e in exprs[data] if mentions(e, row)]
    if len(windows) != 1 or windows[0] is None or len(windows[0]) != 2:
        return None
    strides = [factor for dim, factor in windows[0] if dim == row]
    across = [(dim, factor) for dim, factor in windows[0] if kinds[dim]]
    if len(strides) != 1 or strides[0] < 1 or len(across) != 1 or across[0][1] != 1:
        return None
    extents = {d: _extent(root, 1 - data, d) for d in taps}
    moving = [d for d in taps if d != across[0][0] and extents[d] != 1]
    width, height = extents[across[0][0]], 1 if not moving else extents[moving[0]]
    if len(moving) > 1 or not 1 < width <= MOST_TAPS or not 0 < height <= _MOST_LINES:
        return None
    return Across(data, across[0][0], width, strides[0], moving[0] if moving else None)


def _is_last(exprs: Sequence[ir.AffineExpr], dim: int) -> bool:
    last = exprs[-1]
    return isinstance(last, ir.AffineDimExpr) and last.position == dim and not any(mentions(e, dim) for e in exprs[:-1])


def _extent(root: ir.Operation, operand: int, dim: int) -> int:
    """The extent of a tap's dimension, which an operand has for itself; 0 where it is not known."""
    for expr, extent in zip(operand_map(root, operand).results, root.operands[operand].type.shape, strict=True):
        if isinstance(expr, ir.AffineDimExpr) and expr.position == dim:
            return max(0, int(extent))
    return 0


class _DepthwiseQuads(Contraction):
    def __init__(self, source: KernelSource, schedule: DepthwiseQuadsSchedule) -> None:
        super().__init__(source, schedule)
        across = find_across(self.root, self.order[schedule.vector_dim], self.order[schedule.row_last])
        self.signs = [is_unsigned_input(self.root, i) for i in range(2)]
        if across is None or schedule.vectors != QUAD or self.signs[0] == self.signs[1]:
            raise ValueError(f"kernel {self.frame.name}: no depthwise convolution of bytes with and without a sign")
        self.across = across
        lines = 1 if across.lines is None else dict(self.reductions)[across.lines]
        assert isinstance(lines, int)
        self.lines, self.bytes = lines, QUAD * schedule.lanes
        self.i8, self.i32 = (ir.IntegerType.get_signless(bits) for bits in (8, 32))
        self.filter = self.frame.on_stack(self.i32, lines * len(across.distances) * QUAD * schedule.lanes)
        self.current = self.frame.on_stack(ir.IndexType.get(), 1)
        with self.frame.prologue():
            memref.store(self.frame.constants.index(-1), self.current, [self.frame.constants.index(0)])
        self.live = self.bytes

    # -- the filter -------------------------------------------------------------------------------------------------

    def _rows(self, point: list[Idx], columns: list[Column], block: Scalar) -> None:
        constants, first = self.frame.constants, columns[0].at
        extent = self.shape[self.s.vector_dim]
        assert isinstance(extent, int)
        whole = len(columns) == QUAD and columns[-1].mask is None and columns[-1].lanes == self.s.lanes
        self.live = self.bytes if whole else extent % self.bytes
        known = memref.load(self.current, [constants.index(0)])
        is_new = arith.cmpi(arith.CmpIPredicate.ne, known, constants.index(first.base))

        def begin() -> None:
            for_loop(self.frame, 0, self.lines, 1, [], lambda line, _: self._arrange(point, first, line))
            memref.store(constants.index(first.base), self.current, [constants.index(0)])

        if_then(is_new, begin)
        super()._rows(point, columns, block)

    def _arrange(self, point: list[Idx], channels: Idx, line: Scalar) -> list[ir.Value]:
        """The quads of a line of the filter, for every distance."""
        taps = [self._taps_of(point, channels, line, t) for t in range(self.across.taps)]
        nothing = self._splat(0, self.bytes, self.i8)
        for number, distance in enumerate(self.across.distances):
            inside = [0 <= distance + i < len(taps) for i in range(QUAD)]
            pixels = [taps[distance + i] if inside[i] else nothing for i in range(QUAD)]
            for group, quads in enumerate(self._quads(pixels)):
                words = vector.bitcast(ir.VectorType.get([self.s.lanes], self.i32), quads)
                vector.StoreOp(words, self.filter, [self._place(line, number, group)], alignment=self.bytes)
        return []

    def _taps_of(self, point: list[Idx], channels: Idx, line: Scalar, tap: int) -> ir.Value:
        """A tap of all channels of the panel."""
        at = self._point(point, Idx(0), channels)
        return self._bytes(1 - self.across.data, self._iteration(at, self._position(line, tap)))

    def _place(self, line: Scalar, distance: int, group: int) -> ir.Value:
        """Where quads of the filter are."""
        math, size = self.frame.math, QUAD * self.s.lanes
        at = math.add(math.mul(line, len(self.across.distances) * size), distance * size + group * self.s.lanes)
        return self.frame.constants.index(at)

    # -- one register tile ------------------------------------------------------------------------------------------

    def _reduce(
        self, ev: Evaluator, tile: Tile, loops: Loops, position: Position, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        size = len({row for row, _ in tile.points})
        start = [self._splat(0, self.s.lanes, self.i32)] * (size * QUAD)
        dim, extent = self.across.lines, self.lines
        low, high = (0, extent) if dim is None else self._taps(tile, dim, extent)

        def body(line: Scalar, sums: list[ir.Value]) -> list[ir.Value]:
            for first in range(0, size, self.across.together):
                count = min(self.across.together, size - first)
                own = sums[first * QUAD : (first + count) * QUAD]
                sums[first * QUAD : (first + count) * QUAD] = self._together(tile, line, first, count, own)
            return sums

        sums = for_loop(self.frame, low, high, 1, start, lambda line, old: body(line, list(old)))
        columns = [self._in_order(sums[row * QUAD : (row + 1) * QUAD]) for row in range(size)]
        totals = []
        for (row, column), before in zip(tile.points, carried, strict=True):
            value, lanes = columns[row][column], tile.columns[column].lanes
            if lanes < self.s.lanes:
                value = vector.ExtractStridedSliceOp(before.type, value, [0], [lanes], [1]).result
            totals.append(arith.addi(before, value))
        return totals

    def _together(
        self, tile: Tile, line: Scalar, first: int, count: int, sums: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """`sums` of `count` adjacent pixels of the result from `first` on, with the products of a line of taps."""
        across, results = self.across, list(sums)
        needed = (count - 1) * across.stride + across.taps
        pixels = [self._pixel(tile, line, first, number) for number in range(needed)]
        for q in range(-(-needed // QUAD)):
            # Pixels that no window has meet zeros of the filter: any will do.
            quads = self._quads([pixels[min(QUAD * q + i, needed - 1)] for i in range(QUAD)])
            for j in range(count):
                distance = QUAD * q - j * across.stride
                if distance not in across.distances:
                    continue
                number = across.distances.index(distance)
                for group in range(QUAD):
                    type_ = ir.VectorType.get([self.s.lanes], self.i32)
                    place = [self._place(line, number, group)]
                    words = vector.LoadOp(type_, self.filter, place, alignment=self.bytes).result
                    filter_ = vector.bitcast(ir.VectorType.get([self.bytes], self.i8), words)
                    operands = (quads[group], filter_) if self.signs[across.data] else (filter_, quads[group])
                    results[j * QUAD + group] = quad_products(results[j * QUAD + group], *operands)
        return results

    def _pixel(self, tile: Tile, line: Scalar, first: int, number: int) -> ir.Value:
        """Pixel `number` of those that the windows from row `first` of the tile on hold, all channels of the panel;
        zeros outside of the image."""
        across = self.across
        behind = max(0, -(-(number - across.taps + 1) // across.stride))  # whose window is the first to hold it
        row, tap = first + behind, number - behind * across.stride
        dims = self._iteration(tile.points[row, 0], self._position(line, tap))
        window, place = self.row_window, tile.ends
        if window is not None and isinstance(place, LinePlace) and not rows_inside(window, place, [row], tap):
            return self._splat(0, self.bytes, self.i8)
        return self._bytes(across.data, dims, tile)

    def _position(self, line: Scalar, tap: int) -> dict[int, Idx]:
        taps = {self.across.tap: Idx(tap)}
        return taps if self.across.lines is None else {**taps, self.across.lines: Idx(line, level=3)}

    def _bytes(self, operand: int, dims: list[Idx], tile: Tile | None = None) -> ir.Value:
        """The bytes of all channels of the panel of an operand; those behind the last channel are zeros."""
        mask = None
        if self.live < self.bytes:
            mask = lane_mask(self.frame, self.bytes, self.frame.constants.index(self.live))
        ev = Evaluator(self.frame, self.bytes, mask)
        coords = [ev.idx.affine(e, dims) for e in self.reads[operand][0]]
        if operand not in self.padded or tile is None:
            return ev.splat(ev.tensor(self.root.operands[operand], coords))
        return ev.splat(self._unpadded(ev, tile, self.padded[operand], coords))

    # -- vectors ----------------------------------------------------------------------------------------------------

    def _splat(self, number: int, lanes: int, type_: ir.Type) -> ir.Value:
        return memory.splat(self.frame.constants.get(type_, number), lanes)

    def _quads(self, pixels: Sequence[ir.Value]) -> list[ir.Value]:
        """Bytes of four pixels side by side, for a quarter of the channels each: group g has those of numbers 4g to
        4g + 3 of every sixteen. Two steps of what processors do within 16 bytes."""
        pairs = [half for a, b in zip(pixels[::2], pixels[1::2], strict=True) for half in _unpacked(a, b, 16)]
        half = ir.VectorType.get([self.bytes // 2], ir.IntegerType.get_signless(16))
        words = [vector.bitcast(half, v) for v in pairs]
        groups = [*_unpacked(words[0], words[2], 8), *_unpacked(words[1], words[3], 8)]
        return [vector.bitcast(ir.VectorType.get([self.bytes], self.i8), v) for v in groups]

    def _in_order(self, groups: Sequence[ir.Value]) -> list[ir.Value]:
        """Sums of adjacent channels, of sums that are interleaved as `_quads` does it: blocks of four lanes change
        places (a transposition of 4x4 of them where vectors have sixteen)."""
        if self.s.lanes == QUAD:
            return list(groups)
        if self.s.lanes == 2 * QUAD:
            pairs = [(groups[0], groups[1]), (groups[2], groups[3])]
            halves = [[_blocks(a, b, (n, 2 + n)) for a, b in pairs] for n in range(2)]
            return [halves[0][0], halves[0][1], halves[1][0], halves[1][1]]
        low, high = ([_blocks(a, b, p) for a, b in zip(groups[::2], groups[1::2], strict=True)] for p in _QUARTERS)
        return [_blocks(a, b, places) for a, b in (low, high) for places in ((0, 2, 4, 6), (1, 3, 5, 7))]


_QUARTERS = ((0, 1, 4, 5), (2, 3, 6, 7))


def _unpacked(a: ir.Value, b: ir.Value, within: int) -> tuple[ir.Value, ir.Value]:
    """The elements of `a` and `b` in turns, from the first halves of every `within` elements, and from the second."""
    lanes = a.type.shape[0]
    starts = range(0, lanes, within)
    halves = []
    for offset in (0, within // 2):
        order = [side + at + offset + i for at in starts for i in range(within // 2) for side in (0, lanes)]
        halves.append(vector.ShuffleOp(a, b, ir.DenseI64ArrayAttr.get(order)).result)
    return halves[0], halves[1]


def _blocks(a: ir.Value, b: ir.Value, places: Sequence[int]) -> ir.Value:
    """Blocks of four lanes of `a` and, numbered on, of `b`."""
    order = [QUAD * place + lane for place in places for lane in range(QUAD)]
    return vector.ShuffleOp(a, b, ir.DenseI64ArrayAttr.get(order)).result
