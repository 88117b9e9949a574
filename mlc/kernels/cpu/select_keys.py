"""A heap of keys: value and position of an element in one integer of 64 bits, for `select`.

The high half is the value as a signed integer of the same order, the low half the complement of the position, so that
the larger key is the element that ranks first, and one comparison says which. A NaN is the largest value, and both
zeros are one. Keys lie in the destination of the positions; when they are sorted, values are read from the input.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, vector

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Frame, for_loop, if_then
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.cpu.select_line import Line, each_bit

MOST = 1 << 32  # elements of a line whose positions have 32 bits

_I = arith.CmpIPredicate


def _i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)


def _i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def has_keys(element: ir.Type) -> bool:
    """Do values of this type fit into half a key?"""
    return element.width <= 32


def rank_of(frame: Frame, value: ir.Value, unsigned: bool) -> ir.Value:
    """An integer of 64 bits, of which the low 32 count, that is the larger the larger `value`, of up to 32 bits, is."""
    c, element = frame.constants, value.type
    if not isinstance(element, ir.FloatType):
        if unsigned and element.width == _i32().width:
            return arith.extsi(_i64(), arith.xori(value, c.get(_i32(), -(1 << 31))))
        return (arith.extui if unsigned else arith.extsi)(_i64(), value)
    f32 = ir.F32Type.get()
    wide = value if element == f32 else arith.extf(f32, value)
    wide = arith.addf(wide, c.get(f32, 0.0))  # -0 becomes 0
    bits = arith.bitcast(_i32(), wide)
    sign = arith.shrsi(bits, c.get(_i32(), 31))
    ordered = arith.xori(bits, arith.andi(sign, c.get(_i32(), 0x7FFFFFFF)))
    nan = arith.cmpf(arith.CmpFPredicate.UNO, wide, wide)
    return arith.extsi(_i64(), arith.select(nan, c.get(_i32(), 0x7FFFFFFF), ordered))


class KeyedLine(Line[ir.Value]):
    """A line whose entries are keys. While it is walked, the first of `values` is that of the heap's worst entry."""

    def run(self) -> None:
        c = self.frame.constants
        if isinstance(self.size, int) and self.size > 0:
            self._run()
        else:
            if_then(arith.cmpi(_I.sgt, c.index(self.size), c.index(0)), self._run)

    def _run(self) -> None:
        super().run()
        for_loop(self.frame, 0, self.size, 1, [], lambda at, _: self._finish(at))

    # -- elements and keys ------------------------------------------------------------------------------------------

    def _point(self, at: Scalar, step: int = 0) -> list[Idx]:
        along = Idx(at, step) if step else Idx(at)
        outer = [Idx(c) for c in self.coords]
        return [*outer[: self.axis], along, *outer[self.axis :]]

    def _input(self, at: Scalar) -> ir.Value:
        return Evaluator(self.frame, 1).tensor(self.tensor, self._point(at))

    def _get(self, at: Scalar) -> ir.Value:
        return memory.load(self.frame, self.idx, self.positions, self._point(at), None)

    def _put(self, at: Scalar, key: ir.Value) -> None:
        memory.store(self.frame, self.idx, self.positions, self._point(at), key, None)

    def _entry(self, at: Scalar) -> ir.Value:
        return self._key(self._input(at), at)

    def _key(self, value: ir.Value, at: Scalar) -> ir.Value:
        c = self.frame.constants
        rank = self._rank(value)
        if not self.largest:
            rank = arith.xori(rank, c.get(_i64(), -1))
        position = arith.index_cast(_i64(), c.index(at))
        low = arith.xori(position, c.get(_i64(), MOST - 1))
        return arith.ori(arith.shli(rank, c.get(_i64(), 32)), low)

    def _rank(self, value: ir.Value) -> ir.Value:
        return rank_of(self.frame, value, self.unsigned)

    def _position(self, key: ir.Value) -> ir.Value:
        c = self.frame.constants
        low = arith.andi(arith.xori(key, c.get(_i64(), -1)), c.get(_i64(), MOST - 1))
        return arith.index_cast(ir.IndexType.get(), low)

    def _take_value(self, to: Scalar, key: ir.Value) -> None:
        """The value of the element of `key` becomes element `to` of the values."""
        value = self._input(self._position(key))
        memory.store(self.frame, self.idx, self.values, self._point(to), value, None)

    def _finish(self, at: Scalar) -> list[ir.Value]:
        key = self._get(at)
        self._take_value(at, key)
        self._put(at, arith.index_cast(_i64(), self._position(key)))
        return []

    # -- the elements behind those that the heap began with ---------------------------------------------------------

    def _offer_all(self) -> None:
        if self.lanes > 1:
            self._take_value(0, self._get(0))
        super()._offer_all()

    def _offer_vector(self, at: ir.Value) -> list[ir.Value]:
        """Offer those of `lanes` elements that may rank before the worst of the heap by value."""
        frame, lanes = self.frame, self.lanes
        several = Evaluator(frame, lanes).tensor(self.tensor, self._point(at, 1))
        worst = memory.splat(memory.load(frame, self.idx, self.values, self._point(0), None), lanes)
        if isinstance(self.element, ir.FloatType):
            # True where one of them is a NaN, too.
            p = arith.CmpFPredicate
            better = arith.cmpf(p.UGT if self.largest else p.ULT, several, worst)
        else:
            more, less = (_I.ugt, _I.ult) if self.unsigned else (_I.sgt, _I.slt)
            better = arith.cmpi(more if self.largest else less, several, worst)
        packed = vector.bitcast(ir.VectorType.get([1], ir.IntegerType.get_signless(lanes)), better)
        each_bit(frame, vector.extract(packed, [], [0]), lambda lane: self._offer(frame.math.add(at, lane)))
        return []

    def _offer(self, at: Scalar) -> list[ir.Value]:
        """Replace the worst one when the new one is better."""
        key = self._entry(at)

        def take() -> None:
            self._sift(0, self.size, key)
            if self.lanes > 1:
                self._take_value(0, self._get(0))

        if_then(arith.cmpi(_I.sgt, key, self._get(0)), take)
        return []

    def _worse_child(self, left: Scalar, size: Scalar, entry: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        math_, c = self.frame.math, self.frame.constants
        last = c.index(math_.sub(size, 1))
        right = arith.minsi(c.index(math_.add(left, 1)), last)
        one, other = self._get(left), self._get(right)
        child = arith.select(arith.cmpi(_I.slt, other, one), right, c.index(left))
        least = arith.minsi(one, other)
        return child, least, arith.cmpi(_I.slt, least, entry)
