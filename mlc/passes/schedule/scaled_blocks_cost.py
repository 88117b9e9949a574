"""Schedules of products with weights of few bits whose blocks have scales (template `scaled_blocks`)."""

from __future__ import annotations

from mlir import ir

from mlc.kernels.common.analysis import touches
from mlc.kernels.common.generics import operand_map
from mlc.kernels.common.streamed import find_codes
from mlc.passes.schedule.extents import ITEMS_ENOUGH, MASKED_BITS, VectorUnit, known, shape_of

Schedule = dict[str, int | str]

SUMS, FEW_SUMS = 24, 8  # of a tile in thirty-two registers and in sixteen
MOST_VECTORS = 4
DEPTH_OF_CODES, DEPTH_OF_FLOATS = 4096, 1024  # most steps of a panel that is taken apart on the stack
MORE = 4  # times as many that may be, where a quarter would be left otherwise
NOTED = 1 << 17  # blocks of a work item's rows
FAR = 4096  # bytes before its turn that a weight is fetched
WORD_BYTES = 4
MOST_TILES = 32  # of a work item: each reads the panel again
WORDS = 4  # in a body of the loop over a block, of codes
_WEIGHT = 1  # the operand that has the columns


def choose_scaled_blocks(root: ir.Operation, unit: VectorUnit) -> Schedule | None:
    """The schedule of the contraction `root`; None where the template does not take it: a weight has codes in words, of
    known depth, and columns in its last dimension, and the other operand has rows along at most one dimension."""
    weight = find_codes(root.operands[_WEIGHT])
    if weight is None or not weight.bits:
        return None
    rows, shape = find_codes(root.operands[0]), shape_of(root.results[0].type)
    order = [ir.AffineDimExpr(e).position for e in operand_map(root, 2).results]
    own = [i for i, e in enumerate(shape) if e != 1 and not touches(root, _WEIGHT, order[i])]
    axis = len(shape) - 1
    if len(own) > 1 or not touches(root, _WEIGHT, order[axis]):
        return None
    lanes = unit.lanes(root.results[0].type.element_type)
    if rows is not None:
        instruction = "vpdpbusd" if unit.int8_dot else "vpmaddubsw"
    else:
        instruction = "lookup" if unit.bits == MASKED_BITS and weight.bits < 8 else "fma"
    columns, extent = shape[axis], shape[own[0]] if own else 1
    assert columns is not None
    vectors = min(MOST_VECTORS, columns // lanes)
    height = (SUMS if unit.registers > 16 else FEW_SUMS) // vectors
    height = height if extent is None else min(height, extent)
    panels = known([e for i, e in enumerate(shape) if i not in (axis, *own)])
    depth = shape_of(root.operands[0].type)[-1]
    assert depth is not None
    schedule: Schedule = {
        "template": "scaled_blocks",
        "lanes": lanes,
        "vector_dim": axis,
        "row_first": own[0] if own else -1,
        "row_last": own[0] if own else -2,
        "rows": height,
        "vectors": vectors,
        "unroll": WORDS if rows is not None else 1,
        "block": _tiles(extent, height, panels, -(-depth // weight.block)),
        "vector_operand": _WEIGHT,
        "instruction": instruction,
        "distance": FAR // (WORD_BYTES * vectors * lanes),
        "depth": depth,
    }
    if depth % weight.block == 0 and (extent is None or extent >= 2 * height):
        most = DEPTH_OF_CODES if rows is not None else DEPTH_OF_FLOATS
        schedule |= {"least": 2 * height, "depth": _part(depth, weight.block, most)}
    return schedule


def _part(depth: int, block: int, most: int) -> int:
    """How many steps of a panel are taken apart at a time: whole blocks, a divisor of all steps, at most `most` of
    them; more where only a few would be so many."""
    parts = [n for n in range(block, depth + 1, block) if depth % n == 0]
    fitting = max((n for n in parts if n <= most), default=0)
    larger = min((n for n in parts if most < n <= MORE * most), default=0)
    return larger if larger and fitting < most // MORE else fitting or block


def _tiles(rows: int | None, height: int, panels: int | None, blocks: int) -> int:
    """Row tiles of a work item: as many as leave enough items, and of whose blocks the stack holds a number each."""
    most = max(1, min(MOST_TILES, NOTED // (height * blocks)))
    if rows is None:
        return most
    wanted = -(-ITEMS_ENOUGH // max(1, panels or 1))
    return max(1, min(most, -(-rows // height) // wanted))
