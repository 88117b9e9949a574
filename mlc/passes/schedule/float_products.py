"""Which contractions of bf16 are multiplied in f32 (template `dot_floats`), in place of `dot_product`: those of targets
without an instruction for pairs, or with a slow one, that have rows enough to widen a weight for. So are those with a
weight of f16, where it is not widened beside multiply-adds anyway."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlir import ir

from mlc.kernels.common.analysis import touches
from mlc.kernels.common.generics import operand_map
from mlc.passes.schedule.extents import Extent, VectorUnit, known, summed
from mlc.passes.schedule.pairs import Schedule, in_groups, reads_halves, sums_bf16

# By the number of registers: rows of a tile by the vectors of a side; how many sides a tile has at most, as with narrow
# vectors it takes several to spread what widened rows cost; bytes of a block of the weight in f32, which shares the
# first level of cache (48 kB where there is AVX-512, else 32) with rows and sums; rows that it is widened for, as
# multiply-adds on halves in registers take longer where there are few of these.
TILES = {32: {1: 14, 2: 12, 3: 8, 4: 6}, 16: {1: 10, 2: 6, 3: 4}}
MOST_SIDES = {32: 1, 16: 2}
BLOCK = {32: 24 << 10, 16: 16 << 10}
LEAST_ROWS = {32: 16, 16: 4}
LEAST_HALVES = 32  # the same for weights of f16, whose rows are f32
LEAST_DEPTH = 32  # steps of a block that pay for loading and storing the sums
LEAST_CHANNELS = 16  # of the innermost dimension: rows of fewer are widened in parts of a vector
ITEM_ROWS, FEW_ROWS = 128, 32  # rows of a work item: where these make few items, no fewer than that
ANY_ROWS = 16  # tiles of a work item whose rows only a run knows
LEAST_ITEMS = 8
UNROLLS = (4, 3, 2, 1)


def as_dot_floats(
    root: ir.Operation, operand: int, schedule: Schedule, shape: Sequence[Extent], unit: VectorUnit
) -> Schedule | None:
    """`schedule`, of the contraction `root` with vectors of input `operand` and a result of `shape`, for the template.

    None where the template does not apply: what `as_dot_product` asks for, of a packed weight and a known number of
    steps, with rows of the same type or, of a weight of f16, of f32; or where it does not pay.
    """
    halves = reads_halves(root, operand)
    is_slow = not unit.widens_beside if halves else sums_bf16(root) and not unit.bf16_dot
    if not is_slow or "packed_operand" not in schedule:
        return None
    if in_groups(root, operand, schedule, 2) is None:
        return None
    extents = summed(root)
    columns, lanes, registers = shape[int(schedule["vector_dim"])], int(schedule["lanes"]), unit.registers
    if None in extents or columns is None or (extents[-1] or 0) < LEAST_CHANNELS:
        return None
    steps, tiles = [e for e in extents if e is not None and e != 1], TILES[registers]
    side = min(-(-columns // lanes), max(tiles))
    sides = min(MOST_SIDES[registers], -(-columns // (side * lanes)))
    panel = lanes * side * sides
    outer, depth = _block(steps, BLOCK[registers] // (4 * panel), 1 if halves else 2)
    stored = "rows" if halves else "pairs"
    changed: Schedule = {"template": "dot_floats", "stored": stored, "vector_operand": operand, "panel": panel}
    changed |= {"rows": tiles[side], "vectors": side * sides, "side": side, "outer": outer, "depth": depth}
    least = LEAST_HALVES if halves else LEAST_ROWS[registers]
    items = _items(root, operand, shape, {**schedule, **changed}, least) if depth else None
    if items is None:
        return None
    inner = depth if outer == len(steps) - 1 else steps[-1]
    kept = {name: value for name, value in schedule.items() if name not in ("tail", "ahead")}
    return {**kept, **changed, "unroll": next(u for u in UNROLLS if inner % u == 0), **items}


def _block(steps: Sequence[int], most: int, together: int) -> tuple[int, int]:
    """A block of at most so many lines of a panel, of a reduction of `steps`: in front of how many dimensions it is one
    step, and how many of the next one it has; (0, 0) where that is too little. Of lines that are stored `together`, as
    pairs, a block of channels has an even number.
    """
    whole = steps[-1] + steps[-1] % together
    for outer, extent in enumerate(steps):
        is_inner = outer == len(steps) - 1
        lines = 1 if is_inner else whole * math.prod(steps[outer + 1 : -1])
        fitting = [d for d in range(1, most // lines + 1) if extent % d == 0 and (not is_inner or d % together == 0)]
        if is_inner and extent <= most:
            fitting.append(extent)
        depth = max(fitting, default=0)
        is_tap = outer == len(steps) - 2 and depth == 1  # the same as all its channels
        if depth and not is_tap:
            return (outer, depth) if depth * lines >= LEAST_DEPTH or depth == math.prod(steps) else (0, 0)
    return 0, 0


def _items(
    root: ir.Operation, operand: int, shape: Sequence[Extent], schedule: Schedule, least: int
) -> Schedule | None:
    """`block`, and `line_dim` and `lines`, of work items with enough rows; None where there are fewer than `least`, and
    `least` for the kernel where only a run knows."""
    axis, first, last = (int(schedule[name]) for name in ("vector_dim", "row_first", "row_last"))
    height, columns = int(schedule["rows"]), shape[axis]
    rows = known(shape[first : last + 1]) if first >= 0 else 1
    if rows is None or columns is None:
        is_product = ["reduction" in str(t) for t in root.attributes["iterator_types"]].count(True) == 1
        return {"block": ANY_ROWS, "least": least} if is_product else {"block": ANY_ROWS}
    order = [ir.AffineDimExpr(e).position for e in operand_map(root, 2).results]
    others = [i for i in range(len(shape)) if i != axis and not first <= i <= last and shape[i] != 1]
    lines = [i for i in others if shape[i] is not None and not touches(root, operand, order[i])]
    items = -(-columns // int(schedule["panel"])) * math.prod(shape[i] or 1 for i in others)
    if lines and 2 * rows <= ITEM_ROWS:
        extent = shape[lines[-1]] or 1
        count = min(extent, ITEM_ROWS // rows)
        while items // extent * -(-extent // count) < LEAST_ITEMS and rows * (count // 2) >= FEW_ROWS:
            count //= 2
        if rows * count < least:
            return None
        return {"block": -(-rows // height), "line_dim": lines[-1], "lines": count}
    if rows < least:
        return None
    blocks = -(-rows // ITEM_ROWS)
    while items * blocks < LEAST_ITEMS and rows >= 2 * blocks * FEW_ROWS:
        blocks *= 2
    return {"block": -(-rows // (height * blocks))}
