"""`mlc.topk` by the threads of a block: the best k elements of a line, in order.

Every element has a key of 64 bits, its value and its position (`select_keys`), so that no two are equal and the order
is total and stable. A radix selection (Alabi et al., "Fast k-selection algorithms for graphics processing units", 2012)
finds a bound that exactly k keys reach: the block counts the digits of `DIGIT` bits of all keys that begin with what is
known of the bound, and then the digit of the k-th largest is known, too; where all keys with that digit are wanted, the
lowest of these may be the bound. Bits that all keys have in common, those of narrow types and of positions behind the
line's end, are no digits. Keys that reach the bound are collected in shared memory in any order and sorted there by a
bitonic network (Batcher, "Sorting networks and their applications", 1968). ONNX operator TopK.

A line may fall into parts, each of which is a block's (`mlc-split-selections`): what their blocks find is a line then.

Schedule parameters: `threads` of a block, and `group`, as many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref, nvvm

from mlc.kernels.common.evaluate import Evaluator
from mlc.kernels.common.frame import Buffer, Frame, KernelSource, defining_op, for_loop, if_then
from mlc.kernels.common.index import Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.cpu.select_keys import MOST, KeyedLine, has_keys
from mlc.kernels.nvidia import ALIGNMENT
from mlc.kernels.nvidia.threads import (
    WARP,
    all_of,
    from_neighbour,
    from_shared,
    shared_array,
    thread_in_group,
    to_shared,
)

DIGIT = 8
BINS = 1 << DIGIT
HALF = 32  # bits of a key that are its value, and its position
PART, PLACES = "part", 2  # an attribute of `mlc.topk`, and the number of an operand that it may have
SHORT = 256  # elements of a line below which a thread alone selects
MOST_SELECTED = 1024  # keys that are sorted in shared memory
UNROLL = 8  # elements of a thread whose loads are under way together
_LOWEST = -(1 << 63)
# What the threads of a block know: the digits of the half of the bound at hand, how many keys are wanted among those
# with these, the bound's two halves, and whether that is it.
_STATE = _KNOWN, _WANTED, _VALUE, _PLACE, _IS_BOUND = range(5)
_I = arith.CmpIPredicate


@dataclass(frozen=True)
class BlockSelectSchedule:
    """Parameters of the template; see the module's description."""

    threads: int
    group: int


def takes(op: ir.Operation) -> bool:
    """Can a block select what `op`, an `mlc.topk`, asks for? Elements of up to 32 bits, and a number of them that is
    known and not large."""
    type_, axis = op.results[0].type, ir.IntegerAttr(op.attributes["axis"]).value
    line = op.operands[0].type
    if type_.is_dynamic_dim(axis) or not has_keys(line.element_type):
        return False
    is_short = line.is_dynamic_dim(axis) or line.get_dim_size(axis) <= MOST
    return 1 <= type_.get_dim_size(axis) // parts_of(op) <= MOST_SELECTED and is_short


def part_of(op: ir.Operation) -> int | None:
    """The elements of a part of the lines of `op`, an `mlc.topk`; None for whole lines."""
    return ir.IntegerAttr(op.attributes[PART]).value if PART in op.attributes else None


def parts_of(op: ir.Operation) -> int:
    """The parts of each line of `op`, an `mlc.topk`: 1 for whole lines."""
    line, axis, part = op.operands[0].type, ir.IntegerAttr(op.attributes["axis"]).value, part_of(op)
    return 1 if part is None else -(-line.get_dim_size(axis) // part)


def is_shared(op: ir.Operation) -> bool:
    """Is a line of `op`, an `mlc.topk`, shared by the threads of a block? Short lines are left to one thread each,
    which knows no parts, and no places but its own."""
    line, axis = op.operands[0].type, ir.IntegerAttr(op.attributes["axis"]).value
    is_long = line.is_dynamic_dim(axis) or line.get_dim_size(axis) >= SHORT
    return takes(op) and (is_long or PART in op.attributes or len(op.operands) > PLACES)


def expand(source: KernelSource, schedule: BlockSelectSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a line, or a part of one."""
    op = defining_op(source.results[0])
    assert op is not None and takes(op)
    tensor, axis, parts = op.operands[0], ir.IntegerAttr(op.attributes["axis"]).value, parts_of(op)
    by_result = dict(zip(source.results, source.destinations, strict=True))
    values, positions = (by_result[r] for r in op.results)

    def items(frame: Frame) -> list[Scalar]:
        lines = [frame.extent(tensor, i) for i in range(tensor.type.rank) if i != axis]
        return [*lines, parts] if parts > 1 else lines

    def body(frame: Frame, coords: list[Scalar]) -> None:
        destinations = frame.buffers[values], frame.buffers[positions]
        _BlockLine(frame, op, destinations, coords, schedule.threads).run()

    return emit_items(source, items, body, alignment=ALIGNMENT)


class _BlockLine(KeyedLine):
    """A line, or a part of one, of which every thread of a block has each `threads`-th element; `op` is the `mlc.topk`,
    `coords` are those of the line, and the number of the part if there are several."""

    def __init__(
        self, frame: Frame, op: ir.Operation, destinations: tuple[Buffer, Buffer], coords: list[Scalar], threads: int
    ) -> None:
        tensor, axis = op.operands[0], ir.IntegerAttr(op.attributes["axis"]).value
        unsigned = "unsigned" in op.attributes or tensor.type.element_type == ir.IntegerType.get_signless(1)
        largest, parts = ir.BoolAttr(op.attributes["largest"]).value, parts_of(op)
        line = coords[: tensor.type.rank - 1]
        super().__init__(frame, tensor, destinations, axis, line, largest, unsigned, 1)
        assert isinstance(self.size, int)
        if threads < BINS:
            raise ValueError(f"kernel {frame.name}: a digit has {BINS} values, and a thread for each")
        self.threads, self.count = threads, self.size // parts
        self.places = op.operands[PLACES] if len(op.operands) > PLACES else None
        self.longest = self.extent if isinstance(self.extent, int) else MOST
        self.begin: Scalar = 0
        self.out: Scalar = 0
        if parts > 1:
            self._take_part(coords[-1], part_of(op) or 1)
        self.i32, self.i64 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(2 * HALF)
        self.thread = thread_in_group(frame, threads, is_block=True)
        self.padded = max(2, 1 << (self.count - 1).bit_length())
        self.bins = shared_array(frame, BINS, self.i32, "bins")
        self.totals = shared_array(frame, BINS // WARP, self.i32, "totals")
        self.state = shared_array(frame, len(_STATE), self.i32, "state")
        self.taken = shared_array(frame, 1, self.i32, "taken")
        self.keys = shared_array(frame, self.padded, self.i64, "keys")

    def _take_part(self, number: Scalar, part: int) -> None:
        """A part in place of the line."""
        math, whole = self.frame.math, self.extent
        self.begin, self.out, self.longest = math.mul(number, part), math.mul(number, self.count), part
        if not isinstance(whole, int) or whole % part:
            self.extent = math.minimum(math.sub(whole, self.begin), part)
        else:
            self.extent = part

    def run(self) -> None:
        """The best elements of the line; all threads of the block do this together."""
        digits = -(-max(1, (self.longest - 1).bit_length()) // DIGIT)
        common = (1 << (HALF - digits * DIGIT)) - 1  # positions as `_place_half` has them
        self._begin()
        self._narrow(_VALUE, self.value_digits)
        nvvm.Barrier0Op()
        if_then(self._is_first(), lambda: to_shared(self.frame, self.state, _KNOWN, self._word(common)))
        nvvm.Barrier0Op()
        self._narrow(_PLACE, digits)
        self._collect()
        self._sort()
        self._each(self.count, self._write)

    # -- small things -----------------------------------------------------------------------------------------------

    def _word(self, number: int) -> ir.Value:
        return self.frame.constants.get(self.i32, number)

    def _wide(self, number: int) -> ir.Value:
        return self.frame.constants.get(self.i64, number)

    def _read(self, place: int) -> ir.Value:
        return from_shared(self.frame, self.state, place, self.i32)

    def _is_first(self) -> ir.Value:
        return arith.cmpi(_I.eq, self.thread, self.frame.constants.index(0))

    def _each(self, count: int, body: Callable[[ir.Value], None]) -> None:
        """`body` for the numbers below `count` that are this thread's."""

        def one(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            body(variable)
            return []

        for_loop(self.frame, self.thread, count, self.threads, [], one)

    def _all_elements(self, body: Callable[[ir.Value, Scalar], None]) -> None:
        """`body` for this thread's elements and their positions; their loads are under way together."""
        index, math = self.frame.constants.index, self.frame.math
        last = math.sub(self.extent, 1)

        def several(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            places = [math.add(variable, number * self.threads) for number in range(UNROLL)]
            values = [self._input(math.minimum(at, last)) for at in places]
            for at, value in zip(places, values, strict=True):
                inside = arith.cmpi(_I.ult, index(at), index(self.extent))
                if_then(inside, lambda value=value, at=at: body(value, at))  # type: ignore[misc]
            return []

        for_loop(self.frame, self.thread, self.extent, self.threads * UNROLL, [], several)

    @property
    def value_digits(self) -> int:
        """How many digits, the highest ones, tell all values of the type apart: f16 has five bits of an exponent where
        f32 has eight."""
        if isinstance(self.element, ir.F16Type):
            return 3
        return max(1, self.element.width // DIGIT)

    def _input(self, at: Scalar) -> ir.Value:
        """Element `at` of the line, or of the part."""
        return super()._input(self.frame.math.add(self.begin, at))

    def _value_half(self, value: ir.Value) -> ir.Value:
        """The half of a key that is its value, as an integer without a sign of the same order: `value_digits`, and
        zeros."""
        rank = arith.trunci(self.i32, self._rank(value))
        unused, is_float = HALF - DIGIT * self.value_digits, isinstance(self.element, ir.FloatType)
        if unused and not is_float:
            rank = arith.shli(rank, self._word(unused))
        has_sign = is_float or not unused or not self.unsigned
        lowest = -(1 << (HALF - 1)) if has_sign else 0
        ordered = arith.xori(rank, self._word(lowest if self.largest else -1 - lowest))
        return arith.andi(ordered, self._word(-(1 << unused))) if unused else ordered

    def _place_half(self, at: Scalar) -> ir.Value:
        """The half of a key that is its position: of equal values the first one is the largest key."""
        return arith.xori(arith.index_cast(self.i32, self.frame.constants.index(at)), self._word(-1))

    def _joined(self, value: ir.Value, place: ir.Value) -> ir.Value:
        """Two halves as an integer of 64 bits without a sign."""
        high = arith.shli(arith.extui(self.i64, value), self._wide(HALF))
        return arith.ori(high, arith.extui(self.i64, place))

    def _add_one(self, array: ir.Value, at: ir.Value) -> ir.Value:
        one = self.frame.constants.get(self.i32, 1)
        return memref.AtomicRMWOp(arith.AtomicRMWKind.addi, one, array, [at]).result

    # -- the bound --------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        frame = self.frame
        nvvm.Barrier0Op()  # the line before may still be read

        def clear() -> None:
            for place in _STATE:
                to_shared(frame, self.state, place, self._word(self.count if place == _WANTED else 0))
            to_shared(frame, self.taken, 0, self._word(0))

        if_then(self._is_first(), clear)
        self._each(self.padded, lambda at: to_shared(frame, self.keys, at, self._wide(_LOWEST)))
        nvvm.Barrier0Op()

    def _narrow(self, half: int, digits: int) -> None:
        """The digits of a half of the bound, the highest of them first, as long as the bound is not known without them:
        the highest ones of the half of values, the lowest ones of that of positions."""
        first = HALF if half == _VALUE else digits * DIGIT

        def digit(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            unknown = arith.cmpi(_I.eq, self._read(_IS_BOUND), self._word(0))
            before = arith.muli(arith.index_cast(self.i32, number), self._word(DIGIT))
            if_then(unknown, lambda: self._one_digit(half, arith.subi(self._word(first - DIGIT), before)))
            return []

        for_loop(self.frame, 0, digits, 1, [], digit)

    def _one_digit(self, half: int, shift: ir.Value) -> None:
        """The digit of the bits from `shift` on."""
        frame = self.frame
        self._each(BINS, lambda at: to_shared(frame, self.bins, at, self._word(0)))
        nvvm.Barrier0Op()
        known, wanted, bound = (self._read(place) for place in (_KNOWN, _WANTED, _VALUE))

        def count(value: ir.Value, at: Scalar) -> None:
            word = self._value_half(value) if half == _VALUE else self._place_half(at)
            whole = arith.shrui(word, shift)
            digit = arith.andi(whole, self._word(BINS - 1))
            counts = arith.cmpi(_I.eq, arith.shrui(whole, self._word(DIGIT)), known)
            if half == _PLACE:
                counts = arith.andi(counts, arith.cmpi(_I.eq, self._value_half(value), bound))
            if_then(counts, lambda: self._add_one(self.bins, arith.index_cast(ir.IndexType.get(), digit)))

        self._all_elements(count)
        nvvm.Barrier0Op()
        self._decide(half, known, wanted, shift)
        nvvm.Barrier0Op()

    def _decide(self, half: int, known: ir.Value, wanted: ir.Value, shift: ir.Value) -> None:
        """The thread of each digit writes down what is known then, if the k-th largest key has it."""
        here, above = self._counts()
        is_it = arith.andi(arith.cmpi(_I.ult, above, wanted), arith.cmpi(_I.uge, arith.addi(above, here), wanted))
        has_digit = arith.cmpi(_I.ult, self.thread, self.frame.constants.index(BINS))

        def write() -> None:
            left = arith.subi(wanted, above)
            found = arith.ori(arith.shli(known, self._word(DIGIT)), arith.index_cast(self.i32, self.thread))
            is_bound = arith.extui(self.i32, arith.cmpi(_I.eq, left, here))
            written = {_KNOWN: found, _WANTED: left, half: arith.shli(found, shift), _IS_BOUND: is_bound}
            for place, value in written.items():
                to_shared(self.frame, self.state, place, value)

        if_then(arith.andi(has_digit, is_it), write)

    def _counts(self) -> tuple[ir.Value, ir.Value]:
        """How many keys have this thread's digit, and how many have a larger one. The threads of a warp add up in
        pairs, fours and so on, in each of which the lower half has the sum of the upper one above it.
        """
        frame, index, warps = self.frame, self.frame.constants.index, BINS // WARP
        zero = frame.constants.get(self.i32, 0)
        here = from_shared(frame, self.bins, frame.math.minimum(self.thread, BINS - 1), self.i32)
        lane, warp = (f(self.thread, index(WARP)) for f in (arith.remui, arith.divui))
        above, total, distance = zero, here, 1
        while distance < WARP:
            other = from_neighbour(frame, total, distance)
            is_lower = arith.cmpi(_I.eq, arith.andi(lane, index(distance)), index(0))
            above = arith.addi(above, arith.select(is_lower, other, zero))
            total, distance = arith.addi(total, other), 2 * distance
        is_one = arith.andi(arith.cmpi(_I.eq, lane, index(0)), arith.cmpi(_I.ult, warp, index(warps)))
        if_then(is_one, lambda: to_shared(frame, self.totals, warp, total))
        nvvm.Barrier0Op()
        for number, one in enumerate(all_of(frame, self.totals, warps, self.i32)):
            is_above = arith.cmpi(_I.ugt, index(number), warp)
            above = arith.addi(above, arith.select(is_above, one, zero))
        return here, above

    # -- the keys that reach it -------------------------------------------------------------------------------------

    def _collect(self) -> None:
        least, place = self._read(_VALUE), self._read(_PLACE)
        bound = self._joined(least, place)

        def offer(value: ir.Value, at: Scalar) -> None:
            half = self._value_half(value)

            def compare() -> None:
                key = self._joined(half, self._place_half(at))
                if_then(arith.cmpi(_I.uge, key, bound), lambda: keep(key))

            if_then(arith.cmpi(_I.uge, half, least), compare)

        def keep(key: ir.Value) -> None:
            taken = arith.index_castui(ir.IndexType.get(), self._add_one(self.taken, self.frame.constants.index(0)))
            to_shared(self.frame, self.keys, taken, arith.xori(key, self._wide(_LOWEST)))

        self._all_elements(offer)
        nvvm.Barrier0Op()

    def _sort(self) -> None:
        """The largest key first; what was never written is the lowest."""
        math, levels = self.frame.math, self.padded.bit_length() - 1

        def level(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            def step(steps_before: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                apart = self.frame.constants.index(math.sub(math.sub(number, 1), steps_before))
                self._each(self.padded // 2, lambda pair: self._exchange(pair, number, apart))
                nvvm.Barrier0Op()
                return []

            for_loop(self.frame, 0, number, 1, [], step)
            return []

        for_loop(self.frame, 1, levels + 1, 1, [], level)

    def _exchange(self, pair: ir.Value, level: ir.Value, apart: ir.Value) -> None:
        """Put two keys in order, 2^apart places apart: of 2^level the first ones fall, the next ones rise."""
        frame, index = self.frame, self.frame.constants.index
        distance = arith.shli(index(1), apart)
        low = arith.addi(pair, arith.andi(pair, arith.subi(index(0), distance)))  # twice what is above the distance
        high = arith.addi(low, distance)
        one, other = (from_shared(frame, self.keys, at, self.i64) for at in (low, high))
        rises = arith.cmpi(_I.ne, arith.andi(arith.shrui(low, level), index(1)), index(0))
        more, less = arith.maxsi(one, other), arith.minsi(one, other)
        to_shared(frame, self.keys, low, arith.select(rises, less, more))
        to_shared(frame, self.keys, high, arith.select(rises, more, less))

    def _write(self, at: ir.Value) -> None:
        math, key = self.frame.math, from_shared(self.frame, self.keys, at, self.i64)
        to, where = math.add(self.out, at), math.add(self.begin, self._position(key))
        self._take_value(to, key)
        if self.places is None:
            place = arith.index_cast(self.i64, self.frame.constants.index(where))
        else:
            place = Evaluator(self.frame, 1).tensor(self.places, self._point(where))
        self._put(to, place)
