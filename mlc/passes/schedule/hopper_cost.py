"""Choosing tiles for contractions on Hopper's tensor cores.

The model counts clocks of a multiprocessor: of the products, of the copies out of the L2 cache, and of what a tile
costs once. What decides on small shapes is how evenly the tiles go into the multiprocessors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from itertools import product

from mlir import ir

from mlc.kernels.common.frame import KernelSource
from mlc.kernels.nvidia.hopper.contraction import HopperSchedule
from mlc.kernels.nvidia.hopper.groups import GROUP
from mlc.kernels.nvidia.tensor_cores.epilogue import chunk_of
from mlc.kernels.nvidia.tensor_cores.packed_epilogue import LANES, packed_chunk
from mlc.kernels.nvidia.tensor_cores.tiles import ROW, ROWS
from mlc.passes.schedule.matrices import Matrices, MatrixShape, matrices_of
from mlc.targets.nvidia import NvidiaTarget

Schedule = dict[str, int | str]

PRODUCTS = 2048  # of bf16 in a clock of a multiprocessor
COPIED = 48  # bytes in a clock out of the L2 cache, with all multiprocessors at it
COPIED_ALONG = 60  # the same where both operands lie along long sums
COPIED_IN_TURNS = 62  # the same where groups take turns and both operands lie along the sum
MOST_COPIED = 64  # with few multiprocessors at it
CLOCK = 1.755e9
STEP = 155  # clocks that the barriers of a stage take at least, with the products of one pair of tiles
AGAIN = 155  # clocks of another pair in the same stage
OVERHEAD = 12  # clocks that a stage takes in any case
LATENCY = 1000  # clocks from the request of a stage until it is there
STORED = 24  # elements of a tile that the epilogue stores in a clock
STORED_PACKED = 36  # the same of 16-bit results that are computed in the registers
MOST_STAGES = 12
FEWEST_STAGES = 3
MEETING = 4500  # clocks until the blocks of a cluster have met twice
# Blocks of clusters that run at a time, by their size: the parts of a chip do not hold a multiple of four of them.
TOGETHER = {2: 1.0, 4: 0.75}
IDLE = 0.4  # of the multiprocessors, from which on tiles are shared
MARGIN = 1.15  # by which tiles that are shared must be faster where others leave less idle: few of them were measured
SHARE = 16  # columns of a tile, of which each block that shares it stores a multiple
DRAWING = 80  # multiprocessors that it takes to draw all that the memory gives
HALF_ROWS = 1.05  # what rows of less than 128 bytes cost the memory
SEVERAL = 1.02  # what more than one tile for each multiprocessor costs the memory
# Copies of rows that begin within cache lines, and so are two lines each, take so much longer: where they begin with a
# sector of a line, or not, and of an operand that lies across the sum.
SECTOR, WITHIN_LINES, WITHIN_SECTORS, ACROSS = 32, 1.4, 1.8, 1.22
OVERLAPPING = 1.5  # what tiles across the sum cost more that share copied columns with their neighbours
# Of that for asking the cache, which blocks of a cluster do once for all; the rest for what comes. Two blocks below
# each other ask for the same tile of the right operand together in any case; the second is for one that lies across
# the sum.
ASKED, ASKED_ACROSS = 0.7, 0.35
# Blocks of clusters that copy for each other, by the clusters' size: how many run at a time, of all multiprocessors.
BESIDE = {2: 1.0, 4: 0.85, 8: 0.85}
LEAST_PART = 16  # rows of a tile that a block copies for others: smaller copies take longer
CLUSTERS = ((2, 1), (1, 2), (2, 2), (4, 1), (1, 4), (8, 1), (1, 8))  # rows and columns of blocks
LONG_SUM = 1024  # terms of the sums that this was measured with
NARROW_ROW = 64  # bytes of a row of the right operand, which is copied in NARROW_COPY clocks where there are fewer
NARROW_COPY = 18
HALF_ROW_STEP = 95  # clocks of a step for such rows
DRAWN = 0.87  # of the memory's bandwidth that copies reach
TILE = 55  # clocks that a tile takes in any case
FILLED = 3  # clocks for a row of what is resident
FEW_STEPS = 2  # of a tile, whose end is most of its time
FEWEST_STEPS = 16  # of a block that shares a tile: LLVM unrolls shorter loops, and ptxas serialises their products
SHORTEST_OF_PAIRS = 512  # terms of a sum
NARROW = 16  # accumulators of a thread up to which stages of two pairs pay
AWAITED = 1200  # clocks until what the end of a tile reads of other matrices has come, for a chunk of its columns
ADDED = 20  # clocks for an accumulator of a thread of another block
CROWDED = 1.08  # what storing takes longer where accumulators leave few registers
# Clocks more of a chunk of fewer columns than this, of a wide tile to which a matrix is added.
NARROW_CHUNK, WHOLE_CHUNK = 300, 64
FEWEST = 64  # rows and columns of a product that has tiles of any width, or whose operands change places
LEAST_TURNED = 16  # columns of tiles then, or multiples
TURNED = 1.03  # what that has to win
LANES_AT_WORK = 128  # operations on results in a clock
BESIDES = 0.1  # of what takes less time, products or memory, is not hidden behind the other
RESERVED = 1024  # bytes of shared memory that the system keeps for every block
MOST_RESIDENT = 36  # tiles of the right operand that stay in shared memory
RASTER = 8
# Accumulators of a thread, by the groups that multiply: all in all, and with those of a stage that are added in f32.
MOST_SUMS = {1: 128, 2: 128, 3: 96}
MOST_EXACT = {1: 192, 2: 192, 3: 104}
# Left out where they say nothing.
_OPTIONAL = (
    "split", "pairs", "exact", "turns", "held", "resident", "cluster_rows", "cluster_columns", "fetched", "turned",
    "twins",
)  # fmt: skip
# Rows of a tile, and groups of warps that multiply: of equal tiles those that two groups share are faster.
HEIGHTS = ((64, 1), (128, 2), (128, 1), (192, 3), (256, 2))
NARROWEST = 16  # columns of a tile, of results that have no more: loads of 32 bytes are slow
WIDTHS = (16, 32, 64, 96, 128, 160, 192, 224, 256)
IN_CLUSTERS = (96, 112, 128, 160, 192, 224, 256)  # the same of tiles of clusters
FINE = tuple(range(64, 257, 16))  # the same where sums are long, and nothing else is read
WASTED = 0.15  # of a tile across the sum, which others have too
ADDRESSES = 48  # registers of a thread besides its accumulators
MOST_BLOCKS = 4
HALVES = ("bf16", "f16")
LONG_EXACT, STAGES_OF_TWO = 32, 4  # stages of a sum, and of a block, from which on two are added in f32 together


def choose_hopper(source: KernelSource, root: ir.Operation, target: NvidiaTarget, precision: str) -> Schedule | None:
    """The schedule of a contraction for Hopper's tensor cores; None when they cannot do it."""
    found = _ranked(source, root, target, precision)
    return _schedule(found[0][1]) if found else None


def ranked(source: KernelSource, root: ir.Operation, target: NvidiaTarget, precision: str) -> list[Schedule]:
    """All schedules of a contraction for Hopper's tensor cores, the best first; none when they cannot do it."""
    return [_schedule(s) for _, s in _ranked(source, root, target, precision)]


def _ranked(
    source: KernelSource, root: ir.Operation, target: NvidiaTarget, precision: str
) -> list[tuple[float, HopperSchedule]]:
    """The same with the clocks of each."""
    found = matrices_of(source, root, precision)
    if found is None:
        return []
    shape, turned = found.shape, found.turned

    def timed(tiles: Iterable[HopperSchedule]) -> list[tuple[float, HopperSchedule]]:
        clocks = ((_clocks(s, turned.shape if s.turned else shape, target), s) for s in tiles)
        return sorted(clocks, key=lambda one: (one[0], one[1].sharing == 1))

    exact = int(found.element == "f8" and precision == "fp32")
    in_turns = _in_turns(found.element, shape, found.lanes, target) if shape.is_known and not exact else []
    in_clusters = _in_clusters(found, target, exact) if shape.is_known else []
    alone = [*_candidates(found, target, exact), *in_turns]
    others = _turned(turned, target) if _may_turn(found) else []
    tiles = timed([*alone, *_fetching(alone, found, target), *in_clusters, *others])
    shared = timed(_split([s for _, s in tiles if not s.turned], shape, target) if shape.is_known else [])
    best = tiles[0][1]
    is_idle = _tiles(best, turned.shape if best.turned else shape) <= (1 - IDLE) * target.sms
    margin = 1.0 if is_idle else MARGIN
    return sorted([*tiles, *shared], key=lambda one: one[0] * (margin if one[1].split > 1 else 1.0))


def _schedule(s: HopperSchedule) -> Schedule:
    """The parameters of tiles, without those that are what they are in most."""
    said = [f.name for f in fields(s) if f.name not in _OPTIONAL or getattr(s, f.name) != f.default]
    schedule: Schedule = {"template": "hopper_contraction", "group": s.threads}
    schedule |= {name: getattr(s, name) for name in said}
    return schedule


def _candidates(found: Matrices, target: NvidiaTarget, exact: int) -> Iterator[HopperSchedule]:
    """All tiles that fit, with as many stages as fit with them."""
    shape = found.shape
    may_pair = shape.is_known and not found.roles.taps and shape.depth >= SHORTEST_OF_PAIRS
    for (rows, consumers), columns in product(HEIGHTS, [w for w in _widths(found) if _is_shared(w, shape)]):
        accumulators = rows // 64 // consumers * columns // 2
        sums = accumulators + exact * columns // 2
        if accumulators > MOST_SUMS[consumers] or sums > MOST_EXACT[consumers]:
            continue
        threads, held = GROUP * (consumers + 1), _held(columns) if shape.right_across else columns
        made = HopperSchedule(
            found.element, rows, columns, 0, consumers, RASTER, found.lanes, 1, target.sms, threads,
            exact=exact, held=held if held > columns else 0, twins=shape.twins,
        )  # fmt: skip
        steps = shape.steps(128 // made.bytes_each)
        is_one = shape.is_known and shape.outer == shape.twins == 1
        may_stay = is_one and shape.columns <= columns and steps <= MOST_RESIDENT
        for blocks in range(1, _most_blocks(threads, sums, target) + 1):
            pairs = (1, 2) if accumulators <= NARROW and may_pair else (1,)
            forms = [*((count, 0) for count in pairs), *([(1, steps)] if may_stay else [])]
            for count, resident in forms:
                deep = replace(made, blocks=blocks, pairs=count, resident=resident)
                if (stages := _stages(deep, target)) >= FEWEST_STAGES:
                    together = 2 if exact and _may_wait(deep, stages, found) else exact
                    yield replace(deep, stages=stages, exact=together)


def _may_wait(s: HopperSchedule, stages: int, found: Matrices) -> bool:
    """May sums of eight bits be added in f32 once for two stages? Only where results are rounded to 16 bits, of which
    the error (2e-4 instead of 1.2e-4 of the result) is a tenth."""
    if not found.shape.is_known or s.resident or s.pairs > 1 or stages < STAGES_OF_TWO:
        return False
    steps = found.shape.steps(128 // s.bytes_each)
    return found.lanes == LANES and steps % 2 == 0 and steps >= LONG_EXACT


def _widths(found: Matrices) -> list[int]:
    """Columns that tiles may have: those of the result too, where one tile can have them all. No tile has those of two
    groups."""
    shape = found.shape
    if shape.group:
        return [w for w in WIDTHS if shape.group % w == 0]
    is_plain = found.element in HALVES and not found.roles.windows and not shape.read
    is_fine = is_plain and shape.is_known and _is_long(shape) and min(shape.rows, shape.columns) >= FEWEST
    widths = (*(w for w in WIDTHS if w < FINE[0]), *FINE) if is_fine else WIDTHS
    whole = -(-shape.columns // 32) * 32
    fitting = [w for w in widths if w > NARROWEST or shape.columns <= NARROWEST]
    if shape.right_across:
        fitting = [w for w in fitting if w >= shape.columns or _held(w) - w <= WASTED * w]
    return sorted({*fitting, *([whole] if shape.is_known and whole <= WIDTHS[-1] else [])})


def _is_shared(columns: int, shape: MatrixShape) -> bool:
    """May tiles of `columns` have as many of each of twins?"""
    return shape.twins == 1 or columns % (shape.twins * (ROWS if shape.right_across else SHARE)) == 0


def _held(columns: int) -> int:
    """Columns that a tile across the sum has in shared memory: its rows are as long as a swizzle is wide."""
    return next((c for c in (16, 32) if columns <= c), -(-columns // 64) * 64)


def _most_blocks(threads: int, accumulators: int, target: NvidiaTarget) -> int:
    """Blocks of a multiprocessor that registers suffice for."""
    return max(1, min(MOST_BLOCKS, target.registers_per_sm // (threads * (accumulators + ADDRESSES))))


def _in_turns(element: str, shape: MatrixShape, lanes: int, target: NvidiaTarget) -> Iterator[HopperSchedule]:
    """Tiles that two groups have in turns, where there are several for a multiprocessor. Smaller ones are done before
    the next group has begun."""
    for rows in (128, 192) if shape.group % 128 == 0 else ():
        made = HopperSchedule(
            element, rows, 128, 0, 2, RASTER, lanes, 1, target.sms, 3 * GROUP, turns=2, twins=shape.twins
        )
        stages = _stages(made, target)
        if stages >= FEWEST_STAGES and _tiles(made, shape) > target.sms:
            yield replace(made, stages=stages)


def _fetching(tiles: Iterable[HopperSchedule], found: Matrices, target: NvidiaTarget) -> Iterator[HopperSchedule]:
    """The same tiles where a matrix that is added comes while products are computed."""
    if not found.shape.read or found.lanes != LANES:
        return
    for s in tiles:
        made = replace(s, fetched=1, stages=0)
        stages = _stages(made, target)
        if stages >= FEWEST_STAGES:
            yield replace(made, stages=stages)


def _in_clusters(found: Matrices, target: NvidiaTarget, exact: int) -> Iterator[HopperSchedule]:
    """Tiles of clusters whose blocks copy for each other, where the cache is asked twice for a row. Where rows are all
    of a line it answers those who ask for the same at a time together, and clusters bring nothing."""
    shape = found.shape
    is_whole = min(shape.aligned) == ROW or not _is_long(shape)
    if is_whole or shape.group or found.roles.taps or shape.twins > 1:
        return
    for (rows, consumers), columns, (below, beside) in product(HEIGHTS, IN_CLUSTERS, CLUSTERS):
        held = _held(columns) if shape.right_across else columns
        if rows // 64 // consumers * columns // 2 > MOST_SUMS[consumers] or exact or held - columns > WASTED * columns:
            continue
        made = HopperSchedule(
            found.element, rows, columns, 0, consumers, RASTER, found.lanes, 1, target.sms, GROUP * (consumers + 1),
            held=held if held > columns else 0, cluster_rows=below, cluster_columns=beside,
        )  # fmt: skip
        cut_evenly = (shape.right_across or held % (8 * below) == 0) and (shape.left_across or rows % (8 * beside) == 0)
        cut_evenly = cut_evenly and min(rows // beside, held // below) >= LEAST_PART
        fits = made.cluster == 2 or _tiles(made, shape) <= BESIDE[made.cluster] * target.sms
        stages = _stages(made, target)
        if cut_evenly and fits and stages >= FEWEST_STAGES:
            yield replace(made, stages=stages)


def _may_turn(found: Matrices) -> bool:
    """May operands change places? Where all rows are whole lines it was slower (505x2560x5440: 35 us instead of 23)."""
    shape = found.shape
    is_product = not (shape.group or found.roles.taps or shape.read or shape.twins > 1)
    is_plain = is_product and min(shape.rows, shape.columns) >= FEWEST
    is_broken = shape.is_known and _is_long(shape) and min(shape.aligned) < ROW
    return is_plain and is_broken and found.lanes == LANES and found.element in HALVES


def _turned(found: Matrices, target: NvidiaTarget) -> Iterator[HopperSchedule]:
    """Tiles whose rows are columns of the result; `found` is turned, too."""
    for s in (*_candidates(found, target, 0), *_in_clusters(found, target, 0)):
        if not s.resident and s.pairs == 1 and s.tile_columns % LEAST_TURNED == 0:
            yield replace(s, turned=1)


def _is_long(shape: MatrixShape) -> bool:
    """Are sums so long that it matters little what the end of a tile costs?"""
    return shape.depth >= LONG_SUM


def _tiles(s: HopperSchedule, shape: MatrixShape) -> int:
    """Tiles, with those of clusters that lie outside of the result."""
    return s.cluster * shape.tiles(s.cluster_rows * s.tile_rows, s.cluster_columns * s.tile_columns)


def _split(tiles: list[HopperSchedule], shape: MatrixShape, target: NvidiaTarget) -> Iterator[HopperSchedule]:
    """Tiles that several blocks share, where there are too few for all multiprocessors: each block has steps to do, and
    its part finds room where the stages were."""
    for s in tiles:
        steps = shape.steps(s.pairs * 128 // s.bytes_each)
        for split, share in TOGETHER.items():
            each = -(-steps // split)
            is_worth_it = (split - 1) * each < steps and each >= FEWEST_STEPS
            is_plain = s.blocks == s.cluster == 1 and not s.resident and s.result_columns % (SHARE * split) == 0
            if is_plain and _tiles(s, shape) * split <= target.sms * share and is_worth_it:
                yield replace(s, split=split, exact=min(s.exact, 1))


def _stages(s: HopperSchedule, target: NvidiaTarget) -> int:
    room = (target.shared_memory_per_block + RESERVED) // s.blocks - RESERVED - s.shared_bytes
    return min(MOST_STAGES, room // (s.stage_bytes + 16))


def _clocks(s: HopperSchedule, shape: MatrixShape, target: NvidiaTarget) -> float:
    """Clocks that the contraction takes."""
    computed = (_computed if s.turns == 1 else _computed_in_turns)(s, shape, target)
    computed += s.resident * s.blocks * 64 * -(-s.held_columns // 64) * FILLED
    each_result = (2 if s.lanes == LANES else 4) + shape.read
    ends = shape.rows * shape.columns // shape.twins * shape.outer * each_result
    memory = (shape.bytes(s.bytes_each) + ends) / (DRAWN * target.memory_bandwidth) * CLOCK
    if _has_half_rows(s, shape):
        memory *= HALF_ROWS
    tiles = _tiles(s, shape)
    memory *= max(1.0, DRAWING / min(tiles * s.split, target.sms)) * (SEVERAL if tiles > target.sms else 1.0)
    total = max(computed, memory) + BESIDES * min(computed, memory)
    if shape.steps(_depth(s)) <= FEW_STEPS:
        total += s.tile_columns  # of equal tiles the one whose first results are there first
    if s.split > 1:
        accumulators = s.tile_rows * s.stored_columns * s.twins / (GROUP * s.consumers)
        total += MEETING + (s.split - 1) * accumulators * ADDED
    return total * TURNED if s.turned else total


def _computed(s: HopperSchedule, shape: MatrixShape, target: NvidiaTarget) -> float:
    """Clocks of a multiprocessor whose groups share tiles: each is multiplied, and then stored."""
    tiles, steps = _tiles(s, shape), -(-shape.steps(_depth(s)) // s.split)
    is_along = s.element in HALVES and not (shape.left_across or shape.right_across)
    copied = COPIED_ALONG if is_along and _is_long(shape) else COPIED
    rate = min(MOST_COPIED, copied * target.sms / min(tiles * s.split, target.sms))
    each_sm = -(-tiles // target.sms)
    together = min(s.blocks, each_sm)
    barriers = (STEP + AGAIN * (s.pairs - 1)) / together
    latency = s.pairs * LATENCY / (s.stages * together)
    step = max(_products(s), _copied(s, shape, rate), barriers, latency) + OVERHEAD
    if _has_half_rows(s, shape):
        step += HALF_ROW_STEP
    return each_sm * (steps * step + (_stored(s, shape) + _awaited(s, shape) + TILE) / together)


def _computed_in_turns(s: HopperSchedule, shape: MatrixShape, target: NvidiaTarget) -> float:
    """Clocks of a multiprocessor whose groups have tiles in turns: one is stored while the next one is multiplied."""
    rate = COPIED if shape.right_across else COPIED_IN_TURNS
    step = max(_products(s), _copied(s, shape, rate), STEP, LATENCY / s.stages) + OVERHEAD
    multiplied = shape.steps(_depth(s)) * step
    stored = s.turns * _stored(s, shape) + _awaited(s, shape)  # by half of the threads
    if s.tile_rows // ROWS * s.tile_columns // 2 > MOST_SUMS[2]:
        stored *= CROWDED
    each_sm = -(-_tiles(s, shape) // target.sms)
    return each_sm * max(multiplied, (multiplied + stored) / s.turns) + stored


def _has_half_rows(s: HopperSchedule, shape: MatrixShape) -> bool:
    """Are rows of the right operand copied in parts of less than 128 bytes?"""
    return shape.right_across and s.tile_columns * s.bytes_each < ROW and s.tile_columns < shape.columns


def _depth(s: HopperSchedule) -> int:
    """Terms of a stage."""
    return s.pairs * ROW // s.bytes_each


def _products(s: HopperSchedule) -> float:
    """Clocks that the products of a stage take."""
    return s.tile_rows * s.tile_columns * _depth(s) * s.bytes_each / 2 / PRODUCTS


def _copied(s: HopperSchedule, shape: MatrixShape, rate: float) -> float:
    """Clocks that the copies of a stage take, at `rate` bytes in one; where rows begin within lines it is the
    multiprocessor's own copies that bound, not the cache that all share."""
    lines = [1.0, 1.0]
    if min(shape.aligned) < ROW and _is_long(shape):
        rate = MOST_COPIED
        of_left, of_right = _lines(shape)
        below = s.cluster_rows if shape.right_across else max(1, s.cluster_rows / 2)
        share = ASKED_ACROSS if shape.right_across else ASKED
        of_right *= OVERLAPPING if s.held else 1.0
        lines = [of_left * (1 - ASKED * (1 - 1 / s.cluster_columns)), of_right * (1 - share * (1 - 1 / below))]
    rows = min(shape.rows, s.tile_rows) * lines[0] + (0 if s.resident else s.held_columns) * lines[1]
    is_narrow = shape.right_across and not s.resident and shape.columns * s.bytes_each < NARROW_ROW
    return s.pairs * rows * ROW / rate + (_depth(s) * NARROW_COPY if is_narrow else 0)


def _lines(shape: MatrixShape) -> list[float]:
    """What a row of either operand's tile costs, which is 1 of those that are whole lines."""
    found = []
    for aligned, is_across in zip(shape.aligned, (shape.left_across, shape.right_across), strict=True):
        each = WITHIN_LINES if aligned >= SECTOR else WITHIN_SECTORS
        found.append(1.0 if aligned == ROW else each * (ACROSS if is_across else 1.0))
    return found


def _awaited(s: HopperSchedule, shape: MatrixShape) -> float:
    """Clocks that the end of a tile waits for what it reads of other matrices: a warp goes from chunk to chunk."""
    if not shape.read or s.fetched:
        return 0
    return s.tile_rows / ROWS / s.sharing * _chunks(s) * AWAITED


def _stored(s: HopperSchedule, shape: MatrixShape) -> float:
    """Clocks for a tile's results, from the accumulators to memory, with all groups at it."""
    each = 1 / (STORED_PACKED if s.lanes == LANES else STORED) + shape.work / LANES_AT_WORK
    is_narrow = shape.read and s.stored_columns % WHOLE_CHUNK != 0 and s.stored_columns > 2 * WHOLE_CHUNK
    staged = s.tile_rows / ROWS / s.sharing * _chunks(s) * NARROW_CHUNK if is_narrow else 0
    return s.tile_rows * s.stored_columns * each + staged


def _chunks(s: HopperSchedule) -> float:
    """In how many parts a warp stages the columns of a tile."""
    return s.stored_columns / (packed_chunk if s.lanes == LANES else chunk_of)(s.stored_columns)
