"""One line of `select`: the binary heap of its best elements and how the other elements come to it.

What an entry of the heap is, and how two of them compare, is the subclass's matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from mlir import ir
from mlir.dialects import arith, math, scf

from mlc.kernels.common.frame import Buffer, Frame, for_loop, if_then
from mlc.kernels.common.index import IdxMath, Scalar

Entry = TypeVar("Entry")


class Line(ABC, Generic[Entry]):
    """One line of `tensor` along `axis`; the best of its elements in `values` and `positions`, in order."""

    def __init__(
        self,
        frame: Frame,
        tensor: ir.Value,
        destinations: tuple[Buffer, Buffer],
        axis: int,
        coords: list[Scalar],
        largest: bool,
        unsigned: bool,
        lanes: int,
    ) -> None:
        self.frame, self.tensor, self.axis, self.coords = frame, tensor, axis, coords
        self.values, self.positions = destinations
        self.largest, self.unsigned, self.lanes = largest, unsigned, lanes
        self.element = tensor.type.element_type
        self.extent, self.size = frame.extent(tensor, axis), self.values.shape[axis]
        self.idx = IdxMath(frame.math, 1)

    def run(self) -> None:
        """The whole line: a heap of the first elements, the others offered to it, the heap sorted in place."""
        frame, math_ = self.frame, self.frame.math
        half = math_.div(self.size, 2)
        for_loop(frame, 0, self.size, 1, [], lambda at, _: self._fill(at))
        for_loop(frame, 0, half, 1, [], lambda step, _: self._heapify(math_.sub(math_.sub(half, 1), step)))
        self._offer_all()
        for_loop(frame, 1, self.size, 1, [], lambda step, _: self._sort_step(math_.sub(self.size, step)))

    def _fill(self, at: ir.Value) -> list[ir.Value]:
        self._put(at, self._entry(at))
        return []

    def _heapify(self, at: Scalar) -> list[ir.Value]:
        self._sift(at, self.size, self._get(at))
        return []

    def _offer_all(self) -> None:
        """The elements behind those that the heap began with."""
        frame, math_, lanes = self.frame, self.frame.math, self.lanes
        start: Scalar = self.size
        if lanes > 1:
            count = math_.div(math_.maximum(math_.sub(self.extent, self.size), 0), lanes)
            end = math_.add(self.size, math_.mul(count, lanes))
            for_loop(frame, start, end, lanes, [], lambda at, _: self._offer_vector(at))
            start = end
        for_loop(frame, start, self.extent, 1, [], lambda at, _: self._offer(at))

    def _sort_step(self, last: Scalar) -> list[ir.Value]:
        """Move the worst entry behind the shrinking heap."""
        worst, moved = self._get(0), self._get(last)
        self._put(last, worst)
        self._sift(0, last, moved)
        return []

    def _sift(self, start: Scalar, size: Scalar, entry: Entry) -> None:
        """Let `entry` sink from `start` until both children rank before it."""
        math_, c = self.frame.math, self.frame.constants
        index, i1 = ir.IndexType.get(), ir.IntegerType.get_signless(1)
        loop = scf.WhileOp([index], [c.index(start)])
        before = loop.regions[0].blocks.append(index)
        with ir.InsertionPoint(before):
            place = before.arguments[0]
            left = math_.add(math_.mul(place, 2), 1)
            in_heap = arith.cmpi(arith.CmpIPredicate.slt, c.index(left), c.index(size))
            branch = scf.IfOp(in_heap, [i1, index], has_else=True)
            with ir.InsertionPoint(branch.then_block):
                child, child_entry, sinks = self._worse_child(left, size, entry)
                if_then(sinks, lambda: self._put(place, child_entry))
                scf.YieldOp([sinks, arith.select(sinks, child, place)])
            with ir.InsertionPoint(branch.else_block):
                scf.YieldOp([c.get(i1, 0), place])
            scf.ConditionOp(branch.results[0], [branch.results[1]])
        after = loop.regions[1].blocks.append(index)
        with ir.InsertionPoint(after):
            scf.YieldOp([after.arguments[0]])
        self._put(loop.results[0], entry)

    @abstractmethod
    def _entry(self, at: Scalar) -> Entry:
        """The entry of element `at` of the input."""

    @abstractmethod
    def _get(self, at: Scalar) -> Entry:
        """The entry at place `at` of the heap."""

    @abstractmethod
    def _put(self, at: Scalar, entry: Entry) -> None:
        """Writes `entry` to place `at` of the heap."""

    @abstractmethod
    def _worse_child(self, left: Scalar, size: Scalar, entry: Entry) -> tuple[ir.Value, Entry, ir.Value]:
        """Of a place's children `left` and the next one, which may be behind the end, the one that ranks last: its
        place, its entry, and whether it ranks after `entry`.
        """

    @abstractmethod
    def _offer(self, at: Scalar) -> list[ir.Value]:
        """Replaces the worst entry when element `at` is better."""

    @abstractmethod
    def _offer_vector(self, at: ir.Value) -> list[ir.Value]:
        """Offers those of `lanes` elements that may be better than the worst entry."""


def each_bit(frame: Frame, bits: ir.Value, body: Callable[[ir.Value], object]) -> None:
    """`body` with the number of every bit that is set, from the lowest one on."""
    constants, type_ = frame.constants, bits.type
    loop = scf.WhileOp([type_], [bits])
    before = loop.regions[0].blocks.append(type_)
    with ir.InsertionPoint(before):
        left = before.arguments[0]
        scf.ConditionOp(arith.cmpi(arith.CmpIPredicate.ne, left, constants.get(type_, 0)), [left])
    after = loop.regions[1].blocks.append(type_)
    with ir.InsertionPoint(after):
        left = after.arguments[0]
        body(arith.index_castui(ir.IndexType.get(), math.cttz(left)))
        scf.YieldOp([arith.andi(left, arith.subi(left, constants.get(type_, 1)))])
