"""The rows of register tiles that are windows over a padded operand: which taps they leave out, and where.

Where a tile is on its line is known when the kernel is written, or a run finds it: in the midst, where every tap of
every row is inside; at an end, where the padding says which are not, if little is to be done for a tap, so that a tile
of full height can be written out for every such place; or taps ask in turn whether they are inside for all rows, for
all but those at an end, or for none, and only others ask for each row. Many taps, and those of lines that are so long
that few tiles are at their ends, are one loop, in which a tap asks whether it is inside for all rows. What the sums
begin with and what is computed of them is the same at every place, and is written once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import prod

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Frame, defining_op, for_loop, if_values
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.padding import Padding, padding_of
from mlc.kernels.cpu import padding as windows
from mlc.kernels.cpu.contraction_grid import ContractionSchedule
from mlc.kernels.cpu.padding import LinePlace
from mlc.kernels.cpu.register_tile import Ends, Loops, Position, Tile, Tiles

_KNOWN_TAPS = 48  # taps of tiles at known places that are written out, per kernel: they cost code
_MOST_TURNS = 5  # taps of which each is written out for every place, for tiles of every height
_FEW_STEPS = 16  # of the sum for a tap: with more of them asking costs little beside
_RARE = 32  # tiles of a line, of which one at an end is rare: code of its own costs more than it saves
_RARE_OF_MANY = 10  # the same where there are many taps
_FEW_OF_MUCH = 4  # the same where many taps would be much code
_MUCH = 16  # taps of tiles at known places


class PaddedRows(ABC):
    """What contractions do about the padding of an operand."""

    frame: Frame
    s: ContractionSchedule
    root: ir.Operation
    order: list[int]
    shape: list[Scalar]
    reductions: Loops

    @abstractmethod
    def _reduce(
        self, ev: Evaluator, tile: Tile, loops: Loops, position: Position, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The accumulators after `loops` of the reduction."""

    def _find_padding(self) -> None:
        """Which operand is padded, and by which windows it is read."""
        self.padded: dict[int, Padding] = {}
        self.outer_windows: dict[int, tuple[windows.Window, int]] = {}  # by tap: the window and its output dimension
        self.row_window: windows.Window | None = None
        for operand in range(2):
            self._use_padding(operand)

    def _use_padding(self, operand: int) -> None:
        """Skip the taps in the padding of an input where every padded dimension is a window over grid or rows."""
        producer = defining_op(self.root.operands[operand])
        padding = None if producer is None else padding_of(producer)
        if padding is None or padding.value.value != 0 or self.padded:
            return
        iterators = [str(t) for t in self.root.attributes["iterator_types"]]
        found = windows.windows_of(padding, list(operand_map(self.root, operand).results), iterators) or []
        axes = [self.order.index(w.point) for w in found]
        several_rows = self.s.row_first < self.s.row_last
        if not found or any(a == self.s.vector_dim or several_rows and self._is_row(a) for a in axes):
            return
        self.padded[operand] = padding
        for window, axis in zip(found, axes, strict=True):
            if self._is_row(axis):
                self.row_window = window
            else:
                self.outer_windows[window.tap] = (window, axis)

    def _is_row(self, axis: int) -> bool:
        return self.s.row_first <= axis <= self.s.row_last

    def _source_extent(self, window: windows.Window) -> Scalar:
        """Extent, along a window, of the tensor without padding."""
        return self.frame.extent(next(iter(self.padded.values())).source, window.axis)

    def _row_taps(self) -> int | None:
        """How many taps there are along rows, where a tile meets all of them one after the other; None where only a run
        knows that, or which of them a tile meets at a time."""
        taps = None if self.row_window is None else dict(self.reductions)[self.row_window.tap]
        return taps if isinstance(taps, int) else None

    def _rows_in_midst(self) -> tuple[int, int] | None:
        """The first row of a line that meets all taps, and the end of those rows; None where only a run knows that."""
        window, taps = self.row_window, self._row_taps()
        extent = None if window is None else self._source_extent(window)
        if window is None or taps is None or not isinstance(extent, int):
            return None
        return windows.rows_in_midst(window, extent, taps)

    def _are_ends_rare(self) -> bool:
        """Are few tiles of a line at its ends?"""
        midst, taps, length, size = self._rows_in_midst(), self._row_taps(), self.shape[self.s.row_first], self.s.rows
        if midst is None or taps is None or not isinstance(length, int):
            return False
        ends = -(-midst[0] // size) + -(-max(length - midst[1], 0) // size)
        if taps <= _MOST_TURNS:
            return ends * _RARE <= length // size
        return ends * (_FEW_OF_MUCH if ends * taps > _MUCH else _RARE_OF_MANY) <= length // size

    def _tiles_in_midst(self, low: Scalar, high: Scalar, size: int) -> tuple[Scalar, Scalar]:
        """Of the tiles of `size` rows from `low` to `high`, on a line where ends are rare, the first row of those that
        meet all taps, and the end of their rows."""
        midst, math = self._rows_in_midst(), self.frame.math
        assert midst is not None
        before, upto = (math.maximum(math.sub(row, low), 0) for row in midst)
        begin = math.minimum(math.add(low, math.mul(math.ceildiv(before, size), size)), high)
        end = math.minimum(math.add(low, math.mul(math.div(upto, size), size)), high)
        return begin, math.maximum(begin, end)

    def _taps(self, tile: Tile, tap: int, extent: Scalar) -> tuple[Scalar, Scalar]:
        """The first tap of a window over a dimension of the grid that is inside, and the end of those that are."""
        if tap not in self.outer_windows:
            return 0, extent
        window, axis = self.outer_windows[tap]
        point = next(iter(tile.points.values()))[axis].base
        return windows.taps_inside(self.frame.math, window, point, self._source_extent(window), extent)

    def _known_places(self, start: Scalar, size: int, count: int) -> list[Ends | LinePlace] | None:
        """How each of `count` tiles from `start` on is to be written; None where it is not known where they are, or all
        taps of those at an end would be too much code."""
        window, taps, midst = self.row_window, self._row_taps(), self._rows_in_midst()
        if window is None or taps is None or midst is None or not isinstance(start, int) or self._are_ends_rare():
            return None
        extent = self._source_extent(window)
        assert isinstance(extent, int)
        places: list[Ends | LinePlace] = []
        for first in range(start, start + size * count, size):
            is_in_midst = first >= midst[0] and first + size <= midst[1]
            places.append(Ends.INSIDE if is_in_midst else LinePlace(first, extent))
        return places if sum(p is not Ends.INSIDE for p in places) * taps <= _KNOWN_TAPS else None

    def _blocks_of_rows(self, full: int, last: Tiles) -> list[Tiles | None] | None:
        """The tiles of each of the `full` blocks of a line and of one more with tiles `last`, if any; None for a block
        in the midst. None where it is not known where they are, or those at an end would be too much code."""
        s, taps = self.s, self._row_taps()
        if self.row_window is None or taps is None:
            return None
        blocks: list[Tiles | None] = []
        written = 0
        for i in range(full + bool(last)):
            tiles = [(s.rows, s.block)] if i < full else last
            start, ends = i * s.row_block, 0
            for size, count in tiles:
                places = self._known_places(start, size, count)
                if places is None:
                    return None
                ends += sum(p is not Ends.INSIDE for p in places)
                start += size * count
            written += ends
            blocks.append(tiles if ends or i == full else None)
        return blocks if written * taps <= _KNOWN_TAPS else None

    def _at_its_place(
        self, tile: Tile, types: Sequence[ir.Type], emit: Callable[[Tile], Sequence[ir.Value]]
    ) -> list[ir.Value]:
        """What `emit` gives, values of `types`, for a tile whose place only a run knows, as it is to be written there;
        for each place at an end, where little is to be done for a tap and the tile has its full height."""
        window, taps = self.row_window, self._row_taps()
        if window is None or tile.ends is not Ends.SOMEWHERE:
            return list(emit(tile))
        source, size = self._source_extent(window), len({r for r, _ in tile.points})
        written: Callable[[], Sequence[ir.Value]] = partial(emit, replace(tile, ends=Ends.GUARDED))
        is_whole = size >= self.s.rows
        if is_whole and taps is not None and taps <= _MOST_TURNS and self._is_little(window.tap):
            for place in windows.places_at_ends(window, size, taps):
                at = windows.is_at(self.frame, window, source, place, (tile.row, size), taps)
                written = partial(if_values, at, types, partial(emit, replace(tile, ends=place)), written)
        every_tap = 0, dict(self.reductions)[window.tap]
        inside = windows.reads_inside(self.frame, window, source, (tile.row, size), every_tap)
        return if_values(inside, types, partial(emit, replace(tile, ends=Ends.INSIDE)), written)

    def _is_little(self, tap: int) -> bool:
        """Is little summed up for each step of dimension `tap`?"""
        dims = [dim for dim, _ in self.reductions]
        behind = [extent for _, extent in self.reductions[dims.index(tap) + 1 :]]
        return all(isinstance(extent, int) for extent in behind) and prod(map(int, behind)) <= _FEW_STEPS

    def _taps_of_rows(
        self, ev: Evaluator, tile: Tile, loops: Loops, position: Position, carried: Sequence[ir.Value]
    ) -> list[ir.Value] | None:
        """The accumulators of a tile after the loops over the taps along its rows and those behind; None where these
        are loops like others."""
        taps, window, place = self._row_taps(), self.row_window, tile.ends
        if taps is None or window is None:
            return None
        if place is Ends.GUARDED and loops[1:]:
            in_turn = taps <= _MOST_TURNS and not self._are_ends_rare()
            emit = self._taps_in_turn if in_turn else self._taps_in_a_loop
            return emit(ev, tile, loops, position, carried)
        if not isinstance(place, LinePlace):
            return None
        sums, rows = list(carried), {r for r, _ in tile.points}
        for t in range(taps):
            part = windows.rows_inside(window, place, rows, t)
            if part:
                sums = self._some_rows(ev, tile.only(part), loops, {**position, window.tap: Idx(t)}, tile, sums)
        return sums

    def _taps_in_turn(
        self, ev: Evaluator, tile: Tile, loops: Loops, position: Position, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """All taps along the rows of a tile at any position. Most are inside for all rows, or for all but those at one
        end; others ask for each row."""
        (tap, taps), window, sums = loops[0], self.row_window, list(carried)
        assert window is not None and isinstance(taps, int)
        rows, extent = range(len({r for r, _ in tile.points})), self._source_extent(window)
        for t in range(taps):
            at = {**position, tap: Idx(t)}
            emit = partial(self._some_rows, ev, tile, loops, at, tile, sums)
            for part in windows.parts_inside(window, rows, t, taps):
                condition = windows.is_part_inside(self.frame, window, extent, (tile.row, rows, part), t)
                inside = replace(tile.only(part), ends=Ends.INSIDE)
                some = partial(self._some_rows, ev, inside, loops, at, tile, sums) if part else partial(list, sums)
                emit = partial(if_values, condition, [v.type for v in sums], some, emit)
            sums = list(emit())
        return sums

    def _taps_in_a_loop(
        self, ev: Evaluator, tile: Tile, loops: Loops, position: Position, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """All taps along the rows of a tile at any position that are inside for a row. Where one is for all of them,
        none asks."""
        (tap, taps), window = loops[0], self.row_window
        assert window is not None
        math, size, extent = self.frame.math, len({r for r, _ in tile.points}), self._source_extent(window)
        first, _ = windows.taps_inside(math, window, math.add(tile.row, size - 1), extent, taps)
        _, end = windows.taps_inside(math, window, tile.row, extent, taps)

        def one(variable: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            at = {**position, tap: Idx(variable, level=3 + len(position))}
            emit = [
                partial(self._some_rows, ev, replace(tile, ends=ends), loops, at, tile, sums)
                for ends in (Ends.INSIDE, Ends.GUARDED)
            ]
            inside = windows.reads_inside(self.frame, window, extent, (tile.row, size), (variable, 1))
            return list(if_values(inside, [value.type for value in sums], *emit))

        return for_loop(self.frame, first, end, 1, carried, one)

    def _some_rows(
        self,
        ev: Evaluator,
        part: Tile,
        loops: Loops,
        position: Position,
        tile: Tile,
        carried: Sequence[ir.Value],
    ) -> list[ir.Value]:
        """The accumulators of `tile` after the loops behind the first one, in which those of `part` take part."""
        sums = dict(zip(tile.points, carried, strict=True))
        inner = self._reduce(ev.child(), part, loops[1:], position, [sums[k] for k in part.points])
        return list((sums | dict(zip(part.points, inner, strict=True))).values())

    def _unpadded(self, ev: Evaluator, tile: Tile, padding: Padding, coords: Sequence[Idx]) -> ir.Value:
        """The value of a padded operand at its coordinates `coords`."""
        inner, inside = self._in_source(ev, tile, padding, coords)
        value = ev.tensor(padding.source, inner)
        if inside is None:
            return value
        zero = ev.splat(self.frame.constants.get(padding.source.type.element_type, padding.value.value))
        return arith.select(ev.splat(inside), ev.splat(value), zero)

    def _in_source(
        self, ev: Evaluator, tile: Tile, padding: Padding, coords: Sequence[Idx]
    ) -> tuple[list[Idx], ir.Value | None]:
        """Coordinates in the source of a padded operand, and whether they are inside where that is not certain."""
        inner = [ev.idx.add(at, Idx(-low)) for at, low in zip(coords, padding.low, strict=True)]
        assert tile.ends is not Ends.SOMEWHERE
        if self.row_window is None or tile.ends is not Ends.GUARDED:
            return inner, None
        c, guarded = self.frame.constants, self.row_window.axis
        at = inner[guarded]
        limit = c.index(self.frame.extent(padding.source, guarded))
        inside = arith.cmpi(arith.CmpIPredicate.ult, c.index(at.base), limit)
        inner[guarded] = Idx(arith.select(inside, c.index(at.base), c.index(0)), level=at.level)
        return inner, inside
