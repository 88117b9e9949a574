"""Parameters of the attention templates from head dimensions, extents and the target's vector registers."""

from __future__ import annotations

from math import prod

from mlir import ir

from mlc.kernels.common.attention import Attention, shared_dim
from mlc.kernels.cpu.attention_fusion import row_elements
from mlc.kernels.cpu.tiles import ROWS
from mlc.passes.schedule.extents import VectorUnit

ROWS_WANTED = 768  # per work item: what is packed for a block of keys is used by all of them
ITEMS_WANTED = 16
HEAD_ITEMS = 4  # work items of heads that share keys, where only a run counts the rows
STACK, LARGE_STACK = 49152, 65536  # floats of the item's queries and results; processors with AVX-512 have large caches
TILE_ROWS_WANTED, TILE_ITEMS_WANTED = 256, 12  # on tiles, where a key takes as long to pack as with 20 rows
TILE_STACK = 32768  # results of the item there
KEY_VECTORS, WIDE = 8, 128  # of a block of keys on tiles, half as many for wider heads: all panels fit the second cache


def choose_attention(attention: Attention, unit: VectorUnit) -> dict[str, int | str]:
    """The schedule of a kernel that is `attention`: products are of f32, or of bf16 where the target has something
    faster for them. A single query is not worth it.
    """
    single = attention.scores.op.results[0].type.shape[-2] == 1
    is_bf16 = isinstance(attention.output.element, ir.BF16Type) and not single
    if is_bf16 and unit.bf16_tiles:
        chosen = _on_tiles(attention)
    else:
        template = "dot_attention" if is_bf16 and unit.bf16_dot else "attention"
        chosen = _in_registers(attention, template, unit)
    return {**chosen, "scalef": unit.scalef} if unit.scalef else chosen


def _in_registers(attention: Attention, template: str, unit: VectorUnit) -> dict[str, int | str]:
    """The schedule where tiles are vector registers."""
    registers, lanes = unit.registers, unit.lanes(ir.F32Type.get())
    height, vectors = (6, 4) if registers >= 32 else (4, 2)
    room = LARGE_STACK if registers >= 32 else STACK
    together = _heads_together(attention, room // (2 * _width(attention) * height))
    most = min(ROWS_WANTED, room // (2 * _width(attention))) // together
    block = _row_block(attention, height, most, ITEMS_WANTED)
    schedule: dict[str, int | str] = {"template": template, "lanes": lanes, "rows": height, "vectors": vectors}
    return {**schedule, "row_block": block, **({"together": together} if together > 1 else {})}


def _heads_together(attention: Attention, most: int) -> int:
    """How many heads of a group a work item has: as many as leave some items, and `most`."""
    shared = shared_dim(attention)
    if shared is None:
        return 1
    shape, order = attention.output.op.results[0].type.shape, attention.output.order
    heads = shape[order.index(shared)]
    others = prod(max(shape[order.index(d)], 1) for d in attention.output.batch if d != shared)
    fitting = (n for n in range(min(heads, most), 0, -1) if heads % n == 0)
    return next((n for n in fitting if others * heads // n >= HEAD_ITEMS), 1)


def _on_tiles(attention: Attention) -> dict[str, int | str]:
    """The schedule for products of bf16 on matrix tiles."""
    rows, keys = attention.scores.op.results[0].type.shape[-2:]
    widest = max(row_elements(attention.scores), _width(attention))
    height = ROWS if 0 < rows <= ROWS else 2 * ROWS
    vectors = KEY_VECTORS if widest <= WIDE else KEY_VECTORS // 2
    if keys > 0:
        vectors = min(vectors, 2 * -(-keys // (2 * ROWS)))
    block = _row_block(attention, height, min(TILE_ROWS_WANTED, TILE_STACK // widest), TILE_ITEMS_WANTED)
    return {"template": "tile_attention", "lanes": ROWS, "rows": height, "vectors": vectors, "row_block": block}


def _row_block(attention: Attention, step: int, most: int, items_wanted: int) -> int:
    """Rows of a work item, a multiple of `step`: about `most`, or fewer where there would be few items."""
    shape = attention.output.op.results[0].type
    order = attention.output.order
    extents = [None if shape.is_dynamic_dim(i) else shape.get_dim_size(i) for i in range(shape.rank)]
    rows = extents[order.index(attention.output.row)]
    wanted = max(step, most)
    if rows is not None:
        items = prod(extents[order.index(d)] or 1 for d in attention.output.batch)
        blocks = max(-(-rows // wanted), -(-items_wanted // items))
        wanted = max(step, min(wanted, -(-rows // blocks)))
    return -(-wanted // step) * step


def _width(attention: Attention) -> int:
    """Columns of a head's values."""
    shape, order = attention.output.op.results[0].type, attention.output.order
    return int(shape.get_dim_size(order.index(attention.output.column)))
