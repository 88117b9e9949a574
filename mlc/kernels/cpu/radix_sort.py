"""`mlc.sort` by digits: lines long enough to pay for counting.

One work item per line. Elements are counted by every digit of their keys in one walk; then, from the lowest digit on,
positions are moved to where those with their digit belong, each in its turn, which keeps equal ones in order (Knuth,
"The Art of Computer Programming", volume 3, section 5.2.5; all counts at once: Friend, "Sorting on electronic computer
systems", 1956). A digit that all elements share is passed over. The positions' destination is the only memory: an
element of it has 64 bits, one half of which holds the positions as they are and the other takes them as they are
moved, in turns; keys are read from the input again. Keys order values as `select` does: stable, a NaN is the largest
value, and both zeros are one. ONNX operators TopK, Unique, NonMaxSuppression; NumPy `argsort(kind="stable")`.

Schedule parameters: `digit`, its bits; `least`: lines of an extent that only a run knows, and of fewer elements, are
`select`'s.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, scf

from mlc.kernels.common import memory
from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Buffer, Frame, KernelSource, defining_op, for_loop, if_then
from mlc.kernels.common.index import Idx, IdxMath, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.cpu import select
from mlc.kernels.cpu.select_keys import has_keys, rank_of

MOST = 1 << 31  # elements of a line
_HALF = 32  # bits of a position
_ALIGNMENT = 64
# Bits that are no value's: floats of up to 16 bits are ranked as f32.
_LOWEST_BIT = {"bf16": 16, "f16": 13, "f8E4M3FN": 20, "f8E5M2": 21}


@dataclass(frozen=True)
class RadixSortSchedule:
    """Parameters of the template; see the module's description."""

    digit: int
    least: int = 0


def expand(source: KernelSource, schedule: RadixSortSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`."""
    op = defining_op(source.results[0])
    assert op is not None and op.name == "mlc.sort"
    tensor, axis = op.operands[0], ir.IntegerAttr(op.attributes["axis"]).value

    def items(frame: Frame) -> list[Scalar]:
        return [frame.extent(tensor, i) for i in range(tensor.type.rank) if i != axis]

    def body(frame: Frame, coords: list[Scalar]) -> None:
        extent = frame.extent(tensor, axis)
        line = _RadixLine(frame, source, op, coords, schedule.digit)
        if isinstance(extent, int):
            line.run()
            return
        c, predicate = frame.constants, arith.CmpIPredicate.ult
        is_in = arith.cmpi(predicate, arith.subi(extent, c.index(schedule.least)), c.index(MOST - schedule.least))
        if_then(is_in, line.run, lambda: select.emit_line(frame, source, op, coords, 1))

    return emit_items(source, items, body)


class _RadixLine:
    """One line: `counts` of every digit's values, and words that hold two positions each."""

    def __init__(self, frame: Frame, source: KernelSource, op: ir.Operation, coords: list[Scalar], digit: int) -> None:
        self.frame, self.coords = frame, coords
        self.tensor, self.axis = op.operands[0], ir.IntegerAttr(op.attributes["axis"]).value
        self.element = self.tensor.type.element_type
        self.unsigned = "unsigned" in op.attributes or self.element == ir.IntegerType.get_signless(1)
        self.descending = ir.BoolAttr(op.attributes["descending"]).value
        self.values, self.positions = select.destinations(frame, source, op)
        self.extent, self.idx = frame.extent(self.tensor, self.axis), IdxMath(frame.math, 1)
        self.i32, self.i64 = (ir.IntegerType.get_signless(bits) for bits in (_HALF, 2 * _HALF))
        self.is_narrow = has_keys(self.element)
        self.key_type = self.i32 if self.is_narrow else self.i64
        is_float = isinstance(self.element, ir.FloatType)
        self.bits = self.key_type.width if is_float else self.element.width
        low = _LOWEST_BIT.get(str(self.element), 0)
        self.digits = [(at, min(digit, self.bits - at)) for at in range(low, self.bits, digit)]
        self.bins = 1 << self.digits[0][1]
        with frame.prologue():
            type_ = ir.MemRefType.get([len(self.digits) * self.bins], self.i32)
            self.counts = memref.AllocaOp(type_, [], [], alignment=_ALIGNMENT).result

    def run(self) -> None:
        """Sorts the line."""
        frame, c = self.frame, self.frame.constants
        zero = c.get(self.i32, 0)

        def clear(at: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            memref.store(zero, self.counts, [at])
            return []

        for_loop(frame, 0, len(self.digits) * self.bins, 1, [], clear)
        for_loop(frame, 0, self.extent, 1, [], lambda at, _: self._count(at))
        half = c.get(self.i64, 0)
        for number in range(len(self.digits)):
            half = self._by_digit(number, half)
        for_loop(frame, 0, self.extent, 1, [], lambda at, _: self._finish(at, half))

    # -- memory ------------------------------------------------------------------------------------------------------

    def _point(self, at: Scalar) -> list[Idx]:
        return [Idx(x) for x in [*self.coords[: self.axis], at, *self.coords[self.axis :]]]

    def _input(self, at: Scalar) -> ir.Value:
        return Evaluator(self.frame, 1).tensor(self.tensor, self._point(at))

    def _get(self, at: Scalar) -> ir.Value:
        return memory.load(self.frame, self.idx, self.positions, self._point(at), None)

    def _put(self, buffer: Buffer, at: Scalar, value: ir.Value) -> None:
        memory.store(self.frame, self.idx, buffer, self._point(at), value, None)

    def _position(self, at: Scalar, half: ir.Value) -> ir.Value:
        """The position that a half of word `at` holds, an index."""
        low = arith.trunci(self.i32, arith.shrui(self._get(at), half))
        return arith.index_castui(ir.IndexType.get(), low)

    # -- keys ----------------------------------------------------------------------------------------------------------

    def _key(self, at: Scalar) -> ir.Value:
        """An integer, of which the digits count, that is the larger the later element `at` comes."""
        c, value = self.frame.constants, self._input(at)
        narrow = self.is_narrow
        rank = arith.trunci(self.i32, rank_of(self.frame, value, self.unsigned)) if narrow else self._wide(value)
        # Of 32 bits all are ranked as numbers with a sign.
        has_sign = not self.unsigned or narrow and self.bits == _HALF
        turned = (1 << self.bits) - 1 if self.descending else 0
        flipped = turned ^ (1 << (self.bits - 1) if has_sign else 0)
        if flipped >> (self.key_type.width - 1):
            flipped -= 1 << self.key_type.width
        return arith.xori(rank, c.get(self.key_type, flipped)) if flipped else rank

    def _wide(self, value: ir.Value) -> ir.Value:
        """The rank of a value of 64 bits, as `rank_of` has it of narrower ones."""
        if not isinstance(self.element, ir.FloatType):
            return value
        c, most = self.frame.constants, (1 << 63) - 1
        bits = arith.bitcast(self.i64, arith.addf(value, c.get(self.element, 0.0)))  # -0 becomes 0
        sign = arith.shrsi(bits, c.get(self.i64, 63))
        ordered = arith.xori(bits, arith.andi(sign, c.get(self.i64, most)))
        return arith.select(arith.cmpf(arith.CmpFPredicate.UNO, value, value), c.get(self.i64, most), ordered)

    def _bin(self, number: int, key: ir.Value) -> ir.Value:
        """The place of the count of digit `number` of a key."""
        c, (at, bits) = self.frame.constants, self.digits[number]
        digit = arith.andi(arith.shrui(key, c.get(self.key_type, at)), c.get(self.key_type, (1 << bits) - 1))
        place = self.frame.math.add(arith.index_castui(ir.IndexType.get(), digit), number * self.bins)
        assert isinstance(place, ir.Value)
        return place

    # -- the work ------------------------------------------------------------------------------------------------------

    def _count(self, at: ir.Value) -> list[ir.Value]:
        key, one = self._key(at), self.frame.constants.get(self.i32, 1)
        for number in range(len(self.digits)):
            place = self._bin(number, key)
            memref.store(arith.addi(memref.load(self.counts, [place]), one), self.counts, [place])
        self._put(self.positions, at, arith.index_cast(self.i64, at))
        return []

    def _by_digit(self, number: int, half: ir.Value) -> ir.Value:
        """Moves all positions by a digit, from the half that begins at bit `half` to the other, unless all have it;
        gives the half where they are then."""
        frame, c, i1 = self.frame, self.frame.constants, ir.IntegerType.get_signless(1)
        total = arith.index_cast(self.i32, c.index(self.extent))

        def begin(at: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            place = c.index(frame.math.add(at, number * self.bins))
            count = memref.load(self.counts, [place])
            memref.store(carried[0], self.counts, [place])
            is_all = arith.cmpi(arith.CmpIPredicate.eq, count, total)
            return [arith.addi(carried[0], count), arith.ori(carried[1], is_all)]

        is_shared = for_loop(frame, 0, self.bins, 1, [c.get(self.i32, 0), c.get(i1, 0)], begin)[1]
        branch = scf.IfOp(is_shared, [self.i64], has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp([half])
        with ir.InsertionPoint(branch.else_block):
            other = arith.xori(half, c.get(self.i64, _HALF))
            kept = arith.shli(c.get(self.i64, (1 << _HALF) - 1), half)
            for_loop(frame, 0, self.extent, 1, [], lambda at, _: self._move(number, at, (half, other, kept)))
            scf.YieldOp([other])
        return branch.results[0]

    def _move(self, number: int, at: ir.Value, halves: tuple[ir.Value, ir.Value, ir.Value]) -> list[ir.Value]:
        half, other, kept = halves
        position = self._position(at, half)
        place = self._bin(number, self._key(position))
        to = memref.load(self.counts, [place])
        memref.store(arith.addi(to, self.frame.constants.get(self.i32, 1)), self.counts, [place])
        target = arith.index_castui(ir.IndexType.get(), to)
        moved = arith.shli(arith.index_cast(self.i64, position), other)
        self._put(self.positions, target, arith.ori(arith.andi(self._get(target), kept), moved))
        return []

    def _finish(self, at: ir.Value, half: ir.Value) -> list[ir.Value]:
        position = self._position(at, half)
        self._put(self.values, at, self._input(position))
        self._put(self.positions, at, arith.index_cast(self.i64, position))
        return []
