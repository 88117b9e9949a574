"""Which schedules are tried for a kernel: a few around the cost model's.

One parameter changes at a time; `search` tries the best values together afterwards. What would leave too few work items
for several threads is not tried: timings are of one thread, and would favour it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from mlir import ir

from mlc.kernels.common.analysis import is_contraction, reachable
from mlc.kernels.common.frame import KernelSource
from mlc.kernels.common.generics import operand_map
from mlc.kernels.cpu.register_tile import split_rows
from mlc.tuning.cache import COPYING, OF_COPIES, Schedule

TUNED = ("contraction", "copy_ahead", "deep_contraction", "panel_copy", "dot_product", "line_product", "loops")
MOST = 12
ENOUGH_ITEMS = 16  # work items below which none are given up
COPIED_ELEMENTS = 1 << 16  # of a panel on the stack
_UNROLLS = (1, 2, 3, 4, 8)
_MOST_ROWS, _ROW_VALUES = 16, 5

Extents = Sequence[int]


def candidates(source: KernelSource, schedule: Schedule, shape: Extents, registers: int) -> list[Schedule]:
    """Schedules to try beside `schedule`, at most MOST, the likely ones first.

    `shape` is that of the first result, `registers` how many vector registers the target has.
    """
    if schedule["template"] == "loops":
        found = _loops(schedule, shape)
    elif schedule["template"] == "line_product":
        found = _lines(schedule, registers)
    elif schedule["template"] in TUNED:
        found = _contractions(source, schedule, shape, registers)
    else:
        return []
    enough = min(_items(schedule, shape), ENOUGH_ITEMS)
    kept: list[Schedule] = []
    for one in found:
        if one != schedule and one not in kept and _items(one, shape) >= enough:
            kept.append(one)
    return kept[:MOST]


def _items(s: Schedule, shape: Extents) -> int:
    """The work items of a schedule, as the templates' grids count them."""
    if s["template"] == "loops":
        inner = prod(shape[int(s["first"]) : int(s["last"]) + 1])
        items = prod(shape[: int(s["grid"])]) * (-(-inner // int(s["block"])) if s["block"] else 1)
        return -(-items // int(s.get("together", 1)))
    axis, first, last = (int(s[name]) for name in ("vector_dim", "row_first", "row_last"))
    outer = prod(e for i, e in enumerate(shape) if i != axis and not first <= i <= last)
    if s["template"] == "line_product":
        return outer * -(-shape[axis] // int(s["item"]))
    panels = -(-shape[axis] // (int(s["lanes"]) * int(s["vectors"])))
    return panels * outer * -(-_row_extent(s, shape) // (int(s["rows"]) * int(s["block"])))


def _row_extent(s: Schedule, shape: Extents) -> int:
    first = int(s["row_first"])
    return prod(shape[first : int(s["row_last"]) + 1]) if first >= 0 else 1


def _loops(s: Schedule, shape: Extents) -> Iterator[Schedule]:
    block, grid = int(s["block"]), int(s["grid"])
    if block:  # a loop that is whole may keep values of a row, which blocks would compute anew
        for size in (block // 2, block * 2, block * 4):
            if size >= int(s["lanes"]):
                yield {**s, "block": size}
    for rank in (grid - 1, grid + 1):
        if 0 <= rank <= min(int(s["first"]), len(shape)):
            yield {**s, "grid": rank}


def _lines(s: Schedule, registers: int) -> Iterator[Schedule]:
    item, line, steps = int(s["item"]), int(s["line"]), int(s["steps"])
    for size in (item * 2, item // 2, item * 4):
        if int(s["lanes"]) * int(s["vectors"]) <= size <= line:
            yield {**s, "item": size}
    for count in (steps // 2, steps * 2):
        yield {**s, "steps": count}
    for length in (line // 2, line * 2):
        if length % item == 0:
            yield {**s, "line": length}
    for vectors in (1, 2, 4):
        if vectors * (int(s["rows"]) + 1) < registers and item % (int(s["lanes"]) * vectors) == 0:
            yield {**s, "vectors": vectors}


def _contractions(source: KernelSource, s: Schedule, shape: Extents, registers: int) -> Iterator[Schedule]:
    rows, block = int(s["rows"]), int(s["block"])
    for height in _heights(s, _row_extent(s, shape), registers):
        yield {**s, "rows": height, "block": max(1, round(rows * block / height))}
    root = next(op for op in reachable(source.results) if is_contraction(op))
    copying = _copying(root, s)
    if copying is not None:
        yield copying
    yield {**s, "block": max(1, block // 2)}
    yield {**s, "block": block * 2}
    _, depth = reductions_of(root)[-1]
    if depth is not None and s["template"] != "copy_ahead":  # which has groups of steps of its own
        steps = depth // 2 if s["template"] == "dot_product" else depth
        for unroll in _UNROLLS:
            if steps % unroll == 0:
                yield {**s, "unroll": unroll}


def _heights(s: Schedule, extent: int, registers: int) -> list[int]:
    """Other heights of the register tile, the near ones first; none that splits the rows as another does."""
    rows, vectors = int(s["rows"]), int(s["vectors"])
    if int(s["row_first"]) < 0:
        return []
    most = min(_MOST_ROWS, registers // vectors - 1)
    near = sorted(range(max(2, rows // 2), most + 1), key=lambda n: (abs(n - rows), -n))
    known, found = {tuple(split_rows(extent, rows))}, []
    for height in near:
        split = tuple(split_rows(extent, height))
        if split not in known:
            known.add(split)
            found.append(height)
    return found[:_ROW_VALUES]


def reductions_of(root: ir.Operation) -> list[tuple[int, int | None]]:
    """The reduction dimensions of a contraction, in loop order, with their extents where those are known."""
    kinds = ["reduction" in str(t) for t in root.attributes["iterator_types"]]
    return [(dim, _extent(root, dim)) for dim, reduced in enumerate(kinds) if reduced]


def _extent(root: ir.Operation, dim: int) -> int | None:
    for operand in range(2):
        type_ = root.operands[operand].type
        for at, expr in enumerate(operand_map(root, operand).results):
            if isinstance(expr, ir.AffineDimExpr) and expr.position == dim and not type_.is_dynamic_dim(at):
                return int(type_.get_dim_size(at))
    return None


def _copying(root: ir.Operation, s: Schedule) -> Schedule | None:
    """The same tiles with a copied panel, or without where the panel is; None where neither is possible."""
    if s["template"] == "panel_copy":
        return {**{k: v for k, v in s.items() if k not in OF_COPIES}, "template": COPYING[0]}
    if s["template"] != COPYING[0] or "packed_operand" in s:
        return None
    moving = [extent for _, extent in reductions_of(root) if extent != 1]
    if len(moving) != 1 or moving[0] is None:
        return None
    if moving[0] * int(s["lanes"]) * int(s["vectors"]) > COPIED_ELEMENTS:
        return None
    columns = ir.AffineDimExpr(operand_map(root, 2).results[int(s["vector_dim"])]).position
    holding = [operand for operand in range(2) if _is_last(root, operand, columns)]
    same = {str(v.type.element_type) for v in root.operands}
    if len(holding) != 1 or same not in ({"f32"}, {"f64"}):
        return None
    return {**s, "template": COPYING[1], "vector_operand": holding[0]}


def _is_last(root: ir.Operation, operand: int, dim: int) -> bool:
    """Is every index of the operand plain, and the last one `dim`?"""
    exprs = list(operand_map(root, operand).results)
    return all(isinstance(e, ir.AffineDimExpr) for e in exprs) and ir.AffineDimExpr(exprs[-1]).position == dim
