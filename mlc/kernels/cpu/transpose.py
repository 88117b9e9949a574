"""Transpositions in registers: loads and stores are vectors, and what is stored is whole ones.

Takes kernels that reduce nothing and read one of their inputs along a dimension that is not the results' contiguous
one. Of `lanes` lines of the input, `piece` elements each are loaded, joined to `piece` vectors, and transposed by
log2(piece) rounds in which pairs of vectors are interleaved (a perfect shuffle, Stone 1971) within the 16 bytes that
processors exchange cheaply; the results are evaluated along theirs with the transposed vectors in place of the input.

Schedule parameters: `argument`: number of that input among the function's arguments; `read_dim`: the result dimension
that the input is contiguous along; `write_dim`: the results' contiguous dimension; `lanes`; `piece`, a power of two
that divides them; `block`: elements of `read_dim` per work item, whose lines of the results stay in the cache while the
item walks along `write_dim`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, func, vector

from mlc.kernels.common import memory
from mlc.kernels.common.accesses import input_accesses
from mlc.kernels.common.evaluate import Evaluator, lane_mask
from mlc.kernels.common.frame import Frame, KernelSource, for_loop, if_then, storage_type
from mlc.kernels.common.index import Idx, IdxMath, Scalar
from mlc.kernels.common.items import emit_grid


@dataclass(frozen=True)
class TransposeSchedule:
    """Parameters of the template; see the module's description."""

    argument: int
    read_dim: int
    write_dim: int
    lanes: int
    block: int
    piece: int


def expand(source: KernelSource, schedule: TransposeSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [_Transpose(source, schedule).emit(), emit_grid(source, lambda frame, shape: _items(frame, shape, schedule))]


def _items(frame: Frame, shape: Sequence[Scalar], s: TransposeSchedule) -> list[Scalar]:
    """Extents of the grid: the other dimensions, then blocks of the input's contiguous one."""
    outer = [e for d, e in enumerate(shape) if d not in (s.read_dim, s.write_dim)]
    return [*outer, frame.math.ceildiv(shape[s.read_dim], s.block)]


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


class _Transpose:
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
            items = _items(frame, self.shape, s)

            def item(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                *outer, block = math.delinearize(variable, items)
                free = iter(outer)
                fixed = (s.read_dim, s.write_dim)
                self.origin = [Idx(0) if d in fixed else Idx(next(free), level=1) for d in range(len(self.shape))]
                self._squares(math.mul(block, s.block))
                return []

            for_loop(frame, frame.begin, frame.end, 1, [], item)
            func.ReturnOp([])
        return frame

    # -- loops over squares -----------------------------------------------------------------------------------------

    def _squares(self, start: Scalar) -> None:
        """All squares of a block, along the lines of the results first."""
        s, math = self.s, self.frame.math
        end = math.minimum(math.add(start, s.block), self.shape[s.read_dim])

        def lines(write: Scalar, height: Scalar) -> None:
            extent = self.shape[s.read_dim]
            self._spans(start, end, extent, lambda read, width: self._square(read, write, width, height), s.piece)

        extent = self.shape[s.write_dim]
        self._spans(0, extent, extent, lines, s.lanes)

    def _spans(
        self, low: Scalar, high: Scalar, extent: Scalar, body: Callable[[Scalar, Scalar], None], step: int
    ) -> None:
        """Steps from `low` to `high`, with the number of elements of each: `step` but in the last.

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
        if isinstance(whole, int) and isinstance(rest, int):
            body(at, rest)
            return
        c = self.frame.constants
        left = arith.cmpi(arith.CmpIPredicate.slt, c.index(at), c.index(high))
        if_then(left, lambda: body(at, rest))

    # -- one square -------------------------------------------------------------------------------------------------

    def _square(self, read: Scalar, write: Scalar, width: Scalar, height: Scalar) -> None:
        """`width` elements of the input's contiguous dimension from `read` on, `height` of the results'."""
        s, c = self.s, self.frame.constants
        across = None if width == s.piece else lane_mask(self.frame, s.piece, c.index(width))
        down = None if height == s.lanes else lane_mask(self.frame, s.lanes, c.index(height))
        rows = self._load(read, write, height, across)
        joined = [_joined(rows[i :: s.piece]) for i in range(s.piece)]
        for i, column in enumerate(interleaved(joined, s.lanes)):
            if isinstance(width, int):
                if i < width:
                    self._store(read, write, i, column, down)
                continue
            inside = arith.cmpi(arith.CmpIPredicate.slt, c.index(i), c.index(width))
            if_then(inside, lambda i=i, column=column: self._store(read, write, i, column, down))  # type: ignore[misc]

    def _load(self, read: Scalar, write: Scalar, height: Scalar, mask: ir.Value | None) -> list[ir.Value]:
        """Pieces of lines of the input as they are in memory; lines behind the end repeat the last one."""
        s, math = self.s, self.frame.math
        buffer = self.frame.buffers[self.input]
        type_ = ir.VectorType.get([s.piece], storage_type(buffer.element))
        zero = 0.0 if isinstance(type_.element_type, ir.FloatType) else 0
        nothing = vector.broadcast(type_, self.frame.constants.get(type_.element_type, zero))
        rows: list[ir.Value] = []
        for j in range(s.lanes):
            if isinstance(height, int) and j >= height:
                rows.append(rows[-1])
                continue
            row = math.add(write, j if isinstance(height, int) else math.minimum(j, math.sub(height, 1)))
            base = [self._address(read, row)]
            if mask is None:
                rows.append(vector.LoadOp(type_, buffer.memory, base).result)
            else:
                rows.append(vector.MaskedLoadOp(type_, buffer.memory, base, mask, nothing).result)
        return rows

    def _address(self, read: Scalar, row: Scalar) -> ir.Value:
        """Where element `read` of line `row` of the input is."""
        idx = IdxMath(self.frame.math, self.s.piece)
        point = self._point(Idx(read, 1, level=3), Idx(row, level=2))
        at = memory.address(self.frame.buffers[self.input], [idx.affine(e, point) for e in self.exprs], idx)
        return self.frame.constants.index(at.base)

    def _point(self, read: Idx, write: Idx) -> list[Idx]:
        point = list(self.origin)
        point[self.s.read_dim], point[self.s.write_dim] = read, write
        return point

    def _store(self, read: Scalar, write: Scalar, i: int, raw: ir.Value, mask: ir.Value | None) -> None:
        """The results of one line, with `raw` in place of the input."""
        element = memory.from_memory(self.frame, raw, self.input.type.element_type)
        point = self._point(Idx(self.frame.math.add(read, i), level=3), Idx(write, 1, level=2))
        ev = Evaluator(self.frame, self.s.lanes, mask, overrides={self.input: lambda _: element})
        for value, destination in zip(self.source.results, self.source.destinations, strict=True):
            buffer = self.frame.buffers[destination]
            memory.store(self.frame, ev.idx, buffer, point, ev.tensor(value, point), ev.mask)
