"""Attention on Hopper's tensor cores: `softmax(f(q k)) v` in one kernel whose scores never leave the registers.

A block is one group of four warps that copies and `consumers` groups with 64 queries each. The first brings queries,
and keys and values a block at a time, into rings in shared memory. The others multiply queries and keys, make powers of
the scores relative to the largest one so far, and multiply these, rounded to the type of the values, with the values;
when the largest score of a row grows, its sums are scaled down ("FlashAttention", Dao et al., 2022). The scores of the
next block are multiplied while the powers of this one wait for their product, and two groups of warps take turns, so
that one multiplies while the other computes powers ("FlashAttention-3", Shah et al., 2024).

Blocks are persistent, one or more to a multiprocessor. Blocks of keys run from the last to the first, so that what must
be hidden comes first. With a causal mask, or a window, blocks of keys that no row sees are not read.

With `split`, for few queries with many keys, the blocks of a cluster share a tile of queries, each with a part of the
keys; each adds up a share of the columns, and the first stores them ("Flash-Decoding", Dao et al., 2023;
`attention_parts.py`). With `groups` so many clusters do, and the last of them puts together what all have written to
memory (`attention_groups.py`).

Takes queries, keys and values of bf16 or f16 whose rows are contiguous, of 8 to 256 columns (multiples of 8), any
number of queries and keys, heads that share keys, and anything elementwise between scores and softmax. What is not as
in three kernels: scores are not rounded, and infinities and NaN in keys and values that a causal mask hides do not
show.

Schedule parameters: `element` of the tensor cores; `keys` of a block, `stages` of the rings, `consumers`; `queries`:
tiles of queries that are there at a time; `result`: the type of a result that is only rounded and that the copy engine
stores, or nothing, and then `lanes`: elements that a thread stores at a time; `order` of the tiles: by `heads`; in
`pairs` of the first and the last of a head, which are equal work under a causal mask and keep keys and values in the L2
cache; or the `longest` first; `blocks` of a multiprocessor, `multiprocessors`. Measured on an H200:
bench/results/2026-11-21-h200.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from mlir import ir
from mlir.dialects import arith, func, nvvm

from mlc.kernels.common.attention import Attention, find_attention
from mlc.kernels.common.attention_chain import chain_of
from mlc.kernels.common.attention_limits import Blocks
from mlc.kernels.common.attention_points import points_below
from mlc.kernels.common.frame import Frame, KernelSource, if_then
from mlc.kernels.common.index import Idx, IndexMath, Scalar
from mlc.kernels.common.items import emit_grid
from mlc.kernels.common.reduce import reduction_extents
from mlc.kernels.nvidia import ALIGNMENT, early
from mlc.kernels.nvidia.hopper import wgmma
from mlc.kernels.nvidia.hopper.attention_groups import GroupLayout, Groups
from mlc.kernels.nvidia.hopper.attention_layout import HopperAttentionSchedule, group_layout, layout
from mlc.kernels.nvidia.hopper.attention_parts import Part, Parts
from mlc.kernels.nvidia.hopper.attention_result import CopiedResult, result_matrix
from mlc.kernels.nvidia.hopper.barriers import Position, Ring, expect_bytes
from mlc.kernels.nvidia.hopper.groups import GROUP, by_one_thread, specialise
from mlc.kernels.nvidia.tensor_cores.attention_logits import Logits
from mlc.kernels.nvidia.tensor_cores.attention_operands import INSTRUCTION, Matrix, head_dims, matrices
from mlc.kernels.nvidia.tensor_cores.attention_softmax import HALVES, Softmax, fused, rounded, scaled
from mlc.kernels.nvidia.tensor_cores.epilogue import WARP_ROWS, Domain, Epilogue
from mlc.kernels.nvidia.tensor_cores.tiles import ROW, ROWS
from mlc.kernels.nvidia.tensor_cores.words import Words, assembly, declare_shared_memory
from mlc.kernels.nvidia.tensor_maps import attach

# Registers of a thread of the copying group and of the others, by consumers and blocks of a multiprocessor.
REGISTERS = {(1, 1): (40, 232), (1, 2): (24, 232), (1, 3): (32, 128), (2, 1): (40, 232), (3, 1): (32, 160)}
_TURN = 8  # number of the first barrier by which groups take turns


def expand(source: KernelSource, schedule: HopperAttentionSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a block.

    Raises ValueError for a kernel that is no attention, or none that the copy engine can feed.
    """
    attention = find_attention(source)
    found = None if attention is None else matrices(source, attention, schedule.keys)
    if attention is None or found is None:
        raise ValueError(f"kernel {source.func.name.value}: no attention for tensor cores")
    pointers = 3 + bool(schedule.result) + (schedule.groups > 1)
    frame = Frame(source, alignment=ALIGNMENT, pointers=pointers)
    declare_shared_memory(frame)
    with frame.body():
        _Block(source, attention, found, schedule, frame).emit()
        func.ReturnOp([])

    def items(grid: Frame, shape: list[Scalar]) -> list[Scalar]:
        tiles = grid.math.product(_tiles(grid, shape, attention, schedule))
        if schedule.shares > 1:
            return [tiles, schedule.shares]
        return [grid.math.minimum(tiles, schedule.multiprocessors * schedule.blocks)]

    return [frame, emit_grid(source, items)]


def _tiles(frame: Frame, shape: Sequence[Scalar], attention: Attention, s: HopperAttentionSchedule) -> list[Scalar]:
    """Matrices of the result, and tiles of the rows of each."""
    order, math = attention.output.order, frame.math
    matrices_ = math.product([shape[order.index(d)] for d in attention.output.batch])
    return [matrices_, math.ceildiv(shape[order.index(attention.output.row)], s.tile_rows)]


@dataclass(frozen=True)
class _Place:
    """Where a tile lies: its first row, coordinates of the result's other dimensions, those of the products by
    iteration dimension, and of the logits' matrix; and its blocks of keys from `first` on, of which those up to `open`
    lose no key behind a row and those from `front` on none in front of it, and the last of the keys."""

    row: Scalar
    outer: tuple[Scalar, ...]
    scores: dict[int, Scalar]
    output: dict[int, Scalar]
    logits: tuple[Idx, ...]
    first: Scalar
    blocks: Scalar
    open: Scalar
    front: Scalar
    last: Scalar

    def block(self, math: IndexMath, number: Scalar) -> Scalar:
        """Block of keys number `number` from the last one."""
        return math.add(self.first, math.sub(math.sub(self.blocks, 1), number))


class _Block:
    """What one block does."""

    def __init__(
        self,
        source: KernelSource,
        attention: Attention,
        operands: tuple[Matrix, Matrix, Matrix],
        schedule: HopperAttentionSchedule,
        frame: Frame,
    ) -> None:
        self.source, self.a, self.s, self.frame = source, attention, schedule, frame
        self.queries, self.keys, self.values = operands
        self.words = words = Words(frame)
        self.shape = frame.buffers[source.destinations[0]].shape
        self.layout = layout(schedule, *head_dims(attention))
        self._note_maps()
        at, size = self.layout.barriers, Ring.size(schedule.stages)
        # Every warp releases a stage for itself: between products warps of a group run apart.
        warps = 4 * schedule.consumers
        self.key_ring = Ring(words, at, schedule.stages, warps)
        self.value_ring = Ring(words, at + size, schedule.stages, warps)
        self.query_ring = Ring(words, at + 2 * size, schedule.queries, warps)
        order = attention.output.order
        self.rows = words.narrow(self.shape[order.index(attention.output.row)])
        self.count = words.narrow(reduction_extents(frame, attention.output.op)[attention.output.inner])
        self.chain = chain_of(attention)
        self.softmax = Softmax(words, self.chain.scale if self.chain.is_plain else None)
        self.logits = Logits(words, attention, self.chain, (self.rows, self.count))
        known = self.count if isinstance(self.count, int) and not self.chain.is_bounded else 0
        has_part = known >= schedule.keys * schedule.shares or schedule.shares == 1  # has every block keys?
        self.has_end = not (isinstance(self.count, int) and self.count % schedule.keys == 0 and has_part)
        self.rank: Scalar = nvvm.read_ptx_sreg_cluster_ctarank(words.i32) if schedule.split > 1 else 0
        self.tile: Scalar = 0
        self.group: Scalar = 0
        if schedule.shares > 1:
            cluster = words.math.div(words.narrow(frame.begin), schedule.split)
            self.tile, self.group = words.math.div(cluster, schedule.groups), words.math.rem(cluster, schedule.groups)

    def _note_maps(self) -> None:
        self.result = result_matrix(self.source, self.a, self.values.columns)
        parts = [(p, self.s.element) for p in (self.queries, self.keys, self.values)]
        parts += [(self.result, self.s.result)] if self.s.result else []
        maps = [p.map(self.source.tensors.index(p.operand.value), element) for p, element in parts]
        self.maps = self.frame.pointers[-len(maps) :]
        self.in_groups: GroupLayout | None = None
        workspace = 0
        if self.s.groups > 1:
            self.in_groups, workspace = group_layout(self.source, self.a, self.s)
        attach(self.source.module, maps, self.layout.total, workspace)

    def emit(self) -> None:
        specialise(self.words, self._set_up, self._copy, self._consume)

    def _set_up(self) -> None:
        for ring in (self.key_ring, self.value_ring, self.query_ring):
            ring.set_up()

    def _registers(self, which: int) -> None:
        """Gives the copying group's registers to the others."""
        count = REGISTERS[self.s.consumers, self.s.blocks][which]
        action = nvvm.SetMaxRegisterAction.increase if which else nvvm.SetMaxRegisterAction.decrease
        nvvm.SetMaxRegisterOp(count, action)

    # -- tiles ---------------------------------------------------------------------------------------------------------

    def each_tile(self, carried: list[ir.Value], body: Callable[[_Place, list[ir.Value]], list[ir.Value]]) -> None:
        """`body` for every tile of this block."""
        words, math = self.words, self.words.math
        heads, tiles = (words.narrow(n) for n in _tiles(self.frame, self.shape, self.a, self.s))
        block, blocks = words.narrow(self.frame.begin), nvvm.read_ptx_sreg_nctaid_x(words.i32)
        if self.s.shares > 1:
            body(self._place(math.rem(self.tile, tiles), math.div(self.tile, tiles)), carried)
            return
        if self.s.order == "longest":
            self._longest_first((heads, tiles), (block, blocks), carried, body)
            return
        is_paired = self.s.order == "pairs"
        each = math.ceildiv(tiles, 2) if is_paired else tiles

        def unit(number: ir.Value, inner: list[ir.Value]) -> list[ir.Value]:
            first, matrix = math.rem(number, each), math.div(number, each)
            if not is_paired:
                return body(self._place(first, matrix), inner)
            other = math.sub(math.sub(tiles, 1), first)
            count = arith.select(words.is_equal(first, other), words.value(1), words.value(2))

            def one(which: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
                tile = arith.select(words.is_equal(which, 0), words.value(other), words.value(first))
                return body(self._place(tile, matrix), state)

            return words.loop(0, count, 1, inner, one)

        words.loop(block, math.mul(heads, each), blocks, carried, unit)

    def _longest_first(
        self,
        counts: tuple[Scalar, Scalar],
        where: tuple[Scalar, ir.Value],
        carried: list[ir.Value],
        body: Callable[[_Place, list[ir.Value]], list[ir.Value]],
    ) -> None:
        """Tiles by the number of their blocks of keys; every other round of blocks goes backwards."""
        words, math = self.words, self.words.math
        (heads, tiles), (block, blocks) = counts, where
        total = math.mul(heads, tiles)
        turned = math.sub(math.sub(blocks, 1), block)

        def of_round(number: Scalar) -> ir.Value:
            is_odd = words.is_equal(math.rem(number, 2), 1)
            return arith.select(is_odd, words.value(turned), words.value(block))

        rounds = math.div(total, blocks)
        has_more = words.is_below(of_round(rounds), math.rem(total, blocks))
        last = arith.select(has_more, words.value(1), words.value(0))

        def snake(number: ir.Value, inner: list[ir.Value]) -> list[ir.Value]:
            tile = math.add(math.mul(number, blocks), of_round(number))
            return body(self._place(math.sub(math.sub(tiles, 1), math.div(tile, heads)), math.rem(tile, heads)), inner)

        words.loop(0, math.add(rounds, last), 1, carried, snake)

    def _place(self, tile: Scalar, matrix: Scalar) -> _Place:
        """Tile number `tile` of the rows of a matrix of the result."""
        math, words, out = self.words.math, self.words, self.a.output
        row = math.mul(tile, self.s.tile_rows)
        batch = math.delinearize(matrix, [words.narrow(self.shape[out.order.index(d)]) for d in out.batch])
        output = dict(zip(out.batch, batch, strict=True))
        logits, scores = self._below({d: Idx(words.widen(at), level=1) for d, at in output.items()})
        narrow = {d: words.narrow(at.base) for d, at in scores.items()}
        outer = tuple(output[d] for d in out.order if d in output)
        parts = self._part(self.logits.limits.blocks(logits, row, self.s.tile_rows, self.s.keys))
        return _Place(row, outer, narrow, output, tuple(logits), *parts)

    def _part(self, seen: Blocks) -> tuple[Scalar, Scalar, Scalar, Scalar, Scalar]:
        """This block's share of a tile's blocks of keys: the first, their number, how many of them no mask touches
        behind, how many one touches in front, and the last key. A block without a share takes one of which it sees no
        key."""
        math = self.words.math
        last = math.sub(self.count, 1)
        if self.s.shares == 1 and not self.chain.firsts:
            return 0, seen.end, seen.open, 0, last
        first, mine = seen.begin, math.sub(seen.end, seen.begin)
        if self.s.shares > 1:
            share = math.add(math.mul(self.group, self.s.split), self.rank)
            low, high = (math.div(math.mul(math.add(share, i), mine), self.s.shares) for i in range(2))
            first, mine = math.minimum(low, math.sub(mine, 1)), math.maximum(math.sub(high, low), 1)
            first = math.add(first, seen.begin)
            if self.has_end:
                is_empty = self.words.is_equal(low, high)
                last = arith.select(is_empty, self.words.value(-1), self.words.value(last))
        inside = [math.minimum(math.maximum(math.sub(at, first), 0), mine) for at in (seen.open, seen.front)]
        return first, mine, inside[0], inside[1], last

    def _below(self, batch: dict[int, Idx]) -> tuple[list[Idx], dict[int, Idx]]:
        """Coordinates of the logits' and of the scores' matrix that belong to one of the result, through views."""
        dims = [batch.get(d, Idx(0)) for d in range(len(self.a.output.op.attributes["iterator_types"]))]
        return points_below(self.a, self.frame, 1, dims)

    # -- copies --------------------------------------------------------------------------------------------------------

    def _copy(self, warp: ir.Value) -> None:
        self._registers(0)
        start = [*self.key_ring.start(), *self.value_ring.start(), *self.query_ring.start()]

        def copy() -> None:
            for pointer in self.maps[:3]:
                early.fetch_map(pointer)
            early.wait_for_launches(self.source)
            self.each_tile(start, self._copy_tile)

        if_then(self.words.is_equal(warp, 0), lambda: by_one_thread(copy))

    def _copy_tile(self, place: _Place, carried: list[ir.Value]) -> list[ir.Value]:
        """The last keys, the queries, and then keys always before the values of the block behind them."""
        words, math = self.words, self.words.math
        keys, values, queries = carried[:2], carried[2:4], carried[4:]
        last = math.mul(place.block(math, 0), self.s.keys)
        keys = self._copy_keys(place, keys, last)
        at = Position(*queries)
        self.query_ring.wait_empty(at)
        barrier = self.query_ring.full(at.stage)
        expect_bytes(words, barrier, self.s.consumers * self.queries.bytes)
        tile = math.mul(at.stage, self.s.consumers * self.queries.size)
        for consumer in range(self.s.consumers):
            row = math.add(place.row, consumer * ROWS)
            offset = math.add(tile, consumer * self.queries.size)
            self.queries.load(words, self.maps[0], barrier, offset, row, place.scores)

        def step(number: ir.Value, inner: list[ir.Value]) -> list[ir.Value]:
            row = math.mul(place.block(math, number), self.s.keys)
            found = self._copy_keys(place, inner[:2], row)
            return [*found, *self._copy_values(place, inner[2:], math.add(row, self.s.keys))]

        keys_values = words.loop(1, place.blocks, 1, [*keys, *values], step)
        values = self._copy_values(place, keys_values[2:], math.mul(place.first, self.s.keys))
        return [*keys_values[:2], *values, *self.query_ring.advance(at)]

    def _copy_keys(self, place: _Place, carried: Sequence[ir.Value], row: Scalar) -> list[ir.Value]:
        load = partial(self.keys.load, self.words, self.maps[1], outer=place.scores)
        return self._copy_rows(self.key_ring, self.keys, self.layout.keys, carried, row, load)

    def _copy_values(self, place: _Place, carried: Sequence[ir.Value], row: Scalar) -> list[ir.Value]:
        load = partial(self.values.load, self.words, self.maps[2], outer=place.output)
        return self._copy_rows(self.value_ring, self.values, self.layout.values, carried, row, load)

    def _copy_rows(
        self,
        ring: Ring,
        matrix: Matrix,
        offset: int,
        carried: Sequence[ir.Value],
        row: Scalar,
        load: Callable[..., None],
    ) -> list[ir.Value]:
        """A block of keys or values, when there is room for it."""
        at, math = Position(*carried), self.words.math
        ring.wait_empty(at)
        barrier = ring.full(at.stage)
        expect_bytes(self.words, barrier, matrix.bytes)
        load(barrier=barrier, offset=math.add(math.mul(at.stage, matrix.size), offset), row=row)
        return ring.advance(at)

    # -- products ------------------------------------------------------------------------------------------------------

    def _consume(self, consumer: Scalar, thread: ir.Value) -> None:
        self._registers(1)
        early.wait_for_launches(self.source)
        _Consumer(self, self.words.value(consumer), thread).emit()


class _Consumer:
    """What a group of warps with 64 queries does."""

    def __init__(self, block: _Block, consumer: ir.Value, thread: ir.Value) -> None:
        self.b, self.s, self.words = block, block.s, block.words
        words, math = self.words, self.words.math
        self.number = consumer
        lane = math.rem(thread, 32)
        self.warp, self.lane = math.div(math.rem(thread, GROUP), 32), words.value(lane)
        self.first_column = math.mul(math.rem(lane, 4), 2)
        first = math.add(math.mul(consumer, ROWS), math.mul(self.warp, WARP_ROWS))
        self.first_row = math.add(first, math.div(lane, 4))
        self.left = block.queries.descriptor(words, math.mul(consumer, block.queries.size))
        self.right = block.keys.descriptor(words, block.layout.keys)
        self.below = block.values.descriptor(words, block.layout.values)
        self.takes_turns = self.s.consumers > 1

    def emit(self) -> None:
        """All tiles of the block."""
        b, words, math = self.b, self.words, self.words.math
        if self.takes_turns:
            self.own = words.value(math.add(self.number, _TURN))
            is_last = words.is_equal(self.number, self.s.consumers - 1)
            self.next = arith.select(is_last, words.value(_TURN), words.value(math.add(self.own, 1)))
            if_then(is_last, lambda: self._turn("arrive", self.next))
        start = [*b.key_ring.start(), *b.value_ring.start(), *b.query_ring.start()]
        number = math.add(math.mul(self.number, 4), self.warp)
        if self.s.result:
            each = b.result.chunks * WARP_ROWS * ROW
            offset = math.add(math.mul(number, each), b.layout.staging)
            self.copied = CopiedResult(words, b.result, self.s.result, b.maps[3], offset)
        b.each_tile(start, self._tile)
        if self.s.result:
            self.copied.finish()

    def _turn(self, what: str, barrier: ir.Value) -> None:
        if self.takes_turns:
            assembly(None, [barrier], f"bar.{what} $0, {2 * GROUP};", "r")

    def _tile(self, place: _Place, carried: list[ir.Value]) -> list[ir.Value]:
        b, words, math = self.b, self.words, self.words.math
        queries = Position(*carried[4:])
        b.query_ring.wait_full(queries)
        self.tile_queries = self._stage(self.left, queries.stage, self.s.consumers * b.queries.size)
        scores = wgmma.wait(words, self._start_scores(carried[:2]), 0)
        keys = self._release(b.key_ring, carried[:2])
        last = place.block(math, 0)
        first = b.softmax.block(self._logits(place, scores, last, is_last=True, is_masked=True), [])
        powers = rounded(words, first.powers, self.s.element)
        zeros = [words.frame.constants.get(words.f32, 0.0)] * (b.values.columns // 2)
        state = [*keys, *carried[2:4], *first.largest, *first.sums, *zeros, *powers]
        masked = 1
        if b.chain.lasts:
            masked = math.maximum(math.sub(place.blocks, place.open), 1)
            state = words.loop(1, masked, 1, state, partial(self._step, place, True))
        end = math.maximum(math.sub(place.blocks, place.front), masked) if b.chain.firsts else place.blocks
        state = words.loop(masked, end, 1, state, partial(self._step, place, False))
        if b.chain.firsts:
            state = words.loop(end, place.blocks, 1, state, partial(self._step, place, True))
        keys, values, sums, output, powers = state[:2], state[2:4], state[6:8], *self._parts(state)
        b.query_ring.release(queries.stage, self.lane)
        b.value_ring.wait_full(Position(*values))
        output = self._start_sums(output, powers, values)
        if self.s.shares > 1:
            totals = [b.softmax.total(part) for part in sums]
            output = wgmma.wait(words, output, 0, powers)
            self._put_together(place, Part(list(state[4:6]), totals, output))
            return carried
        factors = self._factors(place, [b.softmax.total(part) for part in sums], state[4:6])
        output = scaled(wgmma.wait(words, output, 0, powers), factors)
        values = self._release(b.value_ring, values)
        self._store(place, output)
        return [*keys, *values, *b.query_ring.advance(queries)]

    def _parts(self, state: Sequence[ir.Value]) -> tuple[list[ir.Value], list[ir.Value]]:
        """The accumulators and the powers among what the loop carries."""
        end = 8 + self.b.values.columns // 2
        return list(state[8:end]), list(state[end:])

    def _step(self, place: _Place, is_masked: bool, number: ir.Value, state: list[ir.Value]) -> list[ir.Value]:
        """A block of keys: its scores, and the product of the powers before with their values."""
        b, words, math = self.b, self.words, self.words.math
        keys, values, largest, sums = state[:2], state[2:4], state[4:6], state[6:8]
        output, powers = self._parts(state)
        b.key_ring.wait_full(Position(*keys))
        if self.takes_turns:
            self._turn("sync", self.own)
        scores = self._start_scores(keys, is_there=True)
        b.value_ring.wait_full(Position(*values))
        output = self._start_sums(output, powers, values)
        if self.takes_turns:
            self._turn("arrive", self.next)
        scores = wgmma.wait(words, scores, 1)
        keys = self._release(b.key_ring, keys)
        block = place.block(math, number)
        found = b.softmax.block(self._logits(place, scores, block, is_last=False, is_masked=is_masked), largest)
        sums = [fused(old, factor, new) for old, factor, new in zip(sums, found.factors, found.sums, strict=True)]
        # Already there. But it ends a basic block, so that the powers are not moved behind the wait for the products.
        b.value_ring.wait_full(Position(*values))
        output = wgmma.wait(words, output, 0, [*powers, *sums])
        values = self._release(b.value_ring, values)
        output = scaled(output, found.factors)
        return [*keys, *values, *found.largest, *sums, *output, *rounded(words, found.powers, self.s.element)]

    def _release(self, ring: Ring, carried: Sequence[ir.Value]) -> list[ir.Value]:
        at = Position(*carried)
        ring.release(at.stage, self.lane)
        return ring.advance(at)

    def _start_scores(self, keys: Sequence[ir.Value], is_there: bool = False) -> list[ir.Value]:
        b, at = self.b, Position(*keys)
        if not is_there:
            b.key_ring.wait_full(at)
        count = -(-b.keys.columns // INSTRUCTION)
        steps = [(b.queries.step(i), b.keys.step(i)) for i in range(count)]
        descriptors = self.tile_queries, self._stage(self.right, at.stage, b.keys.size)
        return wgmma.start_scores(self.words, descriptors, steps, self.s.keys, self.s.element)

    def _start_sums(
        self, output: Sequence[ir.Value], powers: Sequence[ir.Value], values: Sequence[ir.Value]
    ) -> list[ir.Value]:
        right = self._stage(self.below, values[0], self.b.values.size)
        return wgmma.start_sums(self.words, output, powers, right, INSTRUCTION * ROW, self.s.element)

    def _stage(self, descriptor: ir.Value, stage: ir.Value, size: int) -> ir.Value:
        offset = self.words.value(self.words.math.mul(stage, size >> 4))
        return arith.addi(descriptor, arith.extui(self.words.i64, offset))

    def _rows(self, place: _Place) -> list[Scalar]:
        """The rows of this thread."""
        math = self.words.math
        row = math.add(place.row, self.first_row)
        return [math.add(row, 8 * half) for half in range(HALVES)]

    def _logits(
        self, place: _Place, scores: Sequence[ir.Value], block: Scalar, *, is_last: bool, is_masked: bool
    ) -> list[ir.Value]:
        """The logits of a block of keys, with -inf for what is hidden or behind the end."""
        b, math = self.b, self.words.math
        first = math.add(math.mul(block, self.s.keys), self.first_column)
        rows = self._rows(place)
        at_end = b.has_end and is_last
        found = b.logits.evaluate(scores, place.logits, rows, first, at_end=at_end)
        seen = b.logits.seen(place.logits, rows, place.last if at_end else None, is_masked=is_masked)
        return b.logits.hide(found, seen, first)

    # -- the end -------------------------------------------------------------------------------------------------------

    def _put_together(self, place: _Place, mine: Part) -> None:
        """Of the blocks that share a tile one stores what all of them have."""
        b, words, math = self.b, self.words, self.words.math
        has_rows = words.is_below(math.add(place.row, math.mul(self.warp, WARP_ROWS)), b.rows)
        member = math.add(math.mul(self.warp, 32), self.lane)

        def store(whole: Part) -> None:
            self._store(place, scaled(whole.output, self._factors(place, whole.totals, whole.largest)))

        if b.in_groups is None:
            self._of_cluster(mine, member, has_rows, store)
            return
        where = self.first_row, self.first_column
        groups = Groups(words, b.softmax, b.in_groups, b.frame.pointers[0], (b.tile, b.group))
        self._of_cluster(mine, member, has_rows, lambda whole: groups.write(whole, *where))

        def finish() -> None:
            groups.finish(member, *where, len(mine.output), lambda whole: if_then(has_rows, lambda: store(whole)))

        if_then(words.is_equal(b.rank, 0), finish)

    def _of_cluster(
        self, mine: Part, member: Scalar, has_rows: ir.Value, use: Callable[[Part], None]
    ) -> None:
        """The first block of the cluster will `use` what all of its blocks have."""
        b = self.b
        if self.s.split == 1:
            if_then(has_rows, lambda: use(mine))
            return
        halves = 1 if isinstance(b.rows, int) and b.rows <= WARP_ROWS // HALVES else HALVES
        Parts(self.words, b.softmax, b.rank, self.s.split, halves).put_together(mine, member, has_rows, use)

    def _factors(self, place: _Place, totals: Sequence[ir.Value], largest: Sequence[ir.Value]) -> list[ir.Value]:
        """One over what either row is divided by."""
        b, math = self.b, self.words.math
        found = []
        for row, total, top in zip(self._rows(place), totals, largest, strict=True):
            at = Idx(self.words.widen(math.minimum(row, math.sub(b.rows, 1))), level=2)
            found.append(b.softmax.factor(b.a, total, top, [*place.logits, at, Idx(0)]))
        return found

    def _store(self, place: _Place, output: list[ir.Value]) -> None:
        b, words, math = self.b, self.words, self.words.math
        order, out = b.a.output.order, b.a.output
        first = math.add(place.row, math.add(math.mul(self.number, ROWS), math.mul(self.warp, WARP_ROWS)))
        if self.s.result:
            self.copied.store(output, self.lane, first, place.output)
            return
        row, column = order.index(out.row), order.index(out.column)
        domain = Domain(tuple(b.shape), (row, row), (column, column), self.s.lanes)
        tile = self.s.tile_rows, b.values.columns
        epilogue = Epilogue(words, b.source, out.op, domain, b.layout.staging, tile)
        number = words.value(math.add(math.mul(self.number, 4), self.warp))
        epilogue.store(output, number, self.lane, (first, 0), place.outer)
