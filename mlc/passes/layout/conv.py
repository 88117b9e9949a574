"""`conv` becomes channels-last; its filter is transposed once, as a weight."""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import OpAdaptor
from mlc.passes.decompose import build as b
from mlc.passes.layout import Moved, moves
from mlc.passes.layout.context import Layouts, channels_last, rebuilt


@moves("conv")
def conv(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """`[O, I/g, k…]` filters become `[k…, I/g, O]`. A convolution that is channels-last already stays."""
    if OpAdaptor(op).text("layout", "nchw") == "nhwc":
        return None
    rank = op.operands[0].type.rank
    permutation = channels_last(rank)
    filter_ = b.transpose(layouts.materialized(op.operands[1]), [*range(2, rank), 1, 0])
    operands = [layouts.inner(op.operands[0], permutation), filter_, *map(layouts.materialized, list(op.operands)[2:])]
    new = rebuilt(op, operands, permutation, {"layout": b.text("nhwc")})
    return [Moved(new.results[0], permutation)]
