"""`mlc.topk` by the threads of a block: the best k elements of a line, in order.

Every element has a key of 64 bits, its value and its position (`select_keys`), so that no two are equal and the order
is total and stable. A radix selection (Alabi et al., "Fast k-selection algorithms for graphics processing units", 2012)
finds a bound that exactly k keys reach: the block counts the digits of `DIGIT` bits of all keys that begin with what is
known of the bound, and then the digit of the k-th largest is known, too; where all keys with that digit are wanted, the
lowest of these may be the bound. Keys that reach it are collected in shared memory in any order and sorted there by a
bitonic network (Batcher, "Sorting networks and their applications", 1968). ONNX operator TopK.

Schedule parameters: `threads` of a block, and `group`, as many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from mlir import ir
from mlir.dialects import arith, memref, nvvm, vector

from mlc.kernels.common.frame import Buffer, Frame, KernelSource, defining_op, for_loop, if_then
from mlc.kernels.common.index import Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.cpu.select_keys import MOST, KeyedLine, has_keys
from mlc.kernels.nvidia import ALIGNMENT
from mlc.kernels.nvidia.threads import from_shared, shared_array, thread_in_group, to_shared

DIGIT = 8
BINS = 1 << DIGIT
KEY = 64
SHORT = 256  # elements of a line below which a thread alone selects
MOST_SELECTED = 1024  # keys that are sorted in shared memory
UNROLL = 8  # elements of a thread whose loads are under way together
_LOWEST = -(1 << 63)
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
    return 1 <= type_.get_dim_size(axis) <= MOST_SELECTED and is_short


def is_shared(op: ir.Operation) -> bool:
    """Is a line of `op`, an `mlc.topk`, shared by the threads of a block? Short lines are left to one thread each."""
    line, axis = op.operands[0].type, ir.IntegerAttr(op.attributes["axis"]).value
    return takes(op) and (line.is_dynamic_dim(axis) or line.get_dim_size(axis) >= SHORT)


def expand(source: KernelSource, schedule: BlockSelectSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a line."""
    op = defining_op(source.results[0])
    assert op is not None and takes(op)
    tensor, axis = op.operands[0], ir.IntegerAttr(op.attributes["axis"]).value
    by_result = dict(zip(source.results, source.destinations, strict=True))
    values, positions = (by_result[r] for r in op.results)
    largest = ir.BoolAttr(op.attributes["largest"]).value
    unsigned = "unsigned" in op.attributes or tensor.type.element_type == ir.IntegerType.get_signless(1)

    def items(frame: Frame) -> list[Scalar]:
        return [frame.extent(tensor, i) for i in range(tensor.type.rank) if i != axis]

    def body(frame: Frame, coords: list[Scalar]) -> None:
        destinations = frame.buffers[values], frame.buffers[positions]
        _BlockLine(frame, tensor, destinations, axis, coords, largest, unsigned, schedule.threads).run()

    return emit_items(source, items, body, alignment=ALIGNMENT)


class _BlockLine(KeyedLine):
    """A line of which every thread of a block has each `threads`-th element."""

    def __init__(
        self,
        frame: Frame,
        tensor: ir.Value,
        destinations: tuple[Buffer, Buffer],
        axis: int,
        coords: list[Scalar],
        largest: bool,
        unsigned: bool,
        threads: int,
    ) -> None:
        super().__init__(frame, tensor, destinations, axis, coords, largest, unsigned, 1)
        assert isinstance(self.size, int)
        self.threads, self.count = threads, self.size
        self.i32, self.i64 = ir.IntegerType.get_signless(32), ir.IntegerType.get_signless(KEY)
        self.thread = thread_in_group(frame, threads, is_block=True)
        self.padded = max(2, 1 << (self.count - 1).bit_length())
        self.bins = shared_array(frame, BINS, self.i32, "bins")
        # The digits that are known, how many keys are wanted among those with these, the bound, and whether that is it.
        self.state = shared_array(frame, 4, self.i64, "state")
        self.taken = shared_array(frame, 1, self.i32, "taken")
        self.keys = shared_array(frame, self.padded, self.i64, "keys")

    def run(self) -> None:
        """The best elements of the line; all threads of the block do this together."""
        self._begin()
        for shift in range(KEY - DIGIT, -1, -DIGIT):
            unknown = arith.cmpi(_I.eq, self._read(3), self._wide(0))
            if_then(unknown, lambda shift=shift: self._narrow(shift))  # type: ignore[misc]
        self._collect()
        self._sort()
        self._each(self.count, self._write)

    # -- small things -----------------------------------------------------------------------------------------------

    def _wide(self, number: int) -> ir.Value:
        return self.frame.constants.get(self.i64, number)

    def _read(self, place: int) -> ir.Value:
        return from_shared(self.frame, self.state, place, self.i64)

    def _is_first(self) -> ir.Value:
        return arith.cmpi(_I.eq, self.thread, self.frame.constants.index(0))

    def _each(self, count: int, body: Callable[[ir.Value], None]) -> None:
        """`body` for the numbers below `count` that are this thread's."""

        def one(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            body(variable)
            return []

        for_loop(self.frame, self.thread, count, self.threads, [], one)

    def _all_entries(self, body: Callable[[ir.Value], None]) -> None:
        """`body` for the keys of this thread's elements, whose loads are under way together."""
        index, math = self.frame.constants.index, self.frame.math
        last = math.sub(self.extent, 1)

        def several(variable: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            places = [math.add(variable, number * self.threads) for number in range(UNROLL)]
            entries = [self._entry(math.minimum(at, last)) for at in places]
            for at, entry in zip(places, entries, strict=True):
                inside = arith.cmpi(_I.ult, index(at), index(self.extent))
                if_then(inside, lambda entry=entry: body(entry))  # type: ignore[misc]
            return []

        for_loop(self.frame, self.thread, self.extent, self.threads * UNROLL, [], several)

    def _unsigned(self, key: ir.Value) -> ir.Value:
        """A key as an integer without a sign of the same order."""
        return arith.xori(key, self._wide(_LOWEST))

    def _add_one(self, array: ir.Value, at: ir.Value) -> ir.Value:
        one = self.frame.constants.get(self.i32, 1)
        return memref.AtomicRMWOp(arith.AtomicRMWKind.addi, one, array, [at]).result

    # -- the bound --------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        frame = self.frame
        nvvm.Barrier0Op()  # the line before may still be read

        def clear() -> None:
            for place, number in enumerate((0, self.count, 0, 0)):
                to_shared(frame, self.state, place, self._wide(number))
            to_shared(frame, self.taken, 0, frame.constants.get(self.i32, 0))

        if_then(self._is_first(), clear)
        self._each(self.padded, lambda at: to_shared(frame, self.keys, at, self._wide(_LOWEST)))
        nvvm.Barrier0Op()

    def _narrow(self, shift: int) -> None:
        """One more digit of the bound, that of the bits from `shift` on."""
        frame, constants = self.frame, self.frame.constants
        self._each(BINS, lambda at: to_shared(frame, self.bins, at, constants.get(self.i32, 0)))
        nvvm.Barrier0Op()
        known, wanted = self._read(0), self._read(1)

        def count(key: ir.Value) -> None:
            whole = arith.shrui(self._unsigned(key), self._wide(shift))
            digit = arith.andi(whole, self._wide(BINS - 1))
            place = arith.index_cast(ir.IndexType.get(), digit)
            if shift + DIGIT == KEY:
                self._add_one(self.bins, place)
                return
            same = arith.cmpi(_I.eq, arith.shrui(whole, self._wide(DIGIT)), known)
            if_then(same, lambda: self._add_one(self.bins, place))

        self._all_entries(count)
        nvvm.Barrier0Op()
        self._each(BINS, lambda at: self._decide(at, known, wanted, shift))
        nvvm.Barrier0Op()

    def _decide(self, digit: ir.Value, known: ir.Value, wanted: ir.Value, shift: int) -> None:
        """Write down what is known then, if the k-th largest key has this digit."""
        frame, constants = self.frame, self.frame.constants
        together = ir.VectorType.get([4], self.i32)
        above = constants.get(self.i32, 0)

        def add(first: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            loaded, total = from_shared(frame, self.bins, first, together), carried[0]
            for lane in range(4):
                at = constants.index(frame.math.add(first, lane))
                counts = arith.cmpi(_I.ugt, at, digit)
                number = vector.extract(loaded, [], [lane])
                total = arith.addi(total, arith.select(counts, number, constants.get(self.i32, 0)))
            return [total]

        above = arith.extui(self.i64, for_loop(frame, 0, BINS, 4, [above], add)[0])
        here = arith.extui(self.i64, from_shared(frame, self.bins, digit, self.i32))
        is_it = arith.andi(arith.cmpi(_I.slt, above, wanted), arith.cmpi(_I.sge, arith.addi(above, here), wanted))

        def write() -> None:
            left = arith.subi(wanted, above)
            found = arith.ori(arith.shli(known, self._wide(DIGIT)), arith.index_cast(self.i64, digit))
            is_known = arith.extui(self.i64, arith.cmpi(_I.eq, left, here))
            for place, value in enumerate((found, left, arith.shli(found, self._wide(shift)), is_known)):
                to_shared(frame, self.state, place, value)

        if_then(is_it, write)

    # -- the keys that reach it -------------------------------------------------------------------------------------

    def _collect(self) -> None:
        bound = self._read(2)

        def offer(key: ir.Value) -> None:
            def keep() -> None:
                place = arith.index_castui(ir.IndexType.get(), self._add_one(self.taken, self.frame.constants.index(0)))
                to_shared(self.frame, self.keys, place, key)

            if_then(arith.cmpi(_I.uge, self._unsigned(key), bound), keep)

        self._all_entries(offer)
        nvvm.Barrier0Op()

    def _sort(self) -> None:
        """The largest key first; what was never written is the lowest."""
        size = 2
        while size <= self.padded:
            distance = size // 2
            while distance:
                exchange = partial(self._exchange, size=size, distance=distance)
                self._each(self.padded // 2, exchange)
                nvvm.Barrier0Op()
                distance //= 2
            size *= 2

    def _exchange(self, pair: ir.Value, size: int, distance: int) -> None:
        """Put two keys in order: of `size` at a time the first ones fall and the next ones rise."""
        frame, math = self.frame, self.frame.math
        low = math.add(math.mul(math.div(pair, distance), 2 * distance), math.rem(pair, distance))
        high = math.add(low, distance)
        one, other = (from_shared(frame, self.keys, at, self.i64) for at in (low, high))
        rises = math.rem(math.div(low, size), 2) if size < self.padded else 0
        more, less = arith.maxsi(one, other), arith.minsi(one, other)
        if not isinstance(rises, int):
            turned = arith.cmpi(_I.ne, rises, frame.constants.index(0))
            more, less = arith.select(turned, less, more), arith.select(turned, more, less)
        to_shared(frame, self.keys, low, more)
        to_shared(frame, self.keys, high, less)

    def _write(self, at: ir.Value) -> None:
        key = from_shared(self.frame, self.keys, at, self.i64)
        self._take_value(at, key)
        self._put(at, arith.index_cast(self.i64, self._position(key)))
