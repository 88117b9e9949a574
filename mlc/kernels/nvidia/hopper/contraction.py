"""Contractions on Hopper's tensor cores: tiles copied by tensor maps, multiplied by groups of four warps.

A block is one group of warps that copies and `consumers` groups that multiply. The first asks the copy engine for the
tiles of both operands, stage after stage of a ring in shared memory; the others wait for a stage, multiply it, and give
it back. Blocks are persistent: there are as many as the chip holds at a time, and each goes through its tiles while the
copies run ahead over the end of a tile. Blocks that run together work on `raster` rows of tiles, whose operands the L2
cache keeps. The method is that of CUTLASS's warp-specialised persistent kernels (NVIDIA, "CUTLASS 3.0: GEMM API").

The input of a convolution is copied as windows ("im2col"): a row is a pixel of the result, and the sum goes over the
taps of the window and the channels; padding is not stored.

Takes contractions of bf16, f16, f32 rounded to tf32, or floats of eight bits (those and tf32 along the sum only), that
accumulate in f32 and whose operands are arguments with rows that are multiples of 16 bytes apart; any number of rows
and columns, and any sum: what lies outside of a tensor is copied as zeros, and not stored. The epilogue runs on the
accumulators.

Schedule parameters: `element` of the tensor cores; `tile_rows`, `tile_columns`, `stages`, `consumers`, `raster`;
`lanes`: elements of the result that a thread handles at a time, 8 where the epilogue is that of 16-bit results
(`tensor_cores/packed_epilogue.py`); `blocks` of a multiprocessor, `multiprocessors`;
`pairs` of tiles of a stage, one behind the other along the sum; `split`: the blocks of a cluster, which share a tile's
sum, and its columns when they store it. Clusters are not persistent: each has one tile. `turns`: with 2, each half of
the consumers has tiles of its own, and multiplies while the other half stores (the "ping-pong" kernels of CUTLASS).
`exact`: stages whose sums are added in f32 together, 0 for none: tensor cores keep about 14 bits of sums of floats of
eight bits (DeepSeek-AI, "DeepSeek-V3 Technical Report", section 3.3.2). `held`: columns of the right operand's tile if
they are more than `tile_columns`, as one that lies across the sum has 16, 32 or a multiple of 64 (0: no more).
`resident`: tiles of the right operand where all of it, of as many columns as a tile has, stays in shared memory from
the first tile on (0: stages have them).
`fetched`: whether the matrix that a `packed_epilogue` adds is staged for a whole tile, and on its way while the tile's
products are computed (`tensor_cores/fetched_epilogue.py`).
`twins`: products of one left operand whose results meet in the epilogue (`tensor_cores/twins.py`); `tile_columns` are
those of all of them.
`cluster_rows` and `cluster_columns`: tiles that the blocks of a cluster have below and beside each other. Each copies a
part of what blocks have in common to all of them (multicast), so that the L2 cache is asked for it once. `turned`:
whether the operands change places, so that rows of tiles are columns of the result (`turned_epilogue.py`): what has to
come in steps of 64 is the other side then.
Measured on an H200: bench/results/2026-11-22-h200.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, func, nvvm

from mlc.kernels.common.frame import Frame, KernelSource, if_then
from mlc.kernels.common.index import Scalar
from mlc.kernels.common.items import emit_grid
from mlc.kernels.common.reduce import reduction_extents
from mlc.kernels.common.roles import Roles, roles_of
from mlc.kernels.nvidia import ALIGNMENT, early
from mlc.kernels.nvidia.hopper import wgmma
from mlc.kernels.nvidia.hopper.barriers import Order, Position, Ring, expect_bytes, wait
from mlc.kernels.nvidia.hopper.clusters import Parts
from mlc.kernels.nvidia.hopper.groups import GROUP, by_one_thread, specialise
from mlc.kernels.nvidia.hopper.shares import Shares
from mlc.kernels.nvidia.hopper.turned_epilogue import TurnedEpilogue
from mlc.kernels.nvidia.tensor_cores.bands import place_in_bands
from mlc.kernels.nvidia.tensor_cores.epilogue import WARP_ROWS, Domain, Epilogue, staging_bytes
from mlc.kernels.nvidia.tensor_cores.fetched_epilogue import FetchedEpilogue, fetched_bytes
from mlc.kernels.nvidia.tensor_cores.operands import Copy, Point
from mlc.kernels.nvidia.tensor_cores.packed_epilogue import LANES, PackedEpilogue, packed_bytes
from mlc.kernels.nvidia.tensor_cores.tiles import ELEMENT_BYTES, ROW, ROWS, Tile, element_name
from mlc.kernels.nvidia.tensor_cores.twins import TwinEpilogue, operands_of_twins, products_of
from mlc.kernels.nvidia.tensor_cores.words import LoopBody, Words, declare_shared_memory
from mlc.kernels.nvidia.tensor_maps import attach

# Registers of a thread of the copying group and of the others, by their number: a multiprocessor has 65536.
REGISTERS = {1: (40, 232), 2: (40, 232), 3: (56, 152)}
IN_LINE, MANY = 8, 5  # steps that LLVM puts in the line, and copies of each from which on that takes too many registers


@dataclass(frozen=True)
class HopperSchedule:
    """Parameters of the template; see the module's description."""

    element: str
    tile_rows: int
    tile_columns: int
    stages: int
    consumers: int
    raster: int
    lanes: int
    blocks: int
    multiprocessors: int
    threads: int
    split: int = 1
    pairs: int = 1
    exact: int = 0
    turns: int = 1
    held: int = 0
    resident: int = 0
    cluster_rows: int = 1
    cluster_columns: int = 1
    fetched: int = 0
    turned: int = 0
    twins: int = 1

    @property
    def cluster(self) -> int:
        """Blocks of a cluster that have tiles of their own."""
        return self.cluster_rows * self.cluster_columns

    @property
    def sharing(self) -> int:
        """Groups that share a tile."""
        return self.consumers // self.turns

    @property
    def bytes_each(self) -> int:
        """Bytes of an element of the operands."""
        return ELEMENT_BYTES[self.element]

    @property
    def pair_bytes(self) -> int:
        """Bytes of the tiles of a step that a stage has."""
        return (self.tile_rows + (0 if self.resident else self.held_columns)) * ROW

    @property
    def resident_bytes(self) -> int:
        """Bytes of the right operand where all of it stays."""
        return self.resident * self.held_columns * ROW

    @property
    def held_columns(self) -> int:
        """Columns of a tile of the right operand."""
        return max(self.held, self.tile_columns)

    @property
    def stored_columns(self) -> int:
        """Columns of the result that a block stores of a tile."""
        return self.result_columns // self.split

    @property
    def result_columns(self) -> int:
        """Columns of the result that a tile has."""
        return self.tile_columns // self.twins

    @property
    def stage_bytes(self) -> int:
        """Bytes of a stage."""
        return self.pairs * self.pair_bytes

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block."""
        size_of = packed_bytes if self.lanes == LANES else staging_bytes
        staging = size_of(self.stored_columns, 4 * self.consumers)
        if self.fetched:
            staging = self.turns * fetched_bytes(self.tile_rows, self.stored_columns)
        return self.stages * self.stage_bytes + self.resident_bytes + staging + self.barrier_bytes

    @property
    def barrier_bytes(self) -> int:
        """Bytes of the barriers: of stages, of what is resident, and of turns."""
        return Ring.size(self.stages + (1 if self.resident else 0)) + Order.size(self.turns)


def expand(source: KernelSource, schedule: HopperSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a block.

    Raises ValueError for a kernel whose contraction the template does not take.
    """
    root = _root(source, schedule)
    roles = roles_of(root, source.results)
    if roles is None or (schedule.turned and roles.windows):
        raise ValueError(f"kernel {source.func.name.value}: neither a product of matrices nor a convolution")
    roles = roles.turned if schedule.turned else roles
    frame = Frame(source, alignment=ALIGNMENT, pointers=1 + schedule.twins)
    declare_shared_memory(frame)
    with frame.body():
        _Block(source, root, roles, schedule, frame).emit()
        func.ReturnOp([])

    def items(grid: Frame, shape: list[Scalar]) -> list[Scalar]:
        clusters = grid.math.product(_clusters(grid, shape, roles, schedule))
        if schedule.split > 1:
            return [clusters, schedule.split]
        most = schedule.multiprocessors * schedule.blocks // schedule.cluster
        return [grid.math.minimum(clusters, most), schedule.cluster]

    return [frame, emit_grid(source, items)]


def _root(source: KernelSource, schedule: HopperSchedule) -> ir.Operation:
    found = products_of(source)
    if len(found) != schedule.twins:
        raise ValueError(f"kernel {source.func.name.value}: {len(found)} contractions instead of {schedule.twins}")
    return found[0]


def _clusters(frame: Frame, shape: list[Scalar], roles: Roles, s: HopperSchedule) -> list[Scalar]:
    """Clusters' tiles of the rows, of the columns, and products of matrices."""
    math = frame.math
    rows, columns, outer = _extents(frame, shape, roles)
    return [
        math.ceildiv(rows, s.cluster_rows * s.tile_rows), math.ceildiv(columns, s.cluster_columns * s.result_columns),
        outer,
    ]  # fmt: skip


def _extents(frame: Frame, shape: list[Scalar], roles: Roles) -> list[Scalar]:
    """Rows, columns, and products of matrices."""
    dims = (roles.rows, roles.columns, roles.outer)
    return [frame.math.product([shape[p] for p in roles.positions(d)]) for d in dims]


@dataclass(frozen=True)
class _Place:
    """Where a tile lies: its first row and column, and the outer coordinates."""

    row: Scalar
    column: Scalar
    outer: tuple[Scalar, ...]


class _Block:
    """What one block does."""

    def __init__(
        self, source: KernelSource, root: ir.Operation, roles: Roles, schedule: HopperSchedule, frame: Frame
    ) -> None:
        self.source, self.root, self.roles, self.s, self.frame = source, root, roles, schedule, frame
        self.words = Words(frame)
        self.shape = frame.buffers[source.destinations[0]].shape
        self.operands = operands_of_twins(source, roles, schedule.twins)
        self.tiles = [
            Tile(element_name(operand.value), schedule.bytes_each, rows, operand.across)
            for operand, rows in zip(self.operands[:2], (schedule.tile_rows, schedule.held_columns), strict=True)
        ]
        self.shares = Shares(self.words, schedule.cluster_rows, schedule.cluster_columns, schedule.twins)
        self.parts = [self.shares.part(which, tile) for which, tile in enumerate(self.tiles)]
        self._note_maps()
        self.order = Order(self.words, schedule.shared_bytes - Order.size(schedule.turns), schedule.turns)
        barriers = schedule.shared_bytes - schedule.barrier_bytes
        readers = schedule.sharing * self.shares.fillers
        fillers = (self.shares.fillers, self.shares.filler) if schedule.cluster > 1 else None
        self.ring = Ring(self.words, barriers, schedule.stages, readers, fillers)
        self.arrival = Ring(self.words, barriers + Ring.size(schedule.stages), 1, 1)  # of what is resident
        self.counts = [self.words.narrow(n) for n in _clusters(frame, self.shape, roles, schedule)]
        self.extents = [self.words.narrow(n) for n in _extents(frame, self.shape, roles)[:2]]
        extents = reduction_extents(frame, root)
        depth, taps = (frame.math.product([extents[d] for d in dims]) for dims in (roles.reduced, roles.taps))
        self.taps = taps if isinstance(taps, int) else 1  # where it matters: of what is resident
        self.depth = schedule.pairs * self.tiles[0].depth  # terms of a stage
        self.steps_each = self.words.narrow(frame.math.ceildiv(depth, self.depth))  # of a tap
        self.steps = self.words.math.mul(self.steps_each, self.words.narrow(taps))
        self.range: tuple[Scalar, Scalar] = (0, self.steps)
        self.rank: Scalar = 0
        if schedule.split > 1:
            self.rank = nvvm.read_ptx_sreg_cluster_ctarank(self.words.i32)
            self.range = self._part()

    def _note_maps(self) -> None:
        maps = []
        for which, operand in enumerate(self.operands):
            tile = self.parts[min(which, 1)]
            number = self.source.tensors.index(operand.value)
            maps.append(operand.map(number, tile, "u8" if self.s.element == "f8" else self.s.element))
        attach(self.source.module, maps, self.s.shared_bytes)

    def emit(self) -> None:
        specialise(self.words, self._set_up, self._copy, self._consume, in_cluster=self.s.cluster > 1)

    def _set_up(self) -> None:
        self.ring.set_up()
        self.order.set_up()
        if self.s.resident:
            self.arrival.set_up()

    def _registers(self, which: int) -> None:
        """Gives the copying group's registers to the others."""
        if self.s.consumers == 1 or self.s.blocks > 1:
            return
        count = REGISTERS[self.s.consumers][which]
        action = nvvm.SetMaxRegisterAction.increase if which else nvvm.SetMaxRegisterAction.decrease
        nvvm.SetMaxRegisterOp(count, action)

    def _each_tile(
        self,
        carried: list[ir.Value],
        body: Callable[[_Place, list[ir.Value]], list[ir.Value]],
        turn: Scalar = 0,
        turns: int = 1,
        ahead: Callable[[_Place], None] | None = None,
    ) -> None:
        """`body` for every tile of this block, or for those of a `turn` of `turns`; `ahead` for
        each where the tile in front of it ends, and for the first at the beginning."""
        words, math = self.words, self.words.math
        first = self._first()
        stride = math.div(nvvm.read_ptx_sreg_nctaid_x(words.i32), self.s.split * self.s.cluster)
        first, stride = math.add(first, math.mul(turn, stride)), math.mul(stride, turns)
        total = math.product(self.counts)

        def prepare(number: Scalar, fetch: Callable[[_Place], None]) -> None:
            if_then(words.is_below(number, total), lambda: fetch(self._place(words.value(number))))

        def tile(number: ir.Value, now: list[ir.Value]) -> list[ir.Value]:
            after = body(self._place(number), now)
            if ahead is not None:
                prepare(math.add(number, stride), ahead)
            return after

        if ahead is not None:
            prepare(first, ahead)
        words.loop(first, total, stride, carried, tile)

    def _first(self) -> Scalar:
        """The number of the first tile of this block, or of its cluster."""
        return self.words.math.div(self.words.narrow(self.frame.begin), self.s.split * self.s.cluster)

    def _place(self, number: ir.Value) -> _Place:
        """Tile `number`: bands of `raster` rows of tiles, in which rows run fastest."""
        words, math, s = self.words, self.words.math, self.s
        rows, columns, _ = self.counts
        matrix = math.mul(rows, columns)
        product, inside = math.div(number, matrix), math.rem(number, matrix)
        if isinstance(matrix, int) and self.counts[2] == 1:
            product, inside = 0, number
        row, column = place_in_bands(math, rows, columns, s.raster, inside)
        outer = self.roles.positions(self.roles.outer)
        coordinates = math.delinearize(product, [words.narrow(self.shape[p]) for p in outer])
        row = math.add(math.mul(row, s.cluster_rows), self.shares.row)
        column = math.add(math.mul(column, s.cluster_columns), self.shares.column)
        return _Place(math.mul(row, s.tile_rows), math.mul(column, s.result_columns), tuple(coordinates))

    # -- copies --------------------------------------------------------------------------------------------------------

    def _copy(self, warp: ir.Value) -> None:
        self._registers(0)
        end = self._end_of_copies()

        def tile(place: _Place, carried: list[ir.Value]) -> list[ir.Value]:
            low, words = carried[0], self.words
            copied = words.loop(low, end, 1, carried[1:], lambda v, c: self._copy_stage(place, v, c))
            return [words.value(self.range[0]), *copied]

        def copy() -> None:
            low, at = self._begin()
            self._each_tile([self.words.value(low), *at], tile)

        if_then(self.words.is_equal(warp, 0), lambda: by_one_thread(copy))

    def _end_of_copies(self) -> Scalar:
        """Where the loop over a tile's steps ends: hidden from LLVM where it would put many copies in the line."""
        end, parts = self.range[1], zip(self.parts, (1, self.s.twins), strict=True)
        copies = self.s.pairs * sum(n * (p.size // p.block if p.across else 1) for p, n in parts)
        is_hidden = isinstance(end, int) and end <= IN_LINE and copies >= MANY
        return self.words.hidden(self.words.value(end)) if is_hidden else end

    def _begin(self) -> tuple[Scalar, list[ir.Value]]:
        """Waits for the launches in front; what no launch writes is on its way before that. The step of the first tile
        from which on stages are as any others, and where the first of these is."""
        math, s = self.words.math, self.s
        left, *right = (self.source.is_constant(o.value) for o in self.operands)
        constant, copied = (left, all(right)), range(1 if s.resident else 2)
        # What blocks copy for each other was not measured.
        soon = [which for which in copied if constant[which] and s.cluster == 1]
        for pointer in self.frame.pointers:
            early.fetch_map(pointer)
        if s.resident and constant[1]:
            self._copy_resident()
        count = math.minimum(math.sub(self.range[1], self.range[0]), s.stages) if soon else 0
        self._copy_first(soon, count, announced=False)
        early.wait_for_launches(self.source)
        if s.resident and not constant[1]:
            self._copy_resident()
        self._copy_first([which for which in copied if which not in soon], count, announced=True)
        return math.add(self.range[0], count), self.ring.skip(Position(*self.ring.start()), count)

    def _copy_first(self, operands: Sequence[int], count: Scalar, *, announced: bool) -> None:
        """The tiles of some operands for the first `count` steps of the first tile, each of which has its stage."""
        if isinstance(count, int) and count == 0:
            return
        place = self._place(self.words.value(self._first()))

        def step(number: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            if not announced:
                self._expect(number)
            for which in operands:
                self._copy_operand(which, place, self.words.math.add(self.range[0], number), number)
            return []

        self.words.loop(0, count, 1, [], step)

    def _copy_resident(self) -> None:
        """All tiles of the right operand, one for each step of the sum."""
        operand, tile, s = self.operands[1], self.tiles[1], self.s
        barrier = self.arrival.full(0)
        each = operand.bytes(self.words, tile, self.extents[1])
        expect_bytes(self.words, barrier, self.words.math.mul(each, s.resident))
        for number in range(s.resident):
            tap, inside = divmod(number, s.resident // self.taps)
            copy = Copy(tile, self.frame.pointers[1], self._resident_place(number), barrier)
            operand.load(self.words, copy, Point(0, inside * self.depth, tap, {}))

    def _resident_place(self, number: int) -> int:
        """Byte of a tile that stays."""
        return self.s.stages * self.s.stage_bytes + number * self.tiles[1].size

    def _part(self) -> tuple[Scalar, Scalar]:
        """The steps of the sum that this block takes."""
        math = self.words.math
        each = math.ceildiv(self.steps, self.s.split)
        first = math.mul(self.rank, each)
        return first, math.minimum(math.add(first, each), self.steps)

    def _copy_stage(self, place: _Place, number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        at = Position(*carried)
        self.ring.wait_empty(at)
        self._expect(at.stage)
        for which in range(1 if self.s.resident else 2):
            self._copy_operand(which, place, number, at.stage)
        return self.ring.advance(at)

    def _expect(self, stage: ir.Value) -> None:
        """Announces what comes to a stage."""
        words, s = self.words, self.s
        total: Scalar = 0
        for which in range(1 if s.resident else 2):
            each = self.operands[which].bytes(words, self.parts[which], self.extents[which])
            total = words.math.add(total, words.math.mul(each, self.shares.counts[which] * (s.twins if which else 1)))
        expect_bytes(words, self.ring.full(stage), words.math.mul(total, s.pairs))

    def _copy_operand(self, which: int, place: _Place, number: Scalar, stage: ir.Value) -> None:
        """This block's part of the tiles of an operand for step `number` of the sum."""
        math, part, barrier = self.words.math, self.parts[which], self.ring.full(stage)
        tap, inside = (0, number) if not self.roles.taps else self._tap(number)
        outer = dict(zip(self.roles.outer, place.outer, strict=True))
        for pair in range(self.s.pairs):
            step = math.add(math.mul(inside, self.depth), pair * self.tiles[0].depth)
            offset = math.add(math.mul(stage, self.s.stage_bytes), pair * self.s.pair_bytes)
            rows, steps, begin = self.shares.offsets(which, part)
            place_of = math.add(math.add(offset, self.tiles[0].size if which else 0), begin)
            row = math.add(place.column if which else place.row, rows)
            at_part = Point(row, math.add(step, steps), tap, outer, place.column)
            for twin in range(self.s.twins if which else 1):
                here = math.add(place_of, twin * part.size)
                copy = Copy(part, self.frame.pointers[which + twin], here, barrier, self.shares.blocks(which))
                self.operands[which + twin].load(self.words, copy, at_part)

    def _tap(self, number: Scalar) -> tuple[Scalar, Scalar]:
        """The tap of step `number` of the sum, and the step within it."""
        math = self.words.math
        return math.div(number, self.steps_each), math.rem(number, self.steps_each)

    # -- products ------------------------------------------------------------------------------------------------------

    def _consume(self, consumer: Scalar, thread: ir.Value) -> None:
        self._registers(1)
        early.wait_for_launches(self.source)
        words, math, s = self.words, self.words.math, self.s
        blocks = s.tile_rows // ROWS // s.sharing
        member = math.rem(thread, GROUP)
        part, turn = (consumer, 0) if s.turns == 1 else (math.rem(consumer, s.sharing), math.div(consumer, s.sharing))
        first = math.mul(part, blocks * self.tiles[0].block)
        left = [wgmma.describe(words, self.tiles[0], math.add(first, b * self.tiles[0].block)) for b in range(blocks)]
        right = wgmma.describe(words, self.tiles[1], self._resident_place(0) if s.resident else self.tiles[0].size)
        if s.resident:
            wait(words, self.arrival.full(0), words.value(0))
        zeros = [self.frame.constants.get(words.f32, 0.0)] * (blocks * s.tile_columns // 2)

        def tile(place: _Place, carried: list[ir.Value]) -> list[ir.Value]:
            def step(number: ir.Value, inner: list[ir.Value]) -> list[ir.Value]:
                return self._multiply(number, inner, (left, right), words.value(member))

            self.order.wait(turn, carried[2:])
            found = self._all_steps([*carried[:2], carried[0], *zeros], step, turn, words.value(member))

            def store(totals: list[ir.Value]) -> None:
                self._store(place, (part, consumer), words.value(member), totals, blocks)

            if s.split == 1:
                store(found[3:])
            else:
                parts = Parts(words, self.rank, s.split, math.sub(thread, GROUP), GROUP * s.consumers)
                parts.add(found[3:], blocks * s.twins, store)
            others = math.mul(self.steps, s.turns - 1)
            return [*self.ring.skip(Position(*found[:2]), others), *self.order.advance(carried[2:])]

        def fetch(place: _Place) -> None:
            number, warp, lane = self._warp(consumer, member)
            origins = [self._origin(place, part, warp, blocks, block) for block in range(blocks)]
            FetchedEpilogue(*self._end(), blocks).fetch(words.value(number), words.value(lane), origins, place.outer)

        at = self.ring.skip(Position(*self.ring.start()), math.mul(self.steps, turn))
        self._each_tile([*at, *self.order.start()], tile, turn, s.turns, fetch if s.fetched else None)

    def _all_steps(self, inits: list[ir.Value], step: LoopBody, turn: Scalar, member: ir.Value) -> list[ir.Value]:
        """What `step` carries through this block's part of the sum, when all its products are done."""
        words = self.words

        def some() -> list[ir.Value]:
            found = words.loop(*self.range, max(1, self.s.exact), inits, step)
            self.order.give(turn, member)
            if not self.s.exact:
                found = [*found[:3], *wgmma.finish(words, found[3:])]
                self.ring.release(found[2], member)
            return found

        def none() -> list[ir.Value]:
            self.order.give(turn, member)
            return inits

        if all(isinstance(end, int) for end in self.range):
            return some()
        # Zeros that meet sums under way have ptxas serialise all products (C7515); the comparison is the loop's own.
        has_steps = arith.cmpi(arith.CmpIPredicate.slt, *map(words.value, self.range))
        return words.either(has_steps, some, none, [v.type for v in inits])

    def _multiply(
        self, number: ir.Value, carried: list[ir.Value], descriptors: tuple[list[ir.Value], ir.Value], member: ir.Value
    ) -> list[ir.Value]:
        """One stage, and the release of the one before: its products are done when at most one group is under way."""
        words, (left, right) = self.words, descriptors
        at, before, sums = Position(*carried[:2]), carried[2], carried[3:]
        self.ring.wait_full(at)
        offset = words.math.mul(at.stage, self.s.stage_bytes >> 4)
        wide = arith.extui(words.i64, words.value(offset))
        of_right = wide
        if self.s.resident:
            of_right = arith.extui(words.i64, words.value(words.math.mul(number, self.tiles[1].size >> 4)))
        shifted = [arith.addi(d, wide) for d in left], arith.addi(right, of_right)
        distances = [pair * self.s.pair_bytes for pair in range(self.s.pairs)]
        if self.s.exact:
            return self._add_exactly(at, shifted, sums, member, distances)
        sums = wgmma.multiply_add(words, sums, self.tiles[0], self.tiles[1], shifted, 1, distances)
        is_later = words.is_below(self.range[0], number)
        if_then(is_later, lambda: self.ring.release(before, member))
        return [*self.ring.advance(at), at.stage, *sums]

    def _add_exactly(
        self,
        at: Position,
        descriptors: tuple[list[ir.Value], ir.Value],
        sums: list[ir.Value],
        member: ir.Value,
        distances: list[int],
    ) -> list[ir.Value]:
        """Stages whose sums, which the tensor cores round to fewer bits than f32 has, are added in f32 together; the
        first is there."""
        words, positions, (lefts, right), further = self.words, [at], descriptors, []
        while len(positions) < self.s.exact:
            positions.append(Position(*self.ring.advance(positions[-1])))
            self.ring.wait_full(positions[-1])
            stages = words.math.sub(positions[-1].stage, at.stage)
            distance = words.value(words.math.mul(stages, self.s.stage_bytes >> 4))
            further.append(arith.extsi(words.i64, distance))
        each, totals = self.s.tile_columns // 2, []
        for block, left in enumerate(lefts):
            stages_of = [(left, right), *((arith.addi(left, d), arith.addi(right, d)) for d in further)]
            found = wgmma.sums_of(words, self.tiles[0], self.tiles[1], stages_of, distances)
            if block + 1 == len(lefts):
                for position in positions:
                    self.ring.release(position.stage, member)
            before = sums[block * each : (block + 1) * each]
            totals += [arith.addf(a, b) for a, b in zip(before, found, strict=True)]
        return [*self.ring.advance(positions[-1]), positions[-1].stage, *totals]

    def _store(
        self, place: _Place, group: tuple[Scalar, Scalar], member: ir.Value, sums: list[ir.Value], blocks: int
    ) -> None:
        """Stores what a group has of the tile at `place`; `group` is its part of the tile, and its number."""
        words, s = self.words, self.s
        plain = PackedEpilogue if s.lanes == LANES else Epilogue
        kind = TurnedEpilogue if s.turned else TwinEpilogue if s.twins > 1 else plain
        epilogue = FetchedEpilogue(*self._end(), blocks) if s.fetched else kind(*self._end())
        number, warp, lane = self._warp(group[1], member)
        each = s.stored_columns * s.twins // 2
        for block in range(blocks):
            origin = self._origin(place, group[0], warp, blocks, block)
            values = sums[block * each : (block + 1) * each]
            epilogue.store(values, words.value(number), words.value(lane), origin, place.outer, block)

    def _end(self) -> tuple[Words, KernelSource, ir.Operation, Domain, int, tuple[int, int], int]:
        """What an epilogue is made of."""
        s = self.s
        roles, tile = self.roles, (s.tile_rows, s.stored_columns)
        if s.turned:
            roles, tile = roles.turned, tile[::-1]
        rows, columns = (roles.positions(d) for d in (roles.rows, roles.columns))
        groups = [(p[0], p[-1]) if p else (-1, -2) for p in (rows, columns)]
        domain = Domain(tuple(self.shape), groups[0], groups[1], s.lanes)
        offset = s.stages * s.stage_bytes + s.resident_bytes
        return self.words, self.source, self.root, domain, offset, tile, s.split

    def _warp(self, group: Scalar, member: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """The number of a thread's warp among all that multiply and among its group's, and of the thread in it."""
        math = self.words.math
        warp, lane = math.div(member, 32), math.rem(member, 32)
        return math.add(math.mul(group, 4), warp), warp, lane

    def _origin(self, place: _Place, part: Scalar, warp: Scalar, blocks: int, block: int) -> tuple[Scalar, Scalar]:
        """The row and column where a warp's 16 rows of a block of a tile begin, of which the group has a part, and this
        block of its cluster a share of the columns."""
        math = self.words.math
        first = math.mul(math.add(math.mul(part, blocks), block), ROWS)
        column = math.add(place.column, math.mul(self.rank, self.s.stored_columns))
        return math.add(math.add(place.row, first), math.mul(warp, WARP_ROWS)), column
