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
        line = _Line(frame, source, op, coords, schedule.digit)
        if isinstance(extent, int):
            line.run()
            return
        c, predicate = frame.constants, arith.CmpIPredicate.ult
        is_in = arith.cmpi(predicate, arith.subi(extent, c.index(schedule.least)), c.index(MOST - schedule.least))
        if_then(is_in, line.run, lambda: select.emit_line(frame, source, op, coords, 1))

    return emit_items(source, items, body)


class DigitSort:
    """Sorts elements of the line of `tensor` along `axis` at `coords` by their positions, fewer than 2^31: these are
    halves of the words of the same line of `positions`."""

    def __init__(
        self,
        frame: Frame,
        tensor: ir.Value,
        positions: Buffer,
        axis: int,
        coords: list[Scalar],
        digit: int,
        *,
        descending: bool,
        unsigned: bool = False,
    ) -> None:
        self.frame, self.tensor, self.positions, self.axis, self.coords = frame, tensor, positions, axis, coords
        self.descending, self.unsigned = descending, unsigned
        self.element, self.idx = tensor.type.element_type, IdxMath(frame.math, 1)
        self.i32, self.i64 = (ir.IntegerType.get_signless(bits) for bits in (_HALF, 2 * _HALF))
        self.is_narrow = has_keys(self.element)
        self.key_type = self.i32 if self.is_narrow else self.i64
        is_float = isinstance(self.element, ir.FloatType)
        self.bits = self.key_type.width if is_float else self.element.width
        low = _LOWEST_BIT.get(str(self.element), 0)
        self.digits = [(at, min(digit, self.bits - at)) for at in range(low, self.bits, digit)]
        self.bins = 1 << self.digits[0][1]
        self.counts = frame.on_stack(self.i32, len(self.digits) * self.bins)

    def sort(self, extent: Scalar, *, is_filled: bool) -> ir.Value:
        """Sorts all `extent` elements of the line or, where the low halves of so many words are filled, those at the
        positions there. Gives the bit from which on words hold the sorted positions."""
        frame, c = self.frame, self.frame.constants
        zero = c.get(self.i32, 0)

        def clear(at: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            memref.store(zero, self.counts, [at])
            return []

        for_loop(frame, 0, len(self.digits) * self.bins, 1, [], clear)
        half = c.get(self.i64, 0)
        for_loop(frame, 0, extent, 1, [], lambda at, _: self._count(at, half if is_filled else None))
        for number in range(len(self.digits)):
            half = self._by_digit(number, extent, half)
        return half

    def position(self, at: Scalar, half: ir.Value) -> ir.Value:
        """The position that the half of word `at` from bit `half` on holds, an index."""
        word = memory.load(self.frame, self.idx, self.positions, self._point(at), None)
        return arith.index_castui(ir.IndexType.get(), arith.trunci(self.i32, arith.shrui(word, half)))

    def put(self, buffer: Buffer, at: Scalar, value: ir.Value) -> None:
        """Writes element `at` of the line of `buffer`."""
        memory.store(self.frame, self.idx, buffer, self._point(at), value, None)

    def input(self, at: Scalar) -> ir.Value:
        """Element `at` of the line of the tensor."""
        return Evaluator(self.frame, 1).tensor(self.tensor, self._point(at))

    def _point(self, at: Scalar) -> list[Idx]:
        return [Idx(x) for x in [*self.coords[: self.axis], at, *self.coords[self.axis :]]]

    # -- keys ----------------------------------------------------------------------------------------------------------

    def _key(self, at: Scalar) -> ir.Value:
        """An integer, of which the digits count, that is the larger the later element `at` comes."""
        c, value = self.frame.constants, self.input(at)
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

    def _count(self, at: ir.Value, half: ir.Value | None) -> list[ir.Value]:
        position = at if half is None else self.position(at, half)
        key, one = self._key(position), self.frame.constants.get(self.i32, 1)
        for number in range(len(self.digits)):
            place = self._bin(number, key)
            memref.store(arith.addi(memref.load(self.counts, [place]), one), self.counts, [place])
        self.put(self.positions, at, arith.index_cast(self.i64, position))
        return []

    def _by_digit(self, number: int, extent: Scalar, half: ir.Value) -> ir.Value:
        """Moves all positions by a digit, from the half that begins at bit `half` to the other, unless all have it;
        gives the half where they are then."""
        frame, c, i1 = self.frame, self.frame.constants, ir.IntegerType.get_signless(1)
        total = arith.index_cast(self.i32, c.index(extent))

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
            for_loop(frame, 0, extent, 1, [], lambda at, _: self._move(number, at, (half, other, kept)))
            scf.YieldOp([other])
        return branch.results[0]

    def _move(self, number: int, at: ir.Value, halves: tuple[ir.Value, ir.Value, ir.Value]) -> list[ir.Value]:
        half, other, kept = halves
        position = self.position(at, half)
        place = self._bin(number, self._key(position))
        to = memref.load(self.counts, [place])
        memref.store(arith.addi(to, self.frame.constants.get(self.i32, 1)), self.counts, [place])
        target = arith.index_castui(ir.IndexType.get(), to)
        moved = arith.shli(arith.index_cast(self.i64, position), other)
        word = memory.load(self.frame, self.idx, self.positions, self._point(target), None)
        self.put(self.positions, target, arith.ori(arith.andi(word, kept), moved))
        return []


class _Line(DigitSort):
    """A line, whose sorted values are wanted, too."""

    def __init__(self, frame: Frame, source: KernelSource, op: ir.Operation, coords: list[Scalar], digit: int) -> None:
        tensor, axis = op.operands[0], ir.IntegerAttr(op.attributes["axis"]).value
        self.values, positions = select.destinations(frame, source, op)
        descending = ir.BoolAttr(op.attributes["descending"]).value
        unsigned = "unsigned" in op.attributes or tensor.type.element_type == ir.IntegerType.get_signless(1)
        super().__init__(frame, tensor, positions, axis, coords, digit, descending=descending, unsigned=unsigned)

    def run(self) -> None:
        """Sorts the line."""
        extent = self.frame.extent(self.tensor, self.axis)
        half = self.sort(extent, is_filled=False)

        def finish(at: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            position = self.position(at, half)
            self.put(self.values, at, self.input(position))
            self.put(self.positions, at, arith.index_cast(self.i64, position))
            return []

        for_loop(self.frame, 0, extent, 1, [], finish)
