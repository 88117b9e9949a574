"""Choosing templates and register tiles for contractions on CPUs."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlc.kernels.common.analysis import can_flatten, is_plain_fma, mentions, touches
from mlc.kernels.common.frame import KernelSource, defining_op
from mlc.kernels.common.generics import operand_map
from mlc.kernels.cpu.depthwise_quads import QUAD, find_across
from mlc.kernels.cpu.inner_product import has_few_rows, lies_along_sum
from mlc.kernels.cpu.panel_copy import MOST_STEPS, SUMS_BESIDE, most_steps
from mlc.kernels.cpu.register_tile import matrices_behind, split_rows
from mlc.passes.schedule.copies_ahead import copying_ahead
from mlc.passes.schedule.extents import (
    ITEMS_ENOUGH,
    ITEMS_WANTED,
    MASKED_BITS,
    Extent,
    VectorUnit,
    at_least,
    known,
    reach,
    shape_of,
)
from mlc.passes.schedule.float_products import as_dot_floats
from mlc.passes.schedule.grid_order import in_parts, innermost_extent, rows_ahead, tiles_in_order
from mlc.passes.schedule.pairs import as_dot_product, as_dot_quads, sums_bytes, sums_mixed_bytes
from mlc.passes.schedule.tile_products import as_tile_product
from mlc.passes.schedule.work_items import ENOUGH_ROWS, row_block, size_of_tile

TILE, TALLER = (6, 4), 7  # rows and vectors of accumulators; the most rows that leave registers for an operand
FEW_READS = (8, 3)  # rows and vectors that read a weight less often where rows are few; of thirty-two registers, too
# Of a large window half a panel and the next half fit into the second level of cache, and few tiles read it.
OF_LARGE_WINDOWS, OF_UNKNOWN_LINES = (14, 2), (7, 2)  # the halves of the usual width of such layers
MOST_FEW = 16  # rows of which each tile reads a weight that comes from memory
WIDE, TALL = (4, 3), (6, 2)  # of sixteen registers
LATENCY = 8  # accumulators that two multiply-adds a cycle take as long for as one of them takes
SAVED = 0.98  # of the time that plain tiles take: what makes up for rows that others read more often
MANY_ROWS = 12 * LATENCY  # where only a run knows them
FAR = 1 << 20  # bytes of a panel that does not stay in the second level of cache: fewer tiles fetch it less often
FAR_WINDOW = 1 << 18  # bytes of a convolution's panel that do not stay there beside the image
LINES_TOGETHER = 4  # of an image that read a part of such a panel one after the other
# Where vectors are whole lines of the cache its second level is larger, and a part is read by lines of so many rows.
LARGE_WINDOW, ROWS_TOGETHER = 5 << 18, 192
LEAST_DEPTH = 512  # steps of the reduction in a block that pay for storing the sums
DEEP_BLOCK = 16  # tiles of a work item whose rows only a run knows: each of them reads the whole panel once
COPIED_STEPS = 128  # lines of a panel that is copied: enough to hurt
COPIED_ROWS, ROW_STEPS = 160, 6  # rows of a work item that pay for the copy: so many, and one for so many lines
# With vectors of half a cache line a tile waits for what it loads: few rows and lines pay, also of narrow matrices.
NARROW_LANES, NARROW_STEPS, NARROW_ROWS, NARROW_TIMES = 8, 16, (16, 32), 4096
FAR_MATRIX = 1 << 19  # bytes of one that is not in the second level of cache when its next panel is copied
FARTHER_MATRIX, JOINED_PANELS = 1 << 22, 2  # bytes of one of which so many panels are copied at once
FETCHED_LINES = 16  # before its turn that a line of such a matrix is fetched
LANE_SUM = 60  # steps of a sum along vectors that take as long as to add up the lanes of its sums at the end
TRANSPOSED_ROWS = 48  # rows of a work item for which a panel may be transposed anew
FAR_APART = 256  # elements between two lines from which on they are copied
FEW_ROWS = 4  # rows of a product up to which a matrix that is not packed is read in long stretches
INNER_LANES = 8  # sums along vectors from which on there are enough at a time to hide how long one takes
INNER_ROWS = 4  # of a tile of such sums: as many columns, so that every operand that is loaded is used as often
# Elements of lines of which a single row is multiplied by as many at a time as a vector of sixteen lanes has.
SHORT_LINE = 512
LINE_VECTORS = 16  # accumulators of such a tile
LINES, LINE_TILE = 8, (6, 2)  # of a matrix that are read side by side; rows and vectors of the tile that does it
LINE_SUMS = 4096  # that wait in the first level of cache meanwhile
LINE_ITEMS, LEAST_ITEMS = (512, 256, 128, 64), 16  # columns of a work item: as many as leave so many items
SHORT_PIECE = 128  # columns that an ordinary tile reads at once
LARGE = 3 << 17  # elements that the second cache does not hold: with whole lines in a vector it does as well as lines
PIXELS = 4  # of a tile whose sums have four vectors each
DEPTHWISE_SUMS = 16  # accumulators where a sum has two operands of its own: neither stays in a register


def choose_contraction(
    source: KernelSource, root: ir.Operation, unit: VectorUnit, constant_inputs: set[int]
) -> dict[str, int | str] | None:
    """The schedule of a kernel with the contraction `root`; None where no template of contractions takes it."""
    if len(root.operands) != 3:
        return None  # a constant operand lives in the body
    shape = shape_of(root.results[0].type)
    out_map = operand_map(root, 2)
    if not shape or not all(isinstance(e, ir.AffineDimExpr) for e in out_map.results):
        return None
    order = [ir.AffineDimExpr(e).position for e in out_map.results]
    moving = [i for i, e in enumerate(shape) if e != 1]
    axis = moving[-1] if moving else len(shape) - 1
    best: tuple[int, int, bool] | None = None
    for operand in range(2):
        packed = _packable(source, root, operand, order[axis], constant_inputs, shape[axis])
        if not packed and not _unit_stride(root, operand, order[axis]):
            continue
        rows = [i for i in moving if i != axis and not touches(root, operand, order[i])]
        candidate = (rows[-1] if rows else -1, operand, packed)
        if best is None or _row_size(shape, candidate[0]) > _row_size(shape, best[0]):
            best = candidate
    if best is None:
        return _along_sum(source, root, unit, axis)
    _, operand, packed = best
    first, row = _rows_of(source, root, operand, order, axis)
    few = known(shape[first : row + 1]) if row >= 0 else 1
    if quads := _in_quads_of_pixels(root, unit, order, shape, (axis, first, row)):
        return quads
    rows_wanted = at_least(shape[first : row + 1], ENOUGH_ROWS) if row >= 0 else 1
    height, vectors = _tile(root, unit, operand, packed, shape[axis], rows_wanted, order[axis])
    schedule: dict[str, int | str] = {
        "template": "contraction",
        "lanes": unit.lanes(root.results[0].type.element_type),
        "vector_dim": axis,
        "row_first": first,
        "row_last": row,
        "rows": height,
        "vectors": vectors,
        "unroll": _unroll(root),
    }
    schedule |= _ends_of_rows(shape[axis], schedule, unit)
    panel = size_of_tile(schedule)[1]
    schedule["block"] = row_block(shape, schedule, ITEMS_WANTED if packed else ITEMS_ENOUGH)
    if packed:
        schedule |= {"packed_operand": operand, "panel": panel}
        schedule |= rows_ahead(root, operand, shape, schedule, unit.distant)
    elif copying := _copying_panels(root, unit, operand, order[axis], shape, schedule):
        schedule = copying
    elif _is_read_in_lines(root, shape[axis], few, int(schedule["lanes"])):
        return schedule | _in_lines(shape[axis], few)
    if narrow := _of_narrow_operands(root, operand, shape, schedule, few, unit):
        return narrow
    in_pairs = as_dot_product(root, operand, schedule, unit.bf16_dot)
    grouped = in_pairs or as_dot_quads(root, operand, schedule, unit.int8_dot, unit.int16_dot)
    schedule = _window_in_blocks(root, operand, order, shape, _in_blocks(root, operand, schedule))
    return in_parts(root, operand, shape, grouped or _fetching_addends(source, root, unit, schedule))


def _of_narrow_operands(
    root: ir.Operation,
    operand: int,
    shape: Sequence[Extent],
    schedule: dict[str, int | str],
    rows: Extent,
    unit: VectorUnit,
) -> dict[str, int | str] | None:
    """The schedule of a contraction of halves or bytes whose register tile is not that of f32; None for others."""
    axis, first, last = (int(schedule[name]) for name in ("vector_dim", "row_first", "row_last"))
    if tiled := as_tile_product(root, operand, schedule, rows, unit.bf16_tiles, unit.int8_tiles):
        block = row_block(shape, tiled)
        return tiles_in_order(root, operand, shape, tiled | {"block": block})
    if floats := as_dot_floats(root, operand, schedule, shape, unit):
        return floats | rows_ahead(root, operand, shape, floats, unit.distant)
    return None


def _in_quads_of_pixels(
    root: ir.Operation, unit: VectorUnit, order: Sequence[int], shape: Sequence[Extent], dims: tuple[int, int, int]
) -> dict[str, int | str] | None:
    """The schedule of a depthwise convolution of bytes by `vpdpbusd`; None for other contractions. `dims` are those of
    the vectors, and the first and the last one of the rows."""
    axis, first, row = dims
    columns = shape[axis]
    if not unit.int8_dot or not sums_mixed_bytes(root) or row < 0 or first != row or columns is None:
        return None
    across = find_across(root, order[axis], order[row])
    if across is None:
        return None
    lanes = unit.lanes(root.results[0].type.element_type)
    if unit.halves and columns <= QUAD * lanes // 2:
        lanes //= 2
    rows = across.together * max(1, PIXELS // across.together)
    schedule: dict[str, int | str] = {
        "template": "depthwise_quads",
        "lanes": lanes,
        "vector_dim": axis,
        "row_first": first,
        "row_last": row,
        "rows": rows,
        "vectors": QUAD,
        "unroll": 1,
    }
    return schedule | {"block": row_block(shape, schedule)}


def _tile(
    root: ir.Operation, unit: VectorUnit, operand: int, packed: bool, columns: Extent, rows: Extent, dim: int
) -> tuple[int, int]:
    """Rows and vectors of the register tile; `operand` is loaded as vectors along `dim`, of `columns`."""
    element = root.results[0].type.element_type
    height, vectors = _register_tile(columns, unit, element)
    if all(touches(root, i, dim) for i in range(2)):
        height = min(height, max(1, DEPTHWISE_SUMS // vectors))
    elif packed or rows is not None and rows >= NARROW_ROWS[1]:
        height, vectors = _taller(root, (height, vectors), columns, rows, unit)
    sums = ["reduction" in str(t) for t in root.attributes["iterator_types"]].count(True)
    is_plain = packed and _is_f32(root) and (height, vectors) == TILE
    if rows is None and is_plain and sums > 1 and _panel_bytes(root, operand, unit, columns) > FAR:
        return OF_UNKNOWN_LINES
    if rows is None:  # nine rows are one tile then, and many take no longer
        return FEW_READS if is_plain and sums == 1 else (height, vectors)
    if not packed and rows <= FEW_ROWS:
        return rows, max(vectors, _line_vectors(columns, unit.lanes(element), rows))
    if is_plain and _panel_bytes(root, operand, unit, columns) > FAR:
        if sums > 1:
            return min(OF_LARGE_WINDOWS[0], rows), OF_LARGE_WINDOWS[1]
        height = min((height, TALLER), key=lambda most: -(-rows // most))
    if not is_plain or height != TILE[0]:
        return height, vectors
    if sums == 1 and rows <= MOST_FEW:
        return min((TILE, FEW_READS), key=lambda tile: -(-rows // tile[0]))
    return _better_tile(TILE, FEW_READS, columns, rows, unit.lanes(element))


def _taller(
    root: ir.Operation, tile: tuple[int, int], columns: Extent, rows: Extent, unit: VectorUnit
) -> tuple[int, int]:
    """`tile`, or a taller and narrower one that takes less time."""
    lanes = unit.lanes(root.results[0].type.element_type)
    if tile == WIDE and sums_bytes(root) and not (unit.int8_dot and sums_mixed_bytes(root)):
        return TALL  # a product of words has a register before it is added
    return TALL if tile == WIDE and _is_f32(root) and _is_tall_better(columns, rows, lanes) else tile


def _is_tall_better(columns: Extent, rows: Extent, lanes: int) -> bool:
    """Do tiles of six rows by two vectors leave less over at the ends than those of four by three?"""
    is_flat = min(size for size, _ in split_rows(MANY_ROWS if rows is None else rows, TALL[0])) * TALL[1] < LATENCY
    return not is_flat and _better_tile(WIDE, TALL, columns, rows, lanes) == TALL


def _better_tile(
    usual: tuple[int, int], other: tuple[int, int], columns: Extent, rows: Extent, lanes: int
) -> tuple[int, int]:
    """The `other` tile where it leaves less over at the ends than the `usual` one: a last panel of one vector has too
    few accumulators to hide how long they take."""
    if columns is None:
        return usual
    vectors, rows = -(-columns // lanes), MANY_ROWS if rows is None else rows
    pays = _time_of_tiles(other, vectors, rows) <= SAVED * _time_of_tiles(usual, vectors, rows)
    return other if pays else usual


def _time_of_tiles(tile: tuple[int, int], vectors: int, rows: int) -> int:
    """What a step of the sum takes in all tiles of `rows` by `vectors` together, in multiply-adds."""
    height, width = tile
    panels, rest = divmod(vectors, width)
    split = split_rows(rows, height)
    return sum(
        number * count * max(LATENCY, size * used)
        for used, number in ((width, panels), (rest, 1))
        if used
        for size, count in split
    )


def _ends_of_rows(columns: Extent, schedule: dict[str, int | str], unit: VectorUnit) -> dict[str, int | str]:
    """What changes in a schedule where half a vector is enough for the last columns, and takes half the time, and where
    masked stores take longer than several ones."""
    lanes = int(schedule["lanes"])
    if unit.bits < MASKED_BITS:
        return {} if columns is None or columns % lanes in (0, 1) else {"pieces": 1}
    if not unit.halves or columns is None or not 0 < columns % lanes <= lanes // 2:
        return {}
    # With vectors of two widths LLVM keeps more of two or three steps alive than there are registers.
    return {"tail": lanes // 2, "unroll": 4 if schedule["unroll"] == 4 else 1}


def _rows_of(
    source: KernelSource, root: ir.Operation, operand: int, order: Sequence[int], axis: int
) -> tuple[int, int]:
    """The first and the last dimension of the rows: the last one that `operand` does not have, with those in front of
    it that flatten. Of one that only a run knows, a batch behind a sequence perhaps, there may be one: another one that
    has rows enough for tiles is better."""
    shape, groups = shape_of(root.results[0].type), []
    for row in reversed(range(len(shape))):
        if shape[row] == 1 or row == axis or touches(root, operand, order[row]):
            continue
        first = row
        while first > 0 and first - 1 != axis and _rows_flatten(source, root, operand, order, first - 1, row):
            first -= 1
        groups.append((first, row))
    enough = (g for g in groups if at_least(shape[g[0] : g[1] + 1], MOST_FEW) is not None)
    return next(enough, groups[0]) if groups else (-1, -2)


def _along_sum(source: KernelSource, root: ir.Operation, unit: VectorUnit, axis: int) -> dict[str, int | str] | None:
    """The schedule of a product whose operands both lie along the sum; None for other contractions."""
    shape, order = shape_of(root.results[0].type), [e.position for e in operand_map(root, 2).results]
    element = root.results[0].type.element_type
    holding = [i for i in range(2) if touches(root, i, order[axis])]
    if not lies_along_sum(root) or len(holding) != 1 or _depth(root) == 1:
        return None
    [operand], lanes, depth = holding, unit.lanes(element), _depth(root)
    first, row = _rows_of(source, root, operand, order, axis)
    if row < 0 and lanes > NARROW_LANES and (depth is None or depth > SHORT_LINE):
        return None
    count = known(shape[first : row + 1]) if row >= 0 else 1
    height, vectors, template, unroll = INNER_ROWS, 1, "inner_product", 1
    copies, beside = isinstance(element, ir.F32Type) and _is_worth_transposing(count, depth, lanes), 0
    if copies:
        tile = _taller(root, _register_tile(shape[axis], unit, element), shape[axis], count, unit)
        beside, (height, vectors) = _columns_beside(root, unit, operand, shape[axis], count, tile)
        template, unroll = "panel_copy", _unroll(root)
    schedule: dict[str, int | str] = {
        "template": template,
        "lanes": lanes,
        "vector_dim": axis,
        "row_first": first,
        "row_last": row,
        "rows": height,
        "vectors": vectors,
        "unroll": unroll,
    }
    block = row_block(shape, schedule, beside=beside)
    schedule["block"] = max(block, -(-TRANSPOSED_ROWS // height)) if copies else block
    if not copies:
        return schedule
    schedule |= {"vector_operand": operand} | ({"beside": beside} if beside else {})
    return schedule | _ends_of_rows(shape[axis], schedule, unit)


def _is_worth_transposing(rows: Extent, depth: Extent, lanes: int) -> bool:
    """Are panels of an operand that lies along the sum to be transposed on the way?"""
    if rows is None or depth is None or depth > MOST_STEPS or rows < INNER_ROWS:
        return False
    return lanes < INNER_LANES or not has_few_rows(rows, depth)


def _depth(root: ir.Operation) -> Extent:
    """The extent of the dimension that is summed over, the last one of the first operand."""
    return shape_of(root.operands[0].type)[-1]


def _copying_panels(
    root: ir.Operation,
    unit: VectorUnit,
    operand: int,
    columns: int,
    shape: Sequence[Extent],
    schedule: dict[str, int | str],
) -> dict[str, int | str] | None:
    """`schedule` with panels of `operand` that are copied; None where that does not pay."""
    if _is_f32(root) and (ahead := copying_ahead(root, operand, shape, schedule, unit.distant)):
        return ahead
    copying = _with_columns_beside(root, unit, operand, shape, schedule)
    if not _is_worth_copying(root, operand, columns, shape, copying):
        return None
    copying |= {"template": "panel_copy", "vector_operand": operand}
    return copying | _from_afar(root, operand, shape, copying)


def _from_afar(
    root: ir.Operation, operand: int, shape: Sequence[Extent], schedule: dict[str, int | str]
) -> dict[str, int | str]:
    """What changes in copies of panels of an input that wait for what is behind the second level of cache. Measured
    with vectors of half a line of the cache."""
    value, lanes, steps = root.operands[operand], int(schedule["lanes"]), innermost_extent(root)
    size = (known(shape_of(value.type)) or 0) * value.type.element_type.width // 8
    if defining_op(value) is not None or size < FAR_MATRIX or lanes > NARROW_LANES:
        return {}
    columns = shape[int(schedule["vector_dim"])]
    fits = steps is not None and JOINED_PANELS * steps <= most_steps(lanes) and "beside" not in schedule
    joins = fits and columns is not None and size >= FARTHER_MATRIX
    return {"fetched": FETCHED_LINES, "joined": JOINED_PANELS} if joins else {"fetched": FETCHED_LINES}


def _is_worth_copying(
    root: ir.Operation, operand: int, columns: int, shape: Sequence[Extent], schedule: dict[str, int | str]
) -> bool:
    """Do the lines of a run-time operand lie far apart, and are they read often enough by every work item?"""
    exprs = list(operand_map(root, operand).results)
    plain = [e.position for e in exprs if isinstance(e, ir.AffineDimExpr)]
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    steps = [root.operands[operand].type.shape[plain.index(d)] for d in plain if kinds[d]]
    if len(plain) != len(exprs) or len(steps) != 1 or sum(kinds) != 1 or not _is_f32(root):
        return False
    first, last = int(schedule["row_first"]), int(schedule["row_last"])
    rows = known(shape[first : last + 1]) if first >= 0 else 1
    reach = shape_of(root.operands[operand].type)[plain.index(columns)]
    if rows is None or reach is None or steps[0] is None:
        return False
    together, lanes = min(rows, int(schedule["rows"]) * int(schedule["block"])), int(schedule["lanes"])
    if lanes <= NARROW_LANES:
        reads = max(together, rows // 2)  # of a thread, one item after the other
        fits = NARROW_STEPS <= steps[0] <= most_steps(lanes)
        wide = reach > lanes * int(schedule["vectors"]) or "beside" in schedule
        many = reads >= NARROW_ROWS[1] or reads >= NARROW_ROWS[0] and reads * steps[0] >= NARROW_TIMES
        return fits and wide and many
    least = max(COPIED_ROWS, steps[0] // ROW_STEPS)
    return COPIED_STEPS <= steps[0] <= most_steps(lanes) and reach >= FAR_APART and together >= least


def _columns_beside(
    root: ir.Operation, unit: VectorUnit, operand: int, columns: Extent, rows: Extent, tile: tuple[int, int]
) -> tuple[int, tuple[int, int]]:
    """How many of the last columns are to be sums along the reduction, and the tile of all others, where panels of
    `operand` are copied; `tile` is that of all columns."""
    steps, lanes = innermost_extent(root), unit.lanes(root.results[0].type.element_type)
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    along = kinds.count(True) == 1 and _unit_stride(root, 1 - operand, kinds.index(True))
    if columns is None or steps is None or columns <= lanes or lanes > NARROW_LANES or not along or not _is_f32(root):
        return 0, tile
    count, rows = columns % lanes, MANY_ROWS if rows is None else rows
    vectors = columns // lanes
    wide = _register_tile(columns - count, unit, root.results[0].type.element_type)
    wide = _taller(root, wide, columns - count, rows, unit)
    times = {
        others: _time_of_tiles(others, vectors, rows) + _time_beside(others[0], count, rows, steps, lanes)
        for others in ((wide, TALL) if wide == WIDE else (wide,))
    }
    best = min(times, key=lambda others: times[others])
    pays = times[best] <= SAVED * _time_of_tiles(tile, vectors + 1, rows)
    return (count, best) if count and pays else (0, tile)


def _time_beside(height: int, count: int, rows: int, steps: int, lanes: int) -> float:
    """What a step of the reduction takes in sums along it of `count` columns, in multiply-adds, as `_time_of_tiles`."""
    together = max(1, SUMS_BESIDE // height)
    parts = [min(together, count - first) for first in range(0, count, together)]
    adds = sum(max(LATENCY, height * part) for part in parts) * -(-rows // height)
    return adds * (1 + LANE_SUM / steps) / lanes


def _with_columns_beside(
    root: ir.Operation, unit: VectorUnit, operand: int, shape: Sequence[Extent], schedule: dict[str, int | str]
) -> dict[str, int | str]:
    """`schedule` with columns beside its panels, where they are copied."""
    axis, first, last = (int(schedule[name]) for name in ("vector_dim", "row_first", "row_last"))
    rows = known(shape[first : last + 1]) if first >= 0 else 1
    tile = int(schedule["rows"]), int(schedule["vectors"])
    beside, (height, vectors) = _columns_beside(root, unit, operand, shape[axis], rows, tile)
    if not beside:
        return schedule
    schedule = schedule | {"beside": beside, "rows": height, "vectors": vectors}
    return schedule | {"block": row_block(shape, schedule, beside=beside)}


def _is_read_in_lines(root: ir.Operation, columns: Extent, rows: Extent, lanes: int) -> bool:
    """Does a product of so few `rows` that nothing is read twice go through a matrix with long lines?"""
    exprs = [e for i in range(2) for e in operand_map(root, i).results]
    reductions = sum("reduction" in str(t) for t in root.attributes["iterator_types"])
    plain = reductions == 1 and all(isinstance(e, ir.AffineDimExpr | ir.AffineConstantExpr) for e in exprs)
    few = rows is not None and rows < NARROW_ROWS[1] and (columns is None or columns > SHORT_PIECE)
    if not (plain and few and is_plain_fma(root) and _is_f32(root)):
        return False
    steps = innermost_extent(root)
    return lanes <= NARROW_LANES or columns is None or steps is None or columns * steps >= LARGE


def _in_lines(columns: Extent, rows: Extent) -> dict[str, int | str]:
    """What changes in a schedule for a matrix that is read in lines of so many `columns`."""
    assert rows is not None
    line = 1 << ((LINE_SUMS // rows).bit_length() - 1)
    item = next((n for n in LINE_ITEMS if columns is None or columns >= n * LEAST_ITEMS), LINE_ITEMS[-1])
    return {
        "template": "line_product",
        "rows": min(rows, LINE_TILE[0]),
        "vectors": LINE_TILE[1],
        "unroll": 1,
        "block": 1,
        "tail": 0,
        "steps": LINES,
        "line": line,
        "item": min(line, item),
    }


def _is_f32(root: ir.Operation) -> bool:
    return all(isinstance(v.type.element_type, ir.F32Type) for v in root.operands)


def _row_size(shape: Sequence[Extent], axis: int) -> int:
    if axis < 0:
        return 0
    extent = shape[axis]
    return 1 << 30 if extent is None else extent


def _unit_stride(root: ir.Operation, operand: int, dim: int) -> bool:
    exprs = list(operand_map(root, operand).results)
    last = exprs[-1] if exprs else None
    inner = isinstance(last, ir.AffineDimExpr) and last.position == dim
    return inner and not any(mentions(e, dim) for e in exprs[:-1])


def _packable(
    source: KernelSource, root: ir.Operation, operand: int, dim: int, constant_inputs: set[int], extent: Extent
) -> bool:
    """Is the operand a weight that holds the vector dimension, read through a permutation (and unit dimensions)?"""
    value = root.operands[operand]
    if defining_op(value) is not None or extent is None or extent == 1:
        return False
    number = list(source.block.arguments).index(value)
    exprs = list(operand_map(root, operand).results)
    plain = [e.position for e in exprs if isinstance(e, ir.AffineDimExpr)]
    fixed = sum(isinstance(e, ir.AffineConstantExpr) for e in exprs)
    return number in constant_inputs and len(plain) + fixed == len(exprs) and dim in plain


def _rows_flatten(
    source: KernelSource, root: ir.Operation, operand: int, order: Sequence[int], first: int, last: int
) -> bool:
    if any(touches(root, operand, order[i]) for i in range(first, last + 1)):
        return False
    return can_flatten(source.results, first, last)


def _register_tile(extent: Extent, unit: VectorUnit, element: ir.Type) -> tuple[int, int]:
    """Rows and vectors of the accumulator tile: about three quarters of the registers, wide before tall."""
    lanes = unit.lanes(element)
    if unit.registers < 32:
        return (4, 3) if extent is None or extent > 2 * lanes else (6, 2) if extent > lanes else (8, 1)
    if extent is None or extent > 3 * lanes:
        if extent is not None and extent % (4 * lanes) and extent % (3 * lanes) == 0:
            return 8, 3
        return TILE
    return (8, 3) if extent > 2 * lanes else (8, 2) if extent > lanes else (8, 1)


def _in_blocks(root: ir.Operation, operand: int, schedule: dict[str, int | str]) -> dict[str, int | str]:
    """`schedule` with blocks of the reduction where a panel would fill the second level of cache."""
    element, panel = root.operands[operand].type.element_type, int(schedule.get("panel", 0))
    step, steps = panel * element.width // 8, innermost_extent(root)
    sums = sum("reduction" in str(t) for t in root.attributes["iterator_types"])
    if "ahead" not in schedule or steps is None or steps * step <= FAR // 2 or sums != 1 or not _is_f32(root):
        return schedule
    unroll = int(schedule["unroll"])
    depth = next((d for d in range(FAR // 4 // step, LEAST_DEPTH - 1, -1) if steps % d == 0 and d % unroll == 0), 0)
    if not depth:
        return schedule
    block = DEEP_BLOCK if int(schedule["ahead"]) < 0 else schedule["block"]
    return schedule | {"template": "deep_contraction", "depth": depth, "block": block}


def _window_in_blocks(
    root: ir.Operation,
    operand: int,
    order: Sequence[int],
    shape: Sequence[Extent],
    schedule: dict[str, int | str],
) -> dict[str, int | str]:
    """`schedule` with blocks of a convolution's outermost taps where its panel would fill the second level of cache: a
    few lines of the image go through a block together."""
    steps, wide = known(shape_of(root.operands[operand].type)), int(schedule["lanes"]) > NARROW_LANES
    columns = shape[int(schedule["vector_dim"])]
    if schedule["template"] != "contraction" or "panel" not in schedule or not _is_f32(root):
        return schedule
    most = LARGE_WINDOW if wide else FAR_WINDOW
    if not steps or not columns or steps // columns * int(schedule["panel"]) * 4 <= most:
        return schedule
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    taps = [d for d, reduced in enumerate(kinds) if reduced and reach(root, operand, d) != 1]
    rows = range(int(schedule["row_first"]), int(schedule["row_last"]) + 1)
    windows = [e for e in operand_map(root, 1 - operand).results if not isinstance(e, ir.AffineDimExpr)]
    lines = [
        i
        for i, d in enumerate(order)
        if any(mentions(e, d) and mentions(e, taps[0]) for e in windows) and i not in rows and shape[i] is not None
    ]
    if len(taps) < 2 or len(lines) != 1:
        return schedule
    line = known(shape[rows.start : rows.stop]) or ROWS_TOGETHER
    count = min(-(-ROWS_TOGETHER // line) if wide else LINES_TOGETHER, shape[lines[0]] or 1)
    return schedule | {"template": "deep_contraction", "depth": 1, "line_dim": lines[0], "lines": count}


def _fetching_addends(
    source: KernelSource, root: ir.Operation, unit: VectorUnit, schedule: dict[str, int | str]
) -> dict[str, int | str]:
    """`schedule` with matrices that are added to the sums fetched before these. Measured with sixteen registers: with
    more, tiles have twice the work to wait behind."""
    wanted = unit.registers < 32 and schedule["template"] == "contraction" and matrices_behind(source, root)
    return schedule | {"early": 1} if wanted else schedule


def _panel_bytes(root: ir.Operation, operand: int, unit: VectorUnit, columns: Extent) -> int:
    """How much of a weight every register tile of a panel reads; 0 where that is not known."""
    size, element = known(shape_of(root.operands[operand].type)), root.operands[operand].type.element_type
    if size is None or not columns:
        return 0
    return size // columns * TILE[1] * unit.lanes(root.results[0].type.element_type) * element.width // 8


def _line_vectors(extent: Extent, lanes: int, rows: int) -> int:
    """Vectors of a tile of few rows: as long a stretch of a matrix's line as accumulators allow, that memory is read in
    few streams."""
    most = LINE_VECTORS // rows
    return most if extent is None else min(most, -(-extent // lanes))


def _unroll(root: ir.Operation) -> int:
    """Unrolling of the innermost reduction dimension: a divisor of its extent."""
    extent = innermost_extent(root)
    return 1 if extent is None else next(u for u in (4, 3, 2, 1) if extent % u == 0)
