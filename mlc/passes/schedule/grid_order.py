"""In which order the work items of contractions on CPUs follow each other, and what is fetched meanwhile."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlir import ir

from mlc.kernels.common.analysis import touches
from mlc.kernels.common.generics import operand_map
from mlc.kernels.cpu.next_panel import FETCHING_ROWS, FETCHING_TILES
from mlc.kernels.cpu.tile_rows import LINES
from mlc.passes.schedule.extents import Extent, along, at_least, known, shape_of
from mlc.passes.schedule.pairs import Schedule, innermost
from mlc.passes.schedule.work_items import rows_of, size_of_tile

NEAR = 1 << 15  # bytes of a panel that may stay in the first level of cache
LARGE_WINDOW = 1 << 20  # bytes of the weight of a window that the second level of cache does not have from the last run
WHOLE_LINE = 16  # lanes: with vectors of half a line more tiles read a panel, and blocks of taps stay near
STREAMED = 1 << 18  # bytes of a weight on tiles that the second level of cache does not have from the last run
REREAD = 1 << 20  # bytes of rows and results on tiles that it does not keep until the next panel
BLOCK_OF_ROWS = 1 << 15  # bytes of rows and results on tiles that a work item keeps near
HELD = 5 << 18  # bytes that the second level of cache has from the last panel, though much else has passed
BESIDE = 1 << 20  # bytes of a weight on tiles that stays there while rows and results pass by,
NEAR_RESULTS = 3 << 17  # bytes of these that do so together,
NEAR_ROWS = 3 << 18  # and of rows that stay there while panels of a larger one pass by
PARTS = (4, 2)  # of the rows: threads that have each their own, or two of them
ROWS_OF_PART = 96  # that read a panel in a tenth of the time in which they multiply it
# Templates with the grid of `contraction`.
IN_PARTS = ("contraction", "dot_product", "dot_quads", "dot_words", "tile_product")


def _shares(root: ir.Operation, operand: int, axis: int) -> bool:
    """Do all points of dimension `axis` of the result read the same elements of input `operand`?"""
    return not touches(root, operand, ir.AffineDimExpr(operand_map(root, 2).results[axis]).position)


def in_parts(root: ir.Operation, operand: int, shape: Sequence[Extent], schedule: Schedule) -> Schedule:
    """`schedule` with the rows in as many parts as threads may be, each of which meets all panels.

    Threads have neighbouring work items: what one has written, of an image, it reads in the next kernel from its own
    cache. A panel is read again for every part, so that one must have rows enough. What is another input at other
    points of the result, as for products of a batch, is in no parts; nor is a panel that lines of an image fetch ahead.
    Panels of a depthwise convolution read different channels, pieces of the same lines of the cache, so that each line
    of an image meets all of them while it is near.
    """
    axis, first, last = (int(schedule[k]) for k in ("vector_dim", "row_first", "row_last"))
    columns, (height, panel) = shape[axis], size_of_tile(schedule)
    if schedule["template"] not in IN_PARTS or columns is None or columns <= panel or first < 0:
        return schedule
    if schedule["template"] != "contraction" and "packed_operand" not in schedule:
        return schedule
    moving = [i for i, e in enumerate(shape) if i != axis and e != 1]
    if not all(_shares(root, operand, i) for i in moving):
        return schedule
    others = math.prod(shape[i] or 1 for i in moving if not first <= i <= last)
    rows = rows_of(shape, schedule) or math.prod(e or 1 for e in shape[first : last + 1])
    if int(schedule.get("ahead", 0)) < 0 or "ahead" in schedule and others != 1:
        return schedule
    weight = root.operands[operand].type
    size = (known(shape_of(weight)) or 1) // columns * panel * weight.element_type.width // 8
    enough = size <= NEAR // 2
    if at_least([e for i, e in enumerate(shape) if i != axis], ROWS_OF_PART) is None:
        return schedule if "ahead" in schedule else schedule | _parts_of_unknown(root, operand, axis, enough)
    tiles, block = -(-rows // height), int(schedule["block"])
    parts = next((n for n in PARTS if enough or others * rows >= n * ROWS_OF_PART), 0)
    if not parts or others * tiles < parts:
        return schedule
    if others >= parts:
        lines = -(-others // parts) if _shares(root, 1 - operand, axis) else 1
        return schedule | {"part": lines * -(-tiles // block)}
    if others > 1:
        return schedule
    tiles = -(-tiles // parts)
    part = -(-tiles // block)
    return schedule | {"block": -(-tiles // part), "part": part}


def _parts_of_unknown(root: ir.Operation, operand: int, axis: int, enough: bool) -> Schedule:
    """`part` where only a run knows how many rows there are: of images whose size is not known, above all."""
    if not _shares(root, 1 - operand, axis):
        return {"part": 1}
    is_window = str(root.attributes["iterator_types"]).count("reduction") > 1
    return {"part": -PARTS[0] if enough or is_window else -PARTS[1]}


def rows_ahead(
    root: ir.Operation, operand: int, shape: Sequence[Extent], schedule: Schedule, is_distant: bool
) -> Schedule:
    """`ahead`, where rows fetch the next panel of the packed `operand`: how many do, or −n where a run counts them,
    from n on. `is_distant`: is what the second level of cache lacks far away?
    """
    axis, panel = int(schedule["vector_dim"]), int(schedule["panel"])
    columns, weight = shape[axis], root.operands[operand].type
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    size = known(shape_of(weight))
    enough = FETCHING_ROWS if is_distant else FETCHING_TILES * int(schedule["rows"])
    rows = at_least([e for i, e in enumerate(shape) if i != axis and _shares(root, operand, i)], enough)
    if columns is None or columns <= panel or size is None:
        return {}
    width, is_widened = weight.element_type.width // 8, schedule["template"] == "dot_floats"  # in blocks that stay near
    if sum(kinds) != 1 and (is_widened or int(schedule["lanes"]) < WHOLE_LINE):
        return {}
    if sum(kinds) != 1 and size * width < LARGE_WINDOW:
        return {}
    if size // columns * panel * width <= NEAR:
        return {}
    if rows is None:
        return {"ahead": -enough}
    return {"ahead": rows} if rows >= enough else {}


def tiles_in_order(root: ir.Operation, operand: int, shape: Sequence[Extent], schedule: Schedule) -> Schedule:
    """`schedule` with `ahead`, or `block` and `part`, of a product on matrix tiles, which take operands from memory
    faster than it has them.

    Of a large weight the next panel is fetched; rows count that are of one line where two lines are side by side. It is
    met by as many rows as the second level of cache keeps, one part after the other. A small weight stays there itself:
    where rows and results do not, blocks of rows meet it whole, so that both pass once.
    """
    axis = int(schedule["vector_dim"])
    weight, columns, (height, panel) = root.operands[operand].type, shape[axis], size_of_tile(schedule)
    size, width = known(shape_of(weight)), weight.element_type.width // 8
    if schedule["stored"] != "tiles" or size is None or columns is None or columns <= panel:
        return schedule
    rows = known([e for i, e in enumerate(shape) if i != axis and _shares(root, operand, i)])
    if size * width >= STREAMED:
        fetching = _tiles_ahead(shape, schedule, rows)
        return schedule | fetching | _part_that_is_near(root, operand, shape, schedule, size * width)
    row = (innermost_extent(root) or 1) * width
    if rows is None or rows * (row + columns * width) <= REREAD or columns <= 2 * panel:
        return in_parts(root, operand, shape, schedule)
    return schedule | {"block": max(1, BLOCK_OF_ROWS // ((row + columns * width) * height)), "part": 1}


def _tiles_ahead(shape: Sequence[Extent], schedule: Schedule, rows: Extent) -> Schedule:
    """`ahead` of a product on matrix tiles with a large weight that all `rows` share."""
    dim = int(schedule.get("line_dim", -1))
    lines = shape[dim] if dim >= 0 else 1
    if rows is None or lines is None:
        return {"ahead": -FETCHING_TILES * int(schedule["rows"])}
    return {"ahead": rows // lines * -(-lines // LINES) if dim >= 0 else rows}


def _part_that_is_near(
    root: ir.Operation, operand: int, shape: Sequence[Extent], schedule: Schedule, size: int
) -> Schedule:
    """`part`, and `block`, of a product on matrix tiles with a weight of `size` bytes and more rows than the second
    level of cache keeps until the next panel: as many as it keeps. {} where it keeps all, or where they are not known;
    of rows that a run counts there may be as many.

    What is read again of far away are all rows for every panel, or the weight for every part; a weight that has room
    beside a part stays near itself, if results do not take its place.
    """
    axis, first, last = (int(schedule[name]) for name in ("vector_dim", "row_first", "row_last"))
    length, height, block = rows_of(shape, schedule), int(schedule["rows"]), int(schedule["block"])
    others = known([e for i, e in enumerate(shape) if i != axis and not first <= i <= last])
    row = _bytes_of_row(root, 1 - operand, others and length and others * length)
    if others is None or row is None or not all(_shares(root, operand, i) for i in range(len(shape)) if i != axis):
        return {}
    near = NEAR_RESULTS if size <= BESIDE else NEAR_ROWS
    if size <= BESIDE:
        row += (shape[axis] or 1) * root.operands[1 - operand].type.element_type.width // 8
    if length is None:
        return {"block": max(1, near // (row * height)), "part": 1} if others == 1 else {}
    if row * length * others <= HELD:
        return {}
    tiles = -(-length // height)
    if others == 1:
        parts = -(-tiles // max(1, near // (row * height)))
        return {"block": -(-tiles // parts), "part": 1}
    lines = near // (row * length * (LINES if "line_dim" in schedule else 1))
    return {"part": max(1, lines) * -(-tiles // block)}


def _bytes_of_row(root: ir.Operation, along: int, rows: Extent) -> int | None:
    """How many bytes of input `along` one of so many `rows` of a contraction reads, of a window its share of all."""
    type_ = root.operands[along].type
    width = type_.element_type.width // 8
    if str(root.attributes["iterator_types"]).count("reduction") == 1:
        return (innermost_extent(root) or 1) * width
    size = known(shape_of(type_))
    return None if size is None or rows is None else max(1, size * width // rows)


def innermost_extent(root: ir.Operation) -> Extent:
    """The extent of the innermost reduction dimension."""
    return along(root, innermost(root))
