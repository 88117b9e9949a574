"""`pool` follows the convolutions."""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import OpAdaptor
from mlc.passes.decompose import build as b
from mlc.passes.layout import Moved, moves
from mlc.passes.layout.context import Layouts, channels_last, rebuilt


@moves("pool")
def pool(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """Channels-last, unless it is already."""
    if OpAdaptor(op).text("layout", "nchw") == "nhwc":
        return None
    permutation = channels_last(op.operands[0].type.rank)
    new = rebuilt(op, [layouts.inner(op.operands[0], permutation)], permutation, {"layout": b.text("nhwc")})
    return [Moved(new.results[0], permutation)]
