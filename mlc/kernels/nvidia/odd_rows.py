"""Rows that begin anywhere within an access: accesses begin where those of the whole tensor do.

Row r of n elements begins r * n mod `lanes` elements behind such a place, its phase. So the first access of a row also
has the end of the row before, and the last one the beginning of the next: these elements do not count, and are not
written. What lies behind a tensor's end is not read: an access that is not all in the row is one for every lane there.
Tensors that do not lie as the rows do, such as the weights of a norm, are read a lane at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from mlir import ir
from mlir.dialects import arith, memref, scf, vector

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator, Hook
from mlc.kernels.common.frame import Buffer, Frame, if_then, storage_type
from mlc.kernels.common.index import Idx, Scalar


@dataclass(frozen=True)
class Span:
    """An access from element `column` of the row on, which may be negative where it `begins` the row; may it have the
    row's `end`? `inside` says which lanes are in the row (None: all)."""

    column: Scalar
    begins: bool
    ends: bool
    inside: ir.Value | None


class OddRows:
    """Reads and writes accesses of `lanes` elements of row `row` of all tensors of `extent` elements a row."""

    def __init__(self, frame: Frame, row: Sequence[Idx], outer: Sequence[Scalar], extent: int, lanes: int) -> None:
        self.frame, self.row, self.outer, self.extent, self.lanes = frame, list(row), list(outer), extent, lanes
        self.spans: dict[object, Span] = {}
        math = frame.math
        number: Scalar = 0
        for coord, size in zip(row, outer, strict=True):
            number = math.add(math.mul(number, size), coord.base)
        self.phase = math.rem(math.mul(number, extent % lanes), lanes)

    def span(self, linear: Scalar, first: int, last: int) -> Span:
        """The access whose place behind that of the first one is `linear`, between `first` and `last`."""
        math = self.frame.math
        column = math.sub(linear, self.phase)
        begins = first == 0 and not isinstance(self.phase, int)
        ends = last + self.lanes > self.extent
        span = Span(column, begins, ends, self._inside(column, begins, ends))
        self.spans[Idx(column, 1).key()] = span
        return span

    def _inside(self, column: Scalar, begins: bool, ends: bool) -> ir.Value | None:
        i32 = ir.IntegerType.get_signless(32)
        if not begins and not ends:
            return None
        type_ = ir.VectorType.get([self.lanes], i32)
        start = arith.index_cast(i32, self.frame.constants.index(column))
        steps = [ir.IntegerAttr.get(i32, lane) for lane in range(self.lanes)]
        places = arith.addi(
            vector.broadcast(type_, start), arith.ConstantOp(type_, ir.DenseElementsAttr.get(steps, type_)).result
        )

        def limit(value: int) -> ir.Value:
            return vector.broadcast(type_, self.frame.constants.get(i32, value))

        found = arith.cmpi(arith.CmpIPredicate.sge, places, limit(0)) if begins else None
        below = arith.cmpi(arith.CmpIPredicate.slt, places, limit(self.extent)) if ends else None
        if found is None or below is None:
            return found if below is None else below
        return arith.andi(found, below)

    def hooks(self, tensors: Sequence[ir.Value]) -> dict[ir.Value, Hook]:
        """How `tensors` are read at the accesses of rows."""
        return {t: lambda ev, coords, t=t: self._read(ev, coords, t) for t in tensors}  # type: ignore[misc]

    def _read(self, ev: Evaluator, coords: Sequence[Idx], tensor: ir.Value) -> ir.Value:
        span = self.spans.get(coords[-1].key()) if coords else None
        if span is None:
            return ev.compute(tensor, coords)
        buffer = self.frame.buffers[tensor]
        if self._lies_alike(buffer, coords):
            value = self._aligned(buffer, ev, coords, span)
        else:
            value = self._scattered(buffer, ev, coords, span)
        return memory.from_memory(self.frame, value, buffer.element)

    def _lies_alike(self, buffer: Buffer, coords: Sequence[Idx]) -> bool:
        here = [c.key() for c in coords[:-1]] == [c.key() for c in self.row]
        return here and len(buffer.shape) == len(self.row) + 1 and buffer.shape[1:] == [*self.outer[1:], self.extent]

    def _aligned(self, buffer: Buffer, ev: Evaluator, coords: Sequence[Idx], span: Span) -> ir.Value:
        base = self.frame.constants.index(memory.address(buffer, coords, ev.idx).base)
        type_ = ir.VectorType.get([self.lanes], storage_type(buffer.element))

        def whole() -> ir.Value:
            return vector.LoadOp(type_, buffer.memory, [base], alignment=self._alignment(type_)).result

        if not span.ends:
            return whole()
        branch = scf.IfOp(self._ends_inside(span), [type_], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp([whole()])
        with ir.InsertionPoint(branch.else_block):
            lanes = [self._lane(buffer, base, span, lane, type_.element_type) for lane in range(self.lanes)]
            scf.YieldOp([vector.from_elements(type_, lanes)])
        return branch.results[0]

    def _lane(self, buffer: Buffer, base: ir.Value, span: Span, lane: int, type_: ir.Type) -> ir.Value:
        """An element where the lane is in the row, else nothing in particular."""
        assert span.inside is not None
        branch = scf.IfOp(vector.extract(span.inside, [], [lane]), [type_], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            at = arith.addi(base, self.frame.constants.index(lane))
            scf.YieldOp([memref.load(buffer.memory, [at])])
        with ir.InsertionPoint(branch.else_block):
            zero = 0.0 if isinstance(type_, ir.FloatType) else 0
            scf.YieldOp([self.frame.constants.get(type_, zero)])
        return branch.results[0]

    def _scattered(self, buffer: Buffer, ev: Evaluator, coords: Sequence[Idx], span: Span) -> ir.Value:
        """Elements one by one; where a lane is not in the row, the nearest that is."""
        math, found = self.frame.math, []
        for lane in range(self.lanes):
            column = math.add(span.column, lane)
            column = math.maximum(column, 0) if span.begins else column
            column = math.minimum(column, self.extent - 1) if span.ends else column
            where = memory.address(buffer, [*coords[:-1], Idx(column, level=2)], ev.idx)
            found.append(memref.load(buffer.memory, [self.frame.constants.index(where.base)]))
        return vector.from_elements(ir.VectorType.get([self.lanes], found[0].type), found)

    def _ends_inside(self, span: Span) -> ir.Value:
        """Is the access over before the row is?"""
        index = self.frame.constants.index
        return arith.cmpi(arith.CmpIPredicate.sle, index(span.column), index(self.extent - self.lanes))

    def _alignment(self, type_: ir.VectorType) -> int:
        return self.lanes * ((type_.element_type.width + 7) // 8)

    def write(self, buffer: Buffer, ev: Evaluator, span: Span, value: ir.Value) -> None:
        """Write the lanes of `value` that are in the row."""
        stored = memory.to_memory(memory.splat(value, self.lanes), buffer.element)
        where = memory.address(buffer, [*self.row, Idx(span.column, 1, level=2)], ev.idx)
        base, constants = self.frame.constants.index(where.base), self.frame.constants

        def whole() -> None:
            vector.StoreOp(stored, buffer.memory, [base], alignment=self._alignment(stored.type))

        def one(lane: int) -> None:
            at = arith.addi(base, constants.index(lane))
            memref.store(vector.extract(stored, [], [lane]), buffer.memory, [at])

        def parts() -> None:
            for lane in range(self.lanes):
                if_then(vector.extract(span.inside, [], [lane]), partial(one, lane))

        if span.inside is None:
            whole()
            return
        is_whole = self._ends_inside(span) if span.ends else None
        if span.begins:
            begun = arith.cmpi(arith.CmpIPredicate.sge, constants.index(span.column), constants.index(0))
            is_whole = begun if is_whole is None else arith.andi(begun, is_whole)
        assert is_whole is not None
        if_then(is_whole, whole, parts)
