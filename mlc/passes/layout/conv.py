"""`conv` becomes channels-last; its filter is transposed once, as a weight."""

from __future__ import annotations

from mlir import ir

from mlc.passes.adaptor import OpAdaptor, defining_op, element
from mlc.passes.decompose import build as b
from mlc.passes.layout import Moved, moves
from mlc.passes.layout.context import Layouts, channels_last, rebuilt


@moves("conv")
def conv(layouts: Layouts, op: ir.Operation) -> list[Moved | None] | None:
    """`[O, I/g, k…]` filters become `[k…, I/g, O]`. A convolution that is channels-last already stays."""
    if OpAdaptor(op).text("layout", "nchw") == "nhwc":
        return None
    if _is_alone(layouts, op):
        return None
    rank = op.operands[0].type.rank
    permutation = channels_last(rank)
    filter_ = b.transpose(layouts.materialized(op.operands[1]), [*range(2, rank), 1, 0])
    operands = [layouts.inner(op.operands[0], permutation), filter_, *map(layouts.materialized, list(op.operands)[2:])]
    new = rebuilt(op, operands, permutation, {"layout": b.text("nhwc")})
    return [Moved(new.results[0], permutation)]


_LARGEST = 7  # taps along a dimension up to which planes have a kernel of their own
_POINTWISE = frozenset(f"mlc.{name}" for name in ("unary", "binary", "activation", "clamp", "select", "cast", "prelu"))


def _is_alone(layouts: Layouts, op: ir.Operation) -> bool:
    """Is `op` a depthwise convolution of a CPU that would be transposed twice for its own sake?

    The CPU has a kernel for planes (`mlc/kernels/cpu/planes.py`): only between operations that are channels-last anyhow
    is that layout the better one.
    """
    if layouts.target.startswith("cuda") or not _is_depthwise(op):
        return False
    producer = defining_op(op.operands[0])
    if layouts.of(op.operands[0]) is not None or producer is not None and producer.name == "mlc.transpose":
        return False
    waiting, seen = [op], {op}
    while waiting:
        for use in (use for result in waiting.pop().results for use in result.uses):
            user = use.owner.operation
            if user.name in ("mlc.conv", "mlc.pool", "mlc.transpose"):
                return False
            if user.name in _POINTWISE and user not in seen:
                seen.add(user)
                waiting.append(user)
    return True


def _is_depthwise(op: ir.Operation) -> bool:
    """Has a convolution a small filter for every channel of an image of known extents?"""
    image, filter_ = (list(v.type.shape) for v in list(op.operands)[:2])
    if len(image) != 4 or min(image[1:]) < 1 or min(filter_) < 1 or max(filter_[2:]) > _LARGEST:
        return False
    return isinstance(element(op.operands[0]), ir.F32Type) and OpAdaptor(op).int("groups") == image[1] == filter_[0]
