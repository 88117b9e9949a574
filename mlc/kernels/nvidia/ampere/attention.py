"""Attention on the tensor cores of Ampere and later chips: `softmax(f(q k)) v` in one kernel whose scores never leave
the registers.

A block has a tile of queries, of which each warp has `warp_rows`, and goes through the keys 128 bytes of a column at a
time: 64 keys, or 32 of f32, which are rounded to tf32. It multiplies queries and keys, makes powers of the scores
relative to the largest one so far, and multiplies these, rounded to the type of the values, with the values; when the
largest score of a row grows, its sums are scaled down. The values of a block of keys come while its scores are
computed, the next keys while its powers are multiplied ("FlashAttention-2", Dao, 2023).

Blocks of keys run from the last to the first, so that what must be hidden comes first. With a causal mask, or a window,
blocks of keys that no row sees are not read, and the tiles with most keys come first.

f32 that must stay exact takes the same way, and is multiplied by ordinary arithmetic (`exact.py`): a warp's powers go
through shared memory to all of its threads.

Takes what `hopper_attention` does, and f32, unless there are few queries. Schedule parameters: `element` of the tensor
cores, `f32` without them; `tile_rows`, `warp_rows`: queries of a block and of a warp; `lanes`: elements of the result
that a thread stores at a time; `threads`; `blocks` of a multiprocessor; `across`: threads of a warp over which a row
of exact products is spread, four or, without masks that are read, eight; `together`: tiles of 32 keys whose scores are
computed at a time, of a warp with a row for each thread. Measured: bench/results/2026-11-21-h200.md,
exact f32 2026-11-22-h200.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from mlir import ir
from mlir.dialects import func, nvvm

from mlc.kernels.common.attention import Attention, find_attention
from mlc.kernels.common.attention_chain import chain_of
from mlc.kernels.common.attention_points import points_below
from mlc.kernels.common.frame import Frame, KernelSource, if_then
from mlc.kernels.common.index import Idx, Scalar
from mlc.kernels.common.items import emit_grid
from mlc.kernels.common.reduce import reduction_extents
from mlc.kernels.nvidia import ALIGNMENT
from mlc.kernels.nvidia.ampere.copies import PlainCopier, end_group, wait_for_copies
from mlc.kernels.nvidia.ampere.exact import FEW, ExactPowers, ExactProduct, QuadEpilogue, WideEpilogue, wide
from mlc.kernels.nvidia.ampere.fragments import BLOCK, STEPS, Columns, Fragments, multiply_add
from mlc.kernels.nvidia.ampere.kept_rows import KeptRows
from mlc.kernels.nvidia.tensor_cores.attention_logits import Logits
from mlc.kernels.nvidia.tensor_cores.attention_operands import Matrix, head_dims, matrices
from mlc.kernels.nvidia.tensor_cores.attention_softmax import HALVES, Softmax, fused, rounded, scaled
from mlc.kernels.nvidia.tensor_cores.epilogue import Domain, Epilogue, staging_bytes
from mlc.kernels.nvidia.tensor_cores.tiles import ELEMENT_BYTES, INSTRUCTION, ROW, Tile
from mlc.kernels.nvidia.tensor_cores.words import Words, declare_shared_memory
from mlc.kernels.nvidia.tensor_maps import attach
from mlc.kernels.nvidia.threads import WARP

_KEPT = 8  # steps of the sum whose queries stay in the registers


@dataclass(frozen=True)
class AmpereAttentionSchedule:
    """Parameters of the template; see the module's description."""

    element: str
    tile_rows: int
    warp_rows: int
    lanes: int
    threads: int
    blocks: int
    across: int = FEW
    together: int = 1

    @property
    def line(self) -> int:
        """Elements of a line of a tile: columns of a chunk, and keys of values, the lines of a tile across the sum."""
        return ROW // ELEMENT_BYTES[self.element]

    @property
    def keys(self) -> int:
        """Keys of a block."""
        return self.line * self.together

    @property
    def taken(self) -> int:
        """Elements of a sum that one instruction takes."""
        return INSTRUCTION // ELEMENT_BYTES[self.element]

    @property
    def is_exact(self) -> bool:
        """Is f32 multiplied as it is?"""
        return self.element == "f32"

    def columns(self, width: int) -> int:
        """Columns of the accumulators for values of `width` columns."""
        unit = BLOCK * self.across // FEW
        return -(-width // unit) * unit if self.is_exact else width

    @property
    def apart(self) -> int:
        """Rows from one of a thread's to the next."""
        return WARP // self.across


def shared_bytes(schedule: AmpereAttentionSchedule, depth: int, width: int) -> int:
    """Shared memory for queries and keys of `depth` columns and values of `width`: results are staged there, too."""
    chunks, wide = -(-depth // schedule.line), -(-width // schedule.line)
    tiles = (schedule.tile_rows + schedule.keys) * chunks * ROW + schedule.keys * wide * ROW
    powers = schedule.tile_rows * ROW if schedule.is_exact else 0
    return max(tiles + powers, staging_bytes(schedule.columns(width), schedule.threads // WARP))


def expand(source: KernelSource, schedule: AmpereAttentionSchedule) -> list[Frame]:
    """The memref function and the grid function of `source`; an item is a block.

    Raises ValueError for a kernel that is no attention, or none whose rows can be copied.
    """
    attention = find_attention(source)
    found = None if attention is None else matrices(source, attention, schedule.line)
    if attention is None or found is None:
        raise ValueError(f"kernel {source.func.name.value}: no attention for tensor cores")
    frame = Frame(source, alignment=ALIGNMENT)
    declare_shared_memory(frame)
    attach(source.module, [], shared_bytes(schedule, *head_dims(attention)))
    with frame.body():
        _Block(source, attention, found, schedule, frame).emit()
        func.ReturnOp([])
    return [frame, emit_grid(source, lambda grid, shape: _tiles(grid, shape, attention, schedule))]


def _tiles(frame: Frame, shape: Sequence[Scalar], attention: Attention, s: AmpereAttentionSchedule) -> list[Scalar]:
    """Matrices of the result, and tiles of the rows of each."""
    order, math = attention.output.order, frame.math
    count = math.product([shape[order.index(d)] for d in attention.output.batch])
    return [count, math.ceildiv(shape[order.index(attention.output.row)], s.tile_rows)]


@dataclass(frozen=True)
class _State:
    """What a warp's loop over the keys carries, for every two rows of a thread (16 of the warp with four threads across
    a row, eight with eight): the largest logits, the sums of this thread's powers, and the accumulators of the result.
    Where each thread keeps a row (`KeptRows`), there is one largest logit, and one sum.
    """

    largest: list[list[ir.Value]]
    sums: list[list[ir.Value]]
    output: list[list[ir.Value]]

    def flat(self) -> list[ir.Value]:
        return [v for part in (self.largest, self.sums, self.output) for values in part for v in values]

    @staticmethod
    def of(values: Sequence[ir.Value], known: tuple[int, int], output: tuple[int, int]) -> _State:
        """The state from its values, each part of it so many times so many: what is `known` of rows, and `output`."""
        found, at = [], 0
        for count, size in (known, known, output):
            found.append([list(values[at + i * size : at + (i + 1) * size]) for i in range(count)])
            at += count * size
        return _State(*found)


class _Block:
    """What one block does."""

    def __init__(
        self, source: KernelSource, attention: Attention, operands: tuple[Matrix, Matrix, Matrix],
        schedule: AmpereAttentionSchedule, frame: Frame,
    ) -> None:  # fmt: skip
        self.source, self.a, self.s, self.frame = source, attention, schedule, frame
        self.queries, self.keys, self.values = operands
        self.words = words = Words(frame)
        self.shape = frame.buffers[source.destinations[0]].shape
        self.depth, self.width = head_dims(attention)
        self.columns = schedule.columns(self.width)
        self.each = schedule.keys
        self.chunks = -(-self.depth // schedule.line)
        self.count = schedule.warp_rows // (HALVES * schedule.apart)  # times two rows of a thread
        self.sizes = (self.count, HALVES), (self.count, HALVES * self.columns // schedule.across)
        order = attention.output.order
        self.rows = words.narrow(self.shape[order.index(attention.output.row)])
        self.num_keys = words.narrow(reduction_extents(frame, attention.output.op)[attention.output.inner])
        self.chain = chain_of(attention)
        if schedule.across != FEW and not self.chain.is_plain:
            raise ValueError(f"kernel {source.func.name.value}: scores have no neighbours with these threads across")
        self.softmax = Softmax(words, self.chain.scale if self.chain.is_plain else None, schedule.across)
        self.kept_rows: KeptRows | None = None
        if schedule.is_exact and schedule.warp_rows == WARP:
            self.kept_rows = KeptRows(words, self.softmax, schedule.across)
            self.sizes = (1, 1), self.sizes[1]
        elif schedule.together > 1:
            raise ValueError(f"kernel {source.func.name.value}: tiles of keys together are for 32 exact rows of a warp")
        self.logits = Logits(words, attention, self.chain, (self.rows, self.num_keys))
        self.has_end = not (isinstance(self.num_keys, int) and self.num_keys % self.each == 0)
        self._place()
        self._describe_tiles()

    def _place(self) -> None:
        """The tile of this block: its first row, the coordinates that belong to it, and its blocks of keys."""
        words, math, out = self.words, self.words.math, self.a.output
        heads, tiles = (words.narrow(n) for n in _tiles(self.frame, self.shape, self.a, self.s))
        number = words.narrow(self.frame.begin)
        if not self.chain.lasts:
            tile, matrix = math.rem(number, tiles), math.div(number, tiles)
        else:
            tile, matrix = math.sub(math.sub(tiles, 1), math.div(number, heads)), math.rem(number, heads)
        self.row = math.mul(tile, self.s.tile_rows)
        batch = math.delinearize(matrix, [words.narrow(self.shape[out.order.index(d)]) for d in out.batch])
        self.output = dict(zip(out.batch, batch, strict=True))
        points = {d: Idx(words.widen(at), level=1) for d, at in self.output.items()}
        dims = [points.get(d, Idx(0)) for d in range(len(out.op.attributes["iterator_types"]))]
        self.point, scores = points_below(self.a, self.frame, 1, dims)
        self.scores = {d: words.narrow(at.base) for d, at in scores.items()}
        self.outer = tuple(self.output[d] for d in out.order if d in self.output)
        self.seen = self.logits.limits.blocks(self.point, self.row, self.s.tile_rows, self.each)

    def _describe_tiles(self) -> None:
        """Where queries, keys and values lie in shared memory, and what this warp reads of them."""
        words, math, s = self.words, self.words.math, self.s
        size = ELEMENT_BYTES[s.element]
        along = [Tile(s.element, size, rows, False) for rows in (s.tile_rows, s.keys)]
        self.query_tile, self.key_tile = along
        self.value_tile = Tile(s.element, size, -(-self.width // s.line) * s.line, True)
        self.keys_at = self.chunks * self.query_tile.size
        self.values_at = self.keys_at + self.chunks * self.key_tile.size
        self.warp, lane = math.div(words.thread(), WARP), math.rem(words.thread(), WARP)
        self.lane = words.value(lane)
        self.warp_row = math.mul(self.warp, s.warp_rows)
        self.spread = (2 * s.across, 1 if s.across == FEW else s.across)  # keys between pairs, and within them
        self.first_column = math.mul(math.rem(lane, s.across), 2 if s.across == FEW else 1)
        self.first_row = math.add(math.add(self.row, self.warp_row), math.div(lane, s.across))
        if s.is_exact:
            powers_at = math.add(self.values_at + s.together * self.value_tile.size, math.mul(self.warp_row, ROW))
            first = self.warp_row, 0
            self.scores_product = ExactProduct(words, (0, self.keys_at), first, s.warp_rows, self.each, s.across)
            rows, columns = s.warp_rows, self.columns
            self.powers = ExactPowers(words, self.value_tile, powers_at, self.values_at, rows, columns, s.across)
            self.value_copier = self._copier(self.values, self.value_tile, 0, self.output)
            return
        self.left = Fragments(words, self.query_tile, 0, self.warp_row, s.element, True)
        self.right = Fragments(words, self.key_tile, self.keys_at, 0, s.element, False)
        self.below: Fragments | Columns = (
            Columns(words, self.value_tile, self.values_at)
            if s.element == "tf32"
            else Fragments(words, self.value_tile, self.values_at, 0, s.element, False)
        )
        self.value_copier = self._copier(self.values, self.value_tile, 0, self.output)

    # -- copies --------------------------------------------------------------------------------------------------------

    def _copier(self, matrix: Matrix, tile: Tile, row: Scalar, outer: dict[int, Scalar]) -> PlainCopier:
        return PlainCopier(self.words, self.source, matrix.operand, tile, self.s.threads, row, outer)

    def _copy_rows(self, matrix: Matrix, tile: Tile, offset: int, row: Scalar) -> None:
        """Asks for rows of queries or keys, all of their columns."""
        copier = self._copier(matrix, tile, row, self.scores)
        for chunk in range(self.chunks):
            copier.load(offset + chunk * tile.size, chunk * self.s.line, 0)

    # -- products ------------------------------------------------------------------------------------------------------

    def emit(self) -> None:
        words, math = self.words, self.words.math
        last = math.mul(math.sub(self.seen.end, 1), self.each)
        self._copy_rows(self.queries, self.query_tile, 0, self.row)
        self._copy_rows(self.keys, self.key_tile, self.keys_at, last)
        end_group()
        self.kept = self._keep_queries()
        constants = words.frame.constants
        low, zero = (constants.get(words.f32, x) for x in (float("-inf"), 0.0))
        sums, output = ([[zero] * size for _ in range(count)] for count, size in self.sizes)
        start = _State([[low] * len(known) for known in sums], sums, output)
        state, masked = self._step(True, True, words.value(0), start.flat()), 1
        if self.chain.lasts:
            masked = math.maximum(math.sub(self.seen.end, self.seen.open), 1)
            state = words.loop(1, masked, 1, state, partial(self._step, False, True))
        count = math.sub(self.seen.end, self.seen.begin)
        end = math.maximum(math.sub(self.seen.end, self.seen.front), masked) if self.chain.firsts else count
        state = words.loop(masked, end, 1, state, partial(self._step, False, False))
        if self.chain.firsts:
            state = words.loop(end, count, 1, state, partial(self._step, False, True))
        wait_for_copies(0)
        nvvm.Barrier0Op()  # nobody reads values any more: results are staged where the tiles were
        self._store(_State.of(state, *self.sizes))

    def _keep_queries(self) -> list[list[list[ir.Value]]]:
        """The queries of this warp by step of the sum, where they fit into the registers; nothing otherwise."""
        steps = -(-self.depth // self.s.taken)
        if self.s.is_exact or steps * self.count > _KEPT:
            return []
        wait_for_copies(0)
        nvvm.Barrier0Op()
        return [self._load_queries(step) for step in range(steps)]

    def _load_queries(self, step: int) -> list[list[ir.Value]]:
        chunk, inside = divmod(step, STEPS)
        return [self.left.load(chunk * self.query_tile.size, inside, block) for block in range(self.count)]

    def _step(self, is_last: bool, is_masked: bool, number: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        """A block of keys; `is_last` for the last one of all, which is the first to come."""
        words, math = self.words, self.words.math
        state = _State.of(carried, *self.sizes)
        block = math.sub(math.sub(self.seen.end, 1), number)
        wait_for_copies(0)
        nvvm.Barrier0Op()  # the keys are there, and nobody needs the values before
        for tile in range(self.s.together):
            first = math.add(math.mul(block, self.each), tile * self.s.line)
            self.value_copier.load(self.values_at + tile * self.value_tile.size, first, 0)
        end_group()
        scores = self._multiply_queries()
        nvvm.Barrier0Op()  # nobody needs the keys
        following = math.mul(math.sub(block, 1), self.each)
        copy = partial(self._copy_rows, self.keys, self.key_tile, self.keys_at, following)
        if_then(words.is_below(self.seen.begin, block), copy)
        end_group()
        logits = partial(self._logits, scores=scores, block=block, is_last=is_last, is_masked=is_masked)
        powers = self._weigh_all(logits, state) if self.kept_rows is None else self._weigh_kept(logits, state)
        wait_for_copies(1)
        nvvm.Barrier0Op()  # the values are there, and the powers of all threads
        if self.s.is_exact:
            self._multiply_shared(powers, state.output)
        else:
            self._multiply_powers(powers, state.output)
        return state.flat()

    def _weigh_all(self, logits: Callable[[int], list[ir.Value]], state: _State) -> list[list[ir.Value]]:
        """The powers of the block's `logits`, rounded, or shared where they are exact."""
        powers = []
        for i in range(self.count):
            found = self.softmax.block(logits(i), state.largest[i])
            both = zip(state.sums[i], found.factors, found.sums, strict=True)
            state.sums[i] = [fused(old, factor, new) for old, factor, new in both]
            state.largest[i] = found.largest
            state.output[i] = scaled(state.output[i], found.factors)
            if self.s.is_exact:
                self.powers.share(i, found.powers)
            else:
                powers.append(rounded(self.words, found.powers, self.s.element))
        return powers

    def _weigh_kept(self, logits: Callable[[int], list[ir.Value]], state: _State) -> list[list[ir.Value]]:
        """The same where each thread keeps a row."""
        assert self.kept_rows is not None
        found = self.kept_rows.weigh([logits(i) for i in range(self.count)], state.largest[0][0], state.sums[0][0])
        state.largest[0][0], state.sums[0][0] = found.largest, found.total
        for i in range(self.count):
            state.output[i] = scaled(state.output[i], found.factors[i])
            self.powers.share(i, found.powers[i][: len(found.powers[i]) // self.s.together])
        return found.powers

    def _multiply_queries(self) -> list[list[ir.Value]]:
        """The scores of a block of keys, for every 16 rows of the warp."""
        zero = self.frame.constants.get(self.words.f32, 0.0)
        sums = [[zero] * (HALVES * self.each // self.s.across) for _ in range(self.count)]
        if self.s.is_exact:
            sizes = self.query_tile.size, self.key_tile.size
            found = self.scores_product.add_chunks(self.depth, sizes, [value for part in sums for value in part])
            return _parts(found, self.count)
        for step in range(-(-self.depth // self.s.taken)):
            chunk, inside = divmod(step, STEPS)
            rows = self.kept[step] if self.kept else self._load_queries(step)
            for block in range(self.each // BLOCK):
                columns = self.right.load(chunk * self.key_tile.size, inside, block)
                self._multiply(rows, columns, block, sums)
        return sums

    def _multiply_powers(self, powers: list[list[ir.Value]], output: list[list[ir.Value]]) -> None:
        """Adds the products of powers and values: what was made of accumulators is the left operand."""
        for step in range(self.each // self.s.taken):
            rows = [p[4 * step : 4 * step + 4] for p in powers]
            for block in range(-(-self.width // BLOCK)):
                self._multiply(rows, self.below.load(0, step, block), block, output)

    def _multiply_shared(self, powers: list[list[ir.Value]], output: list[list[ir.Value]]) -> None:
        """The same by ordinary arithmetic: the first tile's powers are shared already, others take their place."""
        sums = [value for part in output for value in part]
        for tile in range(self.s.together):
            if tile:
                nvvm.SyncWarpOp(self.words.value(-1))  # nobody needs the powers of the tile before
                for i, values in enumerate(powers):
                    each = len(values) // self.s.together
                    self.powers.share(i, values[tile * each : (tile + 1) * each])
                nvvm.SyncWarpOp(self.words.value(-1))
            sums = self.powers.add(sums, tile * self.value_tile.size)
        output[:] = _parts(sums, self.count)

    def _multiply(
        self, rows: Sequence[list[ir.Value]], columns: list[ir.Value], block: int, sums: list[list[ir.Value]]
    ) -> None:
        """Adds the products of every 16 rows with 16 columns, or eight at the end."""
        for row, mine in zip(rows, sums, strict=True):
            for half in range(2):
                at = 4 * (2 * block + half)
                if at < len(mine):
                    pair = columns[2 * half : 2 * half + 2]
                    mine[at : at + 4] = multiply_add(self.words, self.s.element, row, pair, mine[at : at + 4])

    def _rows(self, part: int) -> list[Scalar]:
        """Two rows of this thread."""
        return [self.words.math.add(self.first_row, self.s.apart * (HALVES * part + half)) for half in range(HALVES)]

    def _logits(
        self, part: int, scores: Sequence[Sequence[ir.Value]], block: Scalar, *, is_last: bool, is_masked: bool
    ) -> list[ir.Value]:
        """The logits of a block of keys, with -inf for what is hidden or behind the end."""
        math, rows = self.words.math, self._rows(part)
        first = math.add(math.mul(block, self.each), self.first_column)
        at_end = self.has_end and is_last
        found = self.logits.evaluate(scores[part], self.point, rows, first, at_end=at_end)
        chain, more = self.chain, (0, 0)
        known = is_masked and all(limit.offset is not None for limit in (*chain.firsts, *chain.lasts))
        if known and not at_end:  # one number for all rows: a thread has no register for each
            rows = [self.first_row] * HALVES
            more = self.s.apart * HALVES * part, self.s.apart * (HALVES * part + 1)
        end = math.sub(self.num_keys, 1) if at_end else None
        seen = self.logits.seen(self.point, rows, end, is_masked=is_masked)
        return self.logits.hide(found, seen, first, self.spread, more)

    # -- the end -------------------------------------------------------------------------------------------------------

    def _store(self, state: _State) -> None:
        words, math, out = self.words, self.words.math, self.a.output
        row, column = out.order.index(out.row), out.order.index(out.column)
        domain = Domain(tuple(self.shape), (row, row), (column, column), self.s.lanes)
        made = Epilogue if not self.s.is_exact else QuadEpilogue if self.s.across == FEW else WideEpilogue
        epilogue = made(words, self.source, out.op, domain, 0, (self.s.tile_rows, self.columns))
        each = BLOCK // (HALVES * self.s.apart)  # times two rows of a thread are staged at a time
        for begin in range(0, self.count, each):
            mine = range(begin, begin + each)
            factors = [[self._factor(part, half, state) for half in range(HALVES)] for part in mine]
            first = math.add(math.add(self.row, self.warp_row), HALVES * self.s.apart * begin)
            parts = [scaled(state.output[part], both) for part, both in zip(mine, factors, strict=True)]
            output = parts[0] if each == 1 else wide(*parts)
            epilogue.store(output, words.value(self.warp), self.lane, (first, 0), self.outer)

    def _factor(self, part: int, half: int, state: _State) -> ir.Value:
        """One over what the row is divided by."""
        a, math = self.a, self.words.math
        kept = self.kept_rows
        if kept is None:
            total, largest = self.softmax.total(state.sums[part][half]), state.largest[part][half]
        else:
            number = HALVES * part + half
            total = kept.spread(state.sums[0][0])[number]
            largest = kept.spread(state.largest[0][0])[number] if a.sink else total
        row = math.minimum(self._rows(part)[half], math.sub(self.rows, 1))
        return self.softmax.factor(a, total, largest, [*self.point, Idx(self.words.widen(row), level=2), Idx(0)])


def _parts(values: Sequence[ir.Value], count: int) -> list[list[ir.Value]]:
    """`values` in as many parts."""
    each = len(values) // count
    return [list(values[i * each : (i + 1) * each]) for i in range(count)]
