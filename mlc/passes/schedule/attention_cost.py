"""Parameters of the attention template from head dimensions, extents and the target's vector registers."""

from __future__ import annotations

from math import prod

from mlc.kernels.common.attention import Attention

ROWS_WANTED = 192  # per work item: what is packed for a block of keys is used by all of them
ITEMS_WANTED = 24
STACK = 24576  # floats of the item's queries and results


def choose_attention(attention: Attention, lanes: int, registers: int) -> dict[str, int | str]:
    """The schedule of a kernel that is `attention`."""
    shape = attention.output.op.results[0].type
    order = attention.output.order
    width = shape.get_dim_size(order.index(attention.output.column))
    extents = [None if shape.is_dynamic_dim(i) else shape.get_dim_size(i) for i in range(shape.rank)]
    rows = extents[order.index(attention.output.row)]
    height, vectors = (6, 4) if registers >= 32 else (4, 2)
    wanted = max(height, min(ROWS_WANTED, STACK // (2 * width)))
    if rows is not None:
        items = prod(extents[order.index(d)] or 1 for d in attention.output.batch)
        blocks = max(-(-rows // wanted), -(-ITEMS_WANTED // items))
        wanted = max(height, min(wanted, -(-rows // blocks)))
    block = -(-wanted // height) * height
    return {"template": "attention", "lanes": lanes, "rows": height, "vectors": vectors, "row_block": block}
