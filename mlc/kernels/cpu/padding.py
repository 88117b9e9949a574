"""Windows over a padded operand: which taps of a contraction or a pool have something to read.

A zero-padded operand of a contraction adds nothing where a tap is outside of its source, so that the template leaves
those taps out instead of reading a padded copy or guarding every access. Where a tap may leave the source in a
dimension of the grid, the loop over the taps gets tighter bounds; along the rows of a register tile, tiles at the ends
of a line leave taps out row by row. (As in other compilers a NaN or an infinity of the filter does not meet the zeros
of the padding.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from mlc.kernels.common.frame import Frame
from mlc.kernels.common.index import IndexMath, Scalar
from mlc.kernels.common.padding import Padding


@dataclass(frozen=True)
class Window:
    """`point * stride + tap * dilation - low`: the coordinate in the source, valid from 0 up to its extent.

    `axis` is the padded dimension of the operand; `point` and `tap` are iteration dimensions of the reader.
    """

    axis: int
    point: int
    stride: int
    tap: int
    dilation: int
    low: int


@dataclass(frozen=True)
class LinePlace:
    """Where a tile is: as if it began at row `first` of a line that is a window over `extent` elements (None: as many
    as it needs)."""

    first: int
    extent: int | None


def windows_of(padding: Padding, exprs: Sequence[ir.AffineExpr], iterators: Sequence[str]) -> list[Window] | None:
    """The padded dimensions of an operand with the map `exprs` as windows; None when one is indexed otherwise."""
    found = []
    for axis in padding.dims:
        terms = terms_of(exprs[axis])
        points = [t for t in terms or [] if "reduction" not in iterators[t[0]]]
        taps = [t for t in terms or [] if "reduction" in iterators[t[0]]]
        if len(points) != 1 or len(taps) != 1 or points[0][1] < 1 or taps[0][1] < 1:
            return None
        found.append(Window(axis, *points[0], *taps[0], padding.low[axis]))
    return found if len({w.tap for w in found}) == len(found) else None


def taps_inside(math: IndexMath, window: Window, point: Scalar, source: Scalar, taps: Scalar) -> tuple[Scalar, Scalar]:
    """The first of `taps` taps of the window at `point` that is inside of the `source` elements along its axis, and the
    end of those that are: not above the first one where none is.
    """
    at = math.mul(point, window.stride)
    before = math.maximum(math.sub(window.low, at), 0)
    after = math.sub(math.add(source, window.low), at)
    past = math.div(math.maximum(math.add(after, window.dilation - 1), 0), window.dilation)
    return math.ceildiv(before, window.dilation), math.minimum(past, taps)


def reads_inside(
    frame: Frame, window: Window, source: Scalar, rows: tuple[Scalar, int], taps: tuple[Scalar, Scalar]
) -> ir.Value:
    """Are all `taps` (the first one and their number) inside of the `source` elements for all `rows`, likewise?"""
    math, c, (row, height), (tap, count) = frame.math, frame.constants, rows, taps
    first = math.add(math.mul(row, window.stride), math.mul(tap, window.dilation))
    reach = math.add((height - 1) * window.stride + 1 - window.low, math.mul(math.sub(count, 1), window.dilation))
    after_start = arith.cmpi(arith.CmpIPredicate.sge, c.index(first), c.index(window.low))
    before_end = arith.cmpi(arith.CmpIPredicate.sle, c.index(math.add(first, reach)), c.index(source))
    return arith.andi(after_start, before_end)


def rows_inside(window: Window, place: LinePlace, rows: Iterable[int], tap: int) -> list[int]:
    """Those of the `rows` of a tile at `place` whose `tap` is inside."""
    at = {r: (place.first + r) * window.stride + tap * window.dilation - window.low for r in rows}
    return [r for r, where in at.items() if where >= 0 and (place.extent is None or where < place.extent)]


def rows_in_midst(window: Window, source: int, taps: int) -> tuple[int, int]:
    """The first row that is inside for all of `taps` of the window over `source` elements, and the end of those rows:
    not above the first one where there is none."""
    behind = max(source + window.low - (taps - 1) * window.dilation, 0)
    return -(-window.low // window.stride), -(-behind // window.stride)


def places_at_ends(window: Window, size: int, taps: int) -> list[LinePlace]:
    """The places of a tile of `size` rows at one end of a line or at both, with as much padding behind it as in front:
    as many of those behind it as there are elements that a line may end with and that no window has."""
    reach, low = (size - 1) * window.stride + (taps - 1) * window.dilation, window.low
    rests = [left for rest in range(window.stride) if 0 < (left := reach + 1 - 2 * low + rest) <= reach - low]
    places = [LinePlace(0, None)] if low > 0 else []
    places += [LinePlace(low, low * window.stride + rest) for rest in rests]
    return [*places, *(LinePlace(0, rest) for rest in rests if low > 0)]


def is_at(
    frame: Frame, window: Window, source: Scalar, place: LinePlace, rows: tuple[Scalar, int], taps: int
) -> ir.Value:
    """Is a tile of `rows` (the first one and their number) at `place` of a line over `source` elements?"""
    math, c, (row, size) = frame.math, frame.constants, rows
    start = math.mul(row, window.stride)
    if place.first == 0:
        begins = arith.cmpi(arith.CmpIPredicate.eq, c.index(row), c.index(0))
    else:
        begins = arith.cmpi(arith.CmpIPredicate.sge, c.index(start), c.index(window.low))
    reach = (size - 1) * window.stride + (taps - 1) * window.dilation - window.low + 1
    left = reach if place.extent is None else place.extent - place.first * window.stride
    fits = arith.CmpIPredicate.sge if place.extent is None else arith.CmpIPredicate.eq
    return arith.andi(begins, arith.cmpi(fits, c.index(source), c.index(math.add(start, left))))


def parts_inside(window: Window, rows: range, tap: int, taps: int) -> list[range]:
    """Of the `rows` of a tile those that are inside for `tap` of `taps`, for each place where the tile may be: behind
    the beginning of a line, in front of its end where the window is as far from both, near one of them where none is
    inside, in the midst of it."""
    reach = (taps - 1) * window.dilation - window.low
    before, after = window.low - tap * window.dilation, tap * window.dilation - reach
    parts = [rows[-(-before // window.stride) :]] if before > 0 else []
    parts += [rows[: len(rows) - -(-after // window.stride)]] if after > 0 and len(rows) * window.stride > after else []
    none = [rows[:0]] if max(before, after) > (len(rows) - 1) * window.stride else []
    return [*(part for part in parts if part), *none, rows]


def is_part_inside(
    frame: Frame, window: Window, source: Scalar, rows: tuple[Scalar, range, range], tap: int
) -> ir.Value:
    """Is `tap` inside of the `source` elements for a part of the rows of a tile, and for no other one? `rows` are the
    tile's first one, all of them, and that part, from there on."""
    math, c, (row, every, part) = frame.math, frame.constants, rows
    limit = c.index(math.add(source, window.low))

    def place(number: int) -> ir.Value:
        return c.index(math.add(math.mul(math.add(row, number), window.stride), tap * window.dilation))

    def is_in_front(number: int) -> ir.Value:
        return arith.cmpi(arith.CmpIPredicate.slt, place(number), c.index(window.low))

    def is_behind(number: int) -> ir.Value:
        return arith.cmpi(arith.CmpIPredicate.sge, place(number), limit)

    if not part:
        return arith.ori(is_in_front(every.stop - 1), is_behind(every.start))
    condition = reads_inside(frame, window, source, (math.add(row, part.start), len(part)), (tap, 1))
    if part.start > every.start:
        condition = arith.andi(condition, is_in_front(part.start - 1))
    if part.stop < every.stop:
        condition = arith.andi(condition, is_behind(part.stop))
    return condition


def terms_of(expr: ir.AffineExpr) -> list[tuple[int, int]] | None:
    """A sum of dimensions with constant factors, as (dimension, factor)."""
    expr = expr.maybe_downcast() if type(expr) is ir.AffineExpr else expr
    if isinstance(expr, ir.AffineDimExpr):
        return [(expr.position, 1)]
    if isinstance(expr, ir.AffineAddExpr):
        a, b = terms_of(expr.lhs), terms_of(expr.rhs)
        return None if a is None or b is None else a + b
    if isinstance(expr, ir.AffineMulExpr):
        base, factor = terms_of(expr.lhs), expr.rhs.maybe_downcast()
        if base is not None and isinstance(factor, ir.AffineConstantExpr):
            return [(d, f * factor.value) for d, f in base]
    return None
