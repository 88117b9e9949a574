"""Transpositions in registers: both the loads and the stores are whole vectors.

Takes kernels that reduce nothing and read one of their inputs along a dimension that is not the results' contiguous
one. A square of `lanes` x `lanes` elements is loaded as vectors along the input's contiguous dimension, transposed by
log2(lanes) rounds of exchanges between pairs of vectors (Eklundh, "A fast computer method for matrix transposing",
1972), and the results are evaluated along theirs with the transposed vectors in place of the input.

Schedule parameters: `argument`: number of that input among the function's arguments; `read_dim`: the result dimension
that the input is contiguous along; `write_dim`: the results' contiguous dimension; `lanes`; `block`: elements of
`read_dim` per work item, whose lines of the results stay in the cache while the item walks along `write_dim`.
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


def expand(source: KernelSource, schedule: TransposeSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    return [_Transpose(source, schedule).emit(), emit_grid(source, lambda frame, shape: _items(frame, shape, schedule))]


def _items(frame: Frame, shape: Sequence[Scalar], s: TransposeSchedule) -> list[Scalar]:
    """Extents of the grid: the other dimensions, then blocks of the input's contiguous one."""
    outer = [e for d, e in enumerate(shape) if d not in (s.read_dim, s.write_dim)]
    return [*outer, frame.math.ceildiv(shape[s.read_dim], s.block)]


def transposed(rows: Sequence[ir.Value], lanes: int) -> list[ir.Value]:
    """The columns of the square of `lanes` vectors of `lanes` elements; `lanes` is a power of two."""
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
            self._spans(start, end, s.read_dim, lambda read, width: self._square(read, write, width, height))

        self._spans(0, self.shape[s.write_dim], s.write_dim, lines)

    def _spans(self, low: Scalar, high: Scalar, dim: int, body: Callable[[Scalar, Scalar], None]) -> None:
        """Steps of `lanes` from `low` to `high`, with the number of elements of each: all lanes but in the last."""
        lanes, math = self.s.lanes, self.frame.math
        extent = self.shape[dim]
        exact = isinstance(extent, int) and extent % lanes == 0
        length = math.sub(high, low)
        whole = length if exact else math.mul(math.div(length, lanes), lanes)

        def full(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            body(variable, lanes)
            return []

        if not (isinstance(whole, int) and whole == 0):
            for_loop(self.frame, low, math.add(low, whole), lanes, [], full)
        if exact:
            return
        rest = extent % lanes if isinstance(extent, int) else math.sub(length, whole)
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
        lanes, c = self.s.lanes, self.frame.constants
        across = None if width == lanes else lane_mask(self.frame, lanes, c.index(width))
        down = None if height == lanes else lane_mask(self.frame, lanes, c.index(height))
        rows = self._load(read, write, height, across)
        for i, column in enumerate(transposed(rows, lanes)):
            if isinstance(width, int):
                if i < width:
                    self._store(read, write, i, column, down)
                continue
            inside = arith.cmpi(arith.CmpIPredicate.slt, c.index(i), c.index(width))
            if_then(inside, lambda i=i, column=column: self._store(read, write, i, column, down))  # type: ignore[misc]

    def _load(self, read: Scalar, write: Scalar, height: Scalar, mask: ir.Value | None) -> list[ir.Value]:
        """Vectors of the input as they are in memory; rows behind the end repeat the last one."""
        lanes, math = self.s.lanes, self.frame.math
        buffer = self.frame.buffers[self.input]
        type_ = ir.VectorType.get([lanes], storage_type(buffer.element))
        zero = 0.0 if isinstance(type_.element_type, ir.FloatType) else 0
        nothing = vector.broadcast(type_, self.frame.constants.get(type_.element_type, zero))
        idx = IdxMath(math, lanes)
        rows: list[ir.Value] = []
        for j in range(lanes):
            if isinstance(height, int) and j >= height:
                rows.append(rows[-1])
                continue
            row = math.add(write, j if isinstance(height, int) else math.minimum(j, math.sub(height, 1)))
            point = self._point(Idx(read, 1, level=3), Idx(row, level=2))
            at = memory.address(buffer, [idx.affine(e, point) for e in self.exprs], idx)
            base = [self.frame.constants.index(at.base)]
            if mask is None:
                rows.append(vector.LoadOp(type_, buffer.memory, base).result)
            else:
                rows.append(vector.MaskedLoadOp(type_, buffer.memory, base, mask, nothing).result)
        return rows

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
            memory.store(self.frame, ev.idx, self.frame.buffers[destination], point, ev.tensor(value, point), ev.mask)
