"""Transpositions in registers: loads and stores are vectors, and what is stored is whole ones.

Takes kernels that reduce nothing and read one of their inputs along a dimension that is not the results' contiguous
one. Of `lanes` lines of the input, `line` elements each are loaded and brought into vectors of `lanes` elements, the
same `piece` of as many lines each: pieces are loaded as such and joined, or whole vectors exchange their pieces, so
that every line of memory is read once. `piece` vectors are transposed by log2(piece) rounds in which pairs of them are
interleaved (a perfect shuffle, Stone 1971) within the 16 bytes that processors exchange cheaply; the results are
evaluated along theirs with the transposed vectors in place of the input.

Schedule parameters: `argument`: number of that input among the function's arguments; `read_first` to `read_dim`: the
result dimensions, walked as one, that the input is contiguous along; `write_first` to `write_dim`: the results'
contiguous dimensions, walked as one; `lanes`; `piece`, a power of two that divides them; `line`: `piece` times a power
of two, at most `lanes`.

How an item walks: it takes `block` elements along the one and `height` along the other (0: all), multiples of `line`
and `lanes`. With `down` it walks along the results' lines first (few streams are written, many lines are read), else
along the input's. `ahead` (0: none): how many squares before its turn a square's lines are fetched; squares side by
side that are pieces of the same lines of the cache fetch a part of the lines each. Items that follow each other go
along the input's lines, with `turned` along the results'.

With `stream` results are written past the caches where their addresses allow it: everything that is written then is as
long as a line of the cache, and need not be read before. Where it is `memory.ALONE`, only calls that have all items do
so.

With `joined` (static extents, squares of `lanes` lines as long as a line of the cache, `down`) results whose lines
begin anywhere are stored in whole lines of the cache all the same: what is left of each column is kept and put in front
of what the next square brings, by one exchange with a fixed distance, as columns `lanes` apart begin alike. `ahead`
counts squares down. An item is `lanes` high at least. With `beside` the first of so many items side by side fetches the
lines of all of them: memory is faster where what follows each other is read together.

With `back` (not `joined`) the last squares of known extents, which would be cut, begin earlier instead and write some
of the results again: for targets on which masks cost more. Nothing but the transposed input may be read then, as what
is written twice must be the same both times.

`claim` (0: none): how many squares before its turn the results' lines of a square are fetched to be written, where
stores wait for them. A vector that lies across two lines waits for both.

A vector may be two registers long: then it is a line of the cache where one register is half of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, func, memref, vector

from mlc.kernels.common import memory
from mlc.kernels.common.accesses import input_accesses
from mlc.kernels.common.evaluate import Evaluator, lane_mask
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then, storage_type
from mlc.kernels.common.index import Idx, IdxMath, IndexMath, Scalar
from mlc.kernels.common.items import emit_grid


@dataclass(frozen=True)
class TransposeSchedule:
    """Parameters of the template; see the module's description."""

    argument: int
    read_first: int
    read_dim: int
    write_first: int
    write_dim: int
    lanes: int
    piece: int
    line: int
    block: int
    height: int
    down: int
    ahead: int
    stream: int
    joined: int = 0
    back: int = 0
    claim: int = 0
    turned: int = 0
    beside: int = 0

    @property
    def walked(self) -> list[int]:
        """The dimensions that are not work items of their own."""
        return [*range(self.read_first, self.read_dim + 1), *range(self.write_first, self.write_dim + 1)]

    def extents(self, math: IndexMath, shape: Sequence[Scalar]) -> tuple[Scalar, Scalar]:
        """How many elements there are along the input's lines and along the results'."""
        read = math.product(shape[self.read_first : self.read_dim + 1])
        return read, math.product(shape[self.write_first : self.write_dim + 1])


def expand(source: KernelSource, schedule: TransposeSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [Transpose(source, schedule).emit(), emit_grid(source, lambda frame, shape: items(frame, shape, schedule))]


def items(frame: Frame, shape: Sequence[Scalar], s: TransposeSchedule) -> list[Scalar]:
    """Extents of the grid: the other dimensions, then blocks of the results' lines and of the input's; `turned` the
    other way round.
    """
    outer = [e for d, e in enumerate(shape) if d not in s.walked]
    read, write = s.extents(frame.math, shape)
    down = frame.math.ceildiv(write, s.height) if s.height else 1
    across = frame.math.ceildiv(read, s.block) if s.block else 1
    return [*outer, across, down] if s.turned else [*outer, down, across]


def interleaved(rows: Sequence[ir.Value], lanes: int) -> list[ir.Value]:
    """The columns of `len(rows)` vectors, group by group: lane `g * n + i` of result c is lane `g * n + c` of row i,
    where n is the number of rows, a power of two that divides `lanes`.
    """
    current, n = list(rows), len(rows)
    low, high = list[int](), list[int]()
    for lane in range(0, lanes, n):
        for i in range(n // 2):
            low += [lane + i, lanes + lane + i]
            high += [lane + n // 2 + i, lanes + lane + n // 2 + i]
    for _ in range(n.bit_length() - 1):
        pairs = [(current[i], current[i + n // 2]) for i in range(n // 2)]
        current = [_shuffle(a, b, order) for a, b in pairs for order in (low, high)]
    return current


def _joined(parts: Sequence[ir.Value]) -> ir.Value:
    """Vectors one behind the other; their number is a power of two."""
    current = list(parts)
    while len(current) > 1:
        size = current[0].type.shape[0]
        current = [_shuffle(a, b, range(2 * size)) for a, b in zip(current[::2], current[1::2], strict=True)]
    return current[0]


def dealt(rows: Sequence[ir.Value], piece: int) -> list[ir.Value]:
    """Of vectors that hold the pieces of `n` lines, their number and `n` powers of two and a line a multiple of
    `piece`: result c is piece c of every line, one behind the other.
    """
    current, lanes = list(rows), rows[0].type.shape[0]
    even = [2 * p * piece + i for p in range(lanes // piece) for i in range(piece)]
    odd = [lane + piece for lane in even]
    for _ in range(len(current).bit_length() - 1):
        pairs = list(zip(current[::2], current[1::2], strict=True))
        current = [_shuffle(a, b, order) for order in (even, odd) for a, b in pairs]
    return current


def transposed(rows: Sequence[ir.Value], lanes: int) -> list[ir.Value]:
    """The columns of the square of `lanes` vectors of `lanes` elements; `lanes` is a power of two. (Eklundh, "A fast
    computer method for matrix transposing", 1972.)
    """
    current, distance = list(rows), lanes // 2
    while distance:
        low = [lane if not lane & distance else lanes + lane - distance for lane in range(lanes)]
        high = [lane + distance if not lane & distance else lanes + lane for lane in range(lanes)]
        for r in range(lanes):
            if not r & distance:
                a, b = current[r], current[r + distance]
                current[r], current[r + distance] = _shuffle(a, b, low), _shuffle(a, b, high)
        distance //= 2
    return current


def _shuffle(a: ir.Value, b: ir.Value, mask: Sequence[int]) -> ir.Value:
    return vector.ShuffleOp(a, b, ir.DenseI64ArrayAttr.get(list(mask))).result


class Transpose:
    """The memref function of one kernel."""

    def __init__(self, source: KernelSource, schedule: TransposeSchedule) -> None:
        self.source, self.s = source, schedule
        self.frame = Frame(source, vector_lanes=schedule.lanes)
        self.shape = self.frame.buffers[source.destinations[0]].shape
        self.input = list(source.block.arguments)[schedule.argument]
        accesses = input_accesses(source.results) or {}
        [self.exprs] = accesses[self.input]

    def emit(self) -> Frame:
        frame, s, math = self.frame, self.s, self.frame.math
        with frame.body():
            self.extents = s.extents(math, self.shape)
            buffers = [frame.buffers[d] for d in self.source.destinations]
            count = math.product(items(frame, self.shape, s)) if s.stream == memory.ALONE else None
            memory.past_caches(frame, buffers, s.stream, self._all_items, count)
            func.ReturnOp([])
        return frame

    def _all_items(self, stream: bool) -> None:
        self.stream = stream
        frame, s, math = self.frame, self.s, self.frame.math
        extents = items(frame, self.shape, s)

        def item(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            *outer, first, second = math.delinearize(variable, extents)
            down, across = (second, first) if s.turned else (first, second)
            free = iter(outer)
            self.origin = [Idx(0) if d in s.walked else Idx(next(free), level=1) for d in range(len(self.shape))]
            self._squares(_part(math, across, s.block, self.extents[0]), _part(math, down, s.height, self.extents[1]))
            return []

        for_loop(frame, frame.begin, frame.end, 1, [], item)

    # -- loops over squares -----------------------------------------------------------------------------------------

    def _squares(self, across: tuple[Scalar, Scalar], down: tuple[Scalar, Scalar]) -> None:
        """All squares of an item: from where to where it goes along the input's lines, and along the results'."""
        s, (read_extent, write_extent) = self.s, self.extents
        self.across, self.down = across, down
        if s.joined:
            self._spans(*across, read_extent, lambda read, width: self._strip(read, width, *down), s.lanes)
            return

        def lines(body: Callable[[Scalar, Scalar], None]) -> None:
            self._spans(*down, write_extent, body, s.lanes)

        def columns(body: Callable[[Scalar, Scalar], None]) -> None:
            self._spans(*across, read_extent, body, s.line)

        if s.down:
            columns(lambda read, width: lines(lambda write, height: self._square(read, write, width, height)))
        else:
            lines(lambda write, height: columns(lambda read, width: self._square(read, write, width, height)))

    def _spans(
        self, low: Scalar, high: Scalar, extent: Scalar, body: Callable[[Scalar, Scalar], None], step: int
    ) -> None:
        """Steps from `low` to `high`, with the number of elements of each: `step` but in the last, which with `back` is
        as long as the others and begins earlier.

        `low` is a multiple of `step`, and `high` is one or differs from `extent` by one.
        """
        math = self.frame.math
        exact = isinstance(extent, int) and extent % step == 0
        length = math.sub(high, low)
        whole = length if exact else math.mul(math.div(length, step), step)

        def full(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            body(variable, step)
            return []

        if not (isinstance(whole, int) and whole == 0):
            for_loop(self.frame, low, math.add(low, whole), step, [], full)
        if exact:
            return
        rest = extent % step if isinstance(extent, int) else math.sub(length, whole)
        at = math.add(low, whole)
        begin, size = at, rest
        if self.s.back and isinstance(extent, int) and extent >= step:
            begin, size = extent - step, step
        if isinstance(whole, int) and isinstance(rest, int):
            body(begin, size)
            return
        c = self.frame.constants
        left = arith.cmpi(arith.CmpIPredicate.slt, c.index(at), c.index(high))
        if_then(left, lambda: body(begin, size))

    # -- strips that are stored in whole lines of the cache -----------------------------------------------------------

    def _strip(self, read: Scalar, width: Scalar, low: Scalar, high: Scalar) -> None:
        """`width` elements of the input's lines from `read` on, lines from `low` to `high`."""
        s, math, c = self.s, self.frame.math, self.frame.constants
        extent = self.extents[1]
        assert isinstance(extent, int) and isinstance(width, int)
        rest = extent % s.lanes
        whole = math.minimum(math.add(low, s.height or extent), extent - rest)
        kept = self._strip_columns(read, low, width, s.lanes)
        for i, column in enumerate(kept):
            self._store_part(read, low, i, column, column, self._offset(i), s.lanes)

        def step(write: ir.Value, before: list[ir.Value]) -> list[ir.Value]:
            self._fetch_below(read, write)
            columns = self._strip_columns(read, write, width, s.lanes)
            for i, (front, column) in enumerate(zip(before, columns, strict=True)):
                self._store_part(read, write, i, front, column, 0, s.lanes)
            return columns

        kept = for_loop(self.frame, math.add(low, s.lanes), whole, s.lanes, kept, step)

        def last() -> None:
            for i, (front, column) in enumerate(zip(kept, self._strip_columns(read, whole, width, rest), strict=True)):
                self._store_part(read, whole, i, front, column, 0, self._offset(i) + rest)

        def left() -> None:
            for i, front in enumerate(kept):
                self._store_part(read, whole, i, front, front, 0, self._offset(i))

        if rest:
            if_then(arith.cmpi(arith.CmpIPredicate.eq, c.index(high), c.index(extent)), last, left)
        else:
            left()

    def _offset(self, i: int) -> int:
        """By how many elements line `i` of the results, of `lanes` ones, begins behind a line of the cache."""
        extent = self.extents[1]
        assert isinstance(extent, int)
        return i * extent % self.s.lanes

    def _strip_columns(self, read: Scalar, write: Scalar, width: int, height: int) -> list[ir.Value]:
        """`width` columns of `lanes` elements, of which `height` are inside."""
        s, c = self.s, self.frame.constants
        columns: list[ir.Value] = []
        for first in range(0, width, s.line):
            inside = min(s.line, width - first)
            mask = None if inside == s.line else lane_mask(self.frame, s.line, c.index(inside))
            square = [v for _, v in self._columns(self.frame.math.add(read, first), write, height, s.lanes, mask)]
            columns += square[:inside]
        return columns

    def _store_part(
        self, read: Scalar, write: Scalar, i: int, front: ir.Value, column: ir.Value, first: int, end: int
    ) -> None:
        """Elements `first` to `end` from the beginning of a line of the cache, of `front` and then of `column`, which
        begins at `write`; `end` may be as much as two lines.
        """
        lanes, offset, math = self.s.lanes, self._offset(i), self.frame.math
        for start, parts in ((0, (front, column)), (lanes, (column, column))):
            low, high = max(first - start, 0), min(end - start, lanes)
            if low < high:
                distance = lanes - offset
                joined = parts[1] if not offset else _shuffle(*parts, range(distance, distance + lanes))
                mask = None if (low, high) == (0, lanes) else _between(lanes, low, high)
                self._store(read, math.add(math.sub(write, offset), start), i, joined, mask)

    def _fetch_below(self, read: Scalar, write: Scalar) -> None:
        """Begin to bring the lines of the square that is `ahead` squares further down into the cache. An item that is
        the first of `beside` ones fetches those of the others, too.
        """
        s, math, c = self.s, self.frame.math, self.frame.constants
        below = math.add(write, s.ahead * s.lanes)

        def fetch(items: int) -> None:
            for j in range(s.lanes):
                for k in range(items):
                    at = self._last_address(math.add(read, k * s.lanes), math.add(below, j))
                    level = 3 if items == 1 else 2  # that of the cache, counted from the last one
                    memref.PrefetchOp(self.frame.buffers[self.input].memory, [at], False, level, True)

        if s.ahead and s.beside:
            number = math.rem(math.div(self.across[0], s.lanes), s.beside)
            first = arith.cmpi(arith.CmpIPredicate.eq, c.index(number), c.index(0))
            if_then(first, lambda: fetch(s.beside), lambda: fetch(1))
        elif s.ahead:
            fetch(1)

    # -- one square -------------------------------------------------------------------------------------------------

    def _square(self, read: Scalar, write: Scalar, width: Scalar, height: Scalar) -> None:
        """`width` elements of the input's contiguous dimension from `read` on, `height` of the results'."""
        s, c = self.s, self.frame.constants
        across = None if width == s.line else lane_mask(self.frame, s.line, c.index(width))
        lanes = self._lanes(height)
        down = None if height == lanes else lane_mask(self.frame, lanes, c.index(height))
        if across is None and height == s.lanes:
            if s.claim:
                self._claim(read, write)
            if s.ahead:
                self._fetch(read, write)
        for i, column in self._columns(read, write, height, lanes, across):
            if isinstance(width, int):
                if i < width:
                    self._store(read, write, i, column, down)
                continue
            inside = arith.cmpi(arith.CmpIPredicate.slt, c.index(i), c.index(width))
            if_then(inside, lambda i=i, column=column: self._store(read, write, i, column, down))  # type: ignore[misc]

    def _lanes(self, height: Scalar) -> int:
        """The lanes of a square of `height` lines: as many as it needs, where that is known and the lines are loaded in
        pieces.
        """
        lanes = self.s.lanes
        while isinstance(height, int) and lanes // 2 >= max(height, self.s.line):
            lanes //= 2
        return lanes

    def _columns(
        self, read: Scalar, write: Scalar, height: Scalar, lanes: int, mask: ir.Value | None
    ) -> Iterator[tuple[int, ir.Value]]:
        """The columns of a square of `lanes` lines, of which `height` are inside, in the order in which what they are
        made of takes the fewest registers.
        """
        s = self.s
        together = lanes // s.line
        parts: list[list[ir.Value]] = []
        for i in range(s.piece):
            rows = [self._load(read, write, j, height, mask) for j in range(i, lanes, s.piece)]
            parts.append(dealt([_joined(rows[k : k + together]) for k in range(0, len(rows), together)], s.piece))
        for number, part in enumerate(zip(*parts, strict=True)):
            yield from enumerate(interleaved(part, lanes), number * s.piece)

    def _fetch(self, read: Scalar, write: Scalar) -> None:
        """Begin to bring the lines of the square after next ones, as the walk goes, into the cache."""
        s, math = self.s, self.frame.math
        at = write if s.down else read
        read, write = self._later(read, write, s.ahead)
        buffer = self.frame.buffers[self.input]
        # Squares side by side that share lines of the cache fetch a part of the lines each.
        parts = 1 if s.down else max(1, memory.LINE * 8 // (s.line * storage_type(buffer.element).width))
        count = s.lanes // parts
        first = math.mul(math.rem(math.div(at, s.line), parts), count) if parts > 1 else 0
        for j in range(count):
            at = self._last_address(read, math.add(math.add(write, first), j))
            memref.PrefetchOp(buffer.memory, [at], False, 3, True)

    def _claim(self, read: Scalar, write: Scalar) -> None:
        """Begin to bring the results' lines of a later square into the cache, to be written there: of the two that a
        vector lies in the later one, as the square before it, of the same line, has written to the other.
        """
        s, math = self.s, self.frame.math
        read, write = self._later(read, write, s.claim)
        for i in range(s.line):
            self._claim_line(math.add(read, i), math.add(write, s.lanes - 1))

    def _claim_line(self, read: Scalar, write: Scalar) -> None:
        """Begin to bring the line of the cache that has this element of every result."""
        point, idx = self._point(Idx(read, level=3), Idx(write, level=2)), IdxMath(self.frame.math, 1)
        for destination in self.source.destinations:
            buffer = self.frame.buffers[destination]
            at = self.frame.constants.index(memory.address(buffer, point, idx).base)
            memref.PrefetchOp(buffer.memory, [at], True, 3, True)

    def _later(self, read: Scalar, write: Scalar, count: int) -> tuple[Scalar, Scalar]:
        """Where the square is that is `count` squares behind another one, as the walk goes."""
        s, math, c = self.s, self.frame.math, self.frame.constants
        (start, end), step = (self.down, s.lanes) if s.down else (self.across, s.line)
        at, aside = (write, read) if s.down else (read, write)
        then = math.add(at, count * step)
        next_aside = math.add(aside, s.line if s.down else s.lanes)
        past = arith.cmpi(arith.CmpIPredicate.sge, c.index(then), c.index(end))
        if not s.down:  # what lies beyond the last squares is the next item's
            more = arith.cmpi(arith.CmpIPredicate.slt, c.index(next_aside), c.index(self.down[1]))
            past = arith.andi(past, more)
        back = math.sub(then, math.sub(end, start))
        then = arith.select(past, c.index(back), c.index(then))
        aside = arith.select(past, c.index(next_aside), c.index(aside))
        return (aside, then) if s.down else (then, aside)

    def _load(self, read: Scalar, write: Scalar, row: int, height: Scalar, mask: ir.Value | None) -> ir.Value:
        """Piece of a line of the input as it is in memory; lines behind the end repeat the last one."""
        s, math = self.s, self.frame.math
        buffer = self.frame.buffers[self.input]
        type_ = ir.VectorType.get([s.line], storage_type(buffer.element))
        last = math.sub(height, 1)
        known = min(row, last) if isinstance(last, int) else math.minimum(row, last)
        base = [self._address(read, math.add(write, known))]
        if mask is None:
            return vector.LoadOp(type_, buffer.memory, base).result
        zero = 0.0 if isinstance(type_.element_type, ir.FloatType) else 0
        nothing = vector.broadcast(type_, self.frame.constants.get(type_.element_type, zero))
        return vector.MaskedLoadOp(type_, buffer.memory, base, mask, nothing).result

    def _address(self, read: Scalar, row: Scalar) -> ir.Value:
        """Where element `read` of line `row` of the input is."""
        idx = IdxMath(self.frame.math, self.s.line)
        point = self._point(Idx(read, 1, level=3), Idx(row, level=2))
        at = memory.address(self.frame.buffers[self.input], [idx.affine(e, point) for e in self.exprs], idx)
        return self.frame.constants.index(at.base)

    def _last_address(self, read: Scalar, row: Scalar) -> ir.Value:
        """The last element of a piece, for fetching: where inputs begin within a line of the cache a piece lies in two,
        of which the first one is that of the piece before.
        """
        return self._address(self.frame.math.add(read, self.s.line - 1), row)

    def _point(self, read: Idx, write: Idx) -> list[Idx]:
        point = list(self.origin)
        point[self.s.read_dim], point[self.s.write_dim] = read, write
        return point

    def _store(self, read: Scalar, write: Scalar, i: Scalar, raw: ir.Value, mask: ir.Value | None) -> None:
        """The results of one line, with `raw` in place of the input."""
        element = memory.from_memory(self.frame, raw, self.input.type.element_type)
        point = self._point(Idx(self.frame.math.add(read, i), level=3), Idx(write, 1, level=2))
        ev = Evaluator(self.frame, raw.type.shape[0], mask, overrides={self.input: lambda _: element})
        for value, destination in zip(self.source.results, self.source.destinations, strict=True):
            buffer = self.frame.buffers[destination]
            memory.store(self.frame, ev.idx, buffer, point, ev.tensor(value, point), ev.mask, stream=self.stream)


def _between(lanes: int, low: int, high: int) -> ir.Value:
    """A mask with lanes `low` to `high` set."""
    bit = ir.IntegerType.get_signless(1)
    lanes_set = [ir.IntegerAttr.get(bit, int(low <= lane < high)) for lane in range(lanes)]
    type_ = ir.VectorType.get([lanes], bit)
    return arith.ConstantOp(type_, ir.DenseElementsAttr.get(lanes_set, type_)).result


def _part(math: IndexMath, number: Scalar, size: int, extent: Scalar) -> tuple[Scalar, Scalar]:
    """Begin and end of a part of `size` elements; 0: everything."""
    if not size:
        return 0, extent
    start = math.mul(number, size)
    exact = isinstance(extent, int) and extent % size == 0
    return start, math.add(start, size) if exact else math.minimum(math.add(start, size), extent)
