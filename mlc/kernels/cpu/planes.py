"""Depthwise convolutions and pools over planes: channels first, vectors along a row of the plane.

Between other convolutions both are channels-last, and `contraction` and `loops` do them. A depthwise convolution that
stands alone would be transposed twice for that; here a work item is a plane, whose filter stays in registers. A tile is
`rows` vectors below each other, which share what they load of the input: `rows` + kernel - 1 lines of it instead of
`rows` times kernel. Taps in the padding are left out: at the first and the last lines one by one, at the ends of a line
by a mask that is known.

Takes contractions and reductions that `find_plane` describes, the padding of their input and elementwise consumers.
Schedule parameters: `lanes`; `rows`: the height of a tile; `pieces`: is the last vector of a line stored in parts (1),
for targets on which masked stores take long? `halves`: are taps two elements apart picked within the halves of vectors
(1), which takes one instruction each? Sums are then in an order that is undone before the epilogue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mlir import ir
from mlir.dialects import arith, func, vector

from mlc.kernels.common import memory
from mlc.kernels.common.analysis import is_contraction, is_plain_fma, mentions, root_operation
from mlc.kernels.common.body import inline_body
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Frame, KernelSource, defining_op, for_loop
from mlc.kernels.common.generics import is_reduction, operand_map
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_grid
from mlc.kernels.common.padding import Padding, padding_of
from mlc.kernels.common.reduce import combiner
from mlc.kernels.cpu.padding import Window, windows_of

_LARGEST = 7  # taps along a dimension of the filter, all of which are written out


@dataclass(frozen=True)
class PlanesSchedule:
    """Parameters of the template; see the module's description."""

    lanes: int
    rows: int
    pieces: int = 0
    halves: int = 0


def find_plane(root: ir.Operation) -> tuple[Window, Window] | None:
    """The windows along lines and along a line of a depthwise convolution or a pool `[n, c, h, w]` of known extents on
    f32; None for other operations. The padding of its input is that of `plane_padding`.
    """
    if root.name != "linalg.generic" or len(root.operands) != 3 or neutral_value(root) is None:
        return None
    iterators = [str(t) for t in root.attributes["iterator_types"]]
    if ["reduction" in t for t in iterators] != [False] * 4 + [True] * 2:
        return None
    exprs, filters = list(operand_map(root, 0).results), list(operand_map(root, 1).results)
    if operand_map(root, 2) != ir.AffineMap.get(6, 0, [ir.AffineDimExpr.get(i) for i in range(4)]):
        return None
    if len(exprs) != 4 or [_position(e) for e in exprs[:2]] != [0, 1]:
        return None
    if any(mentions(e, d) for e in filters for d in (0, 2, 3)):
        return None
    padding = plane_padding(root) or Padding(root.operands[0], (0, 0, 0, 0), (), ir.FloatAttr.get_f32(0.0))
    windows = windows_of(replace(padding, dims=(2, 3)), exprs, iterators)
    if windows is None or [(w.point, w.tap) for w in windows] != [(2, 4), (3, 5)]:
        return None
    shapes = [*root.results[0].type.shape[2:], *padding.source.type.shape[2:], *_taps(root)]
    return (windows[0], windows[1]) if min(shapes) > 0 and max(_taps(root)) <= _LARGEST else None


def neutral_value(root: ir.Operation) -> float | None:
    """What a tap in the padding may be without changing the result: 0 for sums, an infinity for extremes. None for
    what is neither a convolution nor a pool on f32.
    """
    if not isinstance(root.results[0].type.element_type, ir.F32Type):
        return None
    if is_contraction(root):
        return 0.0 if is_plain_fma(root) else None
    combine = combiner(root) if is_reduction(root) else None
    body, unread = root.regions[0].blocks[0], root.regions[0].blocks[0].arguments[1]
    plain = len(body.operations) == 2 and not any(True for _ in unread.uses)
    return float(combine.identity) if combine is not None and plain else None


def plane_padding(root: ir.Operation) -> Padding | None:
    """The padding of the input along lines and columns that the template leaves out."""
    producer = defining_op(root.operands[0])
    padding = None if producer is None else padding_of(producer)
    if padding is None or not set(padding.dims) <= {2, 3}:
        return None
    return padding if padding.value.value == neutral_value(root) else None


def _position(expr: ir.AffineExpr) -> int | None:
    return expr.position if isinstance(expr, ir.AffineDimExpr) else None


def _taps(root: ir.Operation) -> list[int]:
    """Extents of the filter along lines and along a line."""
    extents = dict(zip(map(_position, operand_map(root, 1).results), root.operands[1].type.shape, strict=True))
    return [extents.get(d, -1) for d in (4, 5)]


def expand(source: KernelSource, schedule: PlanesSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [_Planes(source, schedule).emit(), emit_grid(source, lambda frame, shape: shape[:2])]


@dataclass(frozen=True)
class _Axis:
    """A dimension of the plane: its window, and the extents of input and output and of the filter."""

    window: Window
    source: int
    extent: int
    taps: int

    def at(self, point: int, tap: int) -> int:
        """The input's coordinate."""
        return point * self.window.stride + self.offset(tap)

    def offset(self, tap: int) -> int:
        return tap * self.window.dilation - self.window.low

    def reach(self, count: int) -> int:
        """How many elements of the input `count` outputs read, from the first to the last."""
        return self.at(count - 1, self.taps - 1) - self.at(0, 0) + 1

    def spans(self, step: int, reach: int) -> list[tuple[int, int, bool]]:
        """The outputs in steps, as (begin, end, inside): runs of whole steps whose `reach` elements from the first tap
        on are all in the input, and single steps of what is left.
        """
        found: list[tuple[int, int, bool]] = []
        for low in range(0, self.extent, step):
            high = min(low + step, self.extent)
            first = self.at(low, 0)
            inside = high - low == step and first >= 0 and first + reach <= self.source
            if inside and found and found[-1][2]:
                found[-1] = (found[-1][0], high, True)
            else:
                found.append((low, high, inside))
        return found


@dataclass(frozen=True)
class _Place:
    """Where a tile begins along an axis; `known` is that number where taps may be in the padding."""

    base: Scalar
    count: int
    known: int | None


class _Planes:
    def __init__(self, source: KernelSource, schedule: PlanesSchedule) -> None:
        self.source, self.s = source, schedule
        self.frame = Frame(source, vector_lanes=schedule.lanes, in_pieces=schedule.pieces == 1)
        self.root = root_operation(source)
        windows, neutral = find_plane(self.root), neutral_value(self.root)
        if windows is None or neutral is None:
            raise ValueError(f"kernel {self.frame.name}: no windows over planes")
        self.neutral = neutral
        padding = plane_padding(self.root)
        self.input = self.root.operands[0] if padding is None else padding.source
        shape, taps = self.root.results[0].type.shape, _taps(self.root)
        self.lines, self.line = (
            _Axis(w, self.input.type.shape[w.axis], shape[w.axis], n) for w, n in zip(windows, taps, strict=True)
        )
        if schedule.halves and (self.line.window.stride != 2 or schedule.lanes % 4):
            raise ValueError(f"kernel {self.frame.name}: taps are not two elements apart, or vectors have no quarters")

    def emit(self) -> Frame:
        frame = self.frame
        with frame.body():
            shape = frame.buffers[self.source.destinations[0]].shape

            def item(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                self.plane = [Idx(x, level=1) for x in frame.math.delinearize(variable, shape[:2])]
                self.filter = self._filter()
                reach = self.lines.reach(self.s.rows)
                self._along(self.lines, self.s.rows, reach, lambda rows: self._line(rows))
                return []

            for_loop(frame, frame.begin, frame.end, 1, [], item)
            func.ReturnOp([])
        return frame

    def _filter(self) -> list[list[ir.Value]]:
        """The filter of the plane, a vector for each tap."""
        ev = Evaluator(self.frame, self.s.lanes)
        exprs = operand_map(self.root, 1).results
        if not is_contraction(self.root):
            return []

        def tap(i: int, j: int) -> ir.Value:
            dims = [*self.plane, Idx(0), Idx(0), Idx(i), Idx(j)]
            return ev.splat(ev.tensor(self.root.operands[1], [ev.idx.affine(e, dims) for e in exprs]))

        return [[tap(i, j) for j in range(self.line.taps)] for i in range(self.lines.taps)]

    def _line(self, rows: _Place) -> None:
        lanes = self.s.lanes
        reach = self.line.reach(lanes)
        if self.line.window.stride > 1:
            reach = -(-reach // lanes) * lanes  # whole vectors are read
        self._along(self.line, lanes, reach, lambda columns: self._tile(rows, columns))

    def _along(self, axis: _Axis, step: int, reach: int, body: Callable[[_Place], None]) -> None:
        """`body` for every step along an axis; a loop where no tap is in the padding."""
        for low, high, inside in axis.spans(step, reach):
            if not inside:
                body(_Place(low, high - low, low))
            elif high - low == step:
                body(_Place(low, step, None))
            else:

                def inner(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                    body(_Place(variable, step, None))
                    return []

                for_loop(self.frame, low, high, step, [], inner)

    # -- one tile ---------------------------------------------------------------------------------------------------

    def _tile(self, rows: _Place, columns: _Place) -> None:
        """`rows.count` vectors of the result below each other."""
        mask = self._mask([columns.count > lane for lane in range(self.s.lanes)])
        init = self.root.operands[2]
        points = [[*self.plane, Idx(self.frame.math.add(rows.base, r), level=2), Idx(columns.base, 1, level=3)]
                  for r in range(rows.count)]  # fmt: skip
        ev = Evaluator(self.frame, self.s.lanes)
        sums = [self._halved(ev.splat(ev.child(mask=mask).tensor(init, point))) for point in points]
        lines: dict[int, list[ir.Value]] = {}
        for i in range(self.lines.taps):
            for r in range(rows.count):
                if rows.known is not None and not 0 <= self.lines.at(rows.known + r, i) < self.lines.source:
                    continue
                below = r * self.lines.window.stride + self.lines.offset(i)
                if below not in lines:
                    load = self._taps if self.line.window.stride == 1 else self._strided_taps
                    lines[below] = self._summed(ev, load(rows.base, below, columns))
                for j, tap in enumerate(lines[below]):
                    sums[r] = self._combined(ev, tap, i, j, sums[r])
        self._store(points, [self._halved(total) for total in sums], mask)

    def _summed(self, ev: Evaluator, taps: list[ir.Value]) -> list[ir.Value]:
        """The taps along a line; those of a pool together, for all rows that read the line."""
        if self.filter:
            return taps
        total = taps[0]
        for tap in taps[1:]:
            total = self._combined(ev, tap, 0, 0, total)
        return [total]

    def _combined(self, ev: Evaluator, value: ir.Value, i: int, j: int, total: ir.Value) -> ir.Value:
        """`total` with the value of the tap (i, j) of the window."""
        if self.filter:
            return vector.FMAOp(value, self.filter[i][j], total).result
        return inline_body(ev, self.root, [value, total, total], [])[0]

    def _taps(self, row: Scalar, below: int, columns: _Place) -> list[ir.Value]:
        """What the taps along a line read of the line `below` that of the first row of the tile: a vector for each."""
        return [self._load(row, below, columns, self.line.offset(j)) for j in range(self.line.taps)]

    def _strided_taps(self, row: Scalar, below: int, columns: _Place) -> list[ir.Value]:
        """The same where outputs lie several elements apart: adjacent vectors, out of which all taps are picked."""
        lanes, stride = self.s.lanes, self.line.window.stride
        if self.s.halves:
            return self._pairs(row, below, columns)
        count = -(-self.line.reach(lanes) // lanes)
        first = self.line.offset(0)
        pieces = [self._load(row, below, columns, first + i * lanes) for i in range(count)]
        by_offset: dict[int, ir.Value] = {}
        for j in range(self.line.taps):
            offset = j * self.line.window.dilation
            places = [offset + lane * stride for lane in range(lanes)]
            before = by_offset.get(offset - stride)
            if before is not None:  # all but the last lane are those of an earlier tap
                order = [*range(1, lanes), lanes + places[-1] % lanes]
                by_offset[offset] = _shuffle(before, pieces[places[-1] // lanes], order)
            else:
                by_offset[offset] = _picked(pieces, places)
        return list(by_offset.values())

    def _pairs(self, row: Scalar, below: int, columns: _Place) -> list[ir.Value]:
        """The taps of every second element, in the order of `_halved`: two vectors are loaded for each that begins at
        an even element and for the one behind it, and one instruction picks each tap from both of their halves."""
        lanes, first, loaded = self.s.lanes, self.line.offset(0), dict[int, tuple[ir.Value, ir.Value]]()
        found = []
        for j in range(self.line.taps):
            odd = j * self.line.window.dilation % 2
            even = j * self.line.window.dilation - odd
            if even not in loaded:
                low, high = (self._load(row, below, columns, first + even + i * lanes) for i in range(2))
                loaded[even] = low, high
            halves = [range(at + odd, at + lanes // 2, 2) for at in (0, lanes // 2)]
            order = [lane + vector * lanes for half in halves for vector in range(2) for lane in half]
            low, high = loaded[even]
            found.append(_shuffle(low, high, order))
        return found

    def _halved(self, value: ir.Value) -> ir.Value:
        """A vector in the order of the tile's lanes, and back: the quarters in the middle change places."""
        quarter = self.s.lanes // 4
        order = [at * quarter + lane for at in (0, 2, 1, 3) for lane in range(quarter)]
        return _shuffle(value, value, order) if self.s.halves else value

    def _load(self, row: Scalar, below: int, columns: _Place, offset: int) -> ir.Value:
        """Adjacent elements of a line, from `offset` behind what the first output of the tile is at."""
        math = self.frame.math
        line = math.add(math.mul(row, self.lines.window.stride), below)
        at = math.add(math.mul(columns.base, self.line.window.stride), offset)
        mask = None
        if columns.known is not None:
            first = columns.known * self.line.window.stride + offset
            mask = self._mask([0 <= first + lane < self.line.source for lane in range(self.s.lanes)])
        ev = Evaluator(self.frame, self.s.lanes, mask)
        value = ev.splat(ev.tensor(self.input, [*self.plane, Idx(line, level=2), Idx(at, 1, level=3)]))
        if mask is None or self.neutral == 0:
            return value
        return arith.select(mask, value, ev.splat(self.frame.constants.get(ir.F32Type.get(), self.neutral)))

    def _mask(self, lanes: Sequence[bool]) -> ir.Value | None:
        """A mask that is known; None for all lanes."""
        if all(lanes):
            return None
        i1 = ir.IntegerType.get_signless(1)
        values = ir.DenseElementsAttr.get(
            [ir.IntegerAttr.get(i1, int(x)) for x in lanes], ir.VectorType.get([len(lanes)], i1)
        )
        return arith.ConstantOp(values.type, values).result

    def _store(self, points: Sequence[list[Idx]], sums: Sequence[ir.Value], mask: ir.Value | None) -> None:
        """The returned values with the sums in place of the contraction."""
        result = self.root.results[0]
        for point, total in zip(points, sums, strict=True):
            ev = Evaluator(self.frame, self.s.lanes, mask, overrides={result: lambda _, total=total: total})  # type: ignore[misc]
            for value, destination in zip(self.source.results, self.source.destinations, strict=True):
                memory.store(self.frame, ev.idx, self.frame.buffers[destination], point, ev.tensor(value, point), mask)


def _shuffle(a: ir.Value, b: ir.Value, order: Sequence[int]) -> ir.Value:
    return vector.ShuffleOp(a, b, ir.DenseI64ArrayAttr.get(list(order))).result


def _picked(pieces: Sequence[ir.Value], places: Sequence[int]) -> ir.Value:
    """The elements `places`, which ascend, of adjacent vectors."""
    lanes = len(places)
    result = pieces[places[0] // lanes]
    order = [p % lanes if p // lanes == places[0] // lanes else 0 for p in places]
    moved = False
    for number in range(places[0] // lanes + 1, places[-1] // lanes + 1):
        mine = [p // lanes == number for p in places]
        here = [lane if moved else order[lane] for lane in range(lanes)]
        result = _shuffle(
            result, pieces[number], [lanes + p % lanes if m else h for p, m, h in zip(places, mine, here, strict=True)]
        )
        moved = True
    return result if moved else _shuffle(result, result, order)
