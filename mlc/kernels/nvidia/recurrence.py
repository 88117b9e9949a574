"""`mlc.recurrence`: all steps of a recurrent layer by blocks that wait for nobody, on the tensor cores.

A block has one direction of eight rows of the batch from the first step to the last. In a step its warps multiply the
recurrent weights, on the left of `mma.sync`, by the states of the rows, which are the instruction's eight columns.
Warps have hidden elements, all gates of each: of 16 rows of a product, a thread has two for the same two rows of the
batch, which are two gates of an LSTM's element, or elements of other layers' gates. So it computes cells of what is in
its registers, where their states in f32 stay as well. Only what is multiplied next goes through shared memory, states
rounded to the weights' type. It is there twice, so that a step has one barrier. The order in which elements of a state
are summed is that of 16-byte accesses to it and to the weights, which lie as the model has them.

The blocks of a `cluster` share the hidden elements of their rows: each writes what it has made of the states into the
shared memory of all, and they meet where else the threads of a block do (PTX ISA, "Cluster of Cooperative Thread
Arrays"). A block that has written goes on to what it needs of the next step, and waits for the others then.

Weights are read once where they fit in registers, 64 bytes of each row after 64 (`kept`), or else in shared memory
(`near`), each thread's where it alone reads them; the others come from the cache in each step. What the gates get
from the layer's input is read a step ahead where there are registers for it. Threads without a row, or a hidden
element, of their own repeat others, and write the same.

See "Persistent RNNs" (Diamos et al., 2016) for weights in registers, and "Optimizing Performance of Recurrent Neural
Networks on GPUs" (Appleyard et al., 2016) for what is computed of gates in one kernel. `mma.sync`: PTX ISA, "Warp Level
Matrix Instructions".

Sixteen rows in a block took longer in every case that was measured on an H200: a multiprocessor has two blocks sooner.

Schedule parameters: `element` that is multiplied: bf16, f16, or tf32 for weights of f32; `cluster`, the blocks that
share rows; `kept`, the pieces of 64 bytes of a row of the weights that are in registers, all of them or fewer, and
`near`, those behind them that are in shared memory; with `ahead` each that is not in registers is read while the one in
front of it is multiplied, and what the gates get a step ahead all the same; `threads` of a block, and `group`, as many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from mlir import ir
from mlir.dialects import arith, nvvm

from mlc.kernels.common import memory
from mlc.kernels.common.frame import Buffer, Frame, KernelSource, defining_op, for_loop, if_values
from mlc.kernels.common.index import Idx, IdxMath, Scalar
from mlc.kernels.common.items import emit_items
from mlc.kernels.common.recurrent_cell import Cell, Layer, layer_of, time_of
from mlc.kernels.common.vector_math import sigmoid, tanh
from mlc.kernels.nvidia import ALIGNMENT
from mlc.kernels.nvidia.ampere.fragments import multiply_add
from mlc.kernels.nvidia.recurrent_operands import COLUMNS, EIGHT, Division, States, Weights
from mlc.kernels.nvidia.tensor_cores.words import Words, assembly, declare_shared_memory
from mlc.kernels.nvidia.tensor_maps import attach
from mlc.kernels.nvidia.threads import WARP

ENOUGH = 4  # sums under way that hide how long an instruction takes
_QUAD = 4  # threads of a row, or column, of a fragment
_ROLLED = '.pragma "nounroll";'  # ptxas would unroll a loop, and read everything at once
_I = arith.CmpIPredicate


@dataclass(frozen=True)
class RecurrenceSchedule:
    """Parameters of the template; see the module's description."""

    element: str
    kept: int
    ahead: int
    threads: int
    group: int
    cluster: int = 1
    near: int = 0


def expand(source: KernelSource, schedule: RecurrenceSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a block."""
    op = defining_op(source.results[0])
    assert op is not None
    layer, s = layer_of(op), schedule
    parts = Division(layer, s.threads, s.cluster)
    if layer.hidden % (2 * EIGHT) or layer.hidden % (s.cluster * parts.units):
        what = f"a layer of {layer.hidden} elements in {s.cluster} blocks"
        raise ValueError(f"kernel {source.func.name.value}: {what}")

    def items(frame: Frame) -> list[Scalar]:
        return [layer.directions, frame.math.ceildiv(frame.extent(layer.inputs, 1), COLUMNS), s.cluster]

    def declare(frame: Frame) -> None:
        declare_shared_memory(frame)
        attach(source.module, [], 2 * parts.copy_bytes + s.near * parts.piece_bytes)

    def body(frame: Frame, coords: list[Scalar]) -> None:
        _Block(frame, layer, s, parts, coords).emit()

    return emit_items(source, items, body, alignment=ALIGNMENT, declare=declare)


@dataclass(frozen=True)
class _Number:
    """One of the states of a thread: hidden element `unit` behind the thread's first, of its row `column`; `time` and
    `half` say in which products."""

    time: int
    half: int
    unit: int
    column: int


class _Block:
    """A direction of some rows of the batch."""

    def __init__(
        self, frame: Frame, layer: Layer, schedule: RecurrenceSchedule, parts: Division, coords: list[Scalar]
    ) -> None:
        self.frame, self.layer, self.s, self.parts, self.math = frame, layer, schedule, parts, frame.math
        self.words = Words(frame)
        self.direction, self.idx = coords[0], IdxMath(frame.math, 1)
        self.f32 = ir.F32Type.get()
        self.steps, self.batch = (frame.extent(layer.inputs, i) for i in range(2))
        by_result = dict(zip(frame.source.results, frame.source.destinations, strict=True))
        self.y, self.last_h, self.last_c = (frame.buffers[by_result[r]] for r in layer.op.results)
        self.weights = Weights(frame, self.words, parts, self.direction, 2 * parts.copy_bytes)
        self.states = States(self.words, parts, layer.recurrence.type.element_type)
        self.cell = Cell(layer.kind, partial(sigmoid, has_exp2=True), partial(tanh, has_exp2=True), self._number)
        self._place(self.math.mul(coords[1], COLUMNS), coords[2])
        chains = parts.times * parts.tiles
        self.chains = 2 if chains < ENOUGH else 1  # sums of a product, by instructions in turns
        self.numbers = [
            _Number(time, half, time * parts.units + half * EIGHT, column)
            for time in range(parts.times) for half in range(parts.halves) for column in range(2)
        ]  # fmt: skip

    def _place(self, first: Scalar, rank: Scalar) -> None:
        """Which hidden elements, and rows of the batch from `first` on, are a thread's in block `rank` of a cluster."""
        words, wide, parts, math = self.words, self.words.math, self.parts, self.math
        thread = words.thread()
        lane, warp = wide.rem(thread, WARP), wide.div(thread, WARP)
        line, place = wide.div(lane, _QUAD), wide.rem(lane, _QUAD)
        begin = wide.minimum(wide.mul(warp, parts.times), parts.shares - parts.times)
        begin = wide.mul(wide.add(begin, wide.mul(words.narrow(rank), parts.shares)), parts.units)
        self.states.of_warp(begin, line, place)
        self.weights.of_warp(words.widen(begin), words.widen(line), words.widen(place))
        self.unit = words.widen(wide.add(begin, line))
        rows = [words.widen(wide.add(wide.mul(place, 2), column)) for column in range(2)]
        last = math.sub(self.batch, 1)
        self.rows = [math.minimum(math.add(first, row), last) for row in rows]

    def _number(self, value: float) -> ir.Value:
        return self.frame.constants.get(self.f32, value)

    # -- from the first step to the last ---------------------------------------------------------------------------

    def emit(self) -> None:
        """All steps; all threads of the block do this together."""
        layer, frame = self.layer, self.frame
        self._meet()  # the rows before may still be read, and other blocks may not have begun
        h, c = (self._initial(layer.initial_h), self._initial(layer.initial_c) if layer.has_cell else [])
        self._share(0, h)
        self._arrive()
        self.lengths = self._lengths()
        self.kept = [self.weights.fragments(self.weights.load(piece)) for piece in range(self.s.kept)]
        self.weights.bring_near(self.s.kept, self.s.near)
        self.starts = self._starts()
        count, is_early = len(self.numbers), self.s.ahead or self.s.kept == self.parts.pieces

        def step(number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            h, c, x = carried[:count], carried[count : -len(x0)], carried[-len(x0) :]
            after = self.math.minimum(self.math.add(number, 1), self.math.sub(self.steps, 1))
            following = self._inputs(after) if is_early else []
            self._wait()
            copy = self.words.narrow(self.math.rem(number, 2))
            sums = self._products(self.states.copy(copy), self._sums(x))
            following = following or self._inputs(after)
            h, c = self._cells(self._time(number), self.words.math.sub(1, copy), sums, [h, c, x])
            self._arrive()
            return [*h, *c, *following]

        x0 = self._first_inputs()
        ends = for_loop(frame, 0, self.steps, 1, [*h, *c, *x0], step)
        if self.s.cluster > 1:
            self._wait()  # nobody leaves while others write to its memory
        h, c = ends[:count], ends[count : -len(x0)]
        self._write(self.last_h, h)
        self._write(self.last_c, c or h)

    def _arrive(self) -> None:
        """What this thread has written may be read by all that have waited."""
        if self.s.cluster > 1:
            nvvm.ClusterArriveOp(aligned=True)

    def _wait(self) -> None:
        """Waits for what others have written until they arrived."""
        if self.s.cluster > 1:
            nvvm.ClusterWaitOp(aligned=True)
        else:
            nvvm.Barrier0Op()

    def _meet(self) -> None:
        self._arrive()
        self._wait()

    def _time(self, step: Scalar) -> Scalar:
        return time_of(self.frame, self.layer, self.direction, step, self.steps)

    def _cells(
        self, time: Scalar, copy: Scalar, sums: Sequence[Sequence[ir.Value]], carried: Sequence[Sequence[ir.Value]]
    ) -> tuple[list[ir.Value], list[ir.Value]]:
        """The next states, which go into that copy, from the gates' `sums`, and the states and inputs that are
        `carried`."""
        layer, (h, c, x), now = self.layer, carried, self.frame.constants.index(time)
        new_h, new_c, y = [], [], []
        for at, one in enumerate(self.numbers):
            gates = [self._gate(sums, one, gate) for gate in range(layer.gates)]
            from_input = x[at * layer.gates + 2] if layer.kind == "gru" else None
            before = c[at] if c else h[at]
            found, cell = self.cell.next_states(gates, h[at], before, from_input)
            out = found
            if self.lengths:
                is_active = arith.cmpi(_I.sgt, self.lengths[one.column], now)
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
        return sums[one.time * self.parts.tiles + place][2 * half + one.column]

    def _sums(self, x: Sequence[ir.Value]) -> list[list[ir.Value]]:
        """What the sums begin with: what gates get from the input, but for a GRU's new state, which gets that later."""
        parts, gates = self.parts, self.layer.gates
        zero = self._number(0.0)
        sums: list[list[ir.Value]] = [[zero] * 4 for _ in range(parts.times * parts.tiles)]
        for at, one in enumerate(self.numbers):
            for gate in range(gates):
                place, half = (gate // 2, gate % 2) if parts.is_paired else (gate, one.half)
                value = x[at * gates + gate]
                if self.layer.kind == "gru" and gate == 2:
                    value = self.starts[one.time * parts.halves + one.half]
                sums[one.time * parts.tiles + place][2 * half + one.column] = value
        return sums

    def _products(self, copy: Scalar, sums: list[list[ir.Value]]) -> list[list[ir.Value]]:
        """`sums` and the products of the weights and that copy of the states."""
        parts, s = self.parts, self.s
        chains = [sums, *[[[self._number(0.0)] * 4 for _ in sums] for _ in range(self.chains - 1)]]
        for piece in range(s.kept):
            chains = self._multiply(copy, piece, self.kept[piece], chains)
        if s.kept < parts.pieces:
            chains = self._rest(copy, chains)
        if len(chains) == 1:
            return chains[0]
        both = zip(*chains, strict=True)
        return [[arith.addf(a, b) for a, b in zip(first, second, strict=True)] for first, second in both]

    def _multiply(
        self, copy: Scalar, piece: Scalar, left: list[list[list[ir.Value]]], chains: list[list[list[ir.Value]]]
    ) -> list[list[list[ir.Value]]]:
        """`chains` and the products of a piece, each of whose instructions adds to the next chain."""
        chains = [list(sums) for sums in chains]
        for number, right in enumerate(self.states.load(copy, piece)):
            sums = chains[number % len(chains)]
            for tile, operands in enumerate(left):
                sums[tile] = multiply_add(self.words, self.s.element, operands[number], right, sums[tile])
        return chains

    def _rest(self, copy: Scalar, chains: list[list[list[ir.Value]]]) -> list[list[list[ir.Value]]]:
        """`chains` and the products of pieces that are not in registers: those of shared memory, and then others."""
        parts, words, weights = self.parts, self.words, self.weights
        # Loads of what no step changes would be moved out of the loop over these, into registers that there are not.
        away = words.widen(words.hidden(words.value(0)))
        last = self.s.kept + self.s.near
        chains = self._loop(copy, chains, self.s.kept, last, lambda piece: weights.near(piece, self.s.kept, away))
        chains = self._loop(copy, chains, last, parts.whole, lambda piece: weights.load(piece, away))
        if parts.pieces == parts.whole:
            return chains
        return self._multiply(copy, parts.whole, weights.fragments(weights.load(parts.whole, away)), chains)

    def _loop(
        self,
        copy: Scalar,
        chains: list[list[list[ir.Value]]],
        first: int,
        last: int,
        load: Callable[[Scalar], list[ir.Value]],
    ) -> list[list[list[ir.Value]]]:
        """`chains` and the products of the pieces between two, each of which is read while the one in front of it is
        multiplied where registers hold both (`ahead`)."""
        words, math, size = self.words, self.math, len(chains[0])
        count = 4 * size * len(chains)
        if first >= last:
            return chains

        def nested(flat: Sequence[ir.Value]) -> list[list[list[ir.Value]]]:
            sums = [list(flat[k : k + 4]) for k in range(0, count, 4)]
            return [sums[k : k + size] for k in range(0, len(sums), size)]

        def one(piece: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            assembly(None, [], _ROLLED, "")
            at, following = words.widen(piece), []
            if self.s.ahead:
                after = math.minimum(math.add(at, 1), last - 1)
                following = load(self.frame.constants.index(after))
            left = self.weights.fragments(carried[count:] or load(at))
            found = self._multiply(copy, piece, left, nested(carried[:count]))
            return [v for sums in found for values in sums for v in values] + following

        loaded = load(first) if self.s.ahead else []
        flat = [v for sums in chains for values in sums for v in values]
        return nested(words.loop(first, words.hidden(words.value(last)), 1, [*flat, *loaded], one))

    # -- memory ----------------------------------------------------------------------------------------------------

    def _at(self, row: Scalar, width: int, own: Scalar, unit: int) -> Scalar:
        """An element of a row of `width` elements, behind the one that is the thread's `own`."""
        return self.math.add(self.math.add(self.math.mul(row, width), own), unit)

    def _load(self, buffer: Buffer, at: Scalar) -> ir.Value:
        return memory.load(self.frame, self.idx, buffer.flat, [Idx(at)], None)

    def _store(self, buffer: Buffer, at: Scalar, value: ir.Value) -> None:
        memory.store(self.frame, self.idx, buffer.flat, [Idx(at)], value, None)

    def _initial(self, state: ir.Value | None) -> list[ir.Value]:
        """The first states of the thread."""
        if state is None:
            return [self._number(0.0)] * len(self.numbers)
        return [self._load(self.frame.buffers[state], at) for at in self._ends()]

    def _ends(self) -> list[Scalar]:
        """Where the thread's states are among all directions' and rows'."""
        math, hidden = self.math, self.layer.hidden
        before = math.mul(self.direction, self.batch)
        return [self._at(math.add(before, self.rows[one.column]), hidden, self.unit, one.unit) for one in self.numbers]

    def _write(self, buffer: Buffer, values: Sequence[ir.Value]) -> None:
        for at, value in zip(self._ends(), values, strict=True):
            self._store(buffer, at, value)

    def _write_step(self, time: Scalar, y: Sequence[ir.Value]) -> None:
        math, hidden, width = self.math, self.layer.hidden, self.layer.directions * self.layer.hidden
        own = math.add(math.mul(self.direction, hidden), self.unit)
        begin = math.mul(time, math.mul(self.batch, width))
        for one, value in zip(self.numbers, y, strict=True):
            self._store(self.y, math.add(begin, self._at(self.rows[one.column], width, own, one.unit)), value)

    def _share(self, copy: Scalar, h: Sequence[ir.Value]) -> None:
        """Writes a copy of the states for all threads."""
        for one, value in zip(self.numbers, h, strict=True):
            self.states.store(self.states.copy(copy), one.unit, one.column, value)

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
        units = [time * parts.units + half * EIGHT for time in range(parts.times) for half in range(parts.halves)]
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
            row = math.add(begin, self._at(self.rows[one.column], width, own, 0))
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
