"""`mlc.recurrence`: all steps of a recurrent layer by blocks that wait for nobody, on the tensor cores.

A block has one direction of `rows` rows of the batch from the first step to the last. In a step its warps multiply the
recurrent weights, on the left of `mma.sync`, by the states of the rows, eight of which are the instruction's columns.
Warps have hidden elements, all gates of each: of 16 rows of a product, a thread has two for the same two rows of the
batch, which are two gates of an LSTM's element, or elements of other layers' gates. So it computes cells of what is in
its registers, where their states in f32 stay as well. Only what is multiplied next goes through shared memory, states
rounded to the weights' type. It is there twice, so that a step has one barrier. The order in which elements of a state
are summed is that of 16-byte accesses to it and to the weights, which lie as the model has them.

Weights are read once where they fit in registers, 64 bytes of each row after 64 (`kept`); the others come from the
cache in each step. What the gates get from the layer's input is read a step ahead. Threads without a row, or a
hidden element, of their own repeat others, and write the same.

See "Persistent RNNs" (Diamos et al., 2016) for weights in registers, and "Optimizing Performance of Recurrent Neural
Networks on GPUs" (Appleyard et al., 2016) for what is computed of gates in one kernel. `mma.sync`: PTX ISA, "Warp Level
Matrix Instructions".

Schedule parameters: `element` that is multiplied: bf16, f16, or tf32 for weights of f32; `rows` of a block, 8 or a
multiple; `kept`, the pieces of 64 bytes of a row of the weights that are in registers, all of them or fewer; with
`ahead` each of the others is read while the one in front of it is multiplied; `threads` of a block, and `group`, as
many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import e, log2

from mlir import ir
from mlir.dialects import arith, llvm, nvvm, vector

from mlc.kernels.common import memory
from mlc.kernels.common.frame import Buffer, Frame, KernelSource, defining_op, for_loop, if_values
from mlc.kernels.common.index import Idx, IdxMath, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.common.recurrent_cell import Cell, Layer, layer_of
from mlc.kernels.common.vector_math import expand as expand_math
from mlc.kernels.common.vector_math import nvptx
from mlc.kernels.nvidia import ALIGNMENT
from mlc.kernels.nvidia.ampere.fragments import multiply_add, to_tf32
from mlc.kernels.nvidia.tensor_cores.words import Words, assembly, declare_shared_memory
from mlc.kernels.nvidia.tensor_maps import attach
from mlc.kernels.nvidia.threads import WARP

COLUMNS = 8  # rows of the batch in an instruction
PIECE = 64  # bytes of a row that the four threads of a fragment's row read at a time
ENOUGH = 4  # sums under way that hide how long an instruction takes
_QUAD = 4  # threads of a row, or column, of a fragment
_BANKS = 128  # bytes
_WORD = 4
_EIGHT = 8
_ROLLED = '.pragma "nounroll";'  # ptxas would unroll a loop, and read everything at once
_I = arith.CmpIPredicate


@dataclass(frozen=True)
class RecurrenceSchedule:
    """Parameters of the template; see the module's description."""

    element: str
    rows: int
    kept: int
    ahead: int
    threads: int
    group: int


@dataclass(frozen=True)
class Division:
    """How `warps` divide the hidden elements of a layer among them; `bytes_each` is the size of a multiplied one."""

    kind: str
    gates: int
    hidden: int
    bytes_each: int
    warps: int

    @property
    def is_paired(self) -> bool:
        """Are the halves of a product's rows two gates, rather than two times eight hidden elements?"""
        return self.kind == "lstm"

    @property
    def units(self) -> int:
        """Hidden elements that a warp has at a time."""
        return _EIGHT if self.is_paired else 2 * _EIGHT

    @property
    def halves(self) -> int:
        """Hidden elements that a thread has at a time, of each of its rows of the batch."""
        return self.units // _EIGHT

    @property
    def tiles(self) -> int:
        """Products of 16 rows that are all gates of these."""
        return self.gates // 2 if self.is_paired else self.gates

    @property
    def shares(self) -> int:
        """So many hidden elements in all."""
        return self.hidden // self.units

    @property
    def times(self) -> int:
        """How often a warp has so many; the last one repeats some of others where they do not come out even."""
        return -(-self.shares // self.warps)

    @property
    def row_bytes(self) -> int:
        return self.hidden * self.bytes_each

    @property
    def whole(self) -> int:
        """Pieces of a row that are whole."""
        return self.row_bytes // PIECE

    @property
    def pieces(self) -> int:
        """All of them; the last one may be a half, an instruction's."""
        return -(-self.row_bytes // PIECE)

    @property
    def stride(self) -> int:
        """Bytes of two states in shared memory. The second one lies half of all banks behind the first, and the next
        two an eighth or more further: neither reading whole pieces nor writing elements do threads meet in a bank."""
        return 2 * self.second + _BANKS // 4

    @property
    def second(self) -> int:
        return self.row_bytes + (_BANKS // 2 - self.row_bytes) % _BANKS

    def copy_bytes(self, rows: int) -> int:
        """Bytes of the states of so many rows."""
        return rows // 2 * self.stride


def division(layer: Layer, threads: int) -> Division:
    """How the warps of a block of so many `threads` divide a layer."""
    bytes_each = layer.recurrence.type.element_type.width // 8
    return Division(layer.kind, layer.gates, layer.hidden, bytes_each, threads // WARP)


def expand(source: KernelSource, schedule: RecurrenceSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a block."""
    op = defining_op(source.results[0])
    assert op is not None
    layer, s = layer_of(op), schedule
    if layer.hidden % (2 * _EIGHT) or s.rows % COLUMNS:
        raise ValueError(
            f"kernel {source.func.name.value}: a layer of {layer.hidden} elements, {s.rows} rows at a time"
        )
    parts = division(layer, s.threads)

    def items(frame: Frame) -> list[Scalar]:
        return [layer.directions, frame.math.ceildiv(frame.extent(layer.inputs, 1), s.rows)]

    def declare(frame: Frame) -> None:
        declare_shared_memory(frame)
        attach(source.module, [], 2 * parts.copy_bytes(s.rows))

    def body(frame: Frame, coords: list[Scalar]) -> None:
        _Block(frame, layer, s, parts, coords).emit()

    return emit_items(source, items, body, alignment=ALIGNMENT, declare=declare)


class _Weights:
    """A warp's part of the recurrent weights, from hidden element `first` on: thread 4r + t has 16 bytes of each piece
    of its rows, or 8 of a half."""

    def __init__(self, frame: Frame, words: Words, layer: Layer, parts: Division, direction: Scalar) -> None:
        self.frame, self.words, self.math, self.parts = frame, words, frame.math, parts
        buffer = frame.buffers[layer.recurrence]
        size = self.math.product(buffer.shape)
        self.memory, self.height = Buffer(buffer.memory, buffer.element, [size], [1]), layer.gates * layer.hidden
        self.begin = self.math.mul(direction, self.height)
        self.is_rounded = isinstance(buffer.element, ir.F32Type)

    def of_warp(self, first: Scalar, line: Scalar, place: Scalar) -> None:
        """What there is for the thread with so many lines in front of it, at that `place` of each."""
        self.row, self.place = self.math.add(self.math.add(self.begin, first), line), place

    def load(self, piece: Scalar, away: Scalar = 0) -> list[ir.Value]:
        """A piece of all of the thread's rows, each tile's two behind each other; `away` is zero."""
        parts, math = self.parts, self.math
        lanes = (_WORD if isinstance(piece, ir.Value) or piece < parts.whole else 2) * _WORD // parts.bytes_each
        column = math.add(math.mul(piece, PIECE // parts.bytes_each), math.mul(self.place, lanes))
        column = math.add(column, math.mul(away, lanes))
        idx, found = IdxMath(math, lanes), []
        type_ = ir.VectorType.get([lanes * parts.bytes_each // _WORD], self.words.i32)
        base = math.add(math.mul(self.row, parts.hidden), column)
        for rows in self._rows():
            at = Idx(math.add(base, rows * parts.hidden), 1)
            found.append(vector.bitcast(type_, memory.load(self.frame, idx, self.memory, [at], None)))
        return found

    def _rows(self) -> list[int]:
        """How far each of the thread's rows is from that of its first gate and hidden element."""
        parts = self.parts
        gates = [(2 * tile + half, 0) if parts.is_paired else (tile, half * _EIGHT)
                 for tile in range(parts.tiles) for half in range(2)]  # fmt: skip
        return [gate * parts.hidden + time * parts.units + unit for time in range(parts.times) for gate, unit in gates]

    def fragments(self, loaded: Sequence[ir.Value]) -> list[list[list[ir.Value]]]:
        """Of what `load` gave, the operands of each tile's instructions."""
        both = [self._numbers(value) for value in loaded]
        found = []
        for upper, lower in zip(both[::2], both[1::2], strict=True):
            steps = range(0, len(upper), 2)
            found.append([[upper[k], lower[k], upper[k + 1], lower[k + 1]] for k in steps])
        return found

    def _numbers(self, value: ir.Value) -> list[ir.Value]:
        numbers = [vector.extract(value, [], [k]) for k in range(value.type.shape[0])]
        return [to_tf32(self.words, v) for v in numbers] if self.is_rounded else numbers


class _States:
    """States of a block's rows in shared memory, two copies of them, as they are multiplied."""

    def __init__(self, words: Words, parts: Division, element: ir.Type, rows: int) -> None:
        self.words, self.parts, self.element, self.rows = words, parts, element, rows

    def _row(self, column: Scalar) -> Scalar:
        math = self.words.math
        return math.add(
            math.mul(math.div(column, 2), self.parts.stride), math.mul(math.rem(column, 2), self.parts.second)
        )

    def of_warp(self, first: Scalar, line: Scalar, place: Scalar) -> None:
        """What there is for a thread: it reads from column `line` of each eight, and writes hidden element `line` of
        its warp's, from `first` on, of the columns 2 · `place` and the next."""
        math, each = self.words.math, self.parts.bytes_each
        self.line, self.place = self._row(line), place
        self.begin = math.add(math.mul(place, self.parts.stride), math.mul(math.add(first, line), each))

    def copy(self, number: Scalar) -> Scalar:
        """Where copy 0 or 1 begins."""
        return self.words.math.mul(number, self.parts.copy_bytes(self.rows))

    def load(self, copy: Scalar, piece: Scalar, group: int) -> list[list[ir.Value]]:
        """The operands of a piece's instructions, of a group of eight rows."""
        words, math = self.words, self.words.math
        count = _WORD if isinstance(piece, ir.Value) or piece < self.parts.whole else 2
        type_ = ir.VectorType.get([count], words.i32)
        at = math.add(math.add(copy, self.line), math.mul(self.place, count * _WORD))
        at = math.add(math.add(at, math.mul(piece, PIECE)), group * self.parts.copy_bytes(COLUMNS))
        value = llvm.LoadOp(type_, words.place(at), alignment=count * _WORD).res
        numbers = [vector.extract(value, [], [k]) for k in range(count)]
        return [numbers[k : k + 2] for k in range(0, count, 2)]

    def store(self, copy: Scalar, unit: int, group: int, column: int, h: ir.Value) -> None:
        """Hidden element number `unit` of the thread's warp, of the first or second of its rows in a group."""
        words, math, parts = self.words, self.words.math, self.parts
        place = group * parts.copy_bytes(COLUMNS) + column * parts.second + unit * parts.bytes_each
        if isinstance(self.element, ir.F32Type):
            h = to_tf32(words, arith.bitcast(words.i32, h))
        else:
            h = arith.truncf(self.element, h)
        llvm.StoreOp(h, words.place(math.add(math.add(copy, self.begin), place)))


@dataclass(frozen=True)
class _Number:
    """One of the states of a thread: hidden element `unit` behind the thread's first, of the row `column` of `group`;
    `time` and `half` say in which products."""

    time: int
    half: int
    unit: int
    group: int
    column: int


class _Block:
    """A direction of some rows of the batch."""

    def __init__(
        self, frame: Frame, layer: Layer, schedule: RecurrenceSchedule, parts: Division, coords: list[Scalar]
    ) -> None:
        self.frame, self.layer, self.s, self.parts, self.math = frame, layer, schedule, parts, frame.math
        self.words = Words(frame)
        self.direction, self.idx = coords[0], IdxMath(frame.math, 1)
        self.f32, self.groups = ir.F32Type.get(), schedule.rows // COLUMNS
        self.steps, self.batch = (frame.extent(layer.inputs, i) for i in range(2))
        by_result = dict(zip(frame.source.results, frame.source.destinations, strict=True))
        self.y, self.last_h, self.last_c = (frame.buffers[by_result[r]] for r in layer.op.results)
        self.weights = _Weights(frame, self.words, layer, parts, self.direction)
        self.states = _States(self.words, parts, layer.recurrence.type.element_type, schedule.rows)
        self.cell = Cell(layer.kind, _sigmoid, _tanh, self._number)
        self._place(self.math.mul(coords[1], schedule.rows))
        chains = parts.times * parts.tiles * self.groups
        self.chains = 2 if chains < ENOUGH else 1  # sums of a product, by instructions in turns
        self.numbers = [
            _Number(time, half, time * parts.units + half * _EIGHT, group, column)
            for time in range(parts.times) for half in range(parts.halves)
            for group in range(self.groups) for column in range(2)
        ]  # fmt: skip

    def _place(self, first: Scalar) -> None:
        """Which hidden elements, and rows of the batch from `first` on, are this thread's."""
        words, wide, parts, math = self.words, self.words.math, self.parts, self.math
        thread = words.thread()
        lane, warp = wide.rem(thread, WARP), wide.div(thread, WARP)
        line, place = wide.div(lane, _QUAD), wide.rem(lane, _QUAD)
        begin = wide.minimum(wide.mul(warp, parts.times), parts.shares - parts.times)
        begin = wide.mul(begin, parts.units)
        self.states.of_warp(begin, line, place)
        self.weights.of_warp(words.widen(begin), words.widen(line), words.widen(place))
        self.unit = words.widen(wide.add(begin, line))
        rows = [words.widen(wide.add(wide.mul(place, 2), group * COLUMNS + column))
                for group in range(self.groups) for column in range(2)]  # fmt: skip
        last = math.sub(self.batch, 1)
        self.rows = [math.minimum(math.add(first, row), last) for row in rows]

    def _number(self, value: float) -> ir.Value:
        return self.frame.constants.get(self.f32, value)

    # -- from the first step to the last ---------------------------------------------------------------------------

    def emit(self) -> None:
        """All steps; all threads of the block do this together."""
        layer, frame = self.layer, self.frame
        nvvm.Barrier0Op()  # the rows before may still be read
        h, c = (self._initial(layer.initial_h), self._initial(layer.initial_c) if layer.has_cell else [])
        self._share(0, h)
        self.lengths = self._lengths()
        self.kept = [self.weights.fragments(self.weights.load(piece)) for piece in range(self.s.kept)]
        self.starts = self._starts()
        count, is_kept = len(self.numbers), self.s.kept == self.parts.pieces

        def step(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            h, c, x = carried[:count], carried[count : -len(x0)], carried[-len(x0) :]
            after = self.math.minimum(self.math.add(number, 1), self.math.sub(self.steps, 1))
            following = self._inputs(after) if is_kept else []
            nvvm.Barrier0Op()
            copy = self.words.narrow(self.math.rem(number, 2))
            sums = self._products(self.states.copy(copy), self._sums(x))
            following = following or self._inputs(after)
            h, c = self._cells(self._time(number), self.words.math.sub(1, copy), sums, [h, c, x])
            return [*h, *c, *following]

        x0 = self._first_inputs()
        ends = for_loop(frame, 0, self.steps, 1, [*h, *c, *x0], step)
        h, c = ends[:count], ends[count : -len(x0)]
        self._write(self.last_h, h)
        self._write(self.last_c, c or h)

    def _time(self, step: Scalar) -> Scalar:
        """Where step number `step` is in the sequence."""
        if self.layer.direction == "forward":
            return step
        last = self.math.sub(self.math.sub(self.steps, 1), step)
        if self.layer.direction == "reverse":
            return last
        c = self.frame.constants.index
        return arith.select(arith.cmpi(_I.eq, c(self.direction), c(0)), c(step), c(last))

    def _cells(
        self, time: Scalar, copy: Scalar, sums: Sequence[Sequence[ir.Value]], carried: Sequence[Sequence[ir.Value]]
    ) -> tuple[list[ir.Value], list[ir.Value]]:
        """The next states, which go into that copy, from the gates' `sums`, and the states and inputs that are
        `carried`."""
        layer, (h, c, x) = self.layer, carried
        new_h, new_c, y = [], [], []
        for at, one in enumerate(self.numbers):
            gates = [self._gate(sums, one, gate) for gate in range(layer.gates)]
            from_input = x[at * layer.gates + 2] if layer.kind == "gru" else None
            before = c[at] if c else h[at]
            found, cell = self.cell.next_states(gates, h[at], before, from_input)
            out = found
            if self.lengths:
                is_active = arith.cmpi(
                    _I.sgt, self.lengths[self._row(one)], self.frame.constants.index(time)
                )  # fmt: skip
                out = arith.select(is_active, found, self._number(0.0))
                found, cell = arith.select(is_active, found, h[at]), arith.select(is_active, cell, before)
            new_h.append(found)
            new_c += [cell] if c else []
            y.append(out)
        self._share(copy, new_h)
        self._write_step(time, y)
        return new_h, new_c

    # -- products --------------------------------------------------------------------------------------------------

    def _gate(self, sums: Sequence[Sequence[ir.Value]], one: _Number, gate: int) -> ir.Value:
        """A gate's sum for one state."""
        place, half = (gate // 2, gate % 2) if self.parts.is_paired else (gate, one.half)
        return sums[(one.time * self.parts.tiles + place) * self.groups + one.group][2 * half + one.column]

    def _sums(self, x: Sequence[ir.Value]) -> list[list[ir.Value]]:
        """What the sums begin with: what gates get from the input, but for a GRU's new state, which gets that later."""
        parts, gates = self.parts, self.layer.gates
        sums: list[list[ir.Value]] = [
            [self._number(0.0)] * 4 for _ in range(parts.times * parts.tiles * self.groups)
        ]  # fmt: skip
        for at, one in enumerate(self.numbers):
            for gate in range(gates):
                place, half = (gate // 2, gate % 2) if parts.is_paired else (gate, one.half)
                value = x[at * gates + gate]
                if self.layer.kind == "gru" and gate == 2:
                    value = self.starts[one.time * parts.halves + one.half]
                sums[(one.time * parts.tiles + place) * self.groups + one.group][2 * half + one.column] = value
        return sums

    def _products(self, copy: Scalar, sums: list[list[ir.Value]]) -> list[list[ir.Value]]:
        """`sums` and the products of the weights and that copy of the states."""
        parts, s = self.parts, self.s
        chains = [sums, *[[[self._number(0.0)] * 4 for _ in sums] for _ in range(self.chains - 1)]]
        for piece in range(s.kept):
            chains = self._multiply(copy, piece, self.kept[piece], chains)
        if s.kept < parts.pieces:
            chains = self._stream(copy, chains)
        if len(chains) == 1:
            return chains[0]
        both = zip(*chains, strict=True)
        return [[arith.addf(a, b) for a, b in zip(first, second, strict=True)] for first, second in both]

    def _multiply(
        self, copy: Scalar, piece: Scalar, left: list[list[list[ir.Value]]], chains: list[list[list[ir.Value]]]
    ) -> list[list[list[ir.Value]]]:
        """`chains` and the products of a piece, each of whose instructions adds to the next chain."""
        chains = [list(sums) for sums in chains]
        for group in range(self.groups):
            for number, right in enumerate(self.states.load(copy, piece, group)):
                sums = chains[number % len(chains)]
                for tile, operands in enumerate(left):
                    at = tile * self.groups + group
                    sums[at] = multiply_add(self.words, self.s.element, operands[number], right, sums[at])
        return chains

    def _stream(self, copy: Scalar, chains: list[list[list[ir.Value]]]) -> list[list[list[ir.Value]]]:
        """`chains` and the products of pieces that are not kept, each of which is read while the one in front of it is
        multiplied."""
        parts, words, math = self.parts, self.words, self.math
        # Loads of what no step changes would be moved out of the loop over these, into registers that there are not.
        away = words.widen(words.hidden(words.value(0)))
        size, tail = len(chains[0]), parts.pieces > parts.whole
        first, count = self.s.kept, 4 * size * len(chains)

        def nested(flat: Sequence[ir.Value]) -> list[list[list[ir.Value]]]:
            sums = [list(flat[k : k + 4]) for k in range(0, count, 4)]
            return [sums[k : k + size] for k in range(0, len(sums), size)]

        def one(piece: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            assembly(None, [], _ROLLED, "")
            at, following = words.widen(piece), []
            if self.s.ahead:
                after = math.minimum(math.add(at, 1), parts.whole - 1)
                following = self.weights.load(self.frame.constants.index(after), away)
            left = self.weights.fragments(carried[count:] or self.weights.load(at, away))
            found = self._multiply(copy, piece, left, nested(carried[:count]))
            return [v for sums in found for values in sums for v in values] + following

        if first < parts.whole:
            loaded = self.weights.load(first, away) if self.s.ahead else []
            flat = [v for sums in chains for values in sums for v in values]
            chains = nested(words.loop(first, words.hidden(words.value(parts.whole)), 1, [*flat, *loaded], one))
        if not tail:
            return chains
        return self._multiply(copy, parts.whole, self.weights.fragments(self.weights.load(parts.whole, away)), chains)

    # -- memory ----------------------------------------------------------------------------------------------------

    def _row(self, one: _Number) -> int:
        """Which of the thread's rows a state belongs to."""
        return 2 * one.group + one.column

    def _at(self, row: Scalar, width: int, own: Scalar, unit: int) -> Scalar:
        """An element of a row of `width` elements, behind the one that is the thread's `own`."""
        return self.math.add(self.math.add(self.math.mul(row, width), own), unit)

    def _flat(self, buffer: Buffer) -> Buffer:
        return Buffer(buffer.memory, buffer.element, [self.math.product(buffer.shape)], [1])

    def _load(self, buffer: Buffer, at: Scalar) -> ir.Value:
        return memory.load(self.frame, self.idx, self._flat(buffer), [Idx(at)], None)

    def _store(self, buffer: Buffer, at: Scalar, value: ir.Value) -> None:
        memory.store(self.frame, self.idx, self._flat(buffer), [Idx(at)], value, None)

    def _initial(self, state: ir.Value | None) -> list[ir.Value]:
        """The first states of the thread."""
        if state is None:
            return [self._number(0.0)] * len(self.numbers)
        return [self._load(self.frame.buffers[state], at) for at in self._ends()]

    def _ends(self) -> list[Scalar]:
        """Where the thread's states are among all directions' and rows'."""
        math, hidden = self.math, self.layer.hidden
        before = math.mul(self.direction, self.batch)
        return [
            self._at(math.add(before, self.rows[self._row(one)]), hidden, self.unit, one.unit) for one in self.numbers
        ]

    def _write(self, buffer: Buffer, values: Sequence[ir.Value]) -> None:
        for at, value in zip(self._ends(), values, strict=True):
            self._store(buffer, at, value)

    def _write_step(self, time: Scalar, y: Sequence[ir.Value]) -> None:
        math, hidden, width = self.math, self.layer.hidden, self.layer.directions * self.layer.hidden
        own = math.add(math.mul(self.direction, hidden), self.unit)
        begin = math.mul(time, math.mul(self.batch, width))
        for one, value in zip(self.numbers, y, strict=True):
            self._store(self.y, math.add(begin, self._at(self.rows[self._row(one)], width, own, one.unit)), value)

    def _share(self, copy: Scalar, h: Sequence[ir.Value]) -> None:
        """Writes a copy of the states for all threads."""
        for one, value in zip(self.numbers, h, strict=True):
            self.states.store(self.states.copy(copy), one.unit, one.group, one.column, value)

    def _lengths(self) -> list[ir.Value]:
        """Those of the thread's rows."""
        if self.layer.lengths is None:
            return []
        lengths, index = self.frame.buffers[self.layer.lengths], ir.IndexType.get()
        return [arith.index_cast(index, self._load(lengths, row)) for row in self.rows]

    def _starts(self) -> list[ir.Value]:
        """What the sums of a GRU's new state begin with, of the thread's hidden elements."""
        layer, parts = self.layer, self.parts
        if layer.kind != "gru":
            return []
        units = [time * parts.units + half * _EIGHT for time in range(parts.times) for half in range(parts.halves)]
        if layer.bias is None:
            return [self._number(0.0)] * len(units)
        bias = self.frame.buffers[layer.bias]
        return [self._load(bias, self._at(self.direction, layer.hidden, self.unit, unit)) for unit in units]

    def _inputs(self, step: Scalar) -> list[ir.Value]:
        """What the gates of the thread's states get from the input in a step."""
        layer, math = self.layer, self.math
        height = layer.gates * layer.hidden
        width = layer.directions * height
        inputs, own = self.frame.buffers[layer.inputs], math.add(math.mul(self.direction, height), self.unit)
        begin = math.mul(self._time(step), math.mul(self.batch, width))
        found = []
        for one in self.numbers:
            row = math.add(begin, self._at(self.rows[self._row(one)], width, own, 0))
            found += [
                self._load(inputs, math.add(row, gate * layer.hidden + one.unit)) for gate in range(layer.gates)
            ]  # fmt: skip
        return found

    def _first_inputs(self) -> list[ir.Value]:
        """Those of the first step, if there is one."""
        if isinstance(self.steps, int) and self.steps:
            return self._inputs(0)
        count = len(self.numbers) * self.layer.gates
        has_steps = arith.cmpi(_I.ne, self.frame.constants.index(self.steps), self.frame.constants.index(0))
        nothing = [self._number(0.0)] * count
        return if_values(has_steps, [self.f32] * count, lambda: self._inputs(0), lambda: nothing)


def _sigmoid(x: ir.Value) -> ir.Value:
    """1 / (1 + e^-x), to within 2^-21 of 1."""
    constant = [arith.constant(x.type, number) for number in (-log2(e), 1.0)]
    power = nvptx.power_of_two(arith.mulf(x, constant[0]))
    return nvptx.reciprocal(arith.addf(power, constant[1]))


def _tanh(x: ir.Value) -> ir.Value:
    found = expand_math("math.tanh", [x], has_exp2=True)
    assert found is not None
    return found
